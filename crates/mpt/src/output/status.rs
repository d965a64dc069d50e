//! The status of the daemon for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mpt_control::{ConnectionState, PathState, SocketStatus, Status, Traffic, TunnelStatus};

use super::table::{Cell, Table};

/// Events shown of each tunnel; the JSON has more.
const EVENTS: usize = 5;

/// Tunnels, connections and paths as tables; what is zero and what is as it should be is left out.
pub(crate) fn status(status: &Status, colour: bool) -> String {
    let mut out = format!(
        "mpt {}, process {}, up {}\n",
        status.version,
        status.pid,
        duration(status.uptime_seconds)
    );
    for tunnel in &status.tunnels {
        write_tunnel(&mut out, tunnel, status.uptime_seconds, colour);
    }
    for tunnel in &status.silent_tunnels {
        let _ = writeln!(out, "\ntunnel {tunnel} did not answer: ask again, or see the log");
    }
    out
}

fn write_tunnel(out: &mut String, tunnel: &TunnelStatus, uptime: f64, colour: bool) {
    let addresses = tunnel.addresses.join(" ");
    let _ = writeln!(out, "\ntunnel {}  mtu {}  {addresses}", tunnel.name, tunnel.mtu);
    let device = &tunnel.device;
    let _ = writeln!(
        out,
        "  device: read {}, written {}",
        traffic(device.read),
        traffic(device.written)
    );
    write_counts(out, "  device drops", &device.drops);
    write_counts(out, "  drops", &tunnel.drops);
    for connection in &tunnel.connections {
        write_connection(out, connection, colour);
    }
    for socket in &tunnel.sockets {
        write_socket(out, socket);
    }
    let hidden = tunnel.events.len().saturating_sub(EVENTS);
    for event in &tunnel.events[hidden..] {
        let place = [&event.connection, &event.path].map(|name| name.as_deref());
        let place: Vec<&str> = place.into_iter().flatten().collect();
        let place = if place.is_empty() { String::new() } else { place.join("/") + ": " };
        let ago = duration(uptime - event.at_seconds);
        let _ = writeln!(out, "  {ago} ago: {place}{}", event.text);
    }
}

fn write_connection(out: &mut String, connection: &ConnectionState, colour: bool) {
    let ConnectionState { name, profile, scheduler, reorder, counters, drops, paths, .. } =
        connection;
    let _ = writeln!(out, "\n  connection {name}  profile {profile}  scheduler {scheduler}");
    let _ = writeln!(
        out,
        "    transmitted {}, received {}",
        traffic(counters.transmitted),
        traffic(counters.received)
    );
    let _ = writeln!(
        out,
        "    reorder: window {}, max delay {} s, early release {}, late {}, holds {}",
        reorder.window,
        reorder.max_delay,
        if reorder.early_release { "on" } else { "off" },
        reorder.late,
        reorder.held
    );
    write_counts(out, "    reordering", &reorder.counters);
    write_counts(out, "    drops", drops);

    let mut table = Table::default();
    let header =
        ["path", "state", "weight", "mtu", "interface", "local", "remote", "sent", "received"];
    let header = header.into_iter().map(|title| match title {
        "weight" | "mtu" | "sent" | "received" => Cell::right(title),
        _ => Cell::left(title),
    });
    table.row(header.chain([Cell::right("heard")]));
    for path in paths {
        table.row(path_row(path, colour));
    }
    out.push_str(&table.render("    "));
    for path in paths {
        if let Some(cause) = &path.cause {
            let _ = writeln!(out, "    {} is {}: {cause}", path.name, path.state);
        }
        if let Some(rate) = path.rate {
            let (rate, limit) = (rate as f64 / 1e6, bytes(path.train_limit));
            let _ =
                writeln!(out, "    {} leaves at {rate:.1} Mbit/s, in trains of {limit}", path.name);
        }
        write_counts(out, &format!("    {} drops", path.name), &path.drops);
    }
}

fn path_row(path: &PathState, colour: bool) -> [Cell; 10] {
    // Green, yellow and red: SGR 32, 33 and 31.
    let shade = match path.state.as_str() {
        _ if !colour => None,
        "up" => Some("32"),
        "off" => None,
        "probing" => Some("33"),
        _ => Some("31"),
    };
    [
        Cell::left(&path.name),
        Cell::left(&path.state).coloured(shade),
        Cell::right(path.weight.to_string()),
        Cell::right(path.mtu.to_string()),
        Cell::left(path.interface.as_deref().unwrap_or("-")),
        Cell::left(&path.local),
        Cell::left(&path.remote),
        Cell::right(bytes(path.sent.bytes)),
        Cell::right(bytes(path.received.bytes)),
        Cell::right(match path.last_heard_seconds {
            Some(seconds) => duration(seconds) + " ago",
            None => "never".into(),
        }),
    ]
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
            let _ = writeln!(
                out,
                "  warning: {name} has a {which} buffer of {granted} instead of {wanted}, so bursts are lost: \
                 run `sysctl -w {sysctl}={}` and restart mpt",
                socket.wanted
            );
        }
    }
    if socket.kernel_drops > 0 {
        let count = socket.kernel_drops;
        let _ = writeln!(out, "  warning: {name} lost {count} datagrams to a full receive buffer");
    }
    let cut = [("truncated", socket.truncated), ("control_truncated", socket.control_truncated)];
    let mut faults = socket.errors.clone();
    faults.extend(cut.map(|(name, count)| (name.to_owned(), count)));
    write_counts(out, &format!("  {name} faults"), &faults);
}

/// The counts that are not zero, if any.
fn write_counts(out: &mut String, title: &str, counts: &BTreeMap<String, u64>) {
    let counts = counts.iter().filter(|(_, count)| **count > 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if !counts.is_empty() {
        let _ = writeln!(out, "{title}: {}", counts.join(", "));
    }
}

fn traffic(traffic: Traffic) -> String {
    format!("{} packets ({})", traffic.packets, bytes(traffic.bytes))
}

/// Three digits and a decimal unit.
fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut units = ["kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // What would be rounded to 1000 belongs to the next unit.
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1000.0, next);
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

/// The two largest units that matter.
fn duration(seconds: f64) -> String {
    // Not a number and what lies in the future count as nothing.
    let seconds = seconds.max(0.0);
    if seconds < 1.0 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = (seconds / 60.0) as u64;
    match minutes {
        0..60 => format!("{minutes} min {:02.0} s", (seconds % 60.0).floor()),
        60..1440 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, minutes % 1440 / 60),
    }
}

#[cfg(test)]
mod tests {
    use mpt_control::{ConnectionCounters, DeviceCounters, Event, ReorderStatus};

    use super::*;

    #[test]
    fn everything_at_a_glance() {
        insta::assert_snapshot!(status(&example(), false));
    }

    #[test]
    fn colour_only_where_it_is_wanted() {
        assert!(!status(&example(), false).contains('\x1b'));
        assert!(status(&example(), true).contains("\x1b[32mup\x1b[0m"));
    }

    #[test]
    fn sizes_have_three_digits() {
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_501, "1.00 MB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn times_have_the_units_that_matter() {
        for (value, text) in [
            (-1.0, "0 ms"),
            (f64::NAN, "0 ms"),
            (0.0123, "12 ms"),
            (1.75, "1.8 s"),
            (61.0, "1 min 01 s"),
            (3_600.0 * 5.0 + 120.0, "5 h 02 min"),
            (86_400.0 * 9.0 + 7_200.0, "9 d 2 h"),
        ] {
            assert_eq!(duration(value), text);
        }
    }

    fn example() -> Status {
        let path = |name: &str, state: &str, cause: Option<&str>, heard| PathState {
            name: name.into(),
            state: state.into(),
            cause: cause.map(Into::into),
            status: "available".into(),
            local: "192.0.2.1:4754".into(),
            remote: "203.0.113.5:4754".into(),
            weight: 40,
            mtu: 1472,
            sent: Traffic { packets: 3, bytes: 4_000_000 },
            last_heard_seconds: heard,
            ..PathState::default()
        };
        let fibre = PathState {
            rate: Some(96_000_000),
            train_limit: 2400,
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
