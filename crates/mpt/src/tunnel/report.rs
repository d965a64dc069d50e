//! What `mpt status` shows of a tunnel: the transmit side's part, completed by the receive side.

use std::time::Duration;

use std::collections::BTreeMap;

use mpt_control::{
    ConnectionCounters, ConnectionState, DeviceCounters, Direction, PathState, PeerSettings,
    ReorderStatus, SocketStatus, Traffic, TunnelStatus,
};
use mpt_io::udp::Socket;
use mpt_proto::{
    ConnectionId, Drops, Instant, Late, PathId, Picks, RateStage, ReceiveHalf, SocketId,
    TransmitHalf,
};

use super::measured::{from_peer, put_quality, reordering, stage, to_peer};
use super::op::Volume;
use super::receive::ReceiveLoop;
use super::repair::{classes, hold_times, repair, residual_loss, store};
use super::table::{ConnectionInfo, PathInfo};
use super::transmit::TransmitLoop;
use crate::config;

/// For so long it is told what keepalives cost.
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl TransmitLoop {
    /// The tunnel from the view of the transmit side.
    pub(super) fn report(&self, now: Instant) -> TunnelStatus {
        let connections = self.table.connections();
        TunnelStatus {
            name: self.settings.name.clone(),
            mtu: u64::from(self.mtu.bytes),
            threads: self.settings.threads.number(),
            addresses: self.settings.addresses.iter().map(ToString::to_string).collect(),
            device: self.device_counters(),
            connections: connections.map(|(id, info)| self.connection(now, id, info)).collect(),
            drops: named(self.endpoint.drops()),
            store: store(self.endpoint.store_stats()),
            memory_bytes: self.endpoint.memory() as u64,
            traced: self.trace.counters().0,
            trace_missed: self.trace.counters().1,
            sockets: self.sockets.iter().map(|(id, socket)| self.socket(id, socket)).collect(),
            ..TunnelStatus::default()
        }
    }

    fn connection(&self, now: Instant, id: ConnectionId, info: &ConnectionInfo) -> ConnectionState {
        let stats = self.endpoint.connection(id).stats();
        let has_session = self.endpoint.connection(id).has_session();
        let profile = match (info.settings.policies.profile, has_session) {
            (config::Profile::Auto, true) => "auto (adaptive)",
            (config::Profile::Auto, false) => "auto (classic)",
            (config::Profile::Adaptive, _) => "adaptive",
            (config::Profile::Classic, _) => "classic",
        };
        let scheduler = scheduler(self.endpoint.connection(id), info.settings.policies.scheduler);
        ConnectionState {
            name: info.settings.name.clone(),
            id: u64::from(id.0),
            peer_kind: info.settings.peer_kind.name().to_owned(),
            profile: profile.to_owned(),
            framing: framing(self.endpoint.connection(id), info.settings.policies.framing)
                .to_owned(),
            framing_reason: framing_reason(
                self.endpoint.connection(id),
                info.settings.policies.framing,
            )
            .map(str::to_owned),
            scheduler: scheduler.to_owned(),
            peer: info.settings.peer.iter().map(ToString::to_string).collect(),
            networks: info.settings.networks.iter().map(ToString::to_string).collect(),
            r#match: info.settings.selector.as_ref().map(ToString::to_string),
            accepted_by: info.accepted_by.clone(),
            counters: ConnectionCounters {
                transmitted: traffic(stats.sent),
                ..ConnectionCounters::default()
            },
            repair: repair(self.endpoint.connection(id)),
            classes: classes(self.endpoint.connection(id)),
            drops: named(&stats.drops),
            paths: info.paths().map(|(path, info)| self.path(now, id, path, info)).collect(),
            memory_bytes: self.memory(id, info) as u64,
            ..ConnectionState::default()
        }
    }

    /// What was sent on the paths that have a quota.
    pub(super) fn volumes(&self) -> Vec<Volume> {
        let counted = self.table.paths().filter(|(.., info)| info.settings.quota.is_some());
        let volume = |(connection, path, info): (ConnectionId, PathId, &PathInfo)| {
            let headers = if info.remote.is_ipv4() { 28 } else { 48 };
            let mut volume = Volume { connection, path, bytes: 0, headers };
            volume.add(self.endpoint.connection(connection).path_stats(path).sent);
            let control = self.control_sent.get(&(connection, path));
            volume.add(control.copied().unwrap_or_default());
            volume
        };
        counted.map(volume).collect()
    }

    /// What this side has of a connection.
    fn memory(&self, id: ConnectionId, info: &ConnectionInfo) -> usize {
        let info = size_of::<ConnectionInfo>()
            + size_of::<config::Connection>()
            + info.paths.capacity() * size_of::<Option<PathInfo>>()
            + info.memory();
        self.endpoint.connection(id).memory() + self.outgoing.memory(id) + info
    }

    fn path(&self, now: Instant, id: ConnectionId, path: PathId, info: &PathInfo) -> PathState {
        let connection = self.endpoint.connection(id);
        let stats = connection.path_stats(path);
        let mut state = PathState {
            name: info.settings.name.clone(),
            id: u64::from(path.0),
            status: info.settings.status.as_str().to_owned(),
            remote: match info.settings.remote.name() {
                // Not resolved yet.
                Some(name) if info.remote.ip().is_unspecified() => {
                    format!("{name}:{}", info.remote.port())
                }
                _ => info.remote.to_string(),
            },
            interface: info.settings.interface.clone(),
            weight: u64::from(connection.weight(path)),
            priority: u64::from(info.settings.priority),
            standby: connection.standby(path),
            metered: info.settings.metered,
            carrier: info.absence.is_none(),
            pins: info.settings.pins.shown().collect(),
            mtu: if info.remote.ip().is_unspecified() { 0 } else { u64::from(info.mtu) },
            keepalive: seconds(connection.keepalive_interval(path)),
            keepalive_bytes_per_month: 2 * connection.keepalive_bytes(path, MONTH),
            dead_time: info.settings.dead_time.as_secs_f64(),
            sent: traffic(stats.sent),
            resent: stats.resent,
            control_sent: traffic(self.control_sent.get(&(id, path)).copied().unwrap_or_default()),
            cause: info.absence.clone(),
            to_peer: Self::to_peer(now, connection, path),
            ..PathState::default()
        };
        if let Some(path_sender) = self.outgoing.path_sender(id, path) {
            let socket = self.sockets.get(path_sender.socket);
            state.local = socket.map_or_else(String::new, |socket| socket.local_addr().to_string());
            if let Some(egress_rate) = self.outgoing.egress_rate(path_sender) {
                state.rate = egress_rate.rate().map(|bytes| bytes.saturating_mul(8));
                state.send_batch_limit = egress_rate.send_batch_limit() as u64;
            }
            let drops = [
                ("full", path_sender.full),
                ("too_big", path_sender.too_big),
                ("failed", path_sender.failed),
            ];
            state.drops = counted(drops);
        }
        state
    }

    /// What is measured of a path in the direction to the peer.
    fn to_peer(now: Instant, connection: &TransmitHalf, path: PathId) -> Option<Direction> {
        let standing = connection.standing(now, path);
        let is_shown = standing.as_ref().is_some_and(|it| it.stage == RateStage::Trains);
        let stage = standing.map(|standing| stage(standing.stage).to_owned());
        match connection.transmit_quality(now, path) {
            Some(quality) => Some(Direction { stage, ..to_peer(quality) }),
            // No feedback has come yet, but it will.
            None => is_shown.then(|| Direction { stage, ..Direction::default() }),
        }
    }

    fn device_counters(&self) -> DeviceCounters {
        let read = self.burst.counters();
        let in_use = self.device.offloads();
        DeviceCounters {
            read: traffic(self.read),
            read_super_packets: read.super_packets,
            too_big_answers: self.too_big.answered,
            clamped_mss: self.clamp.lowered,
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

    fn socket(&self, id: SocketId, socket: &Socket) -> SocketStatus {
        let buffers = socket.buffers();
        let mut users = self.table.paths().filter(|&(connection, path, _)| {
            self.outgoing
                .path_sender(connection, path)
                .is_some_and(|path_sender| path_sender.socket == id)
        });
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
    /// Adds what came on the paths that have a quota.
    pub(super) fn add_received(&self, volumes: &mut [Volume]) {
        for volume in volumes {
            // It can end between the two sides.
            let half = self.endpoint.find(volume.connection);
            if let Some(half) = half.filter(|half| half.has(volume.path)) {
                let stats = half.path_stats(volume.path);
                volume.add(stats.received);
                volume.add(stats.control_received);
            }
        }
    }

    /// Adds the receive side's status at `now` to the transmit side's report.
    pub(super) fn complete(&self, now: Instant, status: &mut TunnelStatus) {
        let problems = self.problems.current(now, &self.endpoint, &self.names);
        status.problems = problems.into_iter().map(|found| found.problem).collect();
        let counters = self.incoming.counters();
        let device = &mut status.device;
        device.written = Traffic { packets: counters.written, bytes: counters.bytes };
        device.written_super_packets = counters.super_packets;
        device.clamped_mss += self.incoming.lowered();
        device.drops.extend(counted([
            ("down", counters.down),
            ("failed", counters.failed),
            ("full", counters.full),
            ("invalid", counters.invalid),
            ("unfinishable", counters.unfinishable),
        ]));
        for connection in &mut status.connections {
            let id = ConnectionId(connection.id as u16);
            // It can end between the two sides.
            if let Some(half) = self.endpoint.find(id) {
                complete_connection(now, half, connection);
            }
        }
        let connections = status.connections.iter().map(|connection| connection.memory_bytes);
        status.memory_bytes += connections.sum::<u64>() + self.incoming.memory() as u64;
        add(&mut status.drops, named(self.endpoint.drops()));
        for (socket, (id, known)) in status.sockets.iter_mut().zip(self.sockets.iter()) {
            let counters = known.counters();
            socket.kernel_drops = counters.kernel_drops;
            socket.truncated = counters.truncated;
            socket.control_truncated = counters.control_truncated;
            socket.errors = counted([
                ("icmp", counters.icmp_errors),
                ("receive", self.receive_errors[usize::from(id.0)]),
                ("unknown_source", counters.unknown_source),
            ]);
        }
        status.events = self.recent.iter().cloned().collect();
    }
}

fn complete_connection(now: Instant, connection: &ReceiveHalf, status: &mut ConnectionState) {
    if let Some(sealed) = connection.sealed() {
        status.cipher = Some(sealed.cipher.name().to_owned());
        status.epoch = Some(sealed.epoch);
    }
    let stats = connection.stats();
    status.memory_bytes += connection.memory() as u64;
    status.reorder = reorder(connection);
    status.reordering = reordering(&connection.reordering());
    status.counters.received = traffic(stats.delivered);
    add(&mut status.drops, named(&stats.drops));
    for path in &mut status.paths {
        let id = PathId(path.id as u8);
        if !connection.has(id) {
            continue;
        }
        let state = connection.state(id);
        path.state = state.name().to_owned();
        // The transmit side may have a more recent state.
        path.cause = path.cause.take().or_else(|| state.cause().map(str::to_owned));
        path.dead_time = seconds(connection.dead_time(id));
        path.received = traffic(connection.path_stats(id).received);
        put_quality(&connection.quality(id), path);
        path.from_peer =
            connection.receive_quality(id).map(|quality| from_peer(&quality, path.loss));
        path.peer = peer(connection, id);
        path.reordering = reordering(&connection.path_reordering(id));
        path.last_heard_seconds = connection.last_heard(id).map(|at| now.since(at).as_secs_f64());
    }
}

/// What the peer says of its settings.
fn peer(connection: &ReceiveHalf, path: PathId) -> Option<PeerSettings> {
    let (settings, interval) = connection.peer_settings(path)?;
    let scheduler = settings.picks.map(|picks| match picks {
        Picks::Weighted => "weighted",
        Picks::Flow => "flow",
        Picks::Earliest => "earliest",
        Picks::LowestRtt => "lowest-rtt",
        Picks::Redundant => "redundant",
    });
    Some(PeerSettings {
        scheduler: scheduler.map(str::to_owned),
        priority: u64::from(settings.priority),
        weight: settings.weight.map(|weight| u64::from(weight.get())),
        mtu: settings.mtu.map(|mtu| u64::from(mtu.get())),
        mtu_is_set: settings.mtu_is_set,
        keepalive: interval.map(|interval| interval.as_secs_f64()),
        dead_time: seconds(settings.dead_time),
        order_by_evidence: settings.evidence,
        window: u64::from(settings.window),
        max_delay: settings.max_delay.as_secs_f64(),
        early_release: settings.early_release,
        late: word(if settings.drops_late { Late::Drop } else { Late::Deliver }).to_owned(),
    })
}

fn word(late: Late) -> &'static str {
    match late {
        Late::Deliver => "deliver",
        Late::Drop => "drop",
    }
}

fn seconds(time: Option<Duration>) -> f64 {
    time.unwrap_or_default().as_secs_f64()
}

/// How paths are chosen at present.
pub(super) fn scheduler(connection: &TransmitHalf, configured: config::Scheduler) -> &'static str {
    match (configured, connection.has_session()) {
        (config::Scheduler::Earliest, true) => "earliest",
        (config::Scheduler::LowestRtt, true) => "lowest-rtt",
        (config::Scheduler::Redundant, true) => "redundant",
        (
            config::Scheduler::Earliest
            | config::Scheduler::LowestRtt
            | config::Scheduler::Redundant,
            false,
        )
        | (config::Scheduler::Weighted, _) => "weighted",
        (config::Scheduler::Flow, _) => "flow",
    }
}

/// What datagrams look like at present.
pub(super) fn framing(connection: &TransmitHalf, configured: config::Framing) -> &'static str {
    match (connection.has_session(), configured) {
        (true, config::Framing::Sealed) => "sealed",
        (true, _) => "extended",
        (false, config::Framing::Extended | config::Framing::Sealed) => "none",
        (false, config::Framing::Auto | config::Framing::Plain) => "plain",
    }
}

/// Why the framing is not what it could be. Nobody can keep two hosts in plain framing without this being seen.
fn framing_reason(connection: &TransmitHalf, configured: config::Framing) -> Option<&'static str> {
    match (connection.has_session(), configured) {
        (false, config::Framing::Auto) if connection.is_unanswered() => {
            Some("the peer answers no hello")
        }
        (false, config::Framing::Auto) => Some("no session with the peer has begun yet"),
        _ => None,
    }
}

fn reorder(connection: &ReceiveHalf) -> ReorderStatus {
    let (config, stats) = (connection.reorder_config(), connection.stats().reorder);
    let counters = [
        ("in_order", stats.in_order),
        ("reordered", stats.reordered),
        ("repaired", stats.repaired),
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
        late: word(config.late).to_owned(),
        held: stats.held,
        next: connection.expected().map(|seq| u64::from(seq.value())),
        counters: counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        residual_loss: residual_loss(&stats),
        hold_times: hold_times(&stats),
        hold_seconds: stats.hold_times.sum().as_secs_f64(),
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
