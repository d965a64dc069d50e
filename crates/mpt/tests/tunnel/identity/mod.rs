//! Inner packets leave the tunnel bit by bit as they entered it, whatever they are.
//!
//! Packet sockets see what the left host gives to its device and what the right host gets from its
//! own. Either may be a super-packet, or a packet whose checksum is still to be filled in: both are
//! brought into the form in which a wire would carry them ([`segment`]), by code of these tests alone.

mod segment;
mod shapes;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

use mpt_lab::topology::Side;
use nix::sys::socket::sockopt::{TcpMaxSeg, UdpGsoSegment};
use nix::sys::socket::{getsockopt, setsockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::site::{PATIENCE, Site, TWO_LINKS, inner};
use crate::suite::Test;
use crate::tap::Tap;
use segment::segments;

pub(crate) const TESTS: &[Test] = &[
    ("every_shape_arrives_bit_by_bit", every_shape),
    ("a_wrong_inner_checksum_stays_wrong", wrong_checksums),
    ("tcp_segments_arrive_bit_by_bit", tcp),
    ("udp_super_packets_arrive_bit_by_bit", udp),
    ("shapes_arrive_bit_by_bit_without_offloads", without_offloads),
];

/// The tunnel's MTU over links of 1500 bytes.
const MTU: usize = 1464;

/// A site with a tap at each end.
struct Tapped {
    site: Site,
    left: Tap,
    right: Tap,
}

impl Tapped {
    fn start(edit: impl Fn(String) -> String) -> Self {
        let site = Site::start_with(TWO_LINKS, "", |_, config| edit(config));
        let (left, right) = (Tap::open(site.lab.left()), Tap::open(site.lab.right()));
        Self { site, left, right }
    }

    /// Sends packets as they are from the left host.
    fn send(&self, packets: &[Vec<u8>]) {
        let raw = |version: u8| {
            let domain = if version == 4 { Domain::IPV4 } else { Domain::IPV6 };
            /// IPPROTO_RAW: the caller writes the IP header (raw(7), ipv6(7)).
            const RAW: i32 = 255;
            let open = || Socket::new(domain, Type::RAW, Some(Protocol::from(RAW)));
            let socket = self.site.lab.left().run(open).expect("a raw socket");
            (socket, SocketAddr::new(inner(Side::Right, version), 0).into())
        };
        let (four, six) = (raw(4), raw(6));
        for packet in packets {
            let (socket, remote) = if packet[0] >> 4 == 4 { &four } else { &six };
            let sent = socket.send_to(packet, remote).expect("room in the socket");
            assert_eq!(sent, packet.len());
        }
    }

    /// What passes each tap from the left host's inner addresses until that is enough, in segments of
    /// `size` bytes of payload.
    fn packets(&mut self, size: usize, enough: impl Fn(&[Vec<u8>]) -> bool) -> [Vec<Vec<u8>>; 2] {
        [&mut self.left, &mut self.right].map(|tap| {
            let deadline = Instant::now() + PATIENCE;
            let mut packets: Vec<Vec<u8>> = Vec::new();
            // Keepalives are always sent, so that there is always something to check.
            while !enough(&packets) && Instant::now() < deadline {
                let packet = tap.next();
                if is_from_left(packet) {
                    packets.extend(segments(packet, size));
                }
            }
            packets
        })
    }

    /// The same for so many packets that were sent singly.
    fn so_many(&mut self, count: usize) -> [Vec<Vec<u8>>; 2] {
        self.packets(shapes::PAYLOAD, |packets| packets.len() >= count)
    }
}

fn is_from_left(packet: &[u8]) -> bool {
    match inner(Side::Left, packet[0] >> 4) {
        IpAddr::V4(address) => packet[12..16] == address.octets(),
        IpAddr::V6(address) => packet[8..24] == address.octets(),
    }
}

fn assert_same(what: &str, found: &[Vec<u8>], expected: &[Vec<u8>]) {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            found == expected,
            "{what}, packet {number}:\n{found:02x?}\nexpected\n{expected:02x?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn every_shape() {
    all_arrive(&mut Tapped::start(|config| config), true);
}

fn without_offloads() {
    let off = "name = 'mpt0'\noffloads = { vnet = false, gso = false, gro = false }\n";
    all_arrive(&mut Tapped::start(|config| config.replace("name = 'mpt0'\n", off)), false);
}

fn all_arrive(tapped: &mut Tapped, merged: bool) {
    let sent = shapes::all();
    assert!(sent.iter().all(|packet| packet.len() <= MTU));
    for part in sent.chunks(50) {
        tapped.send(part);
        let [left, right] = tapped.so_many(part.len());
        assert_same("sent", &left, part);
        assert_same("arrived", &right, part);
    }
    let written = tapped.site.status(Side::Right).tunnels.remove(0).device;
    assert_eq!(written.written_super_packets > 0, merged, "{written:?}");
}

/// Alone and in the middle of a run that would otherwise be merged.
fn wrong_checksums() {
    let mut tapped = Tapped::start(|config| config);
    for run in shapes::runs() {
        for wrong in [0, run.len() / 2, run.len() - 1] {
            for bit in [0, 7] {
                let mut run = run.clone();
                *run[wrong].last_mut().expect("a payload") ^= 1 << bit;
                for packets in [&run[wrong..=wrong], &run] {
                    tapped.send(packets);
                    let [left, right] = tapped.so_many(packets.len());
                    assert_same("sent", &left, packets);
                    assert_same("arrived", &right, packets);
                }
            }
        }
    }
}

fn tcp() {
    let mut tapped = Tapped::start(|config| config);
    for version in [4, 6] {
        let remote = SocketAddr::new(inner(Side::Right, version), 7000);
        let listener = tapped.site.lab.right().run(|| TcpListener::bind(remote));
        let listener = listener.expect("a listener");
        let server = std::thread::spawn(move || {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept().expect("a client");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            stream.read_to_end(&mut received).expect("all of it");
            received
        });
        let connect = || TcpStream::connect_timeout(&remote, PATIENCE);
        let mut stream = tapped.site.lab.left().run(connect).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let sent: Vec<u8> = (0..400_001_u32).map(|i| (i * 31 / 7) as u8).collect();
        let segment = getsockopt(&stream, TcpMaxSeg).expect("a segment size") as usize;
        // Odd pieces, each of which ends in a pushed segment of its own.
        for piece in sent.chunks(33_333) {
            stream.write_all(piece).expect("room");
        }
        stream.shutdown(Shutdown::Write).expect("an end");
        assert!(server.join().expect("a server") == sent);
        let is_end = |packet: &Vec<u8>| {
            const FIN: u8 = 1;
            packet[if packet[0] >> 4 == 4 { 20 } else { 40 } + 13] & FIN != 0
        };
        let [left, right] = tapped.packets(segment, |packets| packets.last().is_some_and(is_end));
        assert!(left.len() > 400_001 / segment, "{} segments", left.len());
        assert_same("arrived", &right, &left);
    }
    let tunnel = |side| tapped.site.status(side).tunnels.remove(0).device;
    assert!(tunnel(Side::Left).read_super_packets > 10, "{:?}", tunnel(Side::Left));
    assert!(tunnel(Side::Right).written_super_packets > 10, "{:?}", tunnel(Side::Right));
}

fn udp() {
    let mut tapped = Tapped::start(|config| config);
    for version in [4, 6] {
        let remote = SocketAddr::new(inner(Side::Right, version), 7001);
        // A receiver, because there would be ICMP errors without one.
        let sink = tapped.site.lab.right().run(|| UdpSocket::bind(remote)).expect("a sink");
        let local = SocketAddr::new(inner(Side::Left, version), 0);
        let socket = tapped.site.lab.left().run(|| UdpSocket::bind(local)).expect("a socket");
        for (segment, last) in [(1300, 1300), (1300, 1), (701, 700), (33, 32), (1, 1)] {
            setsockopt(&socket, UdpGsoSegment, &segment).expect("segmentation");
            let segment = segment as usize;
            // Ten that are alike and the last, whose first byte says so.
            let mut payload: Vec<u8> = (0..10 * segment + last).map(|i| i as u8 | 1).collect();
            payload[10 * segment] = 0;
            socket.send_to(&payload, remote).expect("room in the socket");
            let is_last = |packet: &Vec<u8>| packet[packet.len() - last] == 0;
            let [left, right] =
                tapped.packets(segment, |packets| packets.last().is_some_and(is_last));
            assert_eq!(left.len(), 11, "{segment}");
            assert_same("arrived", &right, &left);
        }
        drop(sink);
    }
}
