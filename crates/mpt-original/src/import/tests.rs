//! Every entry of a file is found again in the configuration, whatever it is.

mod migrate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::document::Shown;
use super::value::Value as _;
use super::{ImportError, Imported, Peer, Source, Sources, Target, import, keys, mask};

const PEERS: [Peer; 2] = [Peer::Original, Peer::Mpt];

/// Files with every key of the original, and values that are not its defaults. A test of `mpt` checks the
/// settings that these files become.
const FILES: [&str; 2] = [
    include_str!("tests/every-key/interface.conf"),
    include_str!("tests/every-key/connection.conf"),
];

/// A section, a key in it and its value.
type Entry<'a> = (&'a str, &'a str, &'a str);

/// What is in [`FILES`].
fn every_key() -> Vec<Entry<'static>> {
    let mut section = "";
    let entry = |line: &'static str| {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let (key, value) = line.split_once(" = ")?;
        Some((section, key, value))
    };
    FILES.into_iter().flat_map(str::lines).filter_map(entry).collect()
}

#[test]
fn every_key_is_found_in_the_configuration() {
    for peer in PEERS {
        let imported = sections(&every_key(), peer).expect("files that can be imported");
        for (_, key, value) in every_key() {
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
fn a_secret_key_is_written_as_a_setting_only() {
    const KEY: &str = "0pen-5e5ame-of-th3-f0rty-th1eve5";
    for (kind, peer, settings) in [
        ("2", Peer::Original, 1),
        ("1", Peer::Original, 0),
        ("0", Peer::Original, 0),
        ("2", Peer::Mpt, 0),
    ] {
        for name in [keys::SECRET, "auth_kye", "auth-key", "Auth_Key"] {
            let mut entries = every_key();
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
            let setting = format!("key = {} }}", KEY.toml());
            assert_eq!(imported.text.matches(&setting).count(), settings, "{}", imported.text);
            let mut told = imported.warnings.iter().chain(&imported.asides);
            assert!(told.all(|line| !line.contains(KEY)), "{told:?}");
        }
    }
}

#[test]
fn the_files_have_every_key() {
    let here = |section: &str, key: &str| {
        every_key().iter().any(|(other, k, _)| other.starts_with(section) && *k == key)
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
fn the_key_is_cut_to_32_characters() {
    let text = sections(&every_key(), Peer::Original).expect("files that can be imported").text;
    let auth = "auth = { type = \"sha256\", key = \"0123456789abcdef0123456789abcdef\" }";
    assert!(text.contains(auth) && text.contains("\naccept_create = true"), "{text}");
}

#[test]
fn the_public_key_is_never_taken_over() {
    let built_in: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
    for key in [Some(&built_in[..]), Some(&built_in[..32]), None] {
        let mut entries = every_key();
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
    fn every_entry_is_found_in_the_configuration_which_is_toml(entries in entries()) {
        let entries: Vec<_> =
            entries.iter().map(|(section, key, value)| (*section, *key, &**value)).collect();
        for peer in PEERS {
            let Ok(imported) = sections(&entries, peer) else { continue };
            for (_, key, value) in &entries {
                let shown = shown(key, value);
                prop_assert!(imported.text.contains(&shown), "{shown}\n{}", imported.text);
            }
            if let Err(error) = imported.text.parse::<toml::Table>() {
                prop_assert!(false, "{error}\n{}", imported.text);
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
        every_key().into_iter().partition(|(_, key, _)| needed.contains(key));
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
fn sections(entries: &[Entry<'_>], peer: Peer) -> Result<Imported, ImportError> {
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
    let files = vec![source("interface.conf", interface), source("connection.conf", connection)];
    let target = Target {
        peer,
        mtu: 576..=65491,
        min_mtu_ipv6: 1280,
        max_window: 10_000,
        max_delay: Duration::from_secs(60),
        interface_fault: |name| (name.len() > 15).then(|| "too long".to_owned()),
    };
    import(&Sources { files, unread: Vec::new() }, &target)
}
