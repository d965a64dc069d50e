//! Two daemons that each take the other for the original MPT.

use mpt_control::{CommandStatus, PathStatus, Request};
use mpt_lab::topology::Side;

use crate::site::{QUICK, Site, TWO_LINKS, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("original::packets_in_order_of_one_version", packets),
    ("original::a_path_down_and_up_by_command", || down_and_up("")),
    ("original::with_a_cookie", || down_and_up("auth = { type = 'random' }")),
    ("original::with_a_key", || down_and_up(&key("0123456789abcdef0123456789abcdef"))),
    ("original::without_fixed_local_addresses", without_local_addresses),
    ("original::another_key_is_a_named_refusal", other_key),
    ("original::a_reload_changes_commands_in_place", reload),
    ("original::a_change_of_kind_restarts_the_connection", change_of_kind),
    ("original::the_mtu_is_what_an_original_takes", mtu),
    ("original::nothing_is_open_without_an_original", nothing_open),
];

/// So long that nothing but a command takes a path down within a test.
const PATIENT: &str = "keepalive = 0.1\ndead_time = 60\n";

fn key(text: &str) -> String {
    format!("auth = {{ type = 'sha256', key = '{text}' }}")
}

/// Two hosts that are originals to each other, with these further lines for each connection.
fn site(left: &str, right: &str) -> Site {
    Site::start_with(TWO_LINKS, "", |side, config| {
        original(&config, side, if side == Side::Left { left } else { right })
    })
}

fn original(config: &str, side: Side, more: &str) -> String {
    let peer = if side == Side::Left { 2 } else { 1 };
    let list = format!("peer = ['10.9.0.{peer}', 'fd00:9::{peer}']");
    let kind = format!("{more}\npeer = 'mpt-original'\npeer_addresses = ['10.9.0.{peer}']");
    config.replace(&list, &kind).replace(QUICK, PATIENT)
}

/// Switches a path of the left host by command.
fn switch(site: &Site, path: &str, status: PathStatus) {
    site.daemon(Side::Left).set_path(path, status).expect("a path");
}

/// What is known of a side's commands.
fn commands(site: &Site, side: Side) -> CommandStatus {
    site.status(side).tunnels.remove(0).commands.expect("commands")
}

fn packets() {
    let site = site("", "");
    assert_eq!(site.connection(Side::Left).peer_kind, "mpt-original");
    site.assert_flawless(4);
    assert_eq!(site.ping(4, 20).lost, 0);
    let reorder = site.connection(Side::Right).reorder.counters;
    assert_eq!(reorder["unsequenced"], 0, "{reorder:?}");
    let sent: Vec<u64> =
        site.connection(Side::Left).paths.iter().map(|path| path.sent.packets).collect();
    assert!(sent.iter().all(|sent| *sent > 100), "both paths carry: {sent:?}");
    // The other version is not used.
    let dropped = || site.status(Side::Left).tunnels[0].drops.get("no_route").copied();
    assert_eq!(site.ping(6, 3).lost, 3);
    eventually("what has no connection is counted", || dropped() >= Some(3));
}

fn down_and_up(options: &str) {
    commands_work(&site(options, options));
}

fn commands_work(site: &Site) {
    let right = |path| site.path(Side::Right, path);
    for (path, name) in [(1, "two"), (0, "one")] {
        switch(site, name, PathStatus::Off);
        eventually("the peer has heard of it", || right(path).state == "down");
        assert_eq!(right(path).cause.as_deref(), Some("the peer says that it is down"));
        let before = right(path).sent.packets;
        assert_eq!(site.ping(4, 20).lost, 0);
        site.assert_flawless(4);
        assert_eq!(right(path).sent.packets, before, "it is left");
        switch(site, name, PathStatus::Available);
        site.await_all_up();
    }
    for side in [Side::Left, Side::Right] {
        eventually("the last message has arrived", || {
            let commands = commands(site, side);
            commands.messages_received >= 8 && commands.messages_sent >= 8
        });
        let commands = commands(site, side);
        assert!(commands.refused.is_empty(), "{commands:?}");
    }
}

fn without_local_addresses() {
    let site = Site::start_with(TWO_LINKS, "", |side, config| {
        let lines = config.lines().filter(|line| !line.starts_with("local = "));
        original(&lines.map(|line| format!("{line}\n")).collect::<String>(), side, "")
    });
    assert_eq!(commands(&site, Side::Left).local, ["0.0.0.0:65050"], "one for all paths");
    commands_work(&site);
}

fn other_key() {
    let site = site(
        &key("0123456789abcdef0123456789abcdef"),
        &key("0123456789abcdef0123456789abcdeF-and-more"),
    );
    switch(&site, "two", PathStatus::Off);
    let refused = |side, name: &str| commands(&site, side).refused.get(name).copied();
    let right = || refused(Side::Right, "command_auth_hash") >= Some(1);
    eventually("it is counted", right);
    assert_eq!(site.path(Side::Right, 1).state, "up", "and not followed");
    let given_up = || refused(Side::Left, "command_untold") == Some(1);
    eventually("it is given up", given_up);
}

fn reload() {
    let site = site("", "");
    let next = site.connection(Side::Right).reorder.next;
    for side in [Side::Left, Side::Right] {
        let ports = "command_port = 65051\nremote_command_port = 65051";
        let config = original(&site.config(side), side, ports);
        site.daemon(side).configure(&config).expect("a file");
        let changes = site.daemon(side).change(&Request::Reload {}).expect("a reload");
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(changes[0].contains("command") && !changes[0].ends_with(")"), "{changes:?}");
        let commands = commands(&site, side);
        assert_eq!(commands.local.len(), 2, "a socket for each path: {commands:?}");
        assert!(commands.local.iter().all(|at| at.ends_with(":65051")), "{commands:?}");
    }
    assert!(site.connection(Side::Right).reorder.next >= next, "the count goes on");
    commands_work(&site);
}

fn change_of_kind() {
    let site = Site::start(TWO_LINKS, "");
    site.assert_flawless(6);
    for side in [Side::Left, Side::Right] {
        let config = original(&site.config(side), side, "");
        site.daemon(side).configure(&config).expect("a file");
        let changes = site.daemon(side).change(&Request::Reload {}).expect("a reload");
        let expected =
            "connection peer: peer \"mpt\" -> \"mpt-original\" (its sequence numbers restart)";
        assert!(changes.iter().any(|change| change == expected), "{changes:?}");
        assert_eq!(site.connection(side).peer_kind, "mpt-original");
    }
    site.await_all_up();
    assert_eq!(site.connection(Side::Left).paths[0].rtt_ms, None);
    commands_work(&site);
    for side in [Side::Left, Side::Right] {
        site.daemon(side).configure(&site.config(side)).expect("a file");
        site.daemon(side).change(&Request::Reload {}).expect("a reload");
        assert_eq!(site.status(side).tunnels.remove(0).commands, None);
    }
    site.await_all_up();
    site.assert_flawless(6);
}

fn mtu() {
    let jumbo = "[[link]]\nname = 'one'\nmtu = 9000\n";
    for (window, fits) in [("", 1592), ("reorder = { window = 0 }", 1596)] {
        let site = Site::start_with(jumbo, window, |side, config| original(&config, side, ""));
        assert_eq!(site.path(Side::Left, 0).mtu, fits, "1600 bytes less the GRE header");
        assert_eq!(site.status(Side::Left).tunnels[0].mtu, fits);
    }
}

fn nothing_open() {
    let site = Site::start(TWO_LINKS, "");
    for side in [Side::Left, Side::Right] {
        assert_eq!(site.status(side).tunnels.remove(0).commands, None);
        let open = site.lab.host(side).run(|| std::fs::read_to_string("/proc/thread-self/net/udp"));
        let open = open.expect("the kernel's list");
        let ports: Vec<&str> = open
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1)?.split(':').nth(1))
            .collect();
        assert_eq!(ports, ["1292"; 2], "4754 on two addresses and nothing else");
    }
}
