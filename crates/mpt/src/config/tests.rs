//! What the whole reader makes of whole files. The wording of the reports is pinned by the tests
//! that run the program on `tests/bad-config`.

mod arbitrary;
mod change;
mod documents;
mod example;
mod fragment;

mod together;
mod written;

use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Every key there is.
const FULL: &str = r#"
[control]
socket = "/tmp/mpt.sock"

[daemon]
user = "mpt"

[metrics]
listen = "[::1]:9475"

[web]
listen = "/run/mpt/web.sock"

[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24", "fd00:9::1/64"]
mtu = 1400
clamp_mss = true
offloads = { uso = false }
threads = 2

[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2", "fd00:9::2"]
networks = ["192.168.0.0/16"]
match = { protocol = "udp", ports = [5060, "10000-20000"] }
local_port = 4755
remote_port = 4756
profile = "classic"
scheduler = "flow"
framing = "plain"
key = 7
checksum = true
sequence = false
reorder = { window = 9, max_delay = 0.25, early_release = false, late = "drop" }

[[tunnel.connection.path]]
name = "fibre"
interface = "eth0"
local = "192.0.2.1"
remote = "203.0.113.5"
weight = 40
priority = 3
keepalive = 1
dead_time = 2.5
status = "off"
tcp_dst = [22, "5060-5070"]
tcp_src = [23]
udp_dst = ["53 - 54"]
udp_src = [65535]

[[tunnel.connection.path]]
name = "radio"
interface = "eth2"
remote = "server.example.org"

[[tunnel.accept]]
name = "vehicle"
peers = ["10.9.0.0/24", "fd00:9::/64"]
sources = ["203.0.113.0/24"]
interface = "eth1"
local = "192.0.2.2"
local_port = 4757
max_connections = 4096
max_rate = 0.5
max_paths = 64
forget = 600
profile = "classic"
scheduler = "flow"
framing = "plain"
key = 8
checksum = true
sequence = false
reorder = { max_delay = 1 }
weight = 9
priority = 2
keepalive = 2
dead_time = 8
"#;

#[test]
fn every_key_arrives() {
    let settings = parse(FULL).unwrap();
    let prefix = |addr: &str, len| Prefix { addr: addr.parse().unwrap(), len };
    let fibre = Path {
        name: "fibre".into(),
        interface: Some("eth0".into()),
        local: Some("192.0.2.1".parse().unwrap()),
        remote: Remote::Address("203.0.113.5".parse().unwrap()),
        weight: 40,
        weight_from_peer: false,
        rate: None,
        metered: false,
        price: None,
        quota: None,
        quota_day: 1,
        found: None,
        priority: 3,
        keepalive: Duration::from_secs(1),
        dead_time: Duration::from_millis(2500),
        failover: None,
        status: PathStatus::Off,
        pins: Pins {
            tcp_dst: vec![22..=22, 5060..=5070],
            tcp_src: vec![23..=23],
            udp_dst: vec![53..=54],
            udp_src: vec![65535..=65535],
        },
    };
    let radio = Path {
        name: "radio".into(),
        interface: Some("eth2".into()),
        local: None,
        remote: Remote::Name("server.example.org".into()),
        weight: 1,
        weight_from_peer: false,
        rate: None,
        metered: false,
        price: None,
        quota: None,
        quota_day: 1,
        found: None,
        priority: 0,
        keepalive: Path::default_keepalive(PeerKind::Mpt),
        dead_time: Duration::from_millis(1750),
        failover: None,
        status: PathStatus::Available,
        pins: Pins::default(),
    };
    let connection = Connection {
        peer_kind: PeerKind::Mpt,
        commands: None,
        name: "server".into(),
        peer: vec!["10.9.0.2".parse().unwrap(), "fd00:9::2".parse().unwrap()],
        public_key: None,
        preshared_key_file: None,
        invitation_file: None,
        networks: vec![prefix("192.168.0.0", 16)],
        selector: Some(Match { protocol: Some(17), ports: vec![5060..=5060, 10000..=20000] }),
        local_port: 4755,
        remote_port: 4756,
        policies: Policies {
            profile: Profile::Classic,
            scheduler: Scheduler::Flow,
            thin_acks: true,
            equalise: true,
            compete: true,
            breaker: true,
            repair: true,
            framing: Framing::Plain,
            key: Some(7),
            checksum: true,
            sequence: false,
            reorder: Reorder {
                window: 9,
                max_delay: Duration::from_millis(250),
                early_release: false,
                late: Late::Drop,
                configured: true,
            },
        },
        remote: None,
        interfaces: Interfaces::Auto,
        exclude: Vec::new(),
        keepalive: None,
        dead_time: None,
        failover: None,
        forget: Duration::from_secs(300),
        uplinks: Vec::new(),
        classes: Vec::new(),
        paths: vec![fibre, radio],
    };
    let accept = Accept {
        name: "vehicle".into(),
        peers: vec![prefix("10.9.0.0", 24), prefix("fd00:9::", 64)],
        folder: None,
        sources: vec![prefix("203.0.113.0", 24)],
        interface: Some("eth1".into()),
        local: Some("192.0.2.2".parse().unwrap()),
        local_port: 4757,
        max_connections: 4096,
        max_rate: 0.5,
        max_paths: 64,
        forget: Duration::from_secs(600),
        policies: Policies {
            profile: Profile::Classic,
            scheduler: Scheduler::Flow,
            thin_acks: true,
            equalise: true,
            compete: true,
            breaker: true,
            repair: true,
            framing: Framing::Plain,
            key: Some(8),
            checksum: true,
            sequence: false,
            reorder: Reorder {
                window: 0,
                max_delay: Duration::from_secs(1),
                configured: true,
                ..Reorder::default()
            },
        },
        weight: Some(9),
        priority: 2,
        keepalive: Duration::from_secs(2),
        dead_time: Duration::from_secs(8),
        failover: None,
        classes: Vec::new(),
    };
    let tunnel = Tunnel {
        name: "mpt0".into(),
        addresses: vec![prefix("10.9.0.1", 24), prefix("fd00:9::1", 64)],
        private_key_file: None,
        clamp_mss: true,
        offloads: Offloads { uso: false, ..Offloads::ALL },
        checksum_partial: false,
        threads: Threads::Two,
        mtu: Mtu::Fixed(1400),
        connections: vec![connection],
        accepts: vec![accept],
    };
    let control = Control { socket: "/tmp/mpt.sock".into() };
    let daemon = Daemon { user: Some("mpt".into()), ..Daemon::default() };
    let metrics = Metrics { listen: Some("[::1]:9475".parse().unwrap()) };
    let web = Web { listen: Some(Listen::Socket("/run/mpt/web.sock".into())) };
    assert_eq!(settings, Settings { control, daemon, metrics, web, tunnels: vec![tunnel] });
}

#[test]
fn a_connection_may_say_only_where_its_peer_is() {
    let text = two_paths("name = \"b\"\nremote = \"192.0.2.2\"");
    let (head, _) = text.split_once("[[tunnel.connection.path]]").unwrap();
    let connection = |more: &str| {
        let settings = parse(&format!("{head}{more}")).unwrap_or_else(|error| panic!("{error:?}"));
        settings.tunnels.into_iter().next().unwrap().connections.remove(0)
    };
    let learned = connection("keepalive = 1\nforget = 9");
    assert!(learned.learns_paths() && learned.policies.framing == Framing::Auto);
    let path = learned.learned_path("[2001:db8::1]:5".parse().unwrap(), None).unwrap();
    assert_eq!((path.name.as_str(), path.weight_from_peer), ("[2001:db8::1]:5", true));
    assert_eq!(
        (path.keepalive, path.dead_time),
        (Duration::from_secs(1), Duration::from_secs_f64(3.5))
    );

    let found = connection(
        "remote = \"server.example.org\"\nexclude = [\"docker*\"]\ndead_time = 3\n\
         [tunnel.connection.interface.\"eth0.5\"]\nweight = 3\nmetered = true",
    );
    assert!(!found.learns_paths() && found.uplinks[0].metered);
    assert!(found.may_use("eth0.5") && !found.may_use("docker0"));
    let path = found.found_path("eth0.5", Found::V6).unwrap();
    assert_eq!((path.name.as_str(), path.interface.as_deref()), ("eth0.5-v6", Some("eth0.5")));
    assert_eq!((path.weight, path.dead_time), (3, Duration::from_secs(3)));
    let path = found.found_path("eth1", Found::V4).unwrap();
    assert_eq!((path.name.as_str(), path.weight), ("eth1", 1));
    // An address has one IP version, and so one path by each interface.
    let path = connection("remote = \"2001:db8::1\"").found_path("eth0", Found::V6).unwrap();
    assert_eq!(path.name, "eth0");
}

#[test]
fn only_a_written_window_or_delay_makes_the_reorder_buffer_configured() {
    for (reorder, configured) in [
        ("", false),
        ("reorder = { early_release = true, late = \"drop\" }", false),
        ("reorder = { window = 4096 }", true),
        ("reorder = { max_delay = 0.1 }", true),
    ] {
        let text = two_paths("name = \"b\"\nremote = \"192.0.2.2\"");
        let text =
            text.replace("[[tunnel.connection]]", &format!("[[tunnel.connection]]\n{reorder}"));
        let settings = parse(&text).unwrap();
        let of =
            |settings: &Settings| settings.tunnels[0].connections[0].policies.reorder.configured;
        assert_eq!(of(&settings), configured, "{reorder}");
        assert_eq!(of(&parse(&write(&settings)).unwrap()), configured, "{reorder}");
    }
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let settings = parse(&two_paths("name = \"b\"\nremote = \"192.0.2.2\"")).unwrap();
    assert_eq!(settings.control.socket.to_str(), Some("/run/mpt/control.sock"));
    let tunnel = &settings.tunnels[0];
    assert_eq!((tunnel.mtu, tunnel.threads), (Mtu::Auto, Threads::One));
    let connection = &tunnel.connections[0];
    assert_eq!((connection.local_port, connection.remote_port), (4754, 4754));
    assert_eq!(
        (connection.policies.profile, connection.policies.scheduler),
        (Profile::Auto, Scheduler::Earliest)
    );
    assert_eq!(
        (connection.policies.key, connection.policies.checksum, connection.policies.sequence),
        (None, false, true)
    );
    assert_eq!(connection.policies.reorder, Reorder::default());
    assert!(connection.networks.is_empty());
}

#[test]
fn the_window_is_0_by_default_for_flows_and_rfc_8086_endpoints() {
    let window = |kind: &str, more: &str| {
        let text = two_paths("name = \"b\"\nremote = \"192.0.2.2\"");
        let peer = format!("peer = \"{kind}\"\npeer_addresses = [\"10.9.0.2\"]\n{more}");
        let settings = parse(&text.replace("peer = [\"10.9.0.2\"]", &peer)).unwrap();
        settings.tunnels[0].connections[0].policies.reorder.window
    };
    for (kind, weighted) in [("mpt", 4096), ("mpt-original", 4096), ("gre", 0)] {
        assert_eq!(window(kind, ""), weighted, "{kind}");
        assert_eq!(window(kind, "scheduler = \"flow\""), 0, "{kind}");
        assert_eq!(window(kind, "reorder = { max_delay = 1 }"), weighted, "{kind}");
        assert_eq!(window(kind, "reorder = { window = 9 }"), 9, "{kind}");
    }
}

#[test]
fn the_borders_of_what_is_allowed() {
    for (field, good) in [
        ("weight = 1", true),
        ("weight = 10000", true),
        ("weight = 0x10", true),
        ("weight = 0", false),
        ("weight = 10001", false),
        ("weight = -1", false),
        ("weight = 1.5", false),
        ("weight = 99999999999999999999", false),
        ("keepalive = 0", true),
        ("keepalive = 0.01", true),
        ("keepalive = 0.009", false),
        ("keepalive = -0.5", false),
        ("keepalive = nan", false),
        ("keepalive = inf", false),
        ("keepalive = 1e300", false),
        ("dead_time = 0", true),
        ("dead_time = 0.5", false),
        ("dead_time = 0.51", true),
        ("keepalive = 100", true),
        ("keepalive = 1.75\ndead_time = 1.75", false),
        ("keepalive = 9\ndead_time = 0", true),
        ("keepalive = 0\ndead_time = 0.1", true),
        ("interface = \"123456789012345\"", true),
        ("interface = \"1234567890123456\"", false),
        ("interface = \"\"", false),
        ("interface = \"a b\"", false),
        ("interface = \"mpt0\"", false),
        ("local = \"192.0.2.9\"", true),
        ("local = \"2001:db8::1\"", false),
        ("local = \"0.0.0.0\"", false),
        ("local = \"224.0.0.1\"", false),
        ("status = \"off\"", true),
        ("status = \"up\"", false),
    ] {
        let text = two_paths(&format!("name = \"b\"\nremote = \"192.0.2.2\"\n{field}"));
        // Whatever the path `b` has, its socket and that of an IPv6 path do not meet.
        let text = text.replace("192.0.2.1", "2001:db8::2");
        assert_eq!(parse(&text).is_ok(), good, "{field}: {:?}", parse(&text));
    }
}

#[test]
fn an_idle_path_is_watched_for_a_second_and_a_metered_one_for_ten() {
    let of = |path: &str, found: &str| {
        let text = "[[tunnel]]\nname = \"mpt0\"\naddresses = [\"10.9.0.1/24\"]\n[[tunnel.connection]]\nname = \"server\"\npeer = [\"10.9.0.2\"]\n";
        let settings = match found {
            "" => parse(&format!(
                "{text}[[tunnel.connection.path]]\nname = \"fibre\"\nremote = \"203.0.113.5\"\n{path}"
            )),
            found => parse(&format!(
                "{text}remote = \"203.0.113.5\"\n{path}\n[tunnel.connection.interface.wwan0]\n{found}"
            )),
        };
        let settings = settings.unwrap();
        let connection = &settings.tunnels[0].connections[0];
        let path = connection.paths.first().cloned();
        let path = path.or_else(|| connection.found_path("wwan0", Found::V4)).unwrap();
        path.failover().map(|time| time.as_millis())
    };
    for (path, expected) in [
        ("", Some(1000)),
        ("failover = 300", Some(300)),
        ("keepalive = 1", None),
        ("dead_time = 9", None),
        ("keepalive = 1\nfailover = 2000", Some(2000)),
        ("keepalive = 0\nfailover = 2000", None),
    ] {
        assert_eq!(of(path, ""), expected, "{path}");
    }
    for (path, found, expected) in [
        ("", "metered = true", 10_000),
        ("", "weight = 2", 1000),
        ("failover = 3000", "metered = true", 3000),
        ("failover = 3000", "metered = true\nfailover = 20000", 20_000),
    ] {
        assert_eq!(of(path, found), Some(expected), "{path} {found}");
    }
}

#[test]
fn a_class_names_paths_or_their_interfaces() {
    let settings = FULL.replacen(
        "[[tunnel.connection.path]]",
        "[[tunnel.connection.class]]\nname = \"calls\"\ndscp = [46]\npaths = [\"radio\"]\n\
         [[tunnel.connection.class]]\nname = \"backup\"\ndscp = [8]\npaths = [\"eth0\"]\n\
         [[tunnel.connection.path]]",
        1,
    );
    let settings = parse(&settings).unwrap();
    let connection = &settings.tunnels[0].connections[0];
    let refuses: Vec<u32> = connection.paths.iter().map(|path| connection.refuses(path)).collect();
    assert_eq!(refuses, [0b01, 0b10], "fibre is by eth0");
}

#[test]
fn the_dead_time_follows_the_keepalive() {
    for (keepalive, dead_time) in [("0.5", 1.75), ("2", 7.0), ("0", 0.0)] {
        let path = format!("name = \"b\"\nremote = \"192.0.2.2\"\nkeepalive = {keepalive}");
        let settings = parse(&two_paths(&path)).unwrap();
        let path = &settings.tunnels[0].connections[0].paths[1];
        assert_eq!(path.dead_time, Duration::from_secs_f64(dead_time));
    }
}

#[test]
fn the_borders_of_the_mtu() {
    let ipv4 = two_paths("name = \"b\"\nremote = \"192.0.2.2\"");
    let ipv6 = ipv4.replace("10.9.0.1/24\"", "10.9.0.1/24\", \"fd00::1/64\"");
    assert_ne!(ipv4, ipv6);
    for (mtu, ipv4_good, ipv6_good) in [
        ("\"auto\"", true, true),
        ("575", false, false),
        ("576", true, false),
        ("1279", true, false),
        ("1280", true, true),
        ("65491", true, true),
        ("65492", false, false),
        ("\"big\"", false, false),
        ("true", false, false),
    ] {
        for (text, good) in [(&ipv4, ipv4_good), (&ipv6, ipv6_good)] {
            let text = text.replace("[[tunnel]]", &format!("[[tunnel]]\nmtu = {mtu}"));
            assert_eq!(parse(&text).is_ok(), good, "{mtu}: {text}");
        }
    }
}

#[test]
fn sixty_four_paths_are_the_most() {
    let many = |count: u32| {
        let mut paths = String::from("name = \"p1\"\nremote = \"192.0.2.2\"\n");
        for path in 2..count {
            let _ = write!(
                paths,
                "[[tunnel.connection.path]]\nname = \"p{path}\"\nremote = \"198.51.100.{path}\"\n"
            );
        }
        parse(&two_paths(&paths))
    };
    assert_eq!(many(64).unwrap().tunnels[0].connections[0].paths.len(), 64);
    assert_eq!(many(65).unwrap_err().len(), 1);
}

#[test]
fn independent_problems_are_reported_at_once_in_the_order_of_the_text() {
    let text = two_paths("name = \"a\"\nwieght = 3\nweight = 0\nremote = \"no_where\"")
        .replace("10.9.0.1/24", "10.9.0.1")
        .replace("name = \"mpt0\"", "name = 5");
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert!(problems.windows(2).all(|pair| pair[0].span().start <= pair[1].span().start));
}

#[test]
fn only_so_many_problems_are_shown() {
    let text: String = (0..1000).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "unknown{number} = 1");
        text
    });
    let report = Report::new("f".into(), text.clone(), parse(&text).unwrap_err());
    assert_eq!(report.render(false).matches("error: ").count(), 20);
    assert!(report.to_string().contains("1000 problems, the first 20 shown"), "{report}");
}

#[test]
fn deep_nesting_is_an_error() {
    assert!(parse(&("a = ".to_owned() + &"[".repeat(200_000))).is_err());
    assert!(parse(&"a.".repeat(100_000)).is_err());
}

proptest! {
    #[test]
    fn random_text_is_never_a_panic(text in any::<String>()) {
        show(&text);
    }

    #[test]
    fn random_toml_is_never_a_panic(text in "([a-z\\[\\]\\{\\}=\"'.,#0-9 \n\r\té🦀]){0,80}") {
        show(&text);
    }

    #[test]
    fn damaged_files_are_never_a_panic(
        at in any::<prop::sample::Index>(),
        len in 0..40usize,
        with in "[\\PC\n\"\\[\\]=]{0,8}",
    ) {
        let border = |at: usize| (at..).find(|&at| FULL.is_char_boundary(at)).unwrap();
        let start = border(at.index(FULL.len()));
        let end = border((start + len).min(FULL.len()));
        show(&format!("{}{with}{}", &FULL[..start], &FULL[end..]));
    }

    #[test]
    fn exchanged_values_are_never_a_panic(
        line in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![
            "0", "-1", "1e999", "nan", "1979-05-27", "\"\"", "\"/\"", "\"::/0\"", "\"10.0.0.1/-1\"",
            "[]", "[[]]", "{}", "[1, \"a\"]", "\"\\u0000\"", "true", "9223372036854775808",
            "\"::ffff:1.2.3.4\"", "\"fe80::1\"", "[\"10.9.0.1\"]", "[\"0.0.0.0/0\"]",
        ]),
    ) {
        let line = line.index(FULL.lines().count());
        let text: Vec<String> = FULL.lines().enumerate().map(|(number, text)| {
            match text.split_once(" = ") {
                Some((key, _)) if number == line => format!("{key} = {value}"),
                _ => text.to_owned(),
            }
        }).collect();
        show(&text.join("\n"));
    }
}

/// Reads and, as the program would, renders what is wrong.
fn show(text: &str) {
    if let Err(problems) = parse(text) {
        assert!(!problems.is_empty());
        let report = Report::new("file.toml".into(), text.into(), problems);
        assert!(report.render(true).contains("error"));
        assert!(report.render(false).contains("error"));
        assert!(report.to_string().contains("problem"));
    }
}

/// A file of one connection with the path `a` and one with these fields.
fn two_paths(fields: &str) -> String {
    format!(
        "[[tunnel]]\nname = \"mpt0\"\naddresses = [\"10.9.0.1/24\"]\n\
         [[tunnel.connection]]\nname = \"server\"\npeer = [\"10.9.0.2\"]\n\
         [[tunnel.connection.path]]\nname = \"a\"\nremote = \"192.0.2.1\"\n\
         [[tunnel.connection.path]]\n{fields}\n"
    )
}
