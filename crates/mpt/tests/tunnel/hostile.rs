//! Garbage from the network: counted by name, and nothing else happens.

use std::net::UdpSocket;

use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("strangers_cost_a_counter_and_no_memory", strangers),
    ("garbage_from_the_peers_address_is_dropped_by_name", garbage),
];

fn strangers() {
    let site = Site::start(TWO_LINKS, "");
    // The left host's other address is a stranger to the first path's socket.
    let (from, to) = (site.lab.left().address(1), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    let before = site.daemon(Side::Right).resident_bytes().expect("a running daemon");
    for _ in 0..50 {
        for number in 0..100_u8 {
            let mut datagram = vec![0x10, 0, 8, 0, 0, 0, 0, number];
            datagram.resize(200, 0x45);
            // A full queue loses some, which is all the same here.
            let _ = socket.send_to(&datagram, (to, 4754));
        }
        site.status(Side::Right);
    }
    eventually("strangers are counted", || {
        site.status(Side::Right).tunnels[0].drops.get("unknown_source").is_some_and(|&n| n > 1000)
    });
    let after = site.daemon(Side::Right).resident_bytes().expect("a running daemon");
    assert!(after < before + (4 << 20), "{before} to {after} bytes");
    site.assert_flawless(4);
}

fn garbage() {
    let site = Site::start(TWO_LINKS, "");
    let (from, to) = (site.lab.left().address(0), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    let cases: [(&str, &[u8]); 8] = [
        ("gre_truncated", &[0x10, 0, 8]),
        ("gre_version", &[0x10, 1, 8, 0, 0, 0, 0, 0]),
        ("gre_flags", &[0x50, 0, 8, 0, 0, 0, 0, 0]),
        ("gre_protocol", &[0x10, 0, 0x88, 0xb5, 0, 0, 0, 0]),
        ("gre_key", &[0x20, 0, 8, 0, 0, 0, 0, 0, 0x45]),
        ("control_unknown", &[0, 0, 8, 0, 0xa2, 0x83]),
        ("control_length", &[0, 0, 8, 0, 0xa1, 0x83]),
        ("inner_malformed", &[0, 0, 8, 0, 0x45, 0, 0, 20]),
    ];
    for (_, datagram) in cases {
        socket.send_to(datagram, (to, 4754)).expect("room in the socket");
    }
    for (name, _) in cases {
        eventually(name, || {
            let tunnel = site.status(Side::Right).tunnels.remove(0);
            tunnel.drops.get(name).or(tunnel.connections[0].drops.get(name)) == Some(&1)
        });
    }
    assert_eq!(site.path(Side::Right, 0).state, "up");
    site.assert_flawless(4);
}
