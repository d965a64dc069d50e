//! Several connections to one peer: what is behind it is behind each of them, and of those that want a packet
//! the first in the file carries it, in whatever order they came.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use super::packets;
use crate::site::{Site, assert_flawless, change_interface, inner};

/// A link for each connection.
const THREE_LINKS: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\n\
                           [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 2\n\
                           [[link]]\nname = 'three'\nrate_mbps = 50\ndelay_ms = 2\n";

/// The connections, what makes each what it is, and its link. The first two both want ports 5500 to 5999.
const CONNECTIONS: [(&str, &str, &str); 3] = [
    ("low", "key = 1\nmatch = { protocol = 'udp', ports = ['5000-5999'] }\n", "one"),
    ("high", "key = 2\nmatch = { protocol = 'udp', ports = ['5500-6999'] }\n", "two"),
    ("rest", "", "three"),
];

/// A network behind the right host, and that host's address in it.
const NETWORK: &str = "networks = ['10.77.0.0/24']\n";
const BEHIND: [u8; 4] = [10, 77, 0, 1];

pub(super) fn the_first_that_matches() {
    let mut site = Site::links_only(THREE_LINKS, "");
    for side in [Side::Left, Side::Right] {
        let config = config(&site, side, &["low", "high", "rest"], "high");
        site.start_daemon_with(side, &config);
    }
    site.await_all_up();
    let right = site.lab.right();
    change_interface(right, "mpt0", |netlink, index| netlink.add_address(index, BEHIND.into(), 24));

    assert_eq!(carriers(&site), ["low", "high", "low", "rest"]);
    reload(&site, &["high", "low", "rest"], "high");
    assert_eq!(carriers(&site), ["low", "high", "high", "rest"], "the other comes first");
    reload(&site, &["rest", "high", "low"], "low");
    assert_eq!(carriers(&site), ["low", "high", "high", "rest"], "what is left over comes last");
    // The first goes, and with it none of the networks, which another names.
    reload(&site, &["low", "rest"], "rest");
    assert_eq!(carriers(&site), ["low", "rest", "low", "rest"]);
    // It comes back behind the other in time, and before it in the file.
    reload(&site, &["high", "low", "rest"], "low");
    assert_eq!(carriers(&site), ["low", "high", "high", "rest"]);
    reload(&site, &["rest"], "rest");
    assert_eq!(carriers(&site), ["rest"; 4]);
}

/// The configuration of a side with these connections, one of which names the network behind the right host.
fn config(site: &Site, side: Side, order: &[&str], named_by: &str) -> String {
    const PATH: &str = "[[tunnel.connection.path]]\n";
    let config = site.config(side);
    let (head, _) = config.split_once(PATH).expect("a path");
    let (tunnel, connection) = head.split_once("[[tunnel.connection]]\n").expect("a connection");
    let mut text = tunnel.to_owned();
    for name in order {
        let (_, lines, link) =
            CONNECTIONS.into_iter().find(|(known, ..)| known == name).expect("a connection");
        let network = if side == Side::Left && *name == named_by { NETWORK } else { "" };
        let named = format!("name = '{name}'\n{lines}{network}");
        let start = format!("name = '{link}'\n");
        let path = config.split(PATH).find(|part| part.starts_with(&start)).expect("a path");
        text += "[[tunnel.connection]]\n";
        text += &connection.replace("name = 'peer'\n", &named);
        text += PATH;
        text += path;
    }
    text
}

fn reload(site: &Site, order: &[&str], named_by: &str) {
    for side in [Side::Right, Side::Left] {
        let daemon = site.daemon(side);
        daemon.configure(&config(site, side, order, named_by)).expect("a file");
        daemon.change(&mpt_control::Request::Reload {}).unwrap_or_else(|error| panic!("{error:#}"));
    }
    site.await_all_up();
}

/// Which connection carries packets to a port that only the first wants, to one that only the second wants,
/// to one that both want, and to one that neither does. To the peer and to the network behind it are the same.
fn carriers(site: &Site) -> [String; 4] {
    [5200, 6200, 5600, 7200].map(|port| {
        let [to_peer, behind] = [inner(Side::Right, 4), BEHIND.into()]
            .map(|to| carrier(site, SocketAddr::new(to, port)));
        assert_eq!(to_peer, behind, "to port {port}");
        to_peer
    })
}

/// The one connection that carries packets from left to right to an address.
fn carrier(site: &Site, to: SocketAddr) -> String {
    let sent = || -> BTreeMap<String, u64> {
        let connections = site.status(Side::Left).tunnels.remove(0).connections;
        connections.into_iter().map(|c| (c.name, c.counters.transmitted.packets)).collect()
    };
    let sink = site.lab.right().run(|| udp::Sink::bind_port(to)).expect("a sink");
    let source = site.lab.left().run(|| udp::Source::connect(to)).expect("a source");
    let before = sent();
    assert_flawless(udp::Stream::start(sink, source, packets(50, 1)).expect("a stream"));
    let mut carried = sent().into_iter().filter(|(name, sent)| sent - before[name] == 50);
    let (carrier, _) = carried.next().expect("a connection that carried all of it");
    carrier
}
