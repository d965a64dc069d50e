//! The way between the hosts: where datagrams come from, and where they get to.
//!
//! The first host can be behind a translator, which has given each of its lanes a port and may give it another one:
//! then what is sent to the port before gets lost.

use std::net::SocketAddr;

use mpt_proto::{ConnectionId, Origin, SocketId};

use super::host::Sent;
use super::settings::{CONNECTIONS, LANES, outer_address};

/// How far apart the ports are that a lane gets one after the other.
const PORT_STEP: u16 = 1000;

/// So many ports are used in turn.
const PORTS: u16 = 8;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    /// The host that sent it.
    pub(super) from: usize,
    pub(super) sent: Sent,
}

#[derive(Default)]
pub(super) struct Network {
    /// How often the translator has given each lane another port.
    rebound: [u16; LANES],
}

impl Network {
    /// From here on what the first host sends on a lane comes from another port.
    pub(super) fn rebind(&mut self, lane: u8) {
        let rebound = &mut self.rebound[usize::from(lane)];
        *rebound = (*rebound + 1) % PORTS;
    }

    /// Where a host's datagrams of a connection come from.
    pub(super) fn origin(
        &self,
        from: usize,
        connection: ConnectionId,
        lane: u8,
        tos: u8,
    ) -> Origin {
        let remote = self.address(from, connection, lane);
        Origin { socket: SocketId(u16::from(lane)), remote, tos }
    }

    fn address(&self, host: usize, connection: ConnectionId, lane: u8) -> SocketAddr {
        let mut address = outer_address(host, connection, lane);
        let rebound = if host == 0 { self.rebound[usize::from(lane) % LANES] } else { 0 };
        address.set_port(address.port() + rebound * PORT_STEP);
        address
    }

    /// Where the other host sees a datagram come from; `None` if it does not get there.
    pub(super) fn arrive(&self, datagram: &Flying) -> Option<Origin> {
        let Flying { from, sent: Sent { lane, remote, tos, .. } } = *datagram;
        let mut connections = (0..CONNECTIONS as u16).map(ConnectionId);
        let connection = connections.find(|id| self.address(1 - from, *id, lane) == remote)?;
        Some(self.origin(from, connection, lane, tos))
    }
}
