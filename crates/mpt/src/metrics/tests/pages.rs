//! Pages of made-up statuses.

use std::collections::{BTreeMap, BTreeSet};

use mpt_control::{
    ClassCounters, ConnectionCounters, ConnectionState, ControlStatus, CopyCounters,
    DeviceCounters, Direction, LogStatus, PathState, Problem, QuotaState, ReorderStatus,
    Reordering, RepairStatus, SocketStatus, Status, StoreStatus, Traffic, TunnelStatus,
};

use super::super::{Format, page as page_of};
use super::format::parse;

fn page(status: &Status) -> String {
    page_of(status, Format::OpenMetrics)
}

#[test]
fn a_page_of_everything() {
    let text = page(&full());
    parse(&text).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_not_known_has_no_series() {
    let tunnel = TunnelStatus {
        name: "mpt0".into(),
        connections: vec![ConnectionState {
            name: "server".into(),
            paths: vec![PathState { name: "fibre".into(), ..PathState::default() }],
            ..ConnectionState::default()
        }],
        ..TunnelStatus::default()
    };
    let status = Status { tunnels: vec![tunnel], ..Status::default() };
    let page = parse(&page(&status)).unwrap();
    for absent in ["rtt", "jitter", "lost_datagrams", "loss_ratio", "silence", "memory"] {
        assert!(page.series.keys().all(|name| !name.contains(absent)), "{absent}");
    }
    assert!(parse(&page_of(&Status::default(), Format::OpenMetrics)).is_ok());
}

#[test]
fn any_name_can_be_a_label() {
    let mut status = full();
    status.tunnels[0].connections[0].name = "a \"quoted\\ one\"}\nand more".into();
    let page = parse(&page(&status)).unwrap();
    let escaped = r#"connection="a \"quoted\\ one\"}\nand more""#;
    assert!(page.series.keys().any(|name| name.contains(escaped)), "{:?}", page.series);
}

#[test]
fn units_are_base_units() {
    let page = parse(&page(&full())).unwrap();
    let labels = r#"{tunnel="mpt0",connection="server",path="fibre"}"#;
    for (name, value) in [
        ("mpt_path_sent_bytes_total", 4_000_000.0),
        ("mpt_path_sent_datagrams_total", 3000.0),
        ("mpt_path_rtt_seconds", 0.0125),
        ("mpt_path_jitter_seconds", 0.00025),
        ("mpt_path_rate_bytes_per_second", 12_000_000.0),
        ("mpt_path_quota_bytes", 50e9),
        ("mpt_path_quota_used_bytes", 1e9),
        ("mpt_path_quota_surcharge_seconds", 0.12),
        ("mpt_path_quota_used_up", 1.0),
    ] {
        assert_eq!(page.series.get(&format!("{name}{labels}")), Some(&value), "{name}");
    }
    let out = labels.replace('}', ",direction=\"out\"}");
    for (name, value) in [("rate_bytes_per_second", 1_000_000.0), ("delay_seconds", 0.02)] {
        let series = format!("mpt_path_direction_{name}{out}");
        assert_eq!(page.series.get(&series), Some(&value), "{name}");
    }
    let state = |state| {
        let labels = labels.replace('}', &format!(",state=\"{state}\"}}"));
        page.series.get(&format!("mpt_path_state{labels}")).copied()
    };
    assert_eq!((state("unusable"), state("up")), (Some(1.0), Some(0.0)));
    for (name, kind) in &page.kinds {
        let timed = name.contains("rtt") || name.contains("late") || name.contains("uptime");
        assert!(!timed || name.ends_with("_seconds"), "{name}: {kind}");
    }
}

#[test]
fn every_metric_is_described_and_every_description_has_a_metric() {
    let page = parse(&page(&full())).unwrap();
    let names = page.series.keys().map(|series| series.split('{').next().unwrap_or_default());
    // What is said of paths is said of connections too.
    let names: BTreeSet<&str> =
        names.filter(|name| !name.starts_with("mpt_connection_reordering_")).collect();
    let document = include_str!("../../../../../docs/status.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `mpt_"));
    let described: Vec<String> =
        rows.filter_map(|row| Some(format!("mpt_{}", row.split('`').next()?))).collect();
    assert_eq!(names, described.iter().map(String::as_str).collect());
}

pub(super) fn full() -> Status {
    let count = |name: &str, count| BTreeMap::from([(name.to_owned(), count)]);
    let reordering = Reordering {
        packets: 100,
        reordered: 4,
        ratio: 0.04,
        extent_mean: 1.5,
        extent_max: 3,
        late_ms_mean: 0.5,
        late_ms_max: 2.0,
        n_reordering: vec![4, 1],
        density: BTreeMap::from([("-1".into(), 2), ("0".into(), 96), ("2".into(), 2)]),
        buffer_occupancy: vec![97, 3],
        duplicates: 1,
    };
    let path = PathState {
        name: "fibre".into(),
        state: "unusable: mtu".into(),
        carrier: true,
        weight: 40,
        mtu: 1472,
        sent: Traffic { packets: 3000, bytes: 4_000_000 },
        resent: 41,
        received: Traffic { packets: 2000, bytes: 1_000_000 },
        rate: Some(96_000_000),
        last_heard_seconds: Some(0.25),
        rtt_ms: Some(12.5),
        jitter_ms: Some(0.25),
        lost: Some(7),
        loss: Some(0.01),
        quota: Some(QuotaState {
            bytes: 50_000_000_000,
            used: 1_000_000_000,
            surcharge_ms: 120,
            used_up: true,
            ..QuotaState::default()
        }),
        from_peer: Some(Direction {
            received: 5,
            lost: 1,
            queueing_ms: Some(0.5),
            ..Direction::default()
        }),
        to_peer: Some(Direction {
            received: 6,
            lost: 2,
            loss: Some(0.25),
            rate: Some(8_000_000),
            capacity: Some(16_000_000),
            pace: Some(16_800_000),
            stage: Some("servo".into()),
            delay_ms: Some(20.0),
            ..Direction::default()
        }),
        reordering: reordering.clone(),
        drops: count("too_big", 2),
        ..PathState::default()
    };
    let connection = ConnectionState {
        name: "server".into(),
        peer_kind: "mpt".into(),
        profile: "auto (classic)".into(),
        framing: "extended".into(),
        scheduler: "weighted".into(),
        counters: ConnectionCounters {
            transmitted: Traffic { packets: 2900, bytes: 3_900_000 },
            received: Traffic { packets: 1990, bytes: 990_000 },
        },
        reorder: ReorderStatus {
            window: 4096,
            held: 3,
            counters: BTreeMap::from([("held_max".into(), 9), ("in_order".into(), 95)]),
            residual_loss: Some(0.0005),
            hold_times: vec![4, 3, 0, 0, 1, 0, 0, 0, 0, 1],
            hold_seconds: 0.7,
            ..ReorderStatus::default()
        },
        reordering,
        classes: vec![ClassCounters {
            name: "realtime".into(),
            lost: 2,
            ..ClassCounters::default()
        }],
        repair: Some(RepairStatus {
            active: true,
            lost: 24,
            too_late: 1,
            repaired: CopyCounters { tried: 20, saved: 18, in_vain: 1, refused: 3, bytes: 28_000 },
            beyond: Some(0.04),
            ..RepairStatus::default()
        }),
        drops: count("no_path", 4),
        paths: vec![path.clone(), PathState { name: "radio".into(), ..path }],
        memory_bytes: 6_400_000,
        ..ConnectionState::default()
    };
    let socket = SocketStatus {
        local: "192.0.2.1:4754".into(),
        receive_buffer: 212_992,
        send_buffer: 4_194_304,
        wanted: 4_194_304,
        kernel_drops: 9,
        errors: count("icmp", 1),
        ..SocketStatus::default()
    };
    let tunnel = TunnelStatus {
        name: "mpt0".into(),
        mtu: 1432,
        device: DeviceCounters {
            read: Traffic { packets: 2904, bytes: 3_910_000 },
            drops: count("down", 1),
            ..DeviceCounters::default()
        },
        connections: vec![connection],
        drops: count("unknown_source", 1),
        problems: vec![Problem { code: "key".into(), ..Problem::default() }],
        store: StoreStatus { packets: 3, most_packets: 32_768, ..StoreStatus::default() },
        // Two paths that share an address but not an interface have two sockets.
        sockets: vec![socket.clone(), socket],
        memory_bytes: 12_600_000,
        ..TunnelStatus::default()
    };
    Status {
        version: "0.1.0".into(),
        pid: 4711,
        uptime_seconds: 3_725.5,
        tunnels: vec![tunnel],
        silent_tunnels: vec!["mpt1".into()],
        failed_tunnels: BTreeMap::new(),
        control: ControlStatus {
            socket: "/run/mpt/control.sock".into(),
            clients: 1,
            requests: 17,
            refused: count("busy", 2),
        },
        log: LogStatus { lost: count("write_failed", 3), error: None },
    }
}
