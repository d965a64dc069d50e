//! Forged ICMP messages that say that paths are narrow: traffic goes on by all of them.

use std::io;
use std::net::{IpAddr, SocketAddr};

use mpt_io::udp::route_mtu;
use mpt_lab::topology::Side;
use mpt_lab::traffic::tcp;
use socket2::{Domain, Protocol, Socket, Type};

use crate::black_hole::{flow, goes_on};
use crate::site::{Site, eventually, two_links};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("forged_icmp_that_fragmentation_is_needed_takes_no_path_down", || {
        forged(4, &[(1279, 1279), (68, 552), (0, 552)]);
    }),
    ("a_forged_icmpv6_packet_too_big_takes_no_path_down", || forged(6, &[(1280, 1280)])),
];

/// Packets that each path must have carried since.
const PROGRESS: u64 = 500;

/// Sends one ICMP message per path for each of these MTUs, with what Linux makes of it, while a flow runs and
/// while none does. As seen before the change, the first made both paths `unusable: mtu` for ten minutes.
fn forged(version: u8, mtus: &[(u16, u32)]) {
    let mut site = Site::start(&two_links(version), "");
    let full = site.status(Side::Left).tunnels[0].mtu;
    let running = flow(&site);
    goes_on(&running);
    for &(mtu, known) in mtus {
        forge(&site, mtu, known);
        both_carry(&site, &running);
    }
    eventually("the peer's word refutes them", || site.status(Side::Left).tunnels[0].mtu == full);
    drop(running);
    not_unusable(&site);

    // The kernel still believes them.
    site.end_daemon(Side::Left);
    site.start_daemon(Side::Left);
    site.await_all_up();
    eventually("probes refute them", || site.status(Side::Left).tunnels[0].mtu == full);
    let running = flow(&site);
    both_carry(&site, &running);
    not_unusable(&site);
}

fn both_carry(site: &Site, flow: &tcp::Flow) {
    let sent = || site.connection(Side::Left).paths.iter().map(|path| path.sent.packets).collect();
    let before: Vec<u64> = sent();
    goes_on(flow);
    eventually("both paths carry", || {
        let now: Vec<u64> = sent();
        now.iter().zip(&before).all(|(now, before)| *now > before + PROGRESS)
    });
    goes_on(flow);
}

fn not_unusable(site: &Site) {
    let events = site.status(Side::Left).tunnels.remove(0).events;
    assert!(events.iter().all(|event| !event.text.contains("unusable")), "{events:?}");
}

/// Tells the left host's kernel that datagrams on its paths are too long, until it believes that.
fn forge(site: &Site, mtu: u16, known: u32) {
    for path in 0..2 {
        let (own, peer) = (site.lab.left().address(path), site.lab.right().address(path));
        eventually("the kernel believes it", || {
            site.lab.right().run(|| send_too_big(own, peer, mtu)).expect("a raw socket");
            let left = || route_mtu(None, None, None, SocketAddr::new(peer, 4754));
            site.lab.left().run(left).expect("a route") == known
        });
    }
}

/// Sends `own` a message that a datagram of its to `peer` is too long (RFC 792, RFC 4443 section 3.2). Of
/// what it sent the message quotes only what anybody knows: addresses, ports and protocol.
fn send_too_big(own: IpAddr, peer: IpAddr, mtu: u16) -> io::Result<()> {
    const PORT: [u8; 2] = 4754_u16.to_be_bytes();
    let udp = [PORT, PORT, 1472_u16.to_be_bytes(), [0, 0]].concat();
    let (domain, protocol, message) = match (own, peer) {
        (IpAddr::V4(own), IpAddr::V4(peer)) => {
            let mut message = vec![3, 4, 0, 0, 0, 0];
            message.extend(mtu.to_be_bytes());
            message.extend([0x45, 0, 0x05, 0xd4, 0, 0, 0x40, 0, 64, 17, 0, 0]);
            message.extend([own.octets(), peer.octets()].concat());
            message.extend(udp);
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            (Domain::IPV4, Protocol::ICMPV4, message)
        }
        (IpAddr::V6(own), IpAddr::V6(peer)) => {
            let mut message = vec![2, 0, 0, 0, 0, 0];
            message.extend(mtu.to_be_bytes());
            message.extend([0x60, 0, 0, 0, 0x05, 0xc0, 17, 64]);
            message.extend([own.octets(), peer.octets()].concat());
            message.extend(udp);
            // The kernel fills in the checksum (RFC 3542 section 3.1).
            (Domain::IPV6, Protocol::ICMPV6, message)
        }
        _ => panic!("{own} and {peer} are of two versions"),
    };
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    socket.send_to(&message, &SocketAddr::new(own, 0).into()).map(drop)
}

/// The Internet checksum (RFC 1071).
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}
