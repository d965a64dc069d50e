//! What differs can be made, and what runs besides stays.

use std::net::IpAddr;

use proptest::prelude::*;

use super::arbitrary;
use crate::config::change::ApplyError;
use crate::config::*;

proptest! {
    /// The order of tunnels, templates and paths has no meaning, nor has that of connections to
    /// different peers.
    #[test]
    fn applying_the_difference_gives_the_other_settings(
        old in arbitrary::settings(),
        new in arbitrary::settings(),
    ) {
        let mut settings = old.clone();
        for change in difference(&old, &new) {
            prop_assert!(apply(&mut settings, &change).is_ok(), "{}", change);
        }
        prop_assert_eq!(canonical(settings.clone()), canonical(new.clone()));
        prop_assert_eq!(difference(&settings, &new), []);
    }

    #[test]
    fn nothing_differs_from_itself(settings in arbitrary::settings()) {
        prop_assert_eq!(difference(&settings, &settings), []);
    }

    /// Every change that can be made while the tunnel runs leaves what a restart is for.
    #[test]
    fn changes_in_place_leave_tunnel_connection_and_path_as_they_are(
        old in arbitrary::settings(),
        new in arbitrary::settings(),
    ) {
        let mut settings = old.clone();
        for change in difference(&old, &new) {
            if change.effect() == Effect::InPlace {
                let _ = apply(&mut settings, &change);
            }
        }
        prop_assert_eq!(&settings.control, &old.control);
        for tunnel in &settings.tunnels {
            let Some(old) = old.tunnels.iter().find(|old| old.name == tunnel.name) else { continue };
            prop_assert_eq!(&tunnel.addresses, &old.addresses);
            prop_assert_eq!((tunnel.offloads, tunnel.threads), (old.offloads, old.threads));
            for connection in &tunnel.connections {
                let is = |old: &&Connection| old.name == connection.name;
                let Some(old) = old.connections.iter().find(is) else { continue };
                let kept = |of: &Connection| (of.peer.clone(), of.policies.key, of.local_port);
                prop_assert_eq!(kept(connection), kept(old));
                for path in &connection.paths {
                    let Some(old) = old.paths.iter().find(|old| old.name == path.name) else { continue };
                    prop_assert_eq!((&path.remote, &path.local), (&old.remote, &old.local));
                }
            }
        }
    }

    /// A reload does not touch a path that was added by command.
    #[test]
    fn changes_by_command_stay(
        file_old in arbitrary::settings(),
        file_new in arbitrary::settings(),
    ) {
        let mut runs = file_old.clone();
        for connection in runs.tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.connections) {
            // One that has none gets its paths in another way.
            let Some(first) = connection.paths.first() else { continue };
            let extra = Path { name: "extra".into(), weight: 7, ..first.clone() };
            connection.paths.push(extra);
        }
        for change in difference(&file_old, &file_new) {
            prop_assert!(apply(&mut runs, &change).is_ok(), "{}", change);
        }
        for tunnel in &runs.tunnels {
            for connection in &tunnel.connections {
                let is_old = file_old.tunnels.iter().any(|old| {
                    let mut connections = old.connections.iter();
                    let same = |old: &Connection| {
                        old.name == connection.name && !old.paths.is_empty()
                    };
                    old.name == tunnel.name && connections.any(same)
                });
                let extra = connection.paths.iter().any(|path| path.name == "extra" && path.weight == 7);
                prop_assert_eq!(extra, is_old, "{}", connection.name);
            }
        }
        for connection in runs.tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.connections) {
            connection.paths.retain(|path| path.name != "extra");
        }
        prop_assert_eq!(canonical(runs), canonical(file_new));
    }
}

#[test]
fn what_was_set_by_command_stays_unless_the_file_changed_it() {
    let old = parse(super::FULL).unwrap();
    let mut runs = old.clone();
    path(&mut runs).weight = 5;
    path(&mut runs).status = PathStatus::Available;
    let mut new = old.clone();
    path(&mut new).weight = 3;
    let changes = difference(&old, &new);
    assert_eq!(changes.len(), 1);
    apply(&mut runs, &changes[0]).unwrap();
    assert_eq!((path(&mut runs).weight, path(&mut runs).status), (3, PathStatus::Available));
}

#[test]
fn a_change_of_an_unknown_path_or_connection_has_no_effect() {
    let old = parse(super::FULL).unwrap();
    let mut new = old.clone();
    path(&mut new).weight = 3;
    let set = &difference(&old, &new)[0];
    new.tunnels[0].connections[0].paths.remove(0);
    let remove = &difference(&old, &new)[0];
    let add = &difference(&new, &old)[0];

    let mut settings = new.clone();
    let missing = ApplyError("path fibre of connection server".into());
    assert_eq!(apply(&mut settings, set), Err(missing));
    assert_eq!(apply(&mut settings, remove), Ok(()), "it is gone already");
    assert_eq!(settings, new);
    settings = old.clone();
    assert_eq!(apply(&mut settings, add), Ok(()), "it has come already");
    assert_eq!(settings, old);
    path(&mut settings).weight = 9;
    apply(&mut settings, add).unwrap();
    assert_eq!(settings, old, "what the file adds is as the file says");
}

#[test]
fn conflicting_changes_are_reported() {
    let mut settings = parse(super::FULL).unwrap();
    assert!(check(&settings, "what would run").is_ok());
    path(&mut settings).name = "radio".into();
    let report = check(&settings, "what would run").unwrap_err().render(false);
    assert!(report.contains("duplicate path name `radio`"), "{report}");
    assert!(report.contains("--> what would run:"), "{report}");
}

/// One line each, in the words of the file.
#[test]
fn changes_are_shown_to_the_operator() {
    let old = parse(super::FULL).unwrap();
    let mut new = old.clone();
    new.control.socket = "/run/other".into();
    new.metrics.listen = None;
    let tunnel = &mut new.tunnels[0];
    tunnel.mtu = Mtu::Auto;
    tunnel.threads = Threads::One;
    tunnel.accepts[0].max_rate = 9.0;
    tunnel.accepts[0].forget *= 2;
    let connection = &mut tunnel.connections[0];
    connection.policies.key = None;
    connection.selector = None;
    connection.policies.reorder.window = 11;
    let radio = &mut connection.paths[1];
    radio.remote = Remote::Address("192.0.2.77".parse().unwrap());
    radio.keepalive *= 2;
    connection.paths.push(Path { name: "lte".into(), ..connection.paths[1].clone() });
    let fibre = path(&mut new);
    fibre.weight = 3;
    fibre.pins.tcp_src.clear();
    let mut further = new.tunnels[0].clone();
    further.name = "mpt1".into();
    further.connections.clear();
    new.tunnels.push(further);
    let shown = |old, new| -> String {
        difference(old, new).iter().map(|change| format!("{change}\n")).collect()
    };
    insta::assert_snapshot!(shown(&old, &new));
    insta::assert_snapshot!(shown(&new, &old));
}

/// The first path of the first connection.
fn path(settings: &mut Settings) -> &mut Path {
    &mut settings.tunnels[0].connections[0].paths[0]
}

/// The settings with everything whose order has no meaning in one order.
fn canonical(mut settings: Settings) -> Settings {
    settings.tunnels.sort_by(|a, b| a.name.cmp(&b.name));
    for tunnel in &mut settings.tunnels {
        tunnel.accepts.sort_by(|a, b| a.name.cmp(&b.name));
        // Stable: connections to one peer stay in their order.
        tunnel.connections.sort_by_key(|connection| -> Vec<IpAddr> { connection.peer.clone() });
        for connection in &mut tunnel.connections {
            connection.paths.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    settings
}
