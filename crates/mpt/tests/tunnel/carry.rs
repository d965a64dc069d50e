//! Packets of every kind get through, whole and in order.

use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::tcp;

use crate::site::{Site, TWO_LINKS, inner, two_links};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("ipv4_in_ipv4", || all_kinds(4, 4)),
    ("ipv4_in_ipv6", || all_kinds(4, 6)),
    ("ipv6_in_ipv4", || all_kinds(6, 4)),
    ("ipv6_in_ipv6", || all_kinds(6, 6)),
    ("both_paths_carry_their_share", shares),
    ("two_uplinks_to_one_server_address_share_its_socket", || one_server(4)),
    ("two_uplinks_to_one_server_address_over_ipv6", || one_server(6)),
    ("with_key_and_checksum", || plain_options("key = 7\nchecksum = true")),
    ("without_sequence_numbers", without_sequence_numbers),
    ("the_mtu_is_that_of_the_smallest_path", mtu),
    ("a_path_too_small_for_ipv6_is_shown_and_not_used", unusable),
    ("loss_duplicates_and_corruption_on_links_are_survived", bad_links),
];

fn all_kinds(inner_version: u8, outer: u8) {
    let site = Site::start(&two_links(outer), "");
    let pings = site.ping(inner_version, 20);
    assert_eq!((pings.lost, pings.duplicated), (0, 0));
    site.assert_flawless(inner_version);
    let address = inner(Side::Right, inner_version);
    let sink = site.lab.right().run(|| tcp::Sink::listen(address, None)).expect("a sink");
    let remote = sink.address();
    let source = site.lab.left().run(|| tcp::Source::connect(remote, None, "cubic"));
    let length = Duration::from_secs(1);
    let report =
        tcp::Flow::start(sink, source.expect("a source"), length).expect("a flow").finish();
    assert_eq!(report.failure, None);
    assert!(report.series.goodput(Duration::ZERO) > 1e6, "a TCP flow gets through");
}

fn shares() {
    let site = Site::start(TWO_LINKS, "");
    site.assert_flawless(4);
    let sent: Vec<_> =
        site.connection(Side::Left).paths.iter().map(|path| path.sent.packets).collect();
    assert!(sent[0].abs_diff(sent[1]) <= 1 && sent[0] >= 190, "{sent:?}");
}

fn one_server(version: u8) {
    let site = Site::start(&format!("addressing = 'one-server'\n{}", two_links(version)), "");
    site.assert_flawless(4);
    let right = site.status(Side::Right);
    assert_eq!(right.tunnels[0].sockets.len(), 1);
    assert_eq!(site.status(Side::Left).tunnels[0].sockets.len(), 2);
    for path in &right.tunnels[0].connections[0].paths {
        assert!(path.received.packets >= 190, "{}: {:?}", path.name, path.received);
    }
}

fn plain_options(options: &str) {
    let site = Site::start(TWO_LINKS, options);
    site.assert_flawless(4);
    site.assert_flawless(6);
}

fn without_sequence_numbers() {
    let site = Site::start("[[link]]\nname = 'one'\nrate_mbps = 50\n", "sequence = false");
    site.assert_flawless(4);
    let reorder = site.connection(Side::Right).reorder;
    assert!(reorder.counters["unsequenced"] >= 400, "{reorder:?}");
}

fn mtu() {
    let links = "[[link]]\nname = 'one'\nmtu = 1500\n[[link]]\nname = 'two'\nmtu = 1400\n";
    let site = Site::start(links, "");
    assert_eq!(site.status(Side::Left).tunnels[0].mtu, 1400 - 20 - 8 - 8);
    let mtus: Vec<_> = site.connection(Side::Left).paths.iter().map(|path| path.mtu).collect();
    assert_eq!(mtus, [1464, 1364]);
}

fn unusable() {
    let links = "[[link]]\nname = 'one'\n[[link]]\nname = 'two'\nmtu = 1280\n";
    let mut site = Site::links_only(links, "");
    site.start_daemon(Side::Left);
    site.start_daemon(Side::Right);
    site.await_state(0, "up");
    assert_eq!(site.path(Side::Left, 1).state, "unusable: mtu");
    assert_eq!(site.status(Side::Left).tunnels[0].mtu, 1464);
    site.assert_flawless(6);
    assert_eq!(site.path(Side::Left, 1).sent.packets, 0);
}

fn bad_links() {
    let links = "[[link]]\nname = 'one'\nrate_mbps = 50\nloss = 0.02\nduplicate = 0.05\n\
                 [[link]]\nname = 'two'\nrate_mbps = 50\ncorrupt = 0.02\njitter_ms = 1\ndelay_ms = 2\n";
    let site = Site::start(links, "");
    let options = mpt_lab::traffic::udp::Options {
        interval: Duration::from_millis(1),
        size: 200,
        length: Duration::from_secs(2),
    };
    let order = site.stream(4, options).finish().expect("a report").order;
    assert_eq!(order.duplicated, 0, "a duplicate of the link reached the application");
    assert!(order.lost > 0 && order.lost < order.sent / 10, "{order:?}");
    let connection = site.connection(Side::Right);
    assert!(connection.drops["duplicate"] > 0, "{:?}", connection.drops);
}
