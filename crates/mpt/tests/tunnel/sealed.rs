//! Sealed tunnels on real sockets: what can be seen from outside, and what a stranger gets back.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use mpt_lab::capture::Capture;
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_proto::PrivateKey;

use crate::disagree::{assert_health, await_problem, without_paths};
use crate::site::{Site, eventually, two_links};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("sealed::packets_arrive_and_nothing_of_them_is_legible_on_the_way", legible),
    ("sealed::a_stranger_gets_nothing_back", stranger),
    ("sealed::other_keys_and_none_are_named", other_keys),
    ("sealed::keys_at_one_end_are_named_by_a_server_that_names_no_address", keys_and_learned_paths),
    ("sealed::other_preshared_keys_are_named", other_preshared_keys),
    ("sealed::other_settings_are_named", other_settings),
    ("sealed::copies_of_handshakes_are_no_wrong_clock", copies_are_no_replays),
    ("sealed::nothing_is_said_where_all_is_well", all_well),
    ("sealed::a_restarted_daemon_is_known_again", restart),
];

/// The key of a side.
fn key(side: Side) -> PrivateKey {
    PrivateKey::new([if side == Side::Left { 1 } else { 2 }; 32])
}

/// Two daemons with keys, whose configurations are `edit`ed. Nobody waits for anything.
fn unlike(folder: &Path, edit: impl Fn(Side, String) -> String) -> Site {
    let mut site = Site::links_only(&two_links(4), "");
    for side in [Side::Left, Side::Right] {
        let config = edit(side, sealed(folder, side, &site.config(side)));
        site.start_daemon_with(side, &config);
    }
    site
}

/// One end has another public key than the other thinks, or none at all: both ends say so.
fn other_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = PrivateKey::new([9; 32]).public().to_string();
    let site = unlike(folder.path(), |side, config| match side {
        Side::Left => config.replace(&key(Side::Right).public().to_string(), &wrong),
        Side::Right => config,
    });
    await_problem(&site, Side::Left, "public_key", "has a public key that no connection here has");
    await_problem(&site, Side::Right, "public_key", "takes this host for one with another");

    drop(site);
    // No keys at one end.
    let mut site = Site::links_only(&two_links(4), "");
    site.start_daemon_with(
        Side::Right,
        &sealed(folder.path(), Side::Right, &site.config(Side::Right)),
    );
    site.start_daemon(Side::Left);
    await_problem(&site, Side::Left, "framing", "asks for sealed framing");
    await_problem(&site, Side::Right, "framing", "sends plain framing without keys");
}

/// Keys at one end only, where the other end names no addresses. It is the one that can tell.
fn keys_and_learned_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    for (has_keys, words) in [
        (Side::Right, "sends extended framing without keys, and this connection is sealed"),
        (Side::Left, "asks for sealed framing, which this connection does not use"),
    ] {
        let mut site = Site::links_only(&two_links(4), "");
        for side in [Side::Left, Side::Right] {
            let mut config = match side == has_keys {
                true => sealed(folder.path(), side, &site.config(side)),
                false => site.config(side).replace("'plain'", "'extended'"),
            };
            if side == Side::Right {
                config = without_paths(&config);
            }
            site.start_daemon_with(side, &config);
        }
        let problem = await_problem(&site, Side::Right, "framing", words);
        assert_eq!(problem.connection.as_deref(), Some("peer"), "{problem:?}");
    }
}

/// The preshared keys differ: whose handshake is answered says so.
fn other_preshared_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = unlike(folder.path(), |side, config| {
        let file = folder.path().join(format!("{}.preshared", side.name()));
        let secret = PrivateKey::new([if side == Side::Left { 7 } else { 8 }; 32]).to_base64();
        fs::write(&file, secret.as_bytes()).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
        let line = format!("preshared_key_file = '{}'\npublic_key", file.display());
        config.replacen("public_key", &line, 1)
    });
    for side in [Side::Left, Side::Right] {
        await_problem(&site, side, "preshared_key", "are not authentic");
        eventually("it is why the other path is silent, too", || {
            let problems = site.status(side).tunnels.remove(0).problems;
            problems.iter().filter(|problem| problem.code == "preshared_key").count() == 2
        });
    }
}

/// Tunnel addresses and GRE keys that do not fit are named inside of handshakes, too.
fn other_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    for (code, words, old, new) in [
        ("key", "with GRE key 8, this connection has none", "public_key", "key = 8\npublic_key"),
        (
            "addresses",
            "its tunnel address is 10.9.0.1 and ours 10.9.0.3",
            "'10.9.0.2'",
            "'10.9.0.3'",
        ),
    ] {
        let site = unlike(folder.path(), |side, config| match side {
            Side::Left => config.replacen(old, new, 1).replace(", 'fd00:9::2'", ""),
            Side::Right => config,
        });
        await_problem(&site, Side::Right, code, words);
    }
}

/// Nothing is wrong where handshakes come by two paths, of which one is blocked towards this host.
fn copies_are_no_replays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::links_only(&two_links(4), "");
    site.lab.links().iter().for_each(|link| link.set_blackout(Direction::Backward, true));
    for side in [Side::Left, Side::Right] {
        let config = sealed(folder.path(), side, &site.config(side));
        site.start_daemon_with(side, &config);
    }
    let problems = |side| site.status(side).tunnels.remove(0).problems;
    eventually("the left one hears nothing", || {
        problems(Side::Left).iter().filter(|problem| problem.code == "silent").count() == 2
    });
    eventually("initiations were sent again and again by both paths", || {
        let tunnel = site.status(Side::Left).tunnels.remove(0);
        tunnel.connections[0].paths.iter().all(|path| path.control_sent.packets >= 4)
    });
    assert_eq!(problems(Side::Right).iter().filter(|it| it.code == "clock").count(), 0);
    drop(site);
}

/// The configuration of a side, with keys, whose files are in this folder.
fn sealed(folder: &Path, side: Side, config: &str) -> String {
    let other = if side == Side::Left { Side::Right } else { Side::Left };
    let file = folder.join(side.name());
    fs::write(&file, key(side).to_base64().as_bytes()).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let private = format!("[[tunnel]]\nprivate_key_file = '{}'\n", file.display());
    let public = format!("[[tunnel.connection]]\npublic_key = '{}'\n", key(other).public());
    let config = config.replacen("[[tunnel]]\n", &private, 1);
    let config = config.replacen("[[tunnel.connection]]\n", &public, 1);
    config.replace("framing = 'plain'\n", "")
}

fn all_well() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_health(&start(folder.path()));
}

fn start(folder: &Path) -> Site {
    let site = Site::start_with(&two_links(4), "", |side, config| sealed(folder, side, &config));
    for side in [Side::Left, Side::Right] {
        let connection = site.connection(side);
        assert_eq!(connection.framing, "sealed");
        assert!(connection.cipher.is_some() && connection.epoch >= Some(1), "{connection:?}");
    }
    site
}

/// Whether a capture of a stream contains the addresses of inner packets.
fn shows_inner_packets(site: &Site, folder: &Path) -> bool {
    let file = folder.join("capture");
    let capture = Capture::start(&site.lab, &file, &[]).expect("a capture");
    site.assert_flawless(4);
    capture.finish().expect("a file");
    let bytes = fs::read(file).expect("the capture");
    assert!(bytes.windows(2).filter(|it| *it == 4754_u16.to_be_bytes()).count() > 500);
    bytes.windows(8).any(|it| it == [10, 9, 0, 1, 10, 9, 0, 2])
}

fn legible() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(!shows_inner_packets(&start(folder.path()), folder.path()));
    let site = Site::start(&two_links(4), "framing = 'extended'\n");
    assert!(shows_inner_packets(&site, folder.path()), "without keys they are seen");
}

fn stranger() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = start(folder.path());
    let to = SocketAddr::new(site.lab.right().address(0), 4754);
    let from = SocketAddr::new(site.lab.left().address(0), 0);
    let socket = site.lab.left().run(|| UdpSocket::bind(from)).expect("a socket");
    socket.set_nonblocking(true).expect("it does not wait");
    let mut sent = 0;
    for (word, kind) in (0..16).flat_map(|kind| [0x2000_88b5_u32, 0x3000_88b5].map(|it| (it, kind)))
    {
        for key in [0_u32, 77] {
            let mut datagram = vec![0; 400];
            datagram[..4].copy_from_slice(&word.to_be_bytes());
            datagram[4..8].copy_from_slice(&key.to_be_bytes());
            datagram[if word >> 28 == 3 { 12 } else { 8 }] = kind << 4;
            socket.send_to(&datagram, to).expect("it is sent");
            sent += 1;
        }
    }
    for datagram in [&[0_u8; 60][..], &[0xff; 3], b"GET / HTTP/1.1\r\n\r\n"] {
        socket.send_to(datagram, to).expect("it is sent");
        sent += 1;
    }
    let dropped = || -> u64 { site.status(Side::Right).tunnels[0].drops.values().sum() };
    eventually("all of it is counted", || dropped() >= sent);
    let answer = socket.recv_from(&mut [0; 2000]).err().map(|error| error.kind());
    assert_eq!(answer, Some(ErrorKind::WouldBlock));
    site.assert_flawless(4);
}

fn restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = start(folder.path());
    for side in [Side::Left, Side::Right] {
        site.end_daemon(side);
        let config = sealed(folder.path(), side, &site.config(side));
        site.start_daemon_with(side, &config);
        site.await_all_up();
        site.assert_flawless(4);
    }
}
