//! What `mpt status` shows of a tunnel: the transmit side's part, completed by the receive side.

use std::collections::BTreeMap;

use mpt_control::{
    ConnectionCounters, ConnectionState, DeviceCounters, Event as RecentEvent, PathState,
    ReorderStatus, SocketStatus, Traffic, TunnelStatus,
};
use mpt_proto::{ConnectionId, Drops, Event, Instant, PathId, ReceiveHalf};

use super::open::{ConnectionInfo, PathInfo};
use super::receive::ReceiveLoop;
use super::transmit::TransmitLoop;
use crate::config;

impl TransmitLoop {
    /// The tunnel as the transmit side knows it.
    pub(super) fn report(&self) -> TunnelStatus {
        let connections = (0..).map(ConnectionId).zip(&self.connections);
        TunnelStatus {
            name: self.settings.name.clone(),
            mtu: u64::from(self.mtu.bytes),
            threads: self.settings.threads.number(),
            addresses: self.settings.addresses.iter().map(ToString::to_string).collect(),
            device: self.device_counters(),
            connections: connections.map(|(id, info)| self.connection(id, info)).collect(),
            drops: named(self.endpoint.drops()),
            sockets: (0..self.sockets.len()).map(|socket| self.socket(socket)).collect(),
            ..TunnelStatus::default()
        }
    }

    fn connection(&self, id: ConnectionId, info: &ConnectionInfo) -> ConnectionState {
        let stats = self.endpoint.connection(id).stats();
        let profile = match info.settings.profile {
            config::Profile::Auto => "auto (classic)",
            config::Profile::Classic => "classic",
        };
        let config::Scheduler::Weighted = info.settings.scheduler;
        let paths = (0..).map(PathId).zip(&info.paths);
        ConnectionState {
            name: info.settings.name.clone(),
            profile: profile.to_owned(),
            scheduler: "weighted".to_owned(),
            counters: ConnectionCounters {
                transmitted: traffic(stats.sent),
                ..ConnectionCounters::default()
            },
            drops: named(&stats.drops),
            paths: paths.map(|(path, info)| self.path(id, path, info)).collect(),
            ..ConnectionState::default()
        }
    }

    fn path(&self, id: ConnectionId, path: PathId, info: &PathInfo) -> PathState {
        let connection = self.endpoint.connection(id);
        let lane = self.outgoing.lane(id, path);
        let drain = self.outgoing.drain(lane);
        let drops = [("full", lane.full), ("too_big", lane.too_big), ("failed", lane.failed)];
        PathState {
            name: info.settings.name.clone(),
            id: u64::from(path.0),
            status: info.settings.status.as_str().to_owned(),
            local: self.sockets[lane.socket].local_addr().to_string(),
            remote: info.remote.to_string(),
            interface: info.settings.interface.clone(),
            weight: u64::from(connection.weight(path)),
            mtu: u64::from(info.mtu),
            keepalive: info.settings.keepalive.as_secs_f64(),
            dead_time: info.settings.dead_time.as_secs_f64(),
            sent: traffic(connection.path_stats(path).sent),
            rate: drain.rate().map(|bytes| bytes.saturating_mul(8)),
            train_limit: drain.train_limit() as u64,
            drops: counted(drops),
            ..PathState::default()
        }
    }

    fn device_counters(&self) -> DeviceCounters {
        let read = self.burst.counters();
        let in_use = self.device.offloads();
        DeviceCounters {
            read: traffic(self.read),
            read_super_packets: read.super_packets,
            offloads: named_offloads([
                ("vnet", in_use.vnet_header),
                ("tso", in_use.tso),
                ("uso", in_use.uso),
            ]),
            drops: counted([
                ("contradicted", read.contradicted),
                ("misplaced_checksum", read.misplaced_checksum),
                ("no_size", read.no_size),
                ("truncated", read.truncated),
                ("unasked_type", read.unasked_type),
                ("unknown_type", read.unknown_type),
            ]),
            ..DeviceCounters::default()
        }
    }

    fn socket(&self, number: usize) -> SocketStatus {
        let socket = &self.sockets[number];
        let buffers = socket.buffers();
        let lanes = (0..).map(ConnectionId).zip(&self.connections).flat_map(|(id, info)| {
            (0..).map(PathId).zip(&info.paths).map(move |(path, info)| (id, path, info))
        });
        let mut users =
            lanes.filter(|&(id, path, _)| self.outgoing.lane(id, path).socket == number);
        let device = users.next().and_then(|(_, _, path)| path.settings.interface.clone());
        SocketStatus {
            local: socket.local_addr().to_string(),
            device,
            receive_buffer: buffers.receive as u64,
            send_buffer: buffers.send as u64,
            wanted: buffers.wanted as u64,
            offloads: named_offloads([
                ("gso", socket.offloads().segmentation),
                ("gro", socket.offloads().coalescing),
            ]),
            ..SocketStatus::default()
        }
    }
}

impl ReceiveLoop {
    /// Adds what the receive side knows at `now` to what the transmit side reported.
    pub(super) fn complete(&self, now: Instant, status: &mut TunnelStatus) {
        let counters = self.incoming.counters();
        let device = &mut status.device;
        device.written = Traffic { packets: counters.written, bytes: counters.bytes };
        device.written_super_packets = counters.super_packets;
        device.drops.extend(counted([
            ("down", counters.down),
            ("failed", counters.failed),
            ("full", counters.full),
            ("invalid", counters.invalid),
            ("unfinishable", counters.unfinishable),
        ]));
        for (id, connection) in (0..).map(ConnectionId).zip(&mut status.connections) {
            complete_connection(now, self.endpoint.connection(id), connection);
        }
        add(&mut status.drops, named(self.endpoint.drops()));
        for (number, socket) in status.sockets.iter_mut().enumerate() {
            let counters = self.sockets[number].counters();
            socket.kernel_drops = counters.kernel_drops;
            socket.truncated = counters.truncated;
            socket.control_truncated = counters.control_truncated;
            socket.errors = counted([
                ("icmp", counters.icmp_errors),
                ("receive", self.receive_errors[number]),
                ("unknown_source", counters.unknown_source),
            ]);
        }
        let recent = self.recent.iter();
        status.events = recent.map(|(at, event)| self.recent_event(*at, event)).collect();
    }

    /// An event in words.
    pub(super) fn describe(&self, event: &Event) -> String {
        let connections = &self.settings.connections;
        match *event {
            Event::Narrow { connection, path, carries } => {
                let connection = &connections[usize::from(connection.0)];
                let path = &connection.paths[usize::from(path.0)].name;
                let name = &connection.name;
                format!(
                    "connection {name}: path {path} loses datagrams of more than {carries} bytes"
                )
            }
            Event::Path { connection, path, from, to } => {
                let connection = &connections[usize::from(connection.0)];
                let path = &connection.paths[usize::from(path.0)].name;
                let (name, from) = (&connection.name, from.name());
                format!("connection {name}: path {path} was {from}, is {to}")
            }
            Event::Restart { connection, expected, found } => {
                let name = &connections[usize::from(connection.0)].name;
                format!("connection {name}: the peer started anew at {found}, {expected} was next")
            }
        }
    }

    fn recent_event(&self, at: Instant, event: &Event) -> RecentEvent {
        let (connection, path) = match *event {
            Event::Narrow { connection, path, .. } | Event::Path { connection, path, .. } => {
                (connection, Some(path))
            }
            Event::Restart { connection, .. } => (connection, None),
        };
        let connection = &self.settings.connections[usize::from(connection.0)];
        RecentEvent {
            at_seconds: at.since(Instant::ZERO).as_secs_f64(),
            connection: Some(connection.name.clone()),
            path: path.map(|path| connection.paths[usize::from(path.0)].name.clone()),
            text: self.describe(event),
        }
    }
}

fn complete_connection(now: Instant, connection: &ReceiveHalf, status: &mut ConnectionState) {
    let stats = connection.stats();
    status.reorder = reorder(connection);
    status.counters.received = traffic(stats.delivered);
    add(&mut status.drops, named(&stats.drops));
    for (id, path) in (0..).map(PathId).zip(&mut status.paths) {
        let state = connection.state(id);
        path.state = state.name().to_owned();
        path.cause = state.cause().map(str::to_owned);
        path.received = traffic(connection.path_stats(id).received);
        path.last_heard_seconds = connection.last_heard(id).map(|at| now.since(at).as_secs_f64());
    }
}

fn reorder(connection: &ReceiveHalf) -> ReorderStatus {
    let (config, stats) = (connection.reorder_config(), connection.stats().reorder);
    let counters = [
        ("in_order", stats.in_order),
        ("reordered", stats.reordered),
        ("late", stats.late),
        ("unsequenced", stats.unsequenced),
        ("lost_early_release", stats.lost_early_release),
        ("lost_max_delay", stats.lost_max_delay),
        ("lost_window", stats.lost_window),
        ("restarts", stats.restarts),
        ("held_max", stats.held_max),
    ];
    ReorderStatus {
        window: u64::from(config.window),
        max_delay: config.max_delay.as_secs_f64(),
        early_release: config.early_release,
        late: match config.late {
            mpt_proto::Late::Deliver => "deliver",
            mpt_proto::Late::Drop => "drop",
        }
        .to_owned(),
        held: stats.held,
        next: connection.expected().map(|seq| u64::from(seq.value())),
        counters: counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

fn traffic(traffic: mpt_proto::Traffic) -> Traffic {
    Traffic { packets: traffic.packets, bytes: traffic.bytes }
}

fn named(drops: &Drops) -> BTreeMap<String, u64> {
    drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}

/// The names of what is in use.
fn named_offloads<const N: usize>(offloads: [(&str, bool); N]) -> Vec<String> {
    let in_use = offloads.into_iter().filter(|&(_, in_use)| in_use);
    in_use.map(|(name, _)| name.to_owned()).collect()
}

/// The counters that are not zero.
fn counted<const N: usize>(counters: [(&str, u64); N]) -> BTreeMap<String, u64> {
    let counted = counters.into_iter().filter(|&(_, count)| count > 0);
    counted.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Adds counters by name.
fn add(counters: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (name, count) in more {
        *counters.entry(name).or_default() += count;
    }
}
