//! The status of the daemon for people.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use mpt_control::{
    CommandStatus, ConnectionState, Direction, Event, PathState, Problem, SocketStatus, Status,
    Traffic, TunnelStatus,
};

use super::order::order;
use super::quantity::{bytes, counts, duration, percent, rate, three_digits};
use super::quota;
use super::repair;
use super::table::{Cell, Table};
use super::wrap::wrap;

/// Columns that text is broken to. A table may be wider if names are long.
const WIDTH: usize = 80;

/// Events shown of each tunnel; the JSON has more.
const EVENTS: usize = 5;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// With colours.
    pub(crate) colour: bool,
    /// With what only experts ask for.
    pub(crate) verbose: bool,
}

/// Tunnels, connections and paths as tables; what is zero and what is as it should be is left out.
pub(crate) fn status(status: &Status, look: Look) -> String {
    let mut out = format!(
        "mpt {}, process {}, up {}\n",
        status.version,
        status.pid,
        duration(status.uptime_seconds)
    );
    if !status.log.lost.is_empty() {
        let error = status.log.error.as_ref().map(|error| format!(" ({error})"));
        let lost = counts(&status.log.lost);
        say(&mut out, &format!("log lines lost: {lost}{}", error.unwrap_or_default()));
    }
    for tunnel in &status.tunnels {
        write_tunnel(&mut out, tunnel, status.uptime_seconds, look);
    }
    for (tunnel, reason) in &status.failed_tunnels {
        let text =
            format!("tunnel {tunnel} does not run, and is tried again every few seconds: {reason}");
        say(&mut out, &format!("\n{text}"));
    }
    for tunnel in status.stalled_tunnels() {
        say(&mut out, &format!("\ntunnel {tunnel} did not answer: ask again, or see the log"));
    }
    out
}

fn write_tunnel(out: &mut String, tunnel: &TunnelStatus, uptime: f64, look: Look) {
    let addresses = tunnel.addresses.join(" ");
    let memory = memory(tunnel.memory_bytes);
    say(out, &format!("\ntunnel {}  mtu {}  {addresses}{memory}", tunnel.name, tunnel.mtu));
    let device = &tunnel.device;
    let (read, written) = (traffic(device.read), traffic(device.written));
    say(out, &format!("  device: read {read}, written {written}"));
    write_counts(out, "  device drops", &device.drops);
    write_counts(out, "  drops", &tunnel.drops);
    if device.too_big_answers > 0 {
        say(out, &format!("  too big, answered by ICMP: {} packets", device.too_big_answers));
    }
    if device.clamped_mss > 0 {
        say(out, &format!("  MSS clamped: in {} TCP handshakes", device.clamped_mss));
    }
    if let Some(store) = repair::store(&tunnel.store) {
        say(out, &format!("  {store}"));
    }
    if tunnel.traced > 0 {
        let missed = tunnel.trace_missed;
        say(
            out,
            &format!("  traced: {} connections, {missed} lines not read in time", tunnel.traced),
        );
    }
    // Those of a connection that has gone since are shown here too.
    let is_shown = |name: &str| tunnel.connections.iter().any(|connection| connection.name == name);
    for problem in &tunnel.problems {
        if !problem.connection.as_deref().is_some_and(is_shown) {
            write_problem(out, "  ", problem);
        }
    }
    for connection in &tunnel.connections {
        write_connection(out, connection, &tunnel.problems, look);
    }
    if let Some(commands) = &tunnel.commands {
        let CommandStatus { local, absent, messages_received, messages_sent, refused } = commands;
        let (came, went) = (messages_received, messages_sent);
        let local = if local.is_empty() { "nowhere" } else { &format!("at {}", local.join(" ")) };
        say(out, &format!("\n  commands {local}: received {came}, sent {went}"));
        for reason in absent.values() {
            say(out, &format!("    missing: {reason}"));
        }
        // What this host could not say is no refusal of its own.
        let untold = |name: &&String| matches!(name.as_str(), "command_untold" | "command_unsent");
        let (failed, refused): (BTreeMap<_, _>, BTreeMap<_, _>) =
            refused.clone().into_iter().partition(|(name, _)| untold(&name));
        write_counts(out, "    refused", &refused);
        write_counts(out, "    not told to the peer", &failed);
    }
    for socket in &tunnel.sockets {
        write_socket(out, socket);
    }
    let hidden = tunnel.events.len().saturating_sub(EVENTS);
    for what in &tunnel.events[hidden..] {
        say(out, &format!("  {} ago: {}", duration(uptime - what.at_seconds), event(what)));
    }
}

/// An event in words, with where it happened in front, however much of that the words say.
pub(crate) fn event(event: &Event) -> String {
    let text = event.text.as_str();
    let Some(connection) = &event.connection else { return text.to_owned() };
    let said = text.strip_prefix(&format!("connection {connection}: "));
    let Some(path) = &event.path else {
        return format!("{connection}: {}", said.unwrap_or(text));
    };
    // What happens to a path begins with its name, and a problem with its name and a colon.
    let said = said.and_then(|said| said.strip_prefix(&format!("path {path}")));
    let said = said.map(|said| said.strip_prefix(':').unwrap_or(said));
    let said = said.and_then(|said| said.strip_prefix(' '));
    format!("{connection}/{path}: {}", said.unwrap_or(text))
}

/// What does not work, and what to do about it.
pub(crate) fn problem(problem: &Problem) -> String {
    let Problem { path, text, remedy, .. } = problem;
    let path = path.as_ref().map(|path| format!("path {path}: ")).unwrap_or_default();
    format!("{path}{text}: {remedy}")
}

fn write_problem(out: &mut String, indent: &str, it: &Problem) {
    say(out, &format!("{indent}problem: {}", problem(it)));
}

fn write_connection(
    out: &mut String,
    connection: &ConnectionState,
    problems: &[Problem],
    look: Look,
) {
    let Look { colour, verbose } = look;
    let ConnectionState { name, profile, scheduler, reorder, counters, drops, paths, .. } =
        connection;
    let memory = memory(connection.memory_bytes);
    let profile = if verbose { format!("  profile {profile}") } else { String::new() };
    say(out, &format!("\n  connection {name}{profile}  scheduler {scheduler}{memory}"));
    let facts = [
        (!connection.peer.is_empty()).then(|| format!("peer {}", connection.peer.join(" "))),
        // An older daemon does not report it, and supports one kind.
        (!matches!(&connection.peer_kind[..], "" | "mpt"))
            .then(|| format!("peer kind {}", connection.peer_kind)),
        (!connection.networks.is_empty())
            .then(|| format!("networks {}", connection.networks.join(" "))),
        connection.r#match.as_ref().map(|wanted| format!("match {wanted}")),
        connection.accepted_by.as_ref().map(|template| format!("accepted by {template}")),
        framing(connection),
    ];
    for fact in facts.into_iter().flatten() {
        say(out, &format!("    {fact}"));
    }
    let is_own = |problem: &&Problem| problem.connection.as_ref() == Some(name);
    for problem in problems.iter().filter(is_own) {
        write_problem(out, "    ", problem);
    }
    let (sent, received) = (traffic(counters.transmitted), traffic(counters.received));
    say(out, &format!("    transmitted {sent}, received {received}"));
    let early = if reorder.early_release { "on" } else { "off" };
    say(
        out,
        &format!(
            "    reorder: holds {} of {}, max delay {} s, early release {early}, late {}",
            reorder.held, reorder.window, reorder.max_delay, reorder.late
        ),
    );
    write_counts(out, "    reordering", &reorder.counters);
    if let Some(order) = order(&connection.reordering).filter(|_| verbose) {
        say(out, &format!("    arrivals: {order}"));
    }
    let lines = repair::order(reorder).into_iter();
    for line in lines
        .chain(connection.repair.iter().flat_map(repair::connection))
        .chain(repair::classes(&connection.classes))
    {
        say(out, &format!("    {line}"));
    }
    write_counts(out, "    drops", drops);

    // An older daemon, or a peer that does not measure, has nothing to fill these columns with.
    let measured = paths.iter().any(|path| path.rtt_ms.is_some() || path.loss.is_some());
    let both_ways = paths.iter().any(|path| path.to_peer.is_some());
    let mut table = Table::default();
    let mut titles = vec![Cell::left("path"), Cell::left("state")];
    let weighted = connection.goes_by_weights();
    titles.extend(weighted.then(|| Cell::right("weight")));
    titles.extend(["sent", "received"].map(Cell::right));
    if measured {
        let loss = if both_ways { "loss in/out" } else { "loss" };
        titles.extend(["rtt", loss].map(Cell::right));
    }
    titles.push(Cell::right("heard"));
    table.row(titles);
    for path in paths {
        table.row(path_row(path, [weighted, measured, both_ways], colour));
    }
    out.push_str(&table.render("    "));
    for path in paths {
        write_path(out, path, verbose);
    }
}

/// The framing, unless it is plain because nothing else was asked for.
fn framing(connection: &ConnectionState) -> Option<String> {
    match (&connection.framing[..], &connection.framing_reason) {
        ("plain" | "", None) => None,
        ("none", _) => Some("framing none: the peer has not answered a hello yet".to_owned()),
        (framing, None) => Some(match (&connection.cipher, connection.epoch) {
            (Some(cipher), Some(epoch)) => format!("framing {framing}: {cipher}, epoch {epoch}"),
            _ => format!("framing {framing}"),
        }),
        (framing, Some(reason)) => Some(format!("framing {framing}: {reason}")),
    }
}

/// A path's row, with the columns for weights, for measurements, and for those of both directions.
fn path_row(
    path: &PathState,
    [weighted, measured, both_ways]: [bool; 3],
    colour: bool,
) -> Vec<Cell> {
    let state = if path.standby && path.state == "up" { "standby" } else { &path.state };
    // Green, cyan, yellow and red: SGR 32, 36, 33 and 31.
    let shade = match state {
        _ if !colour => None,
        "up" => Some("32"),
        "standby" => Some("36"),
        "off" => None,
        "probing" => Some("33"),
        _ => Some("31"),
    };
    let mut row = vec![Cell::left(&path.name), Cell::left(state).coloured(shade)];
    row.extend(weighted.then(|| Cell::right(path.weight.to_string())));
    row.extend([path.sent, path.received].map(|traffic| Cell::right(bytes(traffic.bytes))));
    if measured {
        let number = |value: Option<f64>, text: fn(f64) -> String, unit| {
            Cell::right(value.map_or("-".into(), |value| text(value) + unit))
        };
        row.push(number(path.rtt_ms, three_digits, " ms"));
        row.push(if both_ways {
            let of = |loss: Option<f64>| loss.map_or("-".into(), percent);
            let out = path.to_peer.as_ref().and_then(|direction| direction.loss);
            Cell::right(format!("{}/{} %", of(path.loss), of(out)))
        } else {
            number(path.loss, percent, " %")
        });
    }
    row.push(Cell::right(match path.last_heard_seconds {
        Some(seconds) => duration(seconds) + " ago",
        None => "never".into(),
    }));
    row
}

/// What the table does not say of a path.
fn write_path(out: &mut String, path: &PathState, verbose: bool) {
    let name = &path.name;
    // Where the kernel chooses the address there is nothing to say but the port.
    let from = match path.local.parse::<SocketAddr>() {
        Ok(local) if local.ip().is_unspecified() => format!("port {} ", local.port()),
        _ if path.local.is_empty() => String::new(),
        _ => format!("{} ", path.local),
    };
    let mut facts = vec![format!("{from}to {}", path.remote)];
    facts.extend(path.interface.as_ref().map(|interface| format!("on {interface}")));
    facts.extend((path.mtu > 0).then(|| format!("mtu {}", path.mtu)));
    // What a path costs that carries nothing.
    let control = path.control_sent.bytes;
    facts.extend((control > 0).then(|| format!("keepalives and probes {} sent", bytes(control))));
    facts.extend((path.priority > 0).then(|| format!("priority {}", path.priority)));
    facts.extend(path.metered.then(|| "metered".to_owned()));
    let month = path.keepalive_bytes_per_month;
    facts.extend((month > 0).then(|| format!("idle {} per month", bytes(month))));
    facts.extend(path.jitter_ms.map(|jitter| format!("jitter {} ms", three_digits(jitter))));
    facts.extend(path.lost.map(|lost| format!("lost {lost}")));
    facts.extend((!path.pins.is_empty()).then(|| format!("pinned {}", path.pins.join(" "))));
    say(out, &format!("    {name}: {}", facts.join(", ")));
    if let Some(quota) = &path.quota {
        say(out, &format!("    {name} quota: {}", quota::fact(quota)));
    }
    for (way, direction) in [("from peer", &path.from_peer), ("to peer", &path.to_peer)] {
        if let Some(direction) = direction {
            say(out, &format!("    {name} {way}: {}", measured_in(direction)));
        }
    }
    if let Some(cause) = &path.cause {
        say(out, &format!("    {name} is {}: {cause}", path.state));
    }
    if let Some(order) =
        order(&path.reordering).filter(|_| verbose && path.reordering.reordered > 0)
    {
        say(out, &format!("    {name} arrivals: {order}"));
    }
    if let Some(leaves) = path.rate {
        let (leaves, limit) = (rate(leaves as f64), bytes(path.send_batch_limit));
        let batches = if verbose { format!(", batches of {limit}") } else { String::new() };
        say(out, &format!("    {name} egress rate {leaves}{batches}"));
    }
    write_counts(out, &format!("    {name} drops"), &path.drops);
}

/// What extended framing measures in one direction.
fn measured_in(direction: &Direction) -> String {
    let milliseconds = |name: &str, value: Option<f64>| {
        value.map(|value| format!("{name} {} ms", three_digits(value)))
    };
    // No more has been asked of it so far.
    let is_begun = matches!(direction.stage.as_deref(), Some("trains" | "start"));
    let more = if is_begun { " or more" } else { "" };
    let facts = [
        direction.rate.map(|bits| format!("rate {}", rate(bits as f64))),
        direction.capacity.map(|bits| format!("carries {}{more}", rate(bits as f64))),
        direction.pace.map(|bits| format!("paced at {}", rate(bits as f64))),
        Some(format!("lost {}", direction.lost)),
        direction.loss.map(|share| format!("loss {} %", percent(share))),
        direction.delay_ms.map(|value| format!("delay +{} ms", three_digits(value))),
        milliseconds("queueing", direction.queueing_ms),
        milliseconds("deviation", direction.deviation_ms),
        milliseconds("jitter", direction.jitter_ms),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn write_socket(out: &mut String, socket: &SocketStatus) {
    let device = socket.device.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
    let name = format!("{}{device}", socket.local);
    for (which, granted, sysctl) in [
        ("receive", socket.receive_buffer, "net.core.rmem_max"),
        ("send", socket.send_buffer, "net.core.wmem_max"),
    ] {
        if granted < socket.wanted {
            let (granted, wanted) = (bytes(granted), bytes(socket.wanted));
            let text = format!(
                "  warning: {name} has a {which} buffer of {granted} instead of {wanted}, so bursts are lost: \
                 run `sysctl -w {sysctl}={}` and restart mpt",
                socket.wanted
            );
            say(out, &text);
        }
    }
    if socket.kernel_drops > 0 {
        let count = socket.kernel_drops;
        say(out, &format!("  warning: {name} lost {count} datagrams to a full receive buffer"));
    }
    let cut = [("truncated", socket.truncated), ("control_truncated", socket.control_truncated)];
    let mut faults = socket.errors.clone();
    faults.extend(cut.map(|(name, count)| (name.to_owned(), count)));
    write_counts(out, &format!("  {name} faults"), &faults);
}

/// The counts that are not zero, if any.
fn write_counts(out: &mut String, title: &str, all: &BTreeMap<String, u64>) {
    let counts = counts(all);
    if !counts.is_empty() {
        say(out, &format!("{title}: {counts}"));
    }
}

/// A line, or more if it is longer than that.
fn say(out: &mut String, text: &str) {
    for line in wrap(text, WIDTH, "    ") {
        out.push_str(&line);
        out.push('\n');
    }
}

fn traffic(traffic: Traffic) -> String {
    format!("{} packets ({})", traffic.packets, bytes(traffic.bytes))
}

/// What memory is taken, where that is known.
fn memory(taken: u64) -> String {
    if taken == 0 { String::new() } else { format!("  memory {}", bytes(taken)) }
}

#[cfg(test)]
mod tests {
    use mpt_control::{
        ConnectionCounters, CopyCounters, DeviceCounters, QuotaState, ReorderStatus, Reordering,
        RepairStatus, StoreStatus,
    };

    use super::*;

    #[test]
    fn everything_at_a_glance() {
        insta::assert_snapshot!(status(&example(), Look { verbose: true, colour: false }));
    }

    #[test]
    fn weights_are_shown_where_they_mean_something() {
        let mut status = example();
        for (scheduler, shown) in
            [("weighted", true), ("flow", true), ("earliest", false), ("lowest-rtt", false)]
        {
            status.tunnels[0].connections[0].scheduler = scheduler.into();
            let text = self::status(&status, Look::default());
            assert_eq!(text.contains("weight  "), shown, "{text}");
            assert_eq!(text.contains("    40 "), shown, "{text}");
        }
    }

    #[test]
    fn colour_only_where_it_is_wanted() {
        assert!(!status(&example(), Look { verbose: true, colour: false }).contains('\x1b'));
        assert!(
            status(&example(), Look { verbose: true, colour: true }).contains("\x1b[32mup\x1b[0m")
        );
    }

    #[test]
    fn the_kind_of_a_peer_and_its_refusals_are_shown() {
        let mut status = example();
        let text = self::status(&status, Look { verbose: true, colour: false });
        assert!(!text.contains("peer kind") && !text.contains("commands"), "{text}");
        let tunnel = &mut status.tunnels[0];
        tunnel.connections[0].peer_kind = "mpt-original".into();
        tunnel.commands = Some(CommandStatus {
            local: vec!["192.0.2.10:65050".into(), "0.0.0.0:65050".into()],
            absent: [("192.0.2.11:65050".to_owned(), "cannot use 192.0.2.11:65050".to_owned())]
                .into(),
            messages_received: 4,
            messages_sent: 5,
            refused: [("command_source".to_owned(), 2), ("command_untold".to_owned(), 1)].into(),
        });
        let text = self::status(&status, Look { verbose: true, colour: false });
        for line in [
            "    peer kind mpt-original",
            "  commands at 192.0.2.10:65050 0.0.0.0:65050: received 4, sent 5",
            "    missing: cannot use 192.0.2.11:65050",
            "    refused: command_source 2",
            "    not told to the peer: command_untold 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }

    #[test]
    fn what_is_measured_and_what_is_new() {
        let text = status(&measured(), Look { verbose: true, colour: false });
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn the_status_of_an_older_daemon_is_shown() {
        let text = r#"{"version":"0.0.9","tunnels":[{"name":"mpt0","connections":[{"name":"server",
            "paths":[{"name":"fibre","state":"up","weight":1}]}]}]}"#;
        let shown = status(&serde_json::from_str(text).unwrap(), Look::default());
        assert!(shown.contains("fibre  up"), "{shown}");
        for unknown in ["rtt", "loss", "memory", "peer", "carrier", "arrivals"] {
            assert!(!shown.contains(unknown), "{unknown}: {shown}");
        }
    }

    #[test]
    fn an_event_says_once_where_it_happened() {
        let mut what = Event {
            connection: Some("server".into()),
            path: Some("radio".into()),
            text: "up -> down".into(),
            ..Event::default()
        };
        assert_eq!(event(&what), "server/radio: up -> down");
        what.text = "connection server: path radio was up, is down".into();
        assert_eq!(event(&what), "server/radio: was up, is down");
        what.text = "connection server: path radio: nothing listens there".into();
        assert_eq!(event(&what), "server/radio: nothing listens there");
        what.text = "connection server: path radio2 was up, is down".into();
        assert_eq!(event(&what), "server/radio: connection server: path radio2 was up, is down");
        what.path = None;
        what.text = "connection server: peer restarted".into();
        assert_eq!(event(&what), "server: peer restarted");
        what.connection = None;
        assert_eq!(event(&what), what.text);
    }

    /// The example of a daemon and a peer that measure.
    fn measured() -> Status {
        let mut status = example();
        let tunnel = &mut status.tunnels[0];
        tunnel.memory_bytes = 12_600_000;
        let connection = &mut tunnel.connections[0];
        connection.peer = vec!["10.9.0.2".into(), "fd00:9::2".into()];
        connection.networks = vec!["10.20.0.0/16".into()];
        connection.r#match = Some("udp 5060 10000-20000".into());
        connection.accepted_by = Some("vehicle".into());
        connection.memory_bytes = 6_400_000;
        connection.reordering = Reordering {
            packets: 15_600,
            reordered: 64,
            ratio: 64.0 / 15_600.0,
            extent_mean: 2.5,
            extent_max: 9,
            late_ms_mean: 0.82,
            late_ms_max: 3.1,
            ..Reordering::default()
        };
        connection.reorder.hold_times = vec![40, 20, 0, 0, 3, 0, 0, 0, 0, 1];
        connection.reorder.hold_seconds = 0.71;
        connection.reorder.residual_loss = Some(0.0001);
        connection.repair = Some(RepairStatus {
            active: true,
            lost: 15,
            repaired: CopyCounters { tried: 15, saved: 14, ..CopyCounters::default() },
            header_bytes: 52_000,
            copy_bytes: 21_000,
            control_bytes: 9000,
            beyond: Some(82.0 / 1400.0),
            ..RepairStatus::default()
        });
        tunnel.store = StoreStatus {
            packets: 40,
            bytes: 56_000,
            most_packets: 32_768,
            most_bytes: 33_554_432,
            ..StoreStatus::default()
        };
        let fibre = &mut connection.paths[0];
        fibre.rtt_ms = Some(12.34);
        fibre.jitter_ms = Some(0.042);
        fibre.loss = Some(0.0012);
        fibre.lost = Some(12);
        let mut spare = fibre.clone();
        spare.name = "satellite".into();
        spare.standby = true;
        spare.priority = 1;
        spare.metered = true;
        spare.quota = Some(QuotaState {
            bytes: 50_000_000_000,
            used: 31_400_000_000,
            ends: Some(1_780_272_000),
            seconds_left: Some(1_100_000),
            surcharge_ms: 120,
            ..QuotaState::default()
        });
        spare.loss = None;
        spare.pins = vec!["tcp_dst 22".into()];
        spare.rate = None;
        connection.paths.push(spare);
        connection.paths[1].local.clear();
        status
    }

    fn example() -> Status {
        let path = |name: &str, state: &str, cause: Option<&str>, heard| PathState {
            name: name.into(),
            state: state.into(),
            cause: cause.map(Into::into),
            status: "available".into(),
            local: "192.0.2.1:4754".into(),
            remote: "203.0.113.5:4754".into(),
            carrier: true,
            weight: 40,
            mtu: 1472,
            sent: Traffic { packets: 3, bytes: 4_000_000 },
            last_heard_seconds: heard,
            ..PathState::default()
        };
        let fibre = PathState {
            rate: Some(96_000_000),
            send_batch_limit: 2400,
            interface: Some("eth0".into()),
            drops: BTreeMap::from([("too_big".into(), 2), ("no_buffer".into(), 0)]),
            ..path("fibre", "up", None, Some(0.2))
        };
        let radio = path("radio", "down", Some("silent for its dead time"), None);
        let connection = ConnectionState {
            name: "server".into(),
            profile: "auto (classic)".into(),
            scheduler: "weighted".into(),
            reorder: ReorderStatus {
                window: 4096,
                max_delay: 0.1,
                early_release: true,
                late: "deliver".into(),
                held: 3,
                next: Some(17),
                counters: BTreeMap::from([("reordered".into(), 12), ("late".into(), 0)]),
                ..ReorderStatus::default()
            },
            counters: ConnectionCounters {
                transmitted: Traffic { packets: 1000, bytes: 1_400_000 },
                received: Traffic { packets: 5, bytes: 420 },
            },
            drops: BTreeMap::from([("no_path".into(), 4)]),
            paths: vec![fibre, radio],
            ..ConnectionState::default()
        };
        let small = SocketStatus {
            local: "192.0.2.1:4754".into(),
            device: Some("eth0".into()),
            receive_buffer: 212_992,
            send_buffer: 4_194_304,
            wanted: 4_194_304,
            kernel_drops: 9,
            ..SocketStatus::default()
        };
        let tunnel = TunnelStatus {
            threads: 1,
            name: "mpt0".into(),
            mtu: 1472,
            addresses: vec!["10.9.0.1/24".into(), "fd00:9::1/64".into()],
            device: DeviceCounters::default(),
            connections: vec![connection],
            drops: BTreeMap::from([("unknown_source".into(), 1)]),
            sockets: vec![small],
            events: vec![Event {
                at_seconds: 3_700.0,
                connection: Some("server".into()),
                path: Some("radio".into()),
                text: "up -> down (silent for its dead time)".into(),
            }],
            ..TunnelStatus::default()
        };
        Status {
            version: "0.1.0".into(),
            pid: 4711,
            uptime_seconds: 3_725.0,
            tunnels: vec![tunnel],
            silent_tunnels: vec!["mpt1".into()],
            ..Status::default()
        }
    }
}
