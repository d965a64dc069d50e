//! The example that documents every key.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::config::commands::Secret;
use crate::config::*;

const EXAMPLE: &str = include_str!("../../../../../docs/mpt.toml");

#[test]
fn the_example_is_a_good_file() {
    let settings = parse(EXAMPLE).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(settings.tunnels[0].connections.len(), 6);
    assert_eq!(settings.tunnels[0].accepts.len(), 1);
}

/// With everything uncommented it has every key of every table, and still is a good file.
#[test]
fn the_example_has_every_key_in_its_table() {
    let text = uncommented();
    let (document, errors) = DeTable::parse_recoverable(&text);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    let document = DeValue::Table(document.into_inner());
    for (keys, place) in [
        (settings::ALL[0], &[][..]),
        (&Control::KEYS, &["control"]),
        (&Daemon::KEYS, &["daemon"]),
        (&Metrics::KEYS, &["metrics"]),
        (&Web::KEYS, &["web"]),
        (&Tunnel::KEYS, &["tunnel"]),
        (&Offloads::KEYS, &["tunnel", "offloads"]),
        (&Connection::KEYS, &["tunnel", "connection"]),
        (&commands::AUTH, &["tunnel", "connection", "auth"]),
        (&Reorder::KEYS, &["tunnel", "connection", "reorder"]),
        (&selector::KEYS, &["tunnel", "connection", "match"]),
        (&Uplink::KEYS, &["tunnel", "connection", "interface", "wwan0"]),
        (&Class::KEYS, &["tunnel", "connection", "class"]),
        (&Path::KEYS, &["tunnel", "connection", "path"]),
        (&Accept::KEYS, &["tunnel", "accept"]),
        (&Reorder::KEYS, &["tunnel", "accept", "reorder"]),
    ] {
        let tables = tables(&document, place);
        for key in keys.names() {
            assert!(tables.iter().any(|table| table.get(key).is_some()), "{key} of {}", keys.table);
        }
    }
    let problems = parse(&text).err().unwrap_or_default();
    assert!(problems.is_empty(), "{problems:#?}");
}

/// What the example shows as default is the default.
#[test]
fn the_example_shows_the_defaults() {
    let (plain, shown) = (parse(EXAMPLE).unwrap(), parse(&uncommented()).unwrap());
    let mut expected = plain;
    // These have none, and stand there as examples.
    expected.daemon.user = Some("mpt".into());
    expected.metrics.listen = Some("127.0.0.1:9475".parse().unwrap());
    expected.web.listen = Some(Listen::Address("127.0.0.1:9480".parse().unwrap()));
    let tunnel = &mut expected.tunnels[0];
    tunnel.private_key_file = Some("/etc/mpt/private.key".into());
    let sealed = &mut tunnel.connections[0];
    sealed.public_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".parse().ok();
    sealed.preshared_key_file = Some("/etc/mpt/preshared.key".into());
    sealed.invitation_file = Some("/etc/mpt/invitation".into());
    sealed.policies.framing = Framing::Sealed;
    tunnel.connections[0].policies.key = Some(7);
    tunnel.connections[1].keepalive = Some(Duration::from_millis(500));
    tunnel.connections[1].dead_time = Some(Duration::from_millis(1750));
    tunnel.connections[1].failover = Some(1000);
    tunnel.connections[1].uplinks[0].failover = Some(2000);
    tunnel.connections[0].paths[0].failover = Some(1000);
    tunnel.accepts[0].failover = Some(1000);
    let commands = tunnel.connections[4].commands.as_mut().unwrap();
    commands.auth = Auth::Sha256(Secret::new("write-32-characters-of-your-own!").unwrap());
    tunnel.accepts[0].policies.key = Some(7);
    // Written, they are wanted, even if they are as they would be.
    tunnel.connections[0].policies.reorder.configured = true;
    tunnel.accepts[0].policies.reorder.configured = true;
    tunnel.accepts[0].weight = Some(1);
    tunnel.accepts[0].local = Some("192.0.2.10".parse().unwrap());
    assert_eq!(shown, expected);
}

#[test]
fn every_table_is_in_the_list_of_all() {
    let tables: Vec<_> = settings::ALL.iter().map(|keys| keys.table).collect();
    for header in [
        "[control]",
        "[daemon]",
        "[metrics]",
        "[web]",
        "[[tunnel]]",
        "[[tunnel.connection]]",
        "[[tunnel.connection.path]]",
        "[[tunnel.accept]]",
    ] {
        assert!(tables.contains(&header), "{header}");
        assert!(EXAMPLE.contains(&format!("\n{header}\n")), "{header}");
    }
}

/// All tables at a place, through arrays of them.
fn tables<'d, 't>(value: &'d DeValue<'t>, place: &[&str]) -> Vec<&'d DeValue<'t>> {
    match (value, place) {
        (DeValue::Array(array), _) => {
            array.iter().flat_map(|value| tables(value.get_ref(), place)).collect()
        }
        (value, []) => vec![value],
        (value, [key, rest @ ..]) => {
            value.get(*key).map_or_else(Vec::new, |value| tables(value.get_ref(), rest))
        }
    }
}

/// The example with the keys that are commented out.
fn uncommented() -> String {
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if rest.split(' ').nth(1) == Some("=") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    EXAMPLE.lines().map(line).collect()
}
