//! Artificial statuses.

use std::collections::BTreeMap;

use mpt_control::{
    ConnectionCounters, ConnectionState, Event, PathState, ReorderStatus, Reordering, Status,
    Traffic, TunnelStatus,
};

use super::super::model::Model;

/// Two seconds of a tunnel with a busy connection of three paths, one of them down and one standing
/// by, and a quiet one that was accepted.
pub(super) fn busy() -> Model {
    let mut model = Model::new(status(3_725.0, vec![server(0), vehicle()]));
    model.accept(status(3_727.0, vec![server(1), vehicle()]));
    model
}

/// A tunnel with `count` connections of one path each, after one second.
pub(super) fn many(count: usize) -> Model {
    let connections = |seconds: u64| {
        let one = |number: usize| {
            let sent = Traffic { packets: 1, bytes: 1000 * number as u64 * seconds };
            let path = PathState {
                sent,
                remote: format!("203.0.113.{number}:4754"),
                state: if number % 10 == 7 { "down" } else { "up" }.into(),
                cause: (number % 10 == 7).then(|| "silent for its dead time".into()),
                ..path("only")
            };
            ConnectionState {
                name: format!("site-{number}"),
                scheduler: "weighted".into(),
                counters: ConnectionCounters { transmitted: sent, ..ConnectionCounters::default() },
                paths: vec![path],
                ..ConnectionState::default()
            }
        };
        (1..=count).map(one).collect()
    };
    let mut model = Model::new(status(7_200.0, connections(1)));
    model.accept(status(7_201.0, connections(2)));
    model
}

fn status(uptime_seconds: f64, connections: Vec<ConnectionState>) -> Status {
    let event = |at_seconds, path: Option<&str>, text: &str| Event {
        at_seconds,
        connection: Some("server".into()),
        path: path.map(Into::into),
        text: text.into(),
    };
    let tunnel = TunnelStatus {
        name: "mpt0".into(),
        mtu: 1432,
        addresses: vec!["10.9.0.1/24".into(), "fd00:9::1/64".into()],
        connections,
        events: vec![
            event(0.5, Some("fibre"), "probing -> up"),
            event(0.75, Some("radio"), "probing -> up"),
            event(3_700.0, Some("radio"), "up -> down (silent for its dead time)"),
            event(3_726.5, None, "connection server: peer restarted: got sequence 17, expected 5"),
        ],
        memory_bytes: 12_600_000,
        ..TunnelStatus::default()
    };
    Status {
        version: "0.1.0".into(),
        pid: 4711,
        uptime_seconds,
        tunnels: vec![tunnel],
        ..Status::default()
    }
}

/// The busy connection after so many rounds of two seconds.
fn server(round: u64) -> ConnectionState {
    let carried = |bytes: u64| Traffic { packets: bytes / 1000, bytes };
    let fibre = PathState {
        interface: Some("eth0".into()),
        weight: 40,
        sent: carried(4_000_000 + round * 15_000_000),
        received: carried(1_000_000 + round * 500_000),
        jitter_ms: Some(0.042),
        lost: Some(12),
        loss: Some(0.0012),
        reordering: Reordering {
            packets: 15_500,
            reordered: 0,
            density: BTreeMap::from([("0".into(), 15_500)]),
            ..Reordering::default()
        },
        drops: BTreeMap::from([("too_big".into(), 2 + 6 * round)]),
        ..path("fibre")
    };
    let radio = PathState {
        state: "down".into(),
        cause: Some("interface wlan0 has no carrier".into()),
        interface: Some("wlan0".into()),
        carrier: false,
        rtt_ms: None,
        loss: Some(1.0),
        sent: carried(2_500_000),
        last_heard_seconds: Some(26.2),
        ..path("radio")
    };
    let satellite = PathState {
        standby: true,
        priority: 1,
        rtt_ms: Some(612.7),
        jitter_ms: Some(18.3),
        sent: carried(4_000 + round * 160),
        received: carried(4_000 + round * 160),
        loss: Some(0.0),
        pins: vec!["tcp_dst 22".into()],
        ..path("satellite")
    };
    ConnectionState {
        name: "server".into(),
        profile: "auto (classic)".into(),
        scheduler: "weighted".into(),
        peer: vec!["10.9.0.2".into(), "fd00:9::2".into()],
        networks: vec!["10.20.0.0/16".into()],
        reorder: ReorderStatus {
            window: 4096,
            max_delay: 0.1,
            early_release: true,
            late: "deliver".into(),
            held: 3,
            next: Some(17),
            counters: BTreeMap::from([
                ("in_order".into(), 15_000),
                ("reordered".into(), 64),
                ("late".into(), 4),
                ("lost_early_release".into(), 10),
                ("lost_max_delay".into(), 2),
                ("lost_window".into(), 0),
            ]),
            ..ReorderStatus::default()
        },
        reordering: Reordering {
            packets: 15_600,
            reordered: 64,
            ratio: 64.0 / 15_600.0,
            extent_mean: 2.5,
            extent_max: 9,
            late_ms_mean: 0.82,
            late_ms_max: 3.1,
            n_reordering: vec![60, 22, 3],
            density: BTreeMap::from([
                ("-1".into(), 120),
                ("0".into(), 15_416),
                ("2".into(), 60),
                ("9".into(), 4),
            ]),
            buffer_occupancy: vec![15_400, 150, 50],
            duplicates: 1,
        },
        counters: ConnectionCounters {
            transmitted: carried(6_000_000 + round * 14_500_000),
            received: carried(1_000_000 + round * 480_000),
        },
        drops: BTreeMap::from([("no_path".into(), 4 + round), ("too_big".into(), 0)]),
        paths: vec![fibre, radio, satellite],
        memory_bytes: 6_400_000,
        ..ConnectionState::default()
    }
}

fn vehicle() -> ConnectionState {
    ConnectionState {
        name: "vehicle-10.9.0.7".into(),
        profile: "auto (classic)".into(),
        scheduler: "flow".into(),
        accepted_by: Some("vehicle".into()),
        r#match: Some("udp 5060".into()),
        peer: vec!["10.9.0.7".into()],
        paths: vec![PathState { remote: "198.51.100.9:50124".into(), ..path("path-1") }],
        ..ConnectionState::default()
    }
}

fn path(name: &str) -> PathState {
    PathState {
        name: name.into(),
        state: "up".into(),
        status: "available".into(),
        local: "192.0.2.1:4754".into(),
        remote: "203.0.113.5:4754".into(),
        carrier: true,
        weight: 1,
        mtu: 1472,
        rtt_ms: Some(12.34),
        last_heard_seconds: Some(0.2),
        ..PathState::default()
    }
}
