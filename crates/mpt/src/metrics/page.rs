//! The page: a status as metrics.
//!
//! Names begin with `mpt_` and the kind of object: `tunnel`, `connection`, `path`, `socket`. Units
//! are base units, seconds and bytes. An unknown value has no series.

use std::collections::{BTreeMap, BTreeSet};

use mpt_control::{
    ConnectionState, ControlStatus, Direction, PathState, Problem, Reordering, SocketStatus,
    Status, Traffic, TunnelStatus,
};
use prometheus_client::registry::Unit;

use super::Format;
use super::family::{Families, Labels};
use super::repair;

/// What a path can be, as [`PathState::state`] says before a colon.
const STATES: [&str; 5] = ["up", "probing", "down", "off", "unusable"];

/// `status` in a text format.
pub(crate) fn page(status: &Status, format: Format) -> String {
    let mut page = Families::default();
    let version = vec![("version", status.version.clone())];
    page.info("mpt_build", "The daemon's version.", version);
    let help = "Time since the daemon was ready.";
    page.gauge("mpt_uptime", Some(Unit::Seconds), help, vec![], status.uptime_seconds);
    control(&mut page, &status.control);
    let help = "Lines of the daemon's log that were lost.";
    counts(&mut page, "mpt_log_lost_lines", help, "reason", &vec![], &status.log.lost);
    let silent = status.silent_tunnels.iter().map(|name| (name, 0.0));
    for (name, answers) in status.tunnels.iter().map(|tunnel| (&tunnel.name, 1.0)).chain(silent) {
        let help = "Whether the tunnel reported its status in time.";
        page.gauge("mpt_tunnel_answers", None, help, vec![("tunnel", name.clone())], answers);
    }
    for status in &status.tunnels {
        tunnel(&mut page, status);
    }
    match format {
        Format::OpenMetrics => page.into_text(),
        Format::Text => page.into_plain_text(),
    }
}

fn control(page: &mut Families, control: &ControlStatus) {
    let help = "Clients connected to the control socket.";
    page.gauge("mpt_control_clients", None, help, vec![], control.clients as f64);
    let help = "Requests executed on the control socket.";
    page.counter("mpt_control_requests", None, help, vec![], control.requests);
    let help = "Invalid requests and refused clients of the control socket.";
    counts(page, "mpt_control_refused", help, "reason", &vec![], &control.refused);
}

fn tunnel(page: &mut Families, tunnel: &TunnelStatus) {
    let labels = vec![("tunnel", tunnel.name.clone())];
    let help = "MTU of the tunnel: its largest inner packet.";
    page.gauge("mpt_tunnel_mtu", Some(Unit::Bytes), help, labels.clone(), tunnel.mtu as f64);
    memory(page, "tunnel", &labels, tunnel.memory_bytes);
    if tunnel.store.most_packets > 0 {
        repair::store(page, &labels, &tunnel.store);
    }
    let device = &tunnel.device;
    let help = "Inner packets read from the TUN device, and their bytes.";
    traffic(page, "mpt_tunnel_device_read", "packets", help, &labels, device.read);
    let help = "Inner packets written to the TUN device, and their bytes.";
    traffic(page, "mpt_tunnel_device_written", "packets", help, &labels, device.written);
    let help = "Inner packets that the TUN device did not accept, or that could not be read.";
    counts(page, "mpt_tunnel_device_drops", help, "reason", &labels, &device.drops);
    let help = "Inner packets too big for the tunnel that were answered by ICMP.";
    let answers = device.too_big_answers;
    page.counter("mpt_tunnel_too_big_answers", None, help, labels.clone(), answers);
    let help = "TCP SYNs whose MSS was clamped to the tunnel's MTU.";
    page.counter("mpt_tunnel_clamped_mss", None, help, labels.clone(), device.clamped_mss);
    let help = "Packets and datagrams dropped before a connection was found for them.";
    counts(page, "mpt_tunnel_drops", help, "reason", &labels, &tunnel.drops);
    let mut told = BTreeSet::new();
    for problem in &tunnel.problems {
        let mut labels = labels.clone();
        let Problem { connection, path, code, .. } = problem;
        labels.extend(connection.iter().map(|name| ("connection", name.clone())));
        labels.extend(path.iter().map(|name| ("path", name.clone())));
        labels.push(("code", code.clone()));
        let help = "Something that does not work as configured.";
        // Several strangers can be the same problem.
        if told.insert(labels.clone()) {
            page.gauge("mpt_problem", None, help, labels, 1.0);
        }
    }
    for (place, status) in tunnel.sockets.iter().enumerate() {
        let mut labels = with(&labels, "socket", place.to_string());
        labels.push(("local", status.local.clone()));
        socket(page, &labels, status);
    }
    for status in &tunnel.connections {
        connection(page, &with(&labels, "connection", status.name.clone()), status);
    }
}

fn socket(page: &mut Families, labels: &Labels, socket: &SocketStatus) {
    for (what, bytes) in [("receive", socket.receive_buffer), ("send", socket.send_buffer)] {
        let labels = with(labels, "buffer", what.into());
        let help = "Socket buffer size granted by the kernel.";
        page.gauge("mpt_socket_buffer", Some(Unit::Bytes), help, labels, bytes as f64);
    }
    let help = "Socket buffer size requested, for each buffer.";
    let wanted = socket.wanted as f64;
    page.gauge("mpt_socket_buffer_wanted", Some(Unit::Bytes), help, labels.clone(), wanted);
    let help = "Datagrams that the kernel dropped because the receive buffer was full.";
    page.counter("mpt_socket_kernel_drops", None, help, labels.clone(), socket.kernel_drops);
    let help = "Datagrams dropped because they exceed the receive slot.";
    page.counter("mpt_socket_truncated", None, help, labels.clone(), socket.truncated);
    let help = "Datagrams whose control messages (cmsg) were truncated.";
    let truncated = socket.control_truncated;
    page.counter("mpt_socket_control_truncated", None, help, labels.clone(), truncated);
    let help = "Send and receive errors.";
    counts(page, "mpt_socket_errors", help, "error", labels, &socket.errors);
}

fn connection(page: &mut Families, labels: &Labels, connection: &ConnectionState) {
    let ConnectionState { scheduler, framing, profile, peer_kind, .. } = connection;
    let mut described = labels.clone();
    described.extend([
        ("scheduler", scheduler.clone()),
        ("framing", framing.clone()),
        ("profile", profile.clone()),
        ("peer", peer_kind.clone()),
    ]);
    page.info("mpt_connection", "How the connection sends, and to what.", described);
    memory(page, "connection", labels, connection.memory_bytes);
    let counters = &connection.counters;
    let help = "Inner packets sent towards the peer, and their bytes.";
    traffic(page, "mpt_connection_transmitted", "packets", help, labels, counters.transmitted);
    let help = "Inner packets delivered to the TUN device, from the peer, and their bytes.";
    traffic(page, "mpt_connection_received", "packets", help, labels, counters.received);
    let help = "Inner packets and datagrams of the connection that were dropped.";
    counts(page, "mpt_connection_drops", help, "reason", labels, &connection.drops);
    let reorder = &connection.reorder;
    let help = "Window of the reorder buffer in packets; 0 if it is off.";
    page.gauge("mpt_connection_reorder_window", None, help, labels.clone(), reorder.window as f64);
    let help = "Packets held in the reorder buffer.";
    page.gauge("mpt_connection_reorder_held", None, help, labels.clone(), reorder.held as f64);
    let mut outcomes = reorder.counters.clone();
    if let Some(most) = outcomes.remove("held_max") {
        let help = "Maximum of packets held in the reorder buffer.";
        page.gauge("mpt_connection_reorder_held_max", None, help, labels.clone(), most as f64);
    }
    let help = "Packets and sequence numbers by outcome in the reorder buffer.";
    counts(page, "mpt_connection_reorder_outcomes", help, "outcome", labels, &outcomes);
    repair::order(page, labels, reorder);
    if let Some(status) = &connection.repair {
        repair::repair(page, labels, status);
    }
    repair::classes(page, labels, &connection.classes);
    reordering(page, "connection", labels, &connection.reordering);
    for status in &connection.paths {
        path(page, &with(labels, "path", status.name.clone()), status);
    }
}

fn path(page: &mut Families, labels: &Labels, path: &PathState) {
    let known = path.state.split(':').next().unwrap_or_default();
    for state in STATES {
        let labels = with(labels, "state", state.into());
        let help = "Whether the path is in that state.";
        page.gauge("mpt_path_state", None, help, labels, truth(state == known));
    }
    let help = "Whether the path is on standby.";
    page.gauge("mpt_path_standby", None, help, labels.clone(), truth(path.standby));
    let help = "Whether the path's traffic is paid for by volume.";
    page.gauge("mpt_path_metered", None, help, labels.clone(), truth(path.metered));
    if let Some(quota) = &path.quota {
        let bytes = || Some(Unit::Bytes);
        let help = "What the path may carry in a month, in bytes of IP packets.";
        page.gauge("mpt_path_quota", bytes(), help, labels.clone(), quota.bytes as f64);
        let help = "What it has carried in this month, in bytes of IP packets in both directions.";
        page.gauge("mpt_path_quota_used", bytes(), help, labels.clone(), quota.used as f64);
        let help = "What that adds to the path's price.";
        let surcharge = seconds(quota.surcharge_ms as f64);
        page.gauge(
            "mpt_path_quota_surcharge",
            Some(Unit::Seconds),
            help,
            labels.clone(),
            surcharge,
        );
        let help =
            "Whether it is used up, so that the path carries packets only while no other is up.";
        page.gauge("mpt_path_quota_used_up", None, help, labels.clone(), truth(quota.used_up));
    }
    let help = "Whether this host has the path's interface with carrier, its address and a route.";
    page.gauge("mpt_path_carrier", None, help, labels.clone(), truth(path.carrier));
    let help = "The path's priority: the lowest number carries packets.";
    page.gauge("mpt_path_priority", None, help, labels.clone(), path.priority as f64);
    let help = "The path's weight relative to the others of its tier.";
    page.gauge("mpt_path_weight", None, help, labels.clone(), path.weight as f64);
    let help = "MTU of the path: its largest inner packet.";
    page.gauge("mpt_path_mtu", Some(Unit::Bytes), help, labels.clone(), path.mtu as f64);
    let help = "Datagrams sent on the path, and the bytes of their UDP payload.";
    traffic(page, "mpt_path_sent", "datagrams", help, labels, path.sent);
    let help = "Retransmissions of datagrams that had been sent on a path that was lost.";
    page.counter("mpt_path_resent_datagrams", None, help, labels.clone(), path.resent);
    let help =
        "Datagrams without inner packets sent on the path, and the bytes of their UDP payload.";
    traffic(page, "mpt_path_control_sent", "datagrams", help, labels, path.control_sent);
    let help = "Datagrams received on the path, and the bytes of their UDP payload.";
    traffic(page, "mpt_path_received", "datagrams", help, labels, path.received);
    let help = "Datagrams of the path that could not be sent or were not accepted.";
    counts(page, "mpt_path_drops", help, "reason", labels, &path.drops);
    if let Some(lost) = path.lost {
        let help = "Datagrams that the peer sent on the path and that did not arrive.";
        page.counter("mpt_path_lost_datagrams", None, help, labels.clone(), lost);
    }
    for (way, direction) in [("in", &path.from_peer), ("out", &path.to_peer)] {
        if let Some(direction) = direction {
            let mut labels = labels.clone();
            labels.push(("direction", way.to_owned()));
            path_direction(page, &labels, direction);
        }
    }
    let measured = [
        ("mpt_path_loss_ratio", None, "Loss ratio over about the last 10 seconds.", path.loss),
        (
            "mpt_path_rtt",
            Some(Unit::Seconds),
            "Smoothed round-trip time (RFC 6298).",
            path.rtt_ms.map(seconds),
        ),
        (
            "mpt_path_jitter",
            Some(Unit::Seconds),
            "One-way jitter from the peer (RFC 3550).",
            path.jitter_ms.map(seconds),
        ),
        (
            "mpt_path_silence",
            Some(Unit::Seconds),
            "Time since the peer was last heard on the path.",
            path.last_heard_seconds,
        ),
        (
            "mpt_path_rate_bytes_per_second",
            None,
            "Measured egress rate of UDP payload of the path's socket.",
            path.rate.map(|bits| bits as f64 / 8.0),
        ),
    ];
    for (name, unit, help, value) in measured {
        if let Some(value) = value {
            page.gauge(name, unit, help, labels.clone(), value);
        }
    }
    reordering(page, "path", labels, &path.reordering);
}

/// What the estimate of a path's capacity can be at.
const STAGES: [&str; 7] = ["open", "trains", "start", "servo", "draining", "competing", "stopped"];

/// What extended framing measures of a path in one direction.
fn path_direction(page: &mut Families, labels: &Labels, direction: &Direction) {
    let help = "Datagrams that arrived in extended framing, control included, copies not.";
    let arrived = direction.received;
    page.counter("mpt_path_direction_received_datagrams", None, help, labels.clone(), arrived);
    let help = "Datagrams that were lost for certain in extended framing.";
    page.counter("mpt_path_direction_lost_datagrams", None, help, labels.clone(), direction.lost);
    if let Some(stage) = &direction.stage {
        for known in STAGES {
            let help = "What the estimate of the capacity is at.";
            let labels = with(labels, "stage", known.to_owned());
            page.gauge("mpt_path_direction_stage", None, help, labels, truth(stage == known));
        }
    }
    let measured = [
        ("loss_ratio", None, "Loss ratio over about the last 10 seconds.", direction.loss),
        (
            "rate_bytes_per_second",
            None,
            "Highest rate of about the last 10 seconds at which datagrams arrived, in UDP payload.",
            direction.rate.map(|bits| bits as f64 / 8.0),
        ),
        (
            "capacity_bytes_per_second",
            None,
            "What the path is believed to carry, in IP packets.",
            direction.capacity.map(|bits| bits as f64 / 8.0),
        ),
        (
            "pace_bytes_per_second",
            None,
            "Rate at which it is sent on at the most, in IP packets.",
            direction.pace.map(|bits| bits as f64 / 8.0),
        ),
        (
            "delay",
            Some(Unit::Seconds),
            "One-way delay above that of the connection's fastest path.",
            direction.delay_ms.map(seconds),
        ),
        (
            "queueing",
            Some(Unit::Seconds),
            "Mean time in queues.",
            direction.queueing_ms.map(seconds),
        ),
    ];
    for (name, unit, help, value) in measured {
        if let Some(value) = value {
            page.gauge(format!("mpt_path_direction_{name}"), unit, help, labels.clone(), value);
        }
    }
}

/// The metrics of RFC 4737 and RFC 5236 of a connection or a path.
fn reordering(page: &mut Families, of: &str, labels: &Labels, order: &Reordering) {
    let name = |metric: &str| format!("mpt_{of}_reordering_{metric}");
    for (metric, help, count) in [
        (
            "packets",
            "Packets with sequence numbers that arrived, without duplicates.",
            order.packets,
        ),
        (
            "reordered_packets",
            "Packets that arrived after one with a higher number (RFC 4737).",
            order.reordered,
        ),
        ("duplicate_packets", "Duplicate packets.", order.duplicates),
    ] {
        page.counter(name(metric), None, help, labels.clone(), count);
    }
    for (metric, unit, help, value) in [
        ("ratio", None, "Share of reordered packets (RFC 4737 section 4.1).", order.ratio),
        (
            "extent_mean_packets",
            None,
            "Mean reordering extent (RFC 4737 section 4.2).",
            order.extent_mean,
        ),
        (
            "extent_max_packets",
            None,
            "Largest reordering extent (RFC 4737 section 4.2).",
            order.extent_max as f64,
        ),
        (
            "late_mean",
            Some(Unit::Seconds),
            "Mean late time offset (RFC 4737 section 4.3).",
            seconds(order.late_ms_mean),
        ),
        (
            "late_max",
            Some(Unit::Seconds),
            "Largest late time offset (RFC 4737 section 4.3).",
            seconds(order.late_ms_max),
        ),
    ] {
        page.gauge(name(metric), unit, help, labels.clone(), value);
    }
    for (n, &count) in (1_u64..).zip(&order.n_reordering) {
        let help = "Packets that are n-reordered (RFC 4737 section 5).";
        let labels = with(labels, "n", n.to_string());
        page.counter(name("n_reordered_packets"), None, help, labels, count);
    }
    let help = "Packets by displacement (reorder density, RFC 5236).";
    counts(page, &name("displaced_packets"), help, "displacement", labels, &order.density);
    for (held, &count) in order.buffer_occupancy.iter().enumerate() {
        let help = "Arrivals by packets held in a resequencing buffer (RFC 5236).";
        let labels = with(labels, "held", held.to_string());
        page.counter(name("buffer_occupancy_arrivals"), None, help, labels, count);
    }
}

fn memory(page: &mut Families, of: &str, labels: &Labels, bytes: u64) {
    if bytes > 0 {
        let help = "Memory used, as far as the daemon accounts for it.";
        let name = format!("mpt_{of}_memory");
        page.gauge(name, Some(Unit::Bytes), help, labels.clone(), bytes as f64);
    }
}

fn traffic(
    page: &mut Families,
    name: &str,
    unit: &str,
    help: &'static str,
    labels: &Labels,
    traffic: Traffic,
) {
    page.counter(format!("{name}_{unit}"), None, help, labels.clone(), traffic.packets);
    // The family is another one than that of the packets, so its name is too.
    page.counter(name, Some(Unit::Bytes), help, labels.clone(), traffic.bytes);
}

fn counts(
    page: &mut Families,
    name: &str,
    help: &'static str,
    label: &'static str,
    labels: &Labels,
    counts: &BTreeMap<String, u64>,
) {
    for (value, &count) in counts {
        page.counter(name, None, help, with(labels, label, value.clone()), count);
    }
}

pub(super) fn with(labels: &Labels, name: &'static str, value: String) -> Labels {
    let mut labels = labels.clone();
    labels.push((name, value));
    labels
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

fn seconds(milliseconds: f64) -> f64 {
    milliseconds / 1000.0
}
