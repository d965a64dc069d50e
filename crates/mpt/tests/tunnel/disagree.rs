//! Two ends that do not fit: each cause is named in status and log within five seconds, with its code, and nothing is
//! named where all is well.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpt_control::{Event, PathStatus, Problem};
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{QUICK, Site, TWO_LINKS, daemon, eventually};
use crate::suite::{Test, skip};

pub(crate) const TESTS: &[Test] = &[
    ("disagree::another_key", || {
        keys("key = 7\n", "key = 8\n", "with GRE key 8, this connection has 7")
    }),
    ("disagree::a_key_there_only", || {
        keys("", "key = 8\n", "with GRE key 8, this connection has none")
    }),
    ("disagree::a_key_here_only", || {
        keys("key = 7\n", "", "with no GRE key, this connection has 7")
    }),
    ("disagree::another_key_in_extended_framing", another_key_extended),
    ("disagree::another_peer", || another_peer("framing = 'plain'")),
    ("disagree::another_peer_in_extended_framing", || another_peer("framing = 'extended'")),
    ("disagree::another_peer_than_a_server_has_that_names_no_address", || {
        learned(
            |left| left.replace("'10.9.0.2'", "'10.9.0.3'"),
            "addresses",
            "its tunnel address is 10.9.0.1 and ours 10.9.0.3",
        )
    }),
    ("disagree::another_address_than_a_server_expects_that_names_no_address", || {
        learned(
            |left| left.replace("'10.9.0.1/24'", "'10.9.0.7/24'"),
            "addresses",
            "its tunnel address is 10.9.0.7 and ours 10.9.0.2",
        )
    }),
    ("disagree::another_key_than_a_server_has_that_names_no_address", || {
        learned(
            |left| left.replace("framing =", "key = 8\nframing ="),
            "key",
            "with GRE key 8, this connection has none",
        )
    }),
    ("disagree::plain_framing_towards_a_server_that_names_no_address", plain_and_learned),
    ("disagree::another_remote", || another_remote("framing = 'plain'")),
    ("disagree::another_remote_in_extended_framing", || another_remote("framing = 'extended'")),
    ("disagree::blocked_one_way", || blocked_one_way("framing = 'plain'")),
    ("disagree::blocked_one_way_in_extended_framing", || blocked_one_way("framing = 'extended'")),
    ("disagree::blocked_both_ways", blocked_both_ways),
    ("disagree::nothing_listens", || nothing_listens(1, TWO_LINKS)),
    ("disagree::nothing_listens_over_ipv6", || nothing_listens(2, &crate::site::two_links(6))),
    ("disagree::another_port", another_port),
    ("disagree::another_port_in_extended_framing", another_port_extended),
    ("disagree::rejected_by_a_firewall", rejected),
    ("disagree::a_host_that_a_router_does_not_reach", unreachable),
    ("disagree::rejected_as_if_nothing_listened", || rejected_as_if_closed("framing = 'plain'")),
    ("disagree::rejected_as_if_nothing_listened_in_extended_framing", || {
        rejected_as_if_closed("framing = 'extended'")
    }),
    ("disagree::rejected_as_if_nothing_listened_to_either_framing", || {
        rejected_as_if_closed("framing = 'auto'")
    }),
    ("disagree::another_framing", another_framing),
    ("disagree::another_version_of_extended_framing", another_version),
    ("disagree::something_else_answers", something_else),
    ("disagree::another_kind_of_peer", another_kind),
    ("disagree::a_template_that_does_not_fit", template),
    ("disagree::a_source_that_a_template_does_not_name", || unnamed_source("framing = 'plain'")),
    ("disagree::a_source_that_a_template_does_not_name_in_extended_framing", || {
        unnamed_source("framing = 'extended'")
    }),
    ("disagree::a_second_address_that_a_template_does_not_know", second_address),
    ("disagree::nothing_is_said_where_all_is_well", || all_well("")),
    ("disagree::nothing_is_said_where_all_is_well_in_extended_framing", || {
        all_well("framing = 'extended'")
    }),
    ("disagree::nothing_is_said_where_all_is_well_and_framing_is_automatic", || {
        all_well("framing = 'auto'")
    }),
    ("disagree::copies_of_packets_are_no_loss", copies),
    ("disagree::the_doctor_looks_further", found_by_the_doctor),
    ("disagree::the_doctor_compares_the_settings_of_both_ends", compared),
    ("disagree::the_doctor_measures_rates_where_asked", rates),
];

/// Two daemons with these further lines for each connection. Nobody waits for anything.
fn site(topology: &str, connection: &str, edit: impl Fn(Side, String) -> String) -> Site {
    let mut site = Site::links_only(topology, connection);
    for side in [Side::Left, Side::Right] {
        let config = edit(side, site.config(side));
        site.start_daemon_with(side, &config);
    }
    site
}

fn problems(site: &Site, side: Side) -> Vec<Problem> {
    site.status(side).tunnels.remove(0).problems
}

/// Waits until a daemon names the cause of this code in such words, and asserts that the log, the events and `mpt
/// doctor` do so too, and that it took five seconds from its start at the most.
pub(crate) fn await_problem(site: &Site, side: Side, code: &str, words: &str) -> Problem {
    let problem = await_named(site, side, code, words);
    let events = site.status(side).tunnels.remove(0).events;
    let of = |event: &&Event| event.text.contains(&problem.text);
    let event = events.iter().find(of).expect("an event");
    assert!(event.at_seconds < 5.0, "{event:?}");
    problem
}

/// The same of a daemon that may have run before.
pub(crate) fn await_named(site: &Site, side: Side, code: &str, words: &str) -> Problem {
    let find = |problem: &Problem| problem.code == code && problem.text.contains(words);
    let mut found = None;
    eventually(&format!("{code} at {side:?}: {words}"), || {
        found = problems(site, side).into_iter().find(find);
        found.is_some()
    });
    let problem = found.expect("it was found");
    assert!(!problem.remedy.is_empty(), "{problem:?}");
    let line = format!("{}: {}", problem.text, problem.remedy);
    eventually(&format!("the log of {side:?} has {line}"), || {
        let log = site.daemon(side).log();
        log.lines().any(|logged| logged.contains("WARN") && logged.contains(&line))
    });
    let events = site.status(side).tunnels.remove(0).events;
    assert!(events.iter().any(|event| event.text.contains(&line)), "{events:?}");
    let (status, text) = doctor(site, side, &[]);
    assert_eq!(status, Some(1), "{text}");
    let line = match (&problem.connection, &problem.path) {
        (Some(connection), Some(path)) => format!("\n- {connection}/{path}: {line}\n"),
        (Some(connection), None) => format!("\n- {connection}: {line}\n"),
        _ => format!("\n- {line}\n"),
    };
    assert!(text.contains(&line), "{line} in {text}");
    problem
}

/// What `mpt doctor` says at a side, and its exit code.
fn doctor(site: &Site, side: Side, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(daemon());
    command.arg("doctor").args(arguments).arg("--socket").arg(site.daemon(side).socket());
    let output = site.lab.host(side).run(|| command.output()).expect("mpt runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until nothing is wrong any more at either end.
fn await_health(site: &Site) {
    site.await_all_up();
    for side in [Side::Left, Side::Right] {
        eventually("no problem is left", || problems(site, side).is_empty());
    }
}

fn keys(left: &str, right: &str, words: &str) {
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

fn another_key_extended() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| {
        let key = if side == Side::Left { 7 } else { 8 };
        config.replace("framing =", &format!("key = {key}\nframing ="))
    });
    await_problem(&site, Side::Left, "key", "with GRE key 8, this connection has 7");
}

fn another_peer(framing: &str) {
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

/// A configuration without paths.
pub(crate) fn without_paths(config: &str) -> String {
    config.split("[[tunnel.connection.path]]").next().expect("a connection").to_owned()
}

/// Paths are learned in extended framing, which a client of plain framing does not use. A client that may use it asks for
/// it now and then, so this takes longer than five seconds.
fn plain_and_learned() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config.replace("'extended'", "'plain'"),
        Side::Right => without_paths(&config),
    });
    await_named(&site, Side::Right, "framing", "sends plain framing");
}

/// The server names no addresses, and the client does not fit. Only the server can tell; the client says where to look.
fn learned(edit: impl Fn(String) -> String, code: &str, words: &str) {
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

fn another_remote(framing: &str) {
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

fn blocked_one_way(framing: &str) {
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

fn blocked_both_ways() {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.lab.link(1).set_blackout(Direction::Both, true);
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let from = site.lab.topology().address(Side::Right, 1);
    await_problem(&site, Side::Left, "silent", &format!("nothing arrives from {from}:4754"));
}

fn nothing_listens(_: u8, topology: &str) {
    let mut site = Site::links_only(topology, "");
    site.start_daemon(Side::Left);
    let at = site.lab.topology().address(Side::Right, 0);
    let words = format!("nothing listens on UDP 4754 at {at}");
    await_problem(&site, Side::Left, "nothing_listens", &words);
    site.start_daemon(Side::Right);
    await_health(&site);
}

fn another_port() {
    let site = site(TWO_LINKS, "", |side, config| match side {
        Side::Left => config.replace("framing =", "remote_port = 4999\nframing ="),
        Side::Right => config,
    });
    await_problem(&site, Side::Left, "nothing_listens", "nothing listens on UDP 4999 at");
    await_problem(&site, Side::Right, "silent", "nothing arrives from");
}

/// The peer is where it is looked for, and sends from another port.
fn another_port_extended() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config.replace("framing =", "remote_port = 4999\nframing ="),
        Side::Right => config,
    });
    let found =
        await_problem(&site, Side::Left, "unknown_source", "datagrams of the peer come from");
    assert!(found.remedy.starts_with("is `remote_port` wrong? It would be 4754"), "{found:?}");
    await_problem(&site, Side::Left, "nothing_listens", "nothing listens on UDP 4999 at");
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

fn rejected() {
    let mut site = Site::links_only(TWO_LINKS, "");
    reject(&site, "admin-prohibited");
    for side in [Side::Left, Side::Right] {
        site.start_daemon(side);
    }
    let at = site.lab.topology().address(Side::Right, 0);
    let words = format!("{at} rejects UDP 4754 to {at}");
    await_problem(&site, Side::Left, "rejected", &words);
}

fn unreachable() {
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
fn rejected_as_if_closed(framing: &str) {
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

fn another_framing() {
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
fn another_version() {
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

fn something_else() {
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

fn another_kind() {
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

fn template() {
    let accept = |peers: &str, key: &str| {
        format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24']\n[[tunnel.accept]]\n\
             name = 'road'\npeers = ['{peers}']\n{key}\n"
        )
    };
    for (peers, key, words) in [
        ("10.9.0.128/25", "", "its tunnel address 10.9.0.1 is not among the `peers`"),
        ("10.9.0.0/24", "key = 9", "it has no GRE key"),
        ("10.9.0.0/24", "sources = ['192.0.2.99/32']", "is not among the `sources`"),
        ("10.9.0.0/24", "framing = 'extended'", "does not use its framing"),
    ] {
        let mut site = Site::links_only(TWO_LINKS, "");
        let left =
            site.config(Side::Left).replace("'10.9.0.1/24', 'fd00:9::1/64'", "'10.9.0.1/24'");
        let left = left.replace("'10.9.0.2', 'fd00:9::2'", "'10.9.0.2'");
        site.start_daemon_with(Side::Right, &accept(peers, key));
        site.start_daemon_with(Side::Left, &left);
        let problem = await_problem(&site, Side::Right, "template", words);
        assert!(problem.text.contains("template road") && problem.connection.is_none());
    }
}

/// A template and this line of it, at the right host, and the left one as it is.
fn with_template(framing: &str, line: impl Fn(&Site) -> String) -> Site {
    let mut site = Site::links_only(TWO_LINKS, framing);
    let right = format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24', 'fd00:9::2/64']\n[[tunnel.accept]]\n\
         name = 'road'\npeers = ['10.9.0.0/24']\n{QUICK}{framing}\n{}\n",
        line(&site)
    );
    site.start_daemon_with(Side::Right, &right);
    site.start_daemon(Side::Left);
    site
}

/// One of the client's paths comes from an address that the template does not accept.
fn unnamed_source(framing: &str) {
    let source = |site: &Site, path| site.lab.topology().address(Side::Left, path).to_string();
    let site = with_template(framing, |site| format!("sources = ['{}/32']", source(site, 0)));
    let words = format!(
        "datagrams of the peer come from {}:4754, which is not among the `sources` of template road",
        source(&site, 1)
    );
    let problem = await_problem(&site, Side::Right, "template", &words);
    assert_eq!(problem.connection.as_deref(), Some("road-10.9.0.1"), "{problem:?}");
    assert_eq!(problems(&site, Side::Right).len(), 1, "{:?}", problems(&site, Side::Right));
    let log = site.daemon(Side::Right).log();
    assert_eq!(log.matches("among the `sources`").count(), 1, "{log}");
}

/// A template knows a client by the address with which it asked. What the client sends from its other one is dropped.
fn second_address() {
    let site = with_template("framing = 'extended'", |_| String::new());
    eventually("the client's paths are up", || {
        site.connection(Side::Left).paths.iter().all(|path| path.state == "up")
    });
    let (status, text) = doctor(&site, Side::Left, &[]);
    assert_eq!(status, Some(1), "{text}");
    let words = "fd00:9::2 does not answer through the tunnel, although 10.9.0.2 does: the peer knows this host as \
                 10.9.0.1 and drops what comes from fd00:9::1";
    assert!(text.contains(words), "{text}");
    assert_eq!(text.matches("\n- ").count(), 1, "{text}");
}

fn all_well(connection: &str) {
    let site = site(TWO_LINKS, connection, |_, config| config);
    site.await_all_up();
    assert_health(&site);
}

/// Asserts that neither end names a cause, in the time in which every cause would be named.
pub(crate) fn assert_health(site: &Site) {
    let begin = site.status(Side::Right).uptime_seconds;
    eventually("five seconds have passed", || {
        for side in [Side::Left, Side::Right] {
            assert_eq!(problems(site, side), []);
        }
        site.status(Side::Right).uptime_seconds > begin + 5.0
    });
    site.assert_flawless(4);
    for side in [Side::Left, Side::Right] {
        let drops = site.connection(side).drops;
        assert!(!drops.contains_key("framing"), "a start is no drop: {drops:?}");
        let log = site.daemon(side).log();
        assert!(!log.contains("WARN"), "{log}");
        let (status, text) = doctor(site, side, &[]);
        assert_eq!(status, Some(0), "{text}");
        assert!(text.ends_with("all is well: 1 connection\n"), "{text}");
        let answered = "answers through the tunnel, also to packets of";
        assert_eq!(text.matches(answered).count(), 2, "by IPv4 and IPv6: {text}");
    }
}

/// A session begins by sending copies of packets by paths that nothing else takes. No path loses any.
fn copies() {
    let site = site(TWO_LINKS, "framing = 'extended'", |_, config| config);
    site.await_all_up();
    let options = udp::Options::at_rate(4_000_000, 1200, Duration::from_secs(1));
    site.stream(4, options).finish().expect("a report");
    let paths = || [0, 1].map(|path| site.path(Side::Right, path));
    eventually("both paths have carried packets, and a keepalive after them has come", || {
        paths().iter().all(|path| path.received.packets > 0 && path.loss.is_some())
    });
    let copies = site.connection(Side::Left).repair.map(|repair| repair.copy_bytes);
    assert!(copies > Some(0), "{copies:?}");
    for path in paths() {
        assert_eq!((path.lost, path.loss), (Some(0), Some(0.0)), "{}", path.name);
    }
    let (status, text) = doctor(&site, Side::Right, &[]);
    assert_eq!(status, Some(0), "{text}");
}

/// What no daemon recognises, and the doctor finds by looking further.
fn found_by_the_doctor() {
    let mut site = site(TWO_LINKS, "framing = 'extended'", |_, config| config);
    site.await_all_up();
    let finds = |site: &Site, side, words: &str| {
        let (status, text) = doctor(site, side, &["peer"]);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(words), "{words} in {text}");
    };
    // The peer's firewall lets nothing out of its tunnel.
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c iifname mpt0 drop";
    let nft = |site: &Site, side, rules: &str| {
        let done = site.lab.host(side).run(|| Command::new("nft").arg(rules).output());
        if !done.is_ok_and(|output| output.status.success()) {
            skip("nft cannot set a rule here");
        }
    };
    nft(&site, Side::Right, rules);
    finds(&site, Side::Left, "10.9.0.2 does not answer through the tunnel, although paths are up");
    nft(&site, Side::Right, "delete table inet t");

    // Large packets are dropped on the way, and nobody says so.
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c iifname mpt0 meta length > 1000 drop";
    nft(&site, Side::Right, rules);
    finds(&site, Side::Left, "bytes do not reach 10.9.0.2, smaller ones do");
    nft(&site, Side::Right, "delete table inet t");

    site.daemon(Side::Left).set_path("two", PathStatus::Off).expect("a path");
    finds(&site, Side::Left, "peer/two is switched off here: mpt path up two");
    finds(&site, Side::Right, "peer/two is down");
    site.daemon(Side::Left).set_path("two", PathStatus::Available).expect("a path");
    site.await_all_up();

    // A firewall of this host.
    let rules = "add table inet t; add chain inet t c { type filter hook output priority 0; }; \
                 add rule inet t c udp dport 4754 drop";
    nft(&site, Side::Left, rules);
    eventually("a path is down", || site.path(Side::Left, 0).state == "down");
    finds(&site, Side::Left, "this host's kernel refuses to send: does a firewall of this host");
    nft(&site, Side::Left, "delete table inet t");
    site.await_all_up();

    // Settings of both ends that do not fit.
    site.end_daemon(Side::Right);
    let config = site.config(Side::Right);
    let config = config.replace("framing = 'extended'", "framing = 'extended'\nrepair = false");
    site.start_daemon_with(Side::Right, &config);
    site.await_all_up();
    finds(&site, Side::Left, "the peer does not take part: remove `repair = false` there");
    let mut command = Command::new(daemon());
    command.args(["doctor", "nobody", "--socket"]).arg(site.daemon(Side::Left).socket());
    let output = site.lab.left().run(|| command.output()).expect("mpt runs");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("no connection `nobody`: see `mpt status`"), "{complaint}");
}

/// Each end learns how the other one is set, and what does not fit.
fn compared() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config,
        Side::Right => config
            .replace("name = 'two'", "name = 'two'\npriority = 1")
            .replace("addresses =", "mtu = 1300\naddresses ="),
    });
    site.await_all_up();
    let knows = |side: Side, place: usize, of: &dyn Fn(&mpt_control::PeerSettings) -> bool| {
        eventually("the peer says how it is set", || {
            site.path(side, place).peer.as_ref().is_some_and(of)
        });
    };
    knows(Side::Left, 1, &|of| of.priority == 1 && of.mtu == Some(1300) && of.mtu_is_set);
    knows(Side::Left, 0, &|of| of.mtu == Some(1300));
    knows(Side::Right, 1, &|of| of.priority == 0 && !of.mtu_is_set && of.dead_time > 0.0);
    knows(Side::Right, 0, &|_| true);
    let (status, text) = doctor(&site, Side::Left, &[]);
    assert_eq!(status, Some(1), "{text}");
    for words in [
        "settings there: scheduler earliest, MTU 1300 (set by `mtu`), order with window 4096",
        "two there: priority 1, dead time ",
        "priorities: one 0 here, 0 there; two 0 here, 1 there: set the same `priority`",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, text) = doctor(&site, Side::Right, &[]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("one 0 here, 0 there; two 1 here, 0 there"), "{text}");
    // What changes is told at once.
    let alike = mpt_control::Request::Path {
        connection: None,
        path: "two".into(),
        status: None,
        weight: None,
        priority: Some(1),
    };
    site.daemon(Side::Left).change(&alike).expect("a change");
    knows(Side::Right, 1, &|of| of.priority == 1);
    for side in [Side::Left, Side::Right] {
        let (status, text) = doctor(&site, side, &[]);
        assert_eq!(status, Some(0), "{text}");
    }
    // Asked from another network namespace, it does not take what lies there for the tunnel.
    let mut command = Command::new(daemon());
    command.args(["doctor", "--socket"]).arg(site.daemon(Side::Left).socket());
    let output = site.lab.right().run(|| command.output()).expect("mpt runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("does the daemon run in another network namespace?"), "{text}");
}

/// What the paths carry is measured where that is asked for, and not claimed where it cannot be.
fn rates() {
    let site = Site::start(TWO_LINKS, "framing = 'extended'");
    let (status, text) = doctor(&site, Side::Left, &["--rate"]);
    assert_eq!(status, Some(0), "{text}");
    for path in ["one", "two"] {
        let of = |line: &&str| line.starts_with(&format!("peer/{path}: "));
        let line = text.lines().find(of).expect("a line for each path");
        assert!(line.contains("Mbit/s to the peer"), "{text}");
        assert!(line.contains("; at least ") && line.ends_with("Mbit/s from the peer"), "{text}");
    }
    drop(site);
    let site = Site::start(TWO_LINKS, "framing = 'plain'");
    let (_, text) = doctor(&site, Side::Left, &["--rate"]);
    assert!(text.contains("rates are not measured: the peer reports none"), "{text}");
}
