//! Settings that both hosts agree on, as bytes choose them.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_proto::wire::gre::{Header, Protocol};
use mpt_proto::{
    ConnectionConfig, EndpointConfig, Late, Origin, PathConfig, PathId, PathStatus, Pins, Prefix,
    ReorderConfig, SchedulerConfig, Seq, SocketId,
};

use super::packet;
use crate::input::Input;

pub(super) struct Settings {
    key: Option<u32>,
    checksum: bool,
    pub(super) sequence: bool,
    pub(super) reorder: ReorderConfig,
    weights: Vec<u16>,
    keepalive: Option<Duration>,
    dead_time: Option<Duration>,
    /// What the sink can keep.
    pub(super) room: usize,
}

impl Settings {
    pub(super) fn read(input: &mut Input<'_>) -> Self {
        let flags = input.byte();
        let flag = |bit: u8| flags >> bit & 1 != 0;
        let windows = [0, 1, 4, 16, 64, 300, 4096, 10_000];
        let delays = [0, 1, 10, 100, 1000];
        let times = [100, 500, 1000];
        Self {
            key: flag(0).then_some(7),
            checksum: flag(1),
            sequence: !flag(2),
            reorder: ReorderConfig {
                early_release: !flag(3),
                late: if flag(4) { Late::Drop } else { Late::Deliver },
                window: windows[input.index(windows.len())],
                max_delay: Duration::from_millis(delays[input.index(delays.len())]),
            },
            keepalive: (!flag(5)).then_some(Duration::from_millis(times[input.index(3)])),
            dead_time: (!flag(6)).then_some(Duration::from_millis(times[input.index(3)] * 7 / 2)),
            room: if flag(7) { input.index(8) } else { 1 << 14 },
            weights: (0..=input.index(4)).map(|_| 1 + u16::from(input.byte() % 4)).collect(),
        }
    }

    /// As the core takes them.
    pub(super) fn config(&self, own: usize) -> EndpointConfig {
        let peer = 1 - own;
        let path = |(path, &weight): (usize, &u16)| PathConfig {
            socket: SocketId(path as u16),
            remote: outer_address(peer, path as u8),
            weight,
            priority: 0,
            pins: Pins::default(),
            keepalive: self.keepalive,
            dead_time: self.dead_time,
            status: PathStatus::Available,
        };
        let addresses = |host: usize| [false, true].map(|v6| packet::address(host, v6));
        EndpointConfig {
            addresses: addresses(own).map(Prefix::host).to_vec(),
            connections: vec![ConnectionConfig {
                peer: addresses(peer).to_vec(),
                networks: Vec::new(),
                selector: None,
                key: self.key,
                checksum: self.checksum,
                sequence: self.sequence,
                scheduler: SchedulerConfig::Weighted,
                reorder: self.reorder,
                paths: self.weights.iter().enumerate().map(path).collect(),
            }],
        }
    }

    /// One of the paths.
    pub(super) fn path(&self, input: &mut Input<'_>) -> PathId {
        PathId(input.index(self.weights.len()) as u8)
    }

    /// Where a host's datagrams on a path come from.
    pub(super) fn usual_origin(&self, from: usize, path: PathId, tos: u8) -> Origin {
        let remote = outer_address(from, path.0);
        Origin { socket: SocketId(u16::from(path.0)), remote, tos }
    }

    /// Where a datagram may come from: a path's address, with another port perhaps, or a stranger's.
    pub(super) fn origin(&self, from: usize, input: &mut Input<'_>) -> Origin {
        let choice = input.byte();
        let mut origin = self.usual_origin(from, self.path(input), input.byte());
        match choice {
            0..=7 => origin.remote = SocketAddr::from(([192, 0, 2, choice], 4754)),
            8..=15 => origin.socket = SocketId(u16::from(choice)),
            16..=63 => origin.remote.set_port(1000 + u16::from(choice)),
            _ => {}
        }
        origin
    }

    /// A datagram such as a host sends it.
    pub(super) fn datagram(&self, sequence: u32, packet: &[u8]) -> Vec<u8> {
        let header = Header {
            protocol: if packet[0] >> 4 == 4 { Protocol::Ipv4 } else { Protocol::Ipv6 },
            checksum: self.checksum,
            key: self.key,
            sequence: self.sequence.then_some(Seq::new(sequence)),
        };
        let mut datagram = vec![0; header.size()];
        datagram.extend_from_slice(packet);
        header.emit(&mut datagram);
        datagram
    }
}

fn outer_address(host: usize, path: u8) -> SocketAddr {
    SocketAddr::from(([10, path, 0, host as u8 + 1], 4754))
}
