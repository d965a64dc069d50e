//! Two daemons that each take the other for any endpoint of GRE in UDP, and so say nothing but inner
//! packets.

use mpt_control::Request;
use mpt_lab::topology::Side;

use crate::site::{PATIENT, QUICK, SHORT, Site, TWO_LINKS, change_interface, eventually, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("gre::plain_packets_of_both_versions", || both_versions("scheduler = 'flow'")),
    ("gre::with_a_key", || both_versions("scheduler = 'flow'\nkey = 4294967295")),
    ("gre::with_a_checksum", || both_versions("scheduler = 'flow'\nchecksum = true")),
    ("gre::with_numbers_striped_over_two_paths", || both_versions(STRIPED)),
    ("gre::a_restarted_endpoint_is_heard_at_once", restarts),
    ("gre::another_key_is_a_named_drop", other_key),
    ("gre::a_change_of_kind_alone_restarts_the_connection", change_of_kind),
    ("gre::a_lost_interface_takes_its_path_along", lost_interface),
];

/// Packets that go by both paths in turn, and so have to be put in order.
const STRIPED: &str = "sequence = true\nkey = 7\nreorder = { window = 4096, max_delay = 1 }";

/// Two hosts that are RFC 8086 endpoints to each other, with these further lines for each connection.
fn site(left: &str, right: &str) -> Site {
    Site::start_with(TWO_LINKS, "", |side, config| {
        let more = if side == Side::Left { left } else { right };
        gre(&config, more)
    })
}

fn gre(config: &str, more: &str) -> String {
    let kind = format!("{more}\npeer = 'gre'\npeer_addresses = [");
    let config = config.replace("peer = [", &kind).replace(QUICK, "");
    if more.contains("reorder") { config.replace(PATIENT, "") } else { config }
}

fn both_versions(options: &str) {
    let site = site(options, options);
    let connection = site.connection(Side::Left);
    assert_eq!(connection.peer_kind, "gre");
    for version in [4, 6] {
        assert_eq!(site.ping(version, 20).lost, 0);
        site.assert_flawless(version);
        let order = site.stream_to(inner(Side::Right, version), SHORT).finish().expect("a report");
        assert_eq!(order.order.received, order.order.sent);
    }
    for side in [Side::Left, Side::Right] {
        let connection = site.connection(side);
        assert!(connection.drops.is_empty(), "{:?}", connection.drops);
        let striped = options.contains("sequence");
        for path in &connection.paths {
            assert!(!striped || path.sent.packets > 0, "{path:?}");
            assert_eq!((path.keepalive, path.dead_time), (0.0, 0.0));
            assert_eq!(path.rtt_ms, None, "nobody measures where there are no keepalives");
        }
    }
}

/// Like the kernel's tunnel when it is created again: its numbers restart at 0 without an
/// announcement.
fn restarts() {
    let mut site = site("sequence = true", "sequence = true");
    assert_eq!(site.ping(4, 10).lost, 0);
    site.end_daemon(Side::Right);
    let config = gre(&site.config(Side::Right), "sequence = true");
    site.start_daemon_with(Side::Right, &config);
    assert_eq!(site.ping(4, 10).lost, 0);
    let connection = site.connection(Side::Left);
    assert!(connection.drops.is_empty(), "{:?}", connection.drops);
}

fn other_key() {
    let site = site("key = 1", "key = 2");
    assert_eq!(site.ping(4, 5).lost, 5);
    let dropped = || site.status(Side::Right).tunnels[0].drops.get("gre_key").copied();
    eventually("what came is counted", || dropped() >= Some(5));
}

fn change_of_kind() {
    let site = site(STRIPED, STRIPED);
    site.assert_flawless(4);
    for side in [Side::Left, Side::Right] {
        let config = gre(&site.config(side), STRIPED).replace("'gre'", "'mpt'");
        site.daemon(side).configure(&config).expect("a file");
        site.daemon(side).change(&Request::Reload {}).expect("a reload");
        assert_eq!(site.connection(side).peer_kind, "mpt");
    }
    site.await_all_up();
    let measured = || site.path(Side::Left, 0).rtt_ms.is_some();
    eventually("keepalives are sent and understood", measured);
    site.assert_flawless(6);
}

fn lost_interface() {
    let site = site(STRIPED, STRIPED);
    let switch = |up| {
        for side in [Side::Left, Side::Right] {
            let host = site.lab.host(side);
            change_interface(host, "two", |netlink, index| netlink.set_up(index, up));
        }
    };
    switch(false);
    site.await_state(1, "down");
    let before = site.path(Side::Left, 1).sent.packets;
    site.assert_flawless(4);
    assert_eq!(site.path(Side::Left, 1).sent.packets, before, "it is left");
    switch(true);
    site.await_all_up();
    site.assert_flawless(6);
    assert!(site.path(Side::Left, 1).sent.packets > before, "it is used again");
}
