//! Our bytes against those of an independent encoder.
//!
//! `independent/frames.txt` has GRE-in-UDP frames as scapy makes them, over and with IPv4 and IPv6, with
//! every combination of checksum, key and sequence number. What we send is the same, byte for byte; what
//! comes in like this is delivered; and what was cut or changed on the way is dropped by a name. Where
//! scapy is installed, the script that made the file is run again and has to make the same.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may panic and say what it skips"
)]

use std::collections::BTreeSet;
use std::env;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::pair::{self, CONNECTION, Inbox, Settings, config, outer_address};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use mpt_proto::wire::gre::{self, Header, Protocol};
use mpt_proto::{
    Drop, Endpoint, EndpointConfig, Instant, Origin, PeerKind, ReorderConfig, Seq, SocketId,
};

const NOW: Instant = Instant::ZERO;

/// A line of the file.
struct Frame {
    outer: u8,
    inner: u8,
    checksum: bool,
    key: Option<u32>,
    sequence: Option<u32>,
    /// The outer type of service.
    tos: u8,
    datagram: Vec<u8>,
    delivered: Vec<u8>,
    /// Whether a router marked the outer header, so that the sender's was another.
    marked: bool,
    line: &'static str,
}

impl Frame {
    fn all() -> Vec<Self> {
        let lines = include_str!("independent/frames.txt").lines();
        lines.filter(|line| !line.starts_with('#')).map(Self::read).collect()
    }

    fn read(line: &'static str) -> Self {
        let columns: Vec<_> = line.split(' ').collect();
        let [outer, inner, checksum, key, sequence, tos, frame, delivered] = columns[..] else {
            panic!("not 8 columns: {line}");
        };
        let optional = |text: &str| (text != "-").then(|| text.parse().unwrap());
        let datagram = udp_payload(&bytes(frame), tos.parse().unwrap());
        let (checksum, key, sequence) = (checksum == "1", optional(key), optional(sequence));
        let header = [checksum, key.is_some(), sequence.is_some()];
        let header = 4 + 4 * header.iter().filter(|present| **present).count();
        let marked = delivered != "=";
        let delivered = if marked { bytes(delivered) } else { datagram[header..].to_vec() };
        Self {
            outer: outer.parse().unwrap(),
            inner: inner.parse().unwrap(),
            checksum,
            key,
            sequence,
            tos: tos.parse().unwrap(),
            datagram,
            delivered,
            marked,
            line,
        }
    }

    fn header(&self) -> Header {
        let protocol = if self.inner == 4 { Protocol::Ipv4 } else { Protocol::Ipv6 };
        let sequence = self.sequence.map(Seq::new);
        Header { protocol, checksum: self.checksum, key: self.key, sequence }
    }

    /// What the sender had.
    fn inner_packet(&self) -> &[u8] {
        &self.datagram[self.header().size()..]
    }

    /// The settings of host `own` for what this frame is: a path over its outer IP version to an
    /// endpoint of RFC 8086, packets delivered as they come.
    fn config(&self, own: u8) -> EndpointConfig {
        let mut config = config(
            &Settings {
                weights: vec![1],
                key: self.key,
                checksum: self.checksum,
                sequence: self.sequence.is_some(),
                reorder: ReorderConfig {
                    window: 0,
                    max_delay: Duration::ZERO,
                    ..ReorderConfig::default()
                },
                keepalive: None,
                dead_time: None,
            },
            own,
        );
        config.connections[0].peer_kind = PeerKind::Gre;
        config.connections[0].paths[0].remote = self.outer_address(3 - own);
        config
    }

    fn outer_address(&self, host: u8) -> SocketAddr {
        let ip = match self.outer {
            4 => IpAddr::from([10, 0, 0, host]),
            _ => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into()).into(),
        };
        SocketAddr::new(ip, outer_address(host, 0).port())
    }

    /// What an endpoint for such frames makes of a datagram.
    fn receive(&self, datagram: &[u8]) -> Received {
        let mut endpoint = Endpoint::new(&self.config(2), NOW).expect("good settings");
        let mut inbox = Inbox::default();
        let remote = self.outer_address(1);
        let origin = Origin { socket: SocketId(0), remote, tos: self.tos };
        endpoint.handle_datagram(NOW, origin, &mut datagram.to_vec(), &mut inbox);
        let of_connection = endpoint.connection(CONNECTION).stats().drops;
        let drops: Vec<_> = endpoint.drops().iter().chain(of_connection.iter()).collect();
        Received { delivered: inbox.delivered, drops }
    }
}

#[derive(Debug)]
struct Received {
    delivered: Vec<Vec<u8>>,
    drops: Vec<(Drop, u64)>,
}

impl Received {
    /// The one reason for which a datagram came to nothing.
    fn drop(&self) -> Drop {
        match (&self.delivered[..], &self.drops[..]) {
            ([], [(reason, 1)]) => *reason,
            _ => panic!("not one drop: {self:?}"),
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// What the kernel would give to the socket at port 4754, and that the frame has this type of service.
fn udp_payload(frame: &[u8], tos: u8) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(frame).expect("an IP packet");
    match sliced.net {
        Some(NetSlice::Ipv4(ip)) => assert_eq!(frame[1], tos, "{:?}", ip.header()),
        Some(NetSlice::Ipv6(ip)) => assert_eq!(ip.header().traffic_class(), tos),
        other => panic!("not IP: {other:?}"),
    }
    let Some(TransportSlice::Udp(udp)) = sliced.transport else {
        panic!("not UDP: {:?}", sliced.transport);
    };
    assert_eq!((udp.source_port(), udp.destination_port()), (4754, 4754));
    udp.payload().to_vec()
}

#[test]
fn scapy_makes_the_frames_of_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent");
    // Debian's own comes first: where there is another, it seldom has Debian's packages.
    for python in ["/usr/bin/python3", "python3"] {
        let Ok(made) = Command::new(python).arg(folder.join("frames.py")).output() else {
            continue;
        };
        let complaint = String::from_utf8_lossy(&made.stderr).into_owned();
        match made.status.code() {
            Some(0) => {
                let file = include_str!("independent/frames.txt");
                let made = String::from_utf8(made.stdout).unwrap();
                assert!(made == file, "frames.txt is not what frames.py makes: run it again");
                return;
            }
            // It has no scapy.
            Some(3) => {}
            _ => panic!("{python} frames.py: {}\n{complaint}", made.status),
        }
    }
    let reason = "no python3 has scapy: apt-get install python3-scapy";
    assert!(env::var_os("MPT_NO_SKIP").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

#[test]
fn every_combination_is_in_the_file() {
    let frames = Frame::all();
    let combination = |frame: &Frame| {
        let odd = frame.datagram.len() % 2;
        let optional = [frame.checksum, frame.key.is_some(), frame.sequence.is_some()];
        (frame.outer, frame.inner, optional, odd)
    };
    let combinations: BTreeSet<_> = frames.iter().map(combination).collect();
    assert_eq!(combinations.len(), 2 * 2 * 8 * 2);
    for (what, count) in [
        (
            "types of service",
            frames.iter().map(|f| u64::from(f.tos)).collect::<BTreeSet<_>>().len(),
        ),
        ("keys", frames.iter().filter_map(|f| f.key).collect::<BTreeSet<_>>().len()),
    ] {
        assert!(count >= 4, "{what}: {count}");
    }
    assert!(frames.iter().any(|frame| frame.datagram.len() > 1400));
    assert_eq!(frames.iter().filter(|frame| frame.marked).count(), 8);
}

#[test]
fn headers_are_written_as_scapy_writes_them() {
    for frame in Frame::all() {
        let header = frame.header();
        let mut written = vec![0xee; header.size()];
        written.extend_from_slice(frame.inner_packet());
        header.emit(&mut written);
        assert_eq!(written, frame.datagram, "{}", frame.line);
        let parsed = gre::parse(&frame.datagram).expect("a good header");
        assert_eq!((parsed.header, parsed.payload), (header, frame.inner_packet()));
    }
}

#[test]
fn an_endpoint_sends_what_scapy_makes() {
    let mut compared = 0;
    for frame in Frame::all() {
        // A number is reached by as many packets before it.
        let before = frame.sequence.unwrap_or(0);
        if frame.marked || before > 16 {
            continue;
        }
        let mut endpoint = Endpoint::new(&frame.config(1), NOW).expect("good settings");
        for _ in 0..before {
            assert!(endpoint.handle_inner(NOW, &pair::packet(1, 0)).is_some());
        }
        let transmit = endpoint.handle_inner(NOW, frame.inner_packet()).expect("a path");
        let mut sent = vec![0xee; transmit.size()];
        endpoint.emit(NOW, &transmit, &mut sent);
        assert_eq!(sent, frame.datagram, "{}", frame.line);
        assert_eq!(transmit.tos, frame.tos, "{}", frame.line);
        compared += 1;
    }
    assert_eq!(compared, 2 * 2 * (8 * 3 + 1));
}

#[test]
fn an_endpoint_delivers_what_scapy_makes() {
    for frame in Frame::all() {
        let received = frame.receive(&frame.datagram);
        assert_eq!(received.delivered, [&frame.delivered[..]], "{}: {received:?}", frame.line);
        assert!(received.drops.is_empty(), "{}: {received:?}", frame.line);
    }
}

#[test]
fn every_truncated_datagram_is_dropped_by_name() {
    for frame in Frame::all().iter().filter(|frame| frame.checksum) {
        for len in 0..frame.datagram.len() {
            let (left, lost) = frame.datagram.split_at(len);
            let expected = match len {
                _ if len < frame.header().size() => Drop::GreTruncated,
                // A sum is the same without zeros at the end; the packet's own length is not.
                _ if lost.iter().all(|byte| *byte == 0) => Drop::InnerMalformed,
                _ => Drop::GreChecksum,
            };
            assert_eq!(frame.receive(left).drop(), expected, "{len} bytes of {}", frame.line);
        }
    }
}

#[test]
fn every_changed_bit_is_dropped_by_name() {
    for frame in Frame::all().iter().filter(|frame| frame.checksum) {
        for bit in 0..frame.datagram.len() * 8 {
            let mut changed = frame.datagram.clone();
            changed[bit / 8] ^= 0x80 >> (bit % 8);
            let dropped = frame.receive(&changed).drop();
            let expected: &[_] = match bit {
                // Without C, checksum and reserved bytes are taken for what would come next.
                0 => &[Drop::GreKey, Drop::InnerMalformed, Drop::ControlUnknown],
                1 | 4 | 5 => &[Drop::GreFlags],
                13..=15 => &[Drop::GreVersion],
                16..=31 => &[Drop::GreProtocol],
                _ => &[Drop::GreChecksum],
            };
            assert!(expected.contains(&dropped), "{dropped:?}: bit {bit} of {}", frame.line);
        }
    }
}
