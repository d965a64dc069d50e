//! Garbage from the network: counted by name, and nothing else happens.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, eventually, kernel_drops};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("unknown_sources_only_increment_a_counter_and_take_no_memory", strangers),
    ("forged_words_of_a_path_do_not_fill_the_log", flapping),
    ("garbage_from_the_peers_address_is_dropped_by_name", garbage),
];

fn strangers() {
    let site = Site::start(TWO_LINKS, "");
    // The left host's other address is a stranger to the first path's socket.
    let (from, to) = (site.lab.left().address(1), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    let before = site.daemon(Side::Right).resident_bytes().expect("a running daemon");
    let right = || [site.daemon(Side::Right)];
    let full = kernel_drops(right());
    for round in 1..=50 {
        for number in 0..100_u8 {
            let mut datagram = vec![0x10, 0, 8, 0, 0, 0, 0, number];
            datagram.resize(200, 0x45);
            socket.send_to(&datagram, (to, 4754)).expect("room in the socket");
        }
        // No more at once than a queue on the way takes. A busy machine may not let the daemon read them in
        // time; then the kernel counts them.
        eventually("all are counted", || {
            let drops = &site.status(Side::Right).tunnels[0].drops;
            let unknown = drops.get("unknown_source").copied().unwrap_or(0);
            unknown + kernel_drops(right()) - full == 100 * round
        });
    }
    let after = site.daemon(Side::Right).resident_bytes().expect("a running daemon");
    assert!(after < before + (4 << 20), "{before} to {after} bytes");
    site.assert_flawless(4);
}

fn flapping() {
    // At the left is only the attacker, at the address and port of the peer.
    let mut site = Site::links_only(TWO_LINKS, "");
    site.start_daemon(Side::Right);
    let (from, to) = (site.lab.left().address(0), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 4754))).expect("a socket");
    let word = |status: u8| {
        let mut datagram = vec![0, 0, 8, 0, 0xa1, status, 0, 0, 0, 4, 0, 0];
        for host in [1, 2] {
            datagram.extend(Ipv4Addr::new(10, 9, 0, host).to_ipv6_mapped().octets());
        }
        datagram
    };
    // The path is heard and up, and switched off by the peer: bit 1 of the second byte.
    let [on, off] = [word(0), word(2)];
    let begin = Instant::now();
    for _ in 0..60 {
        for _ in 0..20 {
            for word in [&on, &off] {
                socket.send_to(word, (to, 4754)).expect("room in the socket");
            }
        }
        // No more at once than a queue on the way takes.
        site.status(Side::Right);
    }
    // What comes behind all of it is counted behind all of it.
    socket.send_to(&[0, 0, 8, 0, 0xa2, 0x83], (to, 4754)).expect("room in the socket");
    eventually("all of it was heard", || {
        site.connection(Side::Right).drops.get("control_unknown") == Some(&1)
    });
    let lines = || {
        let log = site.daemon(Side::Right).log();
        let is_told = |line: &&str| line.contains("path one") || line.contains("are dropped");
        log.lines().filter(is_told).count()
    };
    eventually("a burst of lines is written", || lines() >= 200);
    // A burst of 200, and ten per second.
    let most = 201 + 10 * (begin.elapsed().as_secs() as usize + 1);
    assert!(lines() <= most, "{} lines for 2,400 events", lines());
    let events = site.status(Side::Right).tunnels.remove(0).events;
    let last = &events.last().expect("events").text;
    assert!(last.contains("packets to the peer are dropped"), "the status has it: {last}");
}

fn garbage() {
    let site = Site::start(TWO_LINKS, "");
    let (from, to) = (site.lab.left().address(0), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    let cases: [(&str, &[u8]); 10] = [
        ("gre_truncated", &[0x10, 0, 8]),
        ("gre_version", &[0x10, 1, 8, 0, 0, 0, 0, 0]),
        ("gre_flags", &[0x50, 0, 8, 0, 0, 0, 0, 0]),
        ("gre_protocol", &[0x10, 0, 0x65, 0x58, 0, 0, 0, 0]),
        ("extended_truncated", &[0x20, 0, 0x88, 0xb5, 0, 0, 0, 1]),
        (
            "unknown_index",
            &[0x20, 0, 0x88, 0xb5, 0, 0, 0, 1, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
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
