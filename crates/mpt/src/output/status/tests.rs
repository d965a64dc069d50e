//! What is shown of a status, whatever daemon it is from.

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
    assert!(status(&example(), Look { verbose: true, colour: true }).contains("\x1b[32mup\x1b[0m"));
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
        absent: [("192.0.2.11:65050".to_owned(), "cannot use 192.0.2.11:65050".to_owned())].into(),
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
