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
mod tests;
