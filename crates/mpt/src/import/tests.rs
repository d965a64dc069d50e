//! Nothing that was written gets lost, whatever was written.

mod migrate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::document::Shown;
use super::{Gathered, Imported, Peer, Source, import, keys, mask};
use crate::config::{Mtu, Path, PathStatus, Scheduler, Written as _};

const PEERS: [Peer; 2] = [Peer::Original, Peer::Mpt];

/// Values that are not what the original does anyway, by section and key.
const EVERY_KEY: [(&str, &str, &str); 56] = [
    ("general", "tunnel_num", "1"),
    ("general", "accept_remote", "1"),
    ("general", "cmdport_local", "60457"),
    ("general", "cmd_timeout", "17"),
    ("general", "interface_num", "3"),
    ("tun_0", "name", "tun7"),
    ("tun_0", "mtu", "1420"),
    ("tun_0", "ipv4_addr", "10.7.0.1/24"),
    ("tun_0", "ipv6_addr", "fd00:7::1/64"),
    ("connection", "name", "branch"),
    ("connection", "permission", "2"),
    ("connection", "ip_ver", "4"),
    ("connection", "ip_local", "10.7.0.9"),
    ("connection", "local_port", "50231"),
    ("connection", "local_cmd_port", "50232"),
    ("connection", "ip_remote", "10.7.0.2"),
    ("connection", "remote_port", "50233"),
    ("connection", "remote_cmd_port", "50234"),
    ("connection", "path_count", "2"),
    ("connection", "network_count", "1"),
    ("connection", "status", "129"),
    ("connection", "reorder_window", "1601"),
    ("connection", "max_buffdelay_msec", "301"),
    ("connection", "auth_type", "2"),
    ("connection", "auth_key", "0123456789abcdef0123456789abcdefXYZ"),
    ("connection", "keepalive_time", "6"),
    ("connection", "dead_time", "18"),
    ("path_0", "interface_name", "eth7"),
    ("path_0", "ip_ver", "4"),
    ("path_0", "public_ipaddr", "203.0.113.7"),
    ("path_0", "private_ipaddr", "192.0.2.7"),
    ("path_0", "gw_ipaddr", "192.0.2.254"),
    ("path_0", "remote_ipaddr", "198.51.100.7"),
    ("path_0", "keepalive_time", "7"),
    ("path_0", "dead_time", "23"),
    ("path_0", "weight_out", "77"),
    ("path_0", "weight_in", "78"),
    ("path_0", "cmd_default", "1"),
    ("path_0", "status", "131"),
    ("path_0", "window_size", "9"),
    ("path_0", "tcp_src", "1022"),
    ("path_0", "tcp_dst", "1080"),
    ("path_0", "udp_src", "1053"),
    ("path_0", "udp_dst", "1054"),
    ("path_1", "interface_name", "eth8"),
    ("path_1", "gateway_ipaddr", "192.0.2.253"),
    ("path_1", "local_ipaddr", "192.0.2.8"),
    ("path_1", "default_cmd", "2"),
    ("path_1", "remote_ipaddr", "198.51.100.8"),
    ("path_1", "public_ipaddr", "private_ipaddr"),
    ("path_1", "spare", "unheard of"),
    ("net_0", "ip_ver", "4"),
    ("net_0", "src_addr", "192.168.7.0/24"),
    ("net_0", "dst_addr", "192.168.8.0/24"),
    ("net_5", "dst_addr", "192.168.9.0/24"),
    ("elsewhere", "colour", "blue"),
];

#[test]
fn every_key_ever_named_survives() {
    for peer in PEERS {
        let imported = sections(&EVERY_KEY, peer).expect("files that can be imported");
        assert!(imported.verdict.is_ok(), "{:?}", imported.verdict);
        for (_, key, value) in EVERY_KEY {
            assert!(imported.text.contains(&shown(key, value)), "{key}\n{}", imported.text);
        }
        for unknown in ["spare", "colour"] {
            assert!(imported.warnings.iter().any(|warning| warning.contains(unknown)));
        }
    }
}

/// How a comment shows an entry.
fn shown(key: &str, value: &str) -> String {
    let value = if key == keys::SECRET { mask::HIDDEN } else { value };
    format!("{key} = {}", Shown(value))
}

#[test]
fn a_key_is_seen_as_a_setting_only() {
    const KEY: &str = "0pen-5e5ame-of-th3-f0rty-th1eve5";
    for (kind, peer, settings) in [
        ("2", Peer::Original, 1),
        ("1", Peer::Original, 0),
        ("0", Peer::Original, 0),
        ("2", Peer::Mpt, 0),
    ] {
        for name in [keys::SECRET, "auth_kye", "auth-key", "Auth_Key"] {
            let mut entries = EVERY_KEY.to_vec();
            entries.retain(|(_, key, _)| !key.starts_with("auth_"));
            let cut = format!("{KEY}\" ;0{KEY}");
            entries.extend([("connection", "auth_type", kind), ("connection", name, &cut)]);
            for elsewhere in ["path_0", "elsewhere", "general"] {
                entries.push((elsewhere, name, KEY));
            }
            let imported = sections(&entries, peer).expect("files that can be imported");
            let settings = if name.eq_ignore_ascii_case(keys::SECRET) { settings } else { 0 };
            assert_eq!(imported.text.matches(KEY).count(), settings, "{}", imported.text);
            assert_eq!(imported.holds_key, settings > 0);
            let setting = format!("key = {} }}", KEY.written());
            assert_eq!(imported.text.matches(&setting).count(), settings, "{}", imported.text);
            let mut told = imported.warnings.iter().chain(&imported.asides);
            assert!(told.all(|line| !line.contains(KEY)), "{told:?}");
        }
    }
}

#[test]
fn every_key_is_among_those_that_survive() {
    let here = |section: &str, key: &str| {
        EVERY_KEY.iter().any(|(other, k, _)| other.starts_with(section) && *k == key)
    };
    for (section, keys) in [
        ("general", &keys::GENERAL[..]),
        ("tun_", &keys::TUNNEL),
        ("connection", &keys::CONNECTION),
        ("path_", &keys::PATH),
        ("net_", &keys::NETWORK),
        ("path_", &keys::ALIASES.map(|(alias, _)| alias)),
    ] {
        for key in keys {
            assert!(here(section, key), "{section} {key}");
        }
    }
}

#[test]
fn every_setting_arrives_where_it_belongs() {
    let settings = |peer| {
        let imported = sections(&EVERY_KEY, peer).expect("files that can be imported");
        imported.verdict.expect("a configuration")
    };
    let settings = [settings(Peer::Original), settings(Peer::Mpt)];
    for tunnel in settings.iter().map(|settings| &settings.tunnels[0]) {
        assert_eq!((&*tunnel.name, tunnel.mtu), ("tun7", Mtu::Fixed(1420)));
        assert_eq!(tunnel.addresses.written(), "[\"10.7.0.1/24\", \"fd00:7::1/64\"]");
        let connection = &tunnel.connections[0];
        assert_eq!(connection.name, "branch");
        assert_eq!(connection.peer.written(), "[\"10.7.0.2\"]");
        assert_eq!(connection.networks.written(), "[\"192.168.8.0/24\"]");
        assert_eq!((connection.local_port, connection.remote_port), (50231, 50233));
        let policies = connection.policies;
        let reorder = policies.reorder;
        assert_eq!((reorder.window, reorder.max_delay), (1601, Duration::from_millis(301)));
        assert!(policies.sequence && policies.scheduler == Scheduler::Flow);
        let [first, second] = &connection.paths[..] else { panic!("two paths") };
        assert_eq!((&*first.name, first.interface.as_deref()), ("eth7", Some("eth7")));
        let ends = |path: &Path| (path.local.written(), path.remote.written());
        assert_eq!(ends(first), ("\"192.0.2.7\"".into(), "\"198.51.100.7\"".into()));
        assert_eq!(ends(second), ("\"192.0.2.8\"".into(), "\"198.51.100.8\"".into()));
        let times = [first.keepalive, first.dead_time].map(|time| time.as_secs());
        assert_eq!((first.weight, first.status, times), (77, PathStatus::Off, [7, 23]));
        let pins = "tcp_dst = [1080], tcp_src = [1022], udp_dst = [1054], udp_src = [1053]";
        assert_eq!(first.pins.written(), pins);
        // What the original does where nothing is written.
        assert_eq!((second.weight, second.status), (1, PathStatus::Available));
        assert!(second.keepalive.is_zero() && second.dead_time.is_zero());
    }
    let [original, mpt] =
        settings.map(|mut settings| settings.tunnels.remove(0).connections.remove(0));
    let commands = original.commands.expect("commands with an original");
    assert_eq!((commands.port, commands.remote_port), (60457, 50234));
    assert!(commands.accept_create && commands.auth.name() == "sha256");
    assert!(mpt.commands.is_none());
}

#[test]
fn the_key_that_counts_is_the_first_32_characters() {
    let text = sections(&EVERY_KEY, Peer::Original).expect("files that can be imported").text;
    let auth = "auth = { type = \"sha256\", key = \"0123456789abcdef0123456789abcdef\" }";
    assert!(text.contains(auth) && text.contains("\naccept_create = true"), "{text}");
}

#[test]
fn the_public_key_is_never_taken_over() {
    let built_in: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
    for key in [Some(&built_in[..]), Some(&built_in[..32]), None] {
        let mut entries = EVERY_KEY.to_vec();
        entries.retain(|(_, name, _)| *name != "auth_key");
        entries.extend(key.map(|key| ("connection", "auth_key", key)));
        let imported = sections(&entries, Peer::Original).expect("files that can be imported");
        let settings = imported.text.lines().filter(|line| !line.starts_with('#'));
        let settings: Vec<&str> = settings.collect();
        let auth = settings.iter().filter(|line| line.starts_with("auth ="));
        let auth: Vec<_> =
            auth.map(|line| line.split("  #").next().unwrap_or_default().trim_end()).collect();
        assert_eq!(auth, ["auth = { type = \"random\" }"]);
        assert!(settings.iter().all(|line| !line.starts_with("accept_create")), "{settings:?}");
        assert!(imported.warnings.iter().any(|warning| warning.contains("auth_type = 2")));
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_found_again(entries in entries()) {
        let entries: Vec<_> =
            entries.iter().map(|(section, key, value)| (*section, *key, &**value)).collect();
        for peer in PEERS {
            let Ok(imported) = sections(&entries, peer) else { continue };
            for (_, key, value) in &entries {
                let shown = shown(key, value);
                prop_assert!(imported.text.contains(&shown), "{shown}\n{}", imported.text);
            }
            if let Err(report) = &imported.verdict {
                let report = report.render(false);
                prop_assert!(!report.contains("not TOML"), "{report}");
            }
            let again = sections(&entries, peer).expect("what could be imported");
            prop_assert_eq!(again.text, imported.text);
        }
    }
}

/// Entries that can mostly be imported: those that must be there, and any of the others.
fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str, String)>> {
    let needed = ["ipv4_addr", "ip_remote", "path_count", "remote_ipaddr", "dst_addr"];
    let (needed, others): (Vec<_>, Vec<_>) =
        EVERY_KEY.into_iter().partition(|(_, key, _)| needed.contains(key));
    let needed = needed.into_iter().map(|(section, key, value)| (section, key, value.to_owned()));
    let needed: Vec<_> = needed.collect();
    let value = prop_oneof![
        "-?(0x)?[0-9]{1,7}",
        "[ -~\u{7f}\tä]{0,20}",
        Just("0.0.0.0/0".to_owned()),
        Just("::".to_owned()),
        Just("2001:db8::7/64".to_owned()),
        Just("10.1.2.3".to_owned()),
    ];
    let sound = value.prop_map(|value| value.trim().replace(['"', '\\'], "'"));
    let other = (prop::sample::select(others), prop::option::of(sound));
    let other = other.prop_map(|((section, key, usual), value)| {
        (section, key, value.unwrap_or(usual.to_owned()))
    });
    prop::collection::vec(other, 0..12)
        .prop_map(move |others| needed.iter().cloned().chain(others).collect())
}

/// Imports the entries, put into the files where they belong.
fn sections(entries: &[(&str, &str, &str)], peer: Peer) -> Result<Imported, super::ImportError> {
    let mut files = [BTreeMap::new(), BTreeMap::new()];
    for (section, key, value) in entries {
        let is_interface = ["general", "tun_0"].contains(section);
        let text: &mut String = files[usize::from(!is_interface)].entry(*section).or_default();
        writeln!(text, "{key} = \"{value}\"").expect("writing to a string");
    }
    let text = |sections: &BTreeMap<&str, String>| {
        sections.iter().map(|(name, text)| format!("[{name}]\n{text}")).collect::<String>()
    };
    let [interface, connection] = [&files[0], &files[1]].map(text);
    let source = |name: &str, text: String| Source { name: name.to_owned(), text };
    let sources = vec![source("interface.conf", interface), source("connection.conf", connection)];
    import(&Gathered { sources, unread: Vec::new() }, peer, "out")
}
