//! Settings of both ends that do not fit: keys, addresses, ports, framings and kinds of peers.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpt_lab::topology::Side;

use super::ends::{
    await_health, await_named, await_problem, doctor, problems, site, without_paths,
};
use crate::site::{QUICK, Site, TWO_LINKS, eventually};

pub(super) fn keys(left: &str, right: &str, words: &str) {
    let key = |side, config: String| {
        let key = if side == Side::Left { left } else { right };
        config.replace("framing =", &format!("{key}framing ="))
    };
    let site = site(TWO_LINKS, "", key);
    let problem = await_problem(&site, Side::Left, "key", words);
    assert_eq!(problem.connection.as_deref(), Some("peer"));
    let paths: Vec<_> = problems(&site, Side::Left).into_iter().map(|it| it.path).collect();
    assert_eq!(paths, [Some("one".to_owned()), Some("two".to_owned())], "each path once");
    await_problem(&site, Side::Right, "key", "this connection has");
    // Both ends alike.
    let config = key(Side::Right, site.config(Side::Left));
    site.daemon(Side::Left).configure(&config).expect("a file");
    site.daemon(Side::Left).change(&mpt_control::Request::Reload {}).expect("a reload");
    await_health(&site);
}

pub(super) fn another_key_extended() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| {
        let key = if side == Side::Left { 7 } else { 8 };
        config.replace("framing =", &format!("key = {key}\nframing ="))
    });
    await_problem(&site, Side::Left, "key", "with GRE key 8, this connection has 7");
}

pub(super) fn another_peer(framing: &str) {
    let site = site(TWO_LINKS, framing, |side, config| match side {
        Side::Left => {
            config.replace("'10.9.0.2'", "'10.9.0.3'").replace("'fd00:9::2'", "'fd00:9::3'")
        }
        Side::Right => config,
    });
    await_problem(
        &site,
        Side::Left,
        "addresses",
        "its tunnel address is 10.9.0.2 and ours 10.9.0.1",
    );
    await_problem(
        &site,
        Side::Right,
        "addresses",
        "its tunnel address is 10.9.0.1 and ours 10.9.0.3",
    );
}

/// Paths are learned in extended framing, which a client of plain framing does not use. A client that may use it asks for
/// it now and then, so this takes longer than five seconds.
pub(super) fn plain_and_learned() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config.replace("'extended'", "'plain'"),
        Side::Right => without_paths(&config),
    });
    await_named(&site, Side::Right, "framing", "sends plain framing");
}

/// The server names no addresses, and the client does not fit. Only the server can tell; the client says where to look.
pub(super) fn learned(edit: impl Fn(String) -> String, code: &str, words: &str) {
    let ipv4 = |config: String| {
        config
            .replace(", 'fd00:9::1/64'", "")
            .replace(", 'fd00:9::2/64'", "")
            .replace(", 'fd00:9::1'", "")
            .replace(", 'fd00:9::2'", "")
    };
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => edit(ipv4(config)),
        Side::Right => without_paths(&ipv4(config)),
    });
    let problem = await_problem(&site, Side::Right, code, words);
    assert_eq!(problem.connection.as_deref(), Some("peer"), "{problem:?}");
    let (_, text) = doctor(&site, Side::Right, &[]);
    assert!(!text.contains("has no path yet"), "the cause is known: {text}");
    let problem = await_problem(&site, Side::Left, "silent", "nothing arrives from");
    assert!(problem.remedy.contains("`mpt doctor` there"), "{problem:?}");
    // Both ends alike.
    let config = ipv4(site.config(Side::Left));
    site.daemon(Side::Left).configure(&config).expect("a file");
    site.daemon(Side::Left).change(&mpt_control::Request::Reload {}).expect("a reload");
    eventually("paths are learned", || site.connection(Side::Right).paths.len() == 2);
    await_health(&site);
}

pub(super) fn another_remote(framing: &str) {
    let links = Site::links_only(TWO_LINKS, "");
    let right = links.lab.topology().address(Side::Right, 0).to_string();
    drop(links);
    let wrong = right.rsplit_once('.').expect("an address").0.to_owned() + ".77";
    let site = site(TWO_LINKS, framing, |side, config| match side {
        Side::Left => {
            config.replace(&format!("remote = '{right}'"), &format!("remote = '{wrong}'"))
        }
        Side::Right => config,
    });
    let words = format!("datagrams of the peer come from {right}:4754, which matches no path");
    await_problem(&site, Side::Left, "unknown_source", &words);
}

pub(super) fn another_port() {
    let site = site(TWO_LINKS, "", |side, config| match side {
        Side::Left => config.replace("framing =", "remote_port = 4999\nframing ="),
        Side::Right => config,
    });
    await_problem(&site, Side::Left, "nothing_listens", "nothing listens on UDP 4999 at");
    await_problem(&site, Side::Right, "silent", "nothing arrives from");
}

/// The peer is where it is looked for, and sends from another port.
pub(super) fn another_port_extended() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config.replace("framing =", "remote_port = 4999\nframing ="),
        Side::Right => config,
    });
    let found =
        await_problem(&site, Side::Left, "unknown_source", "datagrams of the peer come from");
    assert!(found.remedy.starts_with("is `remote_port` wrong? It would be 4754"), "{found:?}");
    await_problem(&site, Side::Left, "nothing_listens", "nothing listens on UDP 4999 at");
}

pub(super) fn another_framing() {
    let site = site(TWO_LINKS, "", |side, config| match side {
        Side::Left => config.replace("'plain'", "'extended'"),
        Side::Right => config,
    });
    await_problem(&site, Side::Left, "framing", "sends plain framing");
    await_problem(&site, Side::Right, "framing", "asks for extended framing");
}

/// Tells a thread to end, however this one does.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A peer of a version that is yet to come answers hellos.
pub(super) fn another_version() {
    let mut site = Site::links_only(TWO_LINKS, "framing = 'extended'");
    let (from, to) = (site.lab.right().address(0), site.lab.left().address(0));
    let socket = site.lab.right().run(|| UdpSocket::bind((from, 4754))).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    site.start_daemon(Side::Left);
    let done = AtomicBool::new(false);
    let answer = || {
        let mut room = [0; 2048];
        while !done.load(Ordering::Relaxed) {
            let Ok((len, _)) = socket.recv_from(&mut room) else { continue };
            // GRE with a key of zero: a hello of 76 bytes after 20. The answer names the connection index of its end, this
            // version, a session of its own, that of the hello, and both tunnel addresses the other way round.
            if len >= 96 && room[..8] == [0x20, 0, 0x88, 0xb5, 0, 0, 0, 0] {
                room.copy_within(92..96, 4);
                (room[8], room[20]) = (2 << 4, 9);
                room.copy_within(28..36, 36);
                room[28] ^= 1;
                let (one, other) = room[44..76].split_at_mut(16);
                one.swap_with_slice(other);
                socket.send_to(&room[..len], (to, 4754)).expect("room in the socket");
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(answer);
        // A failure ends the other thread, too.
        let end = Ending(&done);
        await_problem(&site, Side::Left, "version", "speaks version 9 of extended framing");
        drop(end);
    });
}

pub(super) fn another_kind() {
    let site = site(TWO_LINKS, "", |side, config| match side {
        Side::Left => config
            .replace("peer = [", "peer = 'gre'\npeer_addresses = [")
            .replace("framing = 'plain'\n", "")
            .replace(QUICK, ""),
        Side::Right => config,
    });
    await_problem(&site, Side::Left, "peer_kind", "names another kind of peer");
    let codes: Vec<_> = problems(&site, Side::Left).into_iter().map(|found| found.code).collect();
    assert!(
        codes.iter().all(|code| code == "peer_kind"),
        "its hellos are no other cause: {codes:?}"
    );
}
