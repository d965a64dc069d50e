//! The transmit side: from the interface to a path, from there to the network, and keepalives.
//!
//! It decides about the MTU too ([`mtu`](super::mtu)), because it is told when a datagram is too big.

use std::sync::Arc;

use anyhow::Context as _;
use mpt_io::tun::{Burst, Device};
use mpt_io::udp::Socket;
use mpt_proto::{ConnectionId, Instant, Note, PathId, Traffic};

use super::mtu::Mtu;
use super::open::{ConnectionInfo, core_status};
use super::outgoing::Outgoing;
use super::{Command, Order};
use crate::config;

/// Reads from the interface in one wake-up, and the bytes after which there is no further one:
/// enough to fill a train for each of a few paths, little enough that received datagrams do not wait
/// for long.
const DEVICE_READS: usize = 64;
const DEVICE_BYTES: u64 = 256 << 10;

/// Everything that sending needs.
pub(super) struct TransmitLoop {
    pub(super) settings: Arc<config::Tunnel>,
    pub(super) device: Arc<Device>,
    pub(super) sockets: Arc<[Socket]>,
    pub(super) connections: Vec<ConnectionInfo>,
    pub(super) endpoint: mpt_proto::TransmitSide,
    pub(super) outgoing: Outgoing,
    pub(super) burst: Burst,
    /// Inner packets read from the interface.
    pub(super) read: Traffic,
    pub(super) mtu: Mtu,
}

impl TransmitLoop {
    /// Takes inner packets from the interface and stages their datagrams.
    ///
    /// # Errors
    ///
    /// If the interface is gone.
    pub(super) fn read_device(&mut self, now: Instant) -> anyhow::Result<()> {
        let elided = self.settings.elided;
        let budget = self.read.bytes + DEVICE_BYTES;
        for _ in 0..DEVICE_READS {
            if self.read.bytes >= budget {
                break;
            }
            let read = self.device.read(&mut self.burst);
            let Some(mut packets) = read.context("the interface is gone")? else { break };
            while let Some(packet) = packets.next_unfinished() {
                self.read.packets += 1;
                self.read.bytes += packet.bytes().len() as u64;
                let Some(transmit) = self.endpoint.handle_inner(packet.bytes()) else { continue };
                self.outgoing.stage_with(now, &transmit, &self.sockets, |datagram| {
                    transmit.emit_with(datagram, |place| match elided {
                        false => packet.emit(place),
                        true => drop(packet.emit_elided(place)),
                    });
                });
            }
        }
        Ok(())
    }

    /// The receive side has something to say.
    pub(super) fn handle_note(&mut self, now: Instant, (connection, note): (ConnectionId, Note)) {
        self.endpoint.handle_note(now, connection, note);
    }

    /// Does its part of what other threads ask for, and says what the receive side has to do.
    pub(super) fn carry_out(&mut self, now: Instant, command: Command) -> Option<Order> {
        match command {
            Command::Status(reply) => {
                Some(Order::Status { status: Box::new(self.report()), reply })
            }
            Command::SetPathStatus { connection, path, status, reply } => {
                let Some((connection, path)) = self.find_path(&connection, &path) else {
                    // Whoever asked may have lost patience; then nobody reads the answer.
                    let _ = reply.send(false);
                    return None;
                };
                let paths = &mut self.connections[usize::from(connection.0)].paths;
                paths[usize::from(path.0)].settings.status = status;
                let status = core_status(status);
                self.endpoint.set_path_status(now, connection, path, status);
                Some(Order::SetPathStatus { connection, path, status, reply })
            }
            Command::Stop => {
                self.endpoint.close(now);
                Some(Order::Stop)
            }
        }
    }

    fn find_path(&self, connection: &str, path: &str) -> Option<(ConnectionId, PathId)> {
        let at = self.connections.iter().position(|info| info.settings.name == connection)?;
        let paths = &self.connections[at].paths;
        let place = paths.iter().position(|info| info.settings.name == path)?;
        Some((ConnectionId(at as u16), PathId(place as u8)))
    }

    /// Sends what is due and what was staged.
    pub(super) fn send(&mut self, now: Instant) {
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            self.outgoing.stage(now, &transmit, &self.sockets);
        }
        self.outgoing.flush(now, &self.sockets);
    }

    /// When there is something to do although nothing arrives.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let keepalive = self.endpoint.poll_timeout().map(|next| next.at);
        keepalive.into_iter().chain(self.mtu_check_due()).min()
    }
}
