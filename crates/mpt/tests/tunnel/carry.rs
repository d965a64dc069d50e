//! Packets of every kind get through, whole and in order.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::{tcp, udp};

use crate::site::{
    SHORT, Site, TWO_LINKS, assert_flawless, change_interface, eventually, inner, ping, two_links,
};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("ipv4_in_ipv4", || all_kinds(4, 4)),
    ("ipv4_in_ipv6", || all_kinds(4, 6)),
    ("ipv6_in_ipv4", || all_kinds(6, 4)),
    ("ipv6_in_ipv6", || all_kinds(6, 6)),
    ("with_all_offloads", || offloads("", &["vnet", "tso", "uso", "gso", "gro"])),
    ("without_any_offload", || {
        offloads("vnet = false, tso = false, uso = false, gso = false, gro = false", &[]);
    }),
    ("without_a_vnet_header", || offloads("vnet = false", &["gso", "gro"])),
    ("without_tso", || offloads("tso = false", &["vnet", "uso", "gso", "gro"])),
    ("without_uso", || offloads("uso = false", &["vnet", "tso", "gso", "gro"])),
    ("without_gso", || offloads("gso = false", &["vnet", "tso", "uso", "gro"])),
    ("without_gro", || offloads("gro = false", &["vnet", "tso", "uso", "gso"])),
    ("both_paths_carry_their_share", shares),
    ("two_uplinks_to_one_server_address_share_its_socket", || one_server(4)),
    ("two_uplinks_to_one_server_address_over_ipv6", || one_server(6)),
    ("with_key_and_checksum", || plain_options("key = 7\nchecksum = true")),
    ("ports_may_differ_between_the_ends", ports),
    ("two_tunnels_in_one_daemon", two_tunnels),
    ("without_sequence_numbers", without_sequence_numbers),
    ("the_mtu_is_that_of_the_smallest_path", mtu),
    ("the_mtu_follows_a_path_that_narrows_and_widens", narrowing),
    ("a_path_too_small_for_ipv6_is_shown_and_not_used", unusable),
    ("loss_duplicates_and_corruption_on_links_are_survived", bad_links),
];

fn all_kinds(inner_version: u8, outer: u8) {
    let site = Site::start(&two_links(outer), "");
    let pings = site.ping(inner_version, 20);
    assert_eq!((pings.lost, pings.duplicated), (0, 0));
    site.assert_flawless(inner_version);
    tcp_gets_through(&site, inner_version);
}

fn tcp_gets_through(site: &Site, inner_version: u8) {
    let address = inner(Side::Right, inner_version);
    let sink = site
        .lab
        .right()
        .run(|| tcp::Sink::listen(tcp::Transport::Tcp, address, None))
        .expect("a sink");
    let remote = sink.address();
    let source =
        site.lab.left().run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"));
    let length = Duration::from_secs(1);
    let report =
        tcp::Flow::start(sink, source.expect("a source"), length).expect("a flow").finish();
    assert_eq!(report.failure, None);
    assert!(report.series.goodput(Duration::ZERO) > 1e6, "a TCP flow gets through");
}

fn offloads(switched_off: &str, used: &[&str]) {
    let version = if switched_off.contains("uso") { 6 } else { 4 };
    let site = Site::start_with(TWO_LINKS, "", |_, config| {
        let offloads = format!("name = 'mpt0'\noffloads = {{ {switched_off} }}\n");
        config.replace("name = 'mpt0'\n", &offloads)
    });
    let tunnel = site.status(Side::Right).tunnels.remove(0);
    let in_use = [tunnel.device.offloads, tunnel.sockets[0].offloads.clone()].concat();
    assert_eq!(in_use, used);
    site.assert_flawless(version);
    tcp_gets_through(&site, version);
    let left = site.status(Side::Left).tunnels.remove(0).device;
    assert_eq!(left.read_super_packets > 0, used.contains(&"tso"), "{left:?}");
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

fn ports() {
    let site = Site::start_with(TWO_LINKS, "", |side, config| {
        let (local, remote) = if side == Side::Left { (4754, 4755) } else { (4755, 4754) };
        let ports = format!("name = 'peer'\nlocal_port = {local}\nremote_port = {remote}");
        config.replace("name = 'peer'", &ports)
    });
    for (side, local, remote) in [(Side::Left, 4754, 4755), (Side::Right, 4755, 4754)] {
        let path = site.path(side, 0);
        assert!(path.local.ends_with(&format!(":{local}")), "{}", path.local);
        assert!(path.remote.ends_with(&format!(":{remote}")), "{}", path.remote);
    }
    site.assert_flawless(4);
    assert_eq!(site.ping(6, 10).lost, 0, "and back");
}

fn two_tunnels() {
    let second = |config: &str| {
        let ports = "name = 'second peer'\nlocal_port = 4755\nremote_port = 4755";
        let own = [("mpt0", "mpt1"), ("10.9.0.", "10.9.1."), ("fd00:9::", "fd00:a::")];
        let config =
            own.iter().fold(config.to_owned(), |config, (from, to)| config.replace(from, to));
        config.replace("name = 'peer'", ports)
    };
    let site = Site::start_with(TWO_LINKS, "", |_, config| config.clone() + &second(&config));
    let inner = |second: bool, version| match (second, inner(Side::Right, version)) {
        (false, address) => address,
        (true, IpAddr::V4(_)) => [10, 9, 1, 2].into(),
        (true, IpAddr::V6(_)) => [0xfd00, 0xa, 0, 0, 0, 0, 0, 2].into(),
    };
    for version in [4, 6] {
        let streams = [false, true].map(|second| site.stream_to(inner(second, version), SHORT));
        streams.into_iter().for_each(assert_flawless);
        for second in [false, true] {
            assert_eq!(ping(site.lab.left(), inner(second, version), 10).lost, 0);
        }
    }
    for tunnel in site.status(Side::Left).tunnels {
        let carried = tunnel.connections[0].counters.transmitted.packets;
        assert!((820..850).contains(&carried), "its own packets and no others: {carried}");
    }
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

fn narrowing() {
    let site = Site::start(TWO_LINKS, "");
    let socket = site.lab.left().run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    // Twice, because a look so soon after another has to wait for its time.
    for (path, name, mtu) in [(0, "one", 1400), (1, "two", 1350)] {
        change_interface(site.lab.left(), name, |link, index| link.set_mtu(index, mtu));
        // As large as the tunnel takes yet, and one for each path at least.
        let payload = vec![0; site.status(Side::Left).tunnels[0].mtu as usize - 28];
        for _ in 0..4 {
            socket.send_to(&payload, (inner(Side::Right, 4), 9)).expect("room in the socket");
        }
        let fits = u64::from(mtu) - 36;
        eventually("the tunnel's MTU follows", || {
            site.status(Side::Left).tunnels[0].mtu == fits
                && site.path(Side::Left, path).mtu == fits
        });
    }
    let large = udp::Options { size: 1400, ..SHORT };
    [4, 6].map(|version| site.stream(version, large)).into_iter().for_each(assert_flawless);
    assert_eq!(site.status(Side::Right).tunnels[0].mtu, 1464, "nothing is narrow on its side");

    let set_mtu = |name, mtu| {
        change_interface(site.lab.left(), name, |link, index| link.set_mtu(index, mtu));
    };
    set_mtu("one", 1290);
    for _ in 0..4 {
        socket.send_to(&[0; 1250], (inner(Side::Right, 4), 9)).expect("room in the socket");
    }
    eventually("a path too narrow for IPv6 is left", || {
        site.path(Side::Left, 0).state == "unusable: mtu"
    });
    ["one", "two"].into_iter().for_each(|name| set_mtu(name, 1500));
    site.await_all_up();
    eventually("the MTU grows again", || site.status(Side::Left).tunnels[0].mtu == 1464);
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
    let options = udp::Options {
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
