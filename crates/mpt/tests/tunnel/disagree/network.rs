//! What is on the way or at the peer's address: links that are dead, ports where nothing or something else listens, and
//! firewalls that reject.

use std::net::UdpSocket;
use std::process::Command;

use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;

use super::ends::{await_health, await_problem, problems};
use crate::site::{Site, TWO_LINKS, eventually};
use crate::suite::skip;

pub(super) fn blocked_one_way(framing: &str) {
    let mut site = Site::links_only(TWO_LINKS, framing);
    site.lab.link(0).set_blackout(Direction::Forward, true);
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let problem =
        await_problem(&site, Side::Left, "not_heard", "the peer is heard but does not hear us");
    assert_eq!(problem.path.as_deref(), Some("one"));
    assert!(problem.remedy.contains("is UDP 4754 blocked towards"), "{problem:?}");
    let problem = await_problem(&site, Side::Right, "silent", "nothing arrives from");
    assert_eq!(problem.path.as_deref(), Some("one"));
    site.lab.link(0).set_blackout(Direction::Forward, false);
    await_health(&site);
}

pub(super) fn blocked_both_ways() {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.lab.link(1).set_blackout(Direction::Both, true);
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let from = site.lab.topology().address(Side::Right, 1);
    await_problem(&site, Side::Left, "silent", &format!("nothing arrives from {from}:4754"));
}

pub(super) fn nothing_listens(_: u8, topology: &str) {
    let mut site = Site::links_only(topology, "");
    site.start_daemon(Side::Left);
    let at = site.lab.topology().address(Side::Right, 0);
    let words = format!("nothing listens on UDP 4754 at {at}");
    await_problem(&site, Side::Left, "nothing_listens", &words);
    site.start_daemon(Side::Right);
    await_health(&site);
}

/// The right host rejects what comes to MPT's port with such an ICMP message.
fn reject(site: &Site, message: &str) {
    let rules = format!(
        "add table inet t; add chain inet t c {{ type filter hook input priority 0; }}; \
         add rule inet t c udp dport 4754 reject with icmpx type {message}"
    );
    let done = site.lab.right().run(|| Command::new("nft").arg(rules).output());
    if !done.is_ok_and(|output| output.status.success()) {
        skip("nft cannot set a rule here");
    }
}

pub(super) fn rejected() {
    let mut site = Site::links_only(TWO_LINKS, "");
    reject(&site, "admin-prohibited");
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let at = site.lab.topology().address(Side::Right, 0);
    let words = format!("{at} rejects UDP 4754 to {at}");
    await_problem(&site, Side::Left, "rejected", &words);
}

pub(super) fn unreachable() {
    let mut site = Site::links_only(TWO_LINKS, "");
    reject(&site, "host-unreachable");
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let at = site.lab.topology().address(Side::Right, 0);
    let words = format!("{at} says that {at} cannot be reached");
    await_problem(&site, Side::Left, "unreachable", &words);
}

/// Most firewalls that reject say so by the message that a closed port gives. The peer, which is heard, tells which it is.
pub(super) fn rejected_as_if_closed(framing: &str) {
    let mut site = Site::links_only(TWO_LINKS, framing);
    reject(&site, "port-unreachable");
    // It is heard from the beginning.
    for side in [Side::Right, Side::Left] {
        site.start_daemon(side);
    }
    let at = site.lab.topology().address(Side::Right, 0);
    let problem =
        await_problem(&site, Side::Left, "rejected", &format!("{at} rejects UDP 4754 to {at}"));
    assert!(problem.remedy.contains("in the firewall there"), "{problem:?}");
    let begin = site.status(Side::Left).uptime_seconds;
    eventually("three seconds have passed", || {
        let codes: Vec<_> = problems(&site, Side::Left).into_iter().map(|it| it.code).collect();
        assert_eq!(codes, ["rejected"; 2], "one for each path");
        site.status(Side::Left).uptime_seconds > begin + 3.0
    });
    let log = site.daemon(Side::Left).log();
    assert!(!log.contains("nothing listens") && !log.contains("does not hear us:"), "{log}");
}

pub(super) fn something_else() {
    let mut site = Site::links_only(TWO_LINKS, "");
    let (from, to) = (site.lab.right().address(0), site.lab.left().address(0));
    let socket = site.lab.right().run(|| UdpSocket::bind((from, 4754))).expect("a socket");
    site.start_daemon(Side::Left);
    // An answer to each of its datagrams, as a server of another protocol gives.
    let answer = |socket: &UdpSocket| {
        let mut room = [0; 2048];
        for _ in 0..100 {
            socket.recv_from(&mut room).expect("a datagram of the daemon");
            socket.send_to(&[0x45, 1, 2, 3, 4, 5, 6, 7], (to, 4754)).expect("room in the socket");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| answer(&socket));
        await_problem(&site, Side::Left, "foreign", "sends what is no datagram of MPT");
    });
}
