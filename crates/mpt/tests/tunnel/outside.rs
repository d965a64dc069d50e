//! What the daemon shows to the world outside the tunnel: its sockets, and its datagrams as the
//! kernel sends them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use mpt_lab::lab::Host;
use mpt_lab::topology::Side;
use mpt_proto::wire::checksum;
use socket2::SockRef;

use crate::site::{Site, inner};
use crate::suite::Test;
use crate::tap::Tap;

pub(crate) const TESTS: &[Test] = &[
    ("nothing_but_the_paths_sockets_is_open", sockets),
    ("datagrams_have_checksums_and_the_type_of_service_inside", datagrams),
    ("local_packets_cross_a_session_without_a_checksum_of_their_own", partial_checksums),
];

/// One path over either IP version.
const MIXED_LINKS: &str = "[[link]]\nname = 'one'\n[[link]]\nname = 'two'\nversion = 6\n";

fn sockets() {
    let site = Site::start(MIXED_LINKS, "");
    for side in [Side::Left, Side::Right] {
        let (host, pid) = (site.lab.host(side), site.daemon(side).pid());
        for table in ["udp", "udp6", "udplite", "udplite6", "tcp", "tcp6", "raw", "raw6"] {
            let of_path = |path: usize| BTreeSet::from([SocketAddr::new(host.address(path), 4754)]);
            let expected = match table {
                "udp" => of_path(0),
                "udp6" => of_path(1),
                _ => BTreeSet::new(),
            };
            assert_eq!(open_sockets(pid, table), expected, "{side:?}, {table}");
        }
    }
}

/// The local addresses of all sockets in a table of a process's network (proc_pid_net(5)).
fn open_sockets(pid: u32, table: &str) -> BTreeSet<SocketAddr> {
    let file = format!("/proc/{pid}/net/{table}");
    let Ok(text) = fs::read_to_string(&file) else {
        assert!(table.starts_with("udplite"), "only what kernels may lack is missing: {file}");
        return BTreeSet::new();
    };
    let local = |line: &str| {
        let (address, port) = line.split_whitespace().nth(1)?.split_once(':')?;
        // In words of 32 bits, each as the processor reads it from memory.
        let word =
            |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
        let bytes: Vec<u8> =
            (0..address.len()).step_by(8).map(word).collect::<Option<Vec<_>>>()?.concat();
        let ip = match <[u8; 16]>::try_from(&bytes[..]) {
            Ok(octets) => IpAddr::from(octets),
            Err(_) => IpAddr::from(<[u8; 4]>::try_from(&bytes[..]).ok()?),
        };
        Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
    };
    text.lines().skip(1).map(|line| local(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn datagrams() {
    const TOS: u8 = 0xba;
    let site = Site::start(MIXED_LINKS, "");
    let mut capture = Capture::begin(site.lab.right());
    let socket = site.lab.left().run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    // Expedited forwarding (RFC 3246) and ECT(0).
    SockRef::from(&socket).set_tos_v4(TOS.into()).expect("a type of service");
    for _ in 0..10 {
        socket.send_to(&[0; 100], (inner(Side::Right, 4), 9)).expect("room in the socket");
    }
    for path in 0..2 {
        let source = site.lab.left().address(path);
        let (mut data, mut keepalives) = (0, 0);
        while data < 5 || keepalives < 1 {
            let outer = capture.next_from(source);
            assert_ne!(outer.udp[6..8], [0, 0], "there is a checksum");
            assert_eq!(outer.checksum(), 0, "and it is right");
            assert!(outer.whole_or_nothing, "no router may fragment it");
            match outer.udp[8..] {
                [0x10, 0, 8, 0, _, _, _, _, 0x45, inner_tos, ..] => {
                    assert_eq!(inner_tos, TOS, "the inner packet is left as it is");
                    assert_eq!(outer.tos, TOS, "and routers see its wish");
                    data += 1;
                }
                _ => {
                    assert_eq!(outer.tos, 0, "a keepalive wishes nothing");
                    keepalives += 1;
                }
            }
        }
    }
}

/// Data of extended framing: GRE with key and sequence, protocol type 0x88B5, message type 0.
const DATA: [u8; 4] = [0x30, 0, 0x88, 0xb5];
/// The length of its header, and the flag P in the byte behind that of GRE.
const HEADER: usize = 24;
const PARTIAL: u8 = 0x08;

fn partial_checksums() {
    let site = Site::start(MIXED_LINKS, "framing = 'extended'\nscheduler = 'weighted'");
    let mut capture = Capture::begin(site.lab.right());
    let address = (inner(Side::Right, 4), 9);
    let sink = site.lab.right().run(|| UdpSocket::bind(address)).expect("a socket");
    sink.set_read_timeout(Some(crate::site::PATIENCE)).expect("a time limit");
    let socket = site.lab.left().run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    for number in 0..10 {
        socket.send_to(&[number; 100], address).expect("room in the socket");
    }
    for number in 0..10 {
        let mut packet = [0; 200];
        let len = sink.recv(&mut packet).expect("what was sent");
        assert_eq!(packet[..len], [number; 100]);
    }
    for path in 0..2 {
        let source = site.lab.left().address(path);
        let mut data = 0;
        while data < 5 {
            let outer = capture.next_from(source);
            let datagram = &outer.udp[8..];
            if !datagram.starts_with(&DATA) || datagram[12] >> 4 != 0 {
                continue;
            }
            data += 1;
            assert_ne!(datagram[12] & PARTIAL, 0, "it says that the checksum is partial");
            let packet = Outer::parse(&datagram[HEADER..]).expect("a UDP datagram");
            assert_ne!(packet.checksum(), 0, "and so it is");
            assert_eq!(outer.checksum(), 0, "because that of the outer datagram covers it");
        }
    }
}

/// Sees every datagram that comes to a host.
struct Capture {
    tap: Tap,
    /// What [`Capture::next_from`] has passed over.
    passed: Vec<Outer>,
}

impl Capture {
    fn begin(host: &Host) -> Self {
        Self { tap: Tap::open(host), passed: Vec::new() }
    }

    /// The next UDP datagram from that address.
    fn next_from(&mut self, source: IpAddr) -> Outer {
        if let Some(at) = self.passed.iter().position(|outer| outer.source == source) {
            return self.passed.remove(at);
        }
        loop {
            match Outer::parse(self.tap.next()) {
                Some(outer) if outer.source == source => return outer,
                other => self.passed.extend(other),
            }
        }
    }
}

/// A UDP datagram and what its IP header says.
struct Outer {
    source: IpAddr,
    destination: IpAddr,
    tos: u8,
    whole_or_nothing: bool,
    udp: Vec<u8>,
}

impl Outer {
    /// `None` if the packet is no UDP datagram or has IP options.
    fn parse(packet: &[u8]) -> Option<Self> {
        const UDP: u8 = 17;
        let address_v4 =
            |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
        let address_v6 =
            |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
        match packet {
            [0x45, tos, _, _, _, _, fragment, _, _, UDP, ..] => Some(Self {
                source: address_v4(12)?,
                destination: address_v4(16)?,
                tos: *tos,
                whole_or_nothing: *fragment == 0x40,
                udp: packet.get(20..)?.to_vec(),
            }),
            [first @ 0x60..=0x6f, second, _, _, _, _, UDP, ..] => Some(Self {
                source: address_v6(8)?,
                destination: address_v6(24)?,
                tos: first << 4 | second >> 4,
                whole_or_nothing: true,
                udp: packet.get(40..)?.to_vec(),
            }),
            _ => None,
        }
    }

    /// The Internet checksum over pseudo-header and datagram (RFC 768; RFC 8200, section 8.1), which
    /// is zero if the one inside is right.
    fn checksum(&self) -> u16 {
        let octets = |address| match address {
            IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
            IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
        };
        let len = (self.udp.len() as u32).to_be_bytes();
        let addresses = [octets(self.source), octets(self.destination)].concat();
        checksum::internet(&[&addresses[..], &len, &[0, 0, 0, 17], &self.udp].concat())
    }
}
