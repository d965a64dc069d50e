//! What `mpt status` shows of a tunnel.

use std::collections::BTreeMap;

use mpt_control::{
    ConnectionCounters, ConnectionState, DeviceCounters, Event as RecentEvent, PathState,
    ReorderStatus, SocketStatus, Traffic, TunnelStatus,
};
use mpt_proto::{Connection, ConnectionId, Drops, Event, Instant, PathId};

use super::open::{ConnectionInfo, PathInfo};
use super::run::Tunnel;
use crate::config;

impl Tunnel {
    /// The tunnel as it is at `now`.
    pub(super) fn status(&self, now: Instant) -> TunnelStatus {
        let connections = self.endpoint.connections().zip(&self.connections);
        TunnelStatus {
            name: self.settings.name.clone(),
            mtu: u64::from(self.mtu),
            addresses: self.settings.addresses.iter().map(ToString::to_string).collect(),
            device: self.device_counters(),
            connections: connections
                .map(|((id, connection), info)| self.connection(now, id, connection, info))
                .collect(),
            drops: named(&self.endpoint.drops()),
            sockets: (0..self.sockets.len()).map(|socket| self.socket(socket)).collect(),
            events: self.recent.iter().map(|(at, event)| self.recent_event(*at, event)).collect(),
        }
    }

    /// An event in words.
    pub(super) fn describe(&self, event: &Event) -> String {
        match *event {
            Event::Path { connection, path, from, to } => {
                let info = &self.connections[usize::from(connection.0)];
                let path = &info.paths[usize::from(path.0)].settings.name;
                format!(
                    "connection {}: path {path} was {}, is {to}",
                    info.settings.name,
                    from.name()
                )
            }
            Event::Restart { connection, expected, found } => {
                let name = &self.connections[usize::from(connection.0)].settings.name;
                format!("connection {name}: the peer started anew at {found}, {expected} was next")
            }
        }
    }

    fn connection(
        &self,
        now: Instant,
        id: ConnectionId,
        connection: Connection<'_>,
        info: &ConnectionInfo,
    ) -> ConnectionState {
        let stats = connection.stats();
        let profile = match info.settings.profile {
            config::Profile::Auto => "auto (classic)",
            config::Profile::Classic => "classic",
        };
        let config::Scheduler::Weighted = info.settings.scheduler;
        ConnectionState {
            name: info.settings.name.clone(),
            profile: profile.to_owned(),
            scheduler: "weighted".to_owned(),
            reorder: reorder(connection),
            counters: ConnectionCounters {
                transmitted: traffic(stats.sent),
                received: traffic(stats.delivered),
            },
            drops: named(&stats.drops),
            paths: connection
                .paths()
                .zip(&info.paths)
                .map(|(path, info)| self.path(now, id, path, info))
                .collect(),
        }
    }

    fn path(&self, now: Instant, id: ConnectionId, path: PathId, info: &PathInfo) -> PathState {
        let view = self.endpoint.connection(id).path(path);
        let lane = self.outgoing.lane(id, path);
        let drops = [("full", lane.full), ("too_big", lane.too_big), ("failed", lane.failed)];
        PathState {
            name: info.settings.name.clone(),
            id: u64::from(path.0),
            state: view.state.name().to_owned(),
            cause: view.state.cause().map(str::to_owned),
            status: info.settings.status.as_str().to_owned(),
            local: self.sockets[lane.socket].local_addr().to_string(),
            remote: info.remote.to_string(),
            interface: info.settings.interface.clone(),
            weight: u64::from(view.weight),
            mtu: u64::from(info.mtu),
            keepalive: info.settings.keepalive.as_secs_f64(),
            dead_time: info.settings.dead_time.as_secs_f64(),
            sent: traffic(view.stats.sent),
            received: traffic(view.stats.received),
            last_heard_seconds: view.last_heard.map(|at| now.since(at).as_secs_f64()),
            drops: counted(drops),
        }
    }

    fn device_counters(&self) -> DeviceCounters {
        let (counters, read) = (self.incoming.counters(), self.burst.counters());
        let in_use = self.device.offloads();
        DeviceCounters {
            read: traffic(self.read),
            read_super_packets: read.super_packets,
            written: Traffic { packets: counters.written, bytes: counters.bytes },
            written_super_packets: counters.super_packets,
            offloads: named_offloads([
                ("vnet", in_use.vnet_header),
                ("tso", in_use.tso),
                ("uso", in_use.uso),
            ]),
            drops: counted([
                ("contradicted", read.contradicted),
                ("down", counters.down),
                ("failed", counters.failed),
                ("full", counters.full),
                ("invalid", counters.invalid),
                ("misplaced_checksum", read.misplaced_checksum),
                ("no_size", read.no_size),
                ("truncated", read.truncated),
                ("unasked_type", read.unasked_type),
                ("unfinishable", counters.unfinishable),
                ("unknown_type", read.unknown_type),
            ]),
        }
    }

    fn socket(&self, number: usize) -> SocketStatus {
        let socket = &self.sockets[number];
        let (buffers, counters) = (socket.buffers(), socket.counters());
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
            kernel_drops: counters.kernel_drops,
            truncated: counters.truncated,
            control_truncated: counters.control_truncated,
            errors: counted([
                ("icmp", counters.icmp_errors),
                ("receive", self.receive_errors[number]),
                ("unknown_source", counters.unknown_source),
            ]),
        }
    }

    fn recent_event(&self, at: Instant, event: &Event) -> RecentEvent {
        let (connection, path) = match *event {
            Event::Path { connection, path, .. } => (connection, Some(path)),
            Event::Restart { connection, .. } => (connection, None),
        };
        let info = &self.connections[usize::from(connection.0)];
        RecentEvent {
            at_seconds: at.since(Instant::ZERO).as_secs_f64(),
            connection: Some(info.settings.name.clone()),
            path: path.map(|path| info.paths[usize::from(path.0)].settings.name.clone()),
            text: self.describe(event),
        }
    }
}

fn reorder(connection: Connection<'_>) -> ReorderStatus {
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
