//! Which links the packets of single flows were seen on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::thread::{self, JoinHandle};

use mpt_lab::topology::Side;

use crate::site::{Site, inner};
use crate::tap::Tap;

/// A flow by protocol, addresses and ports, source first.
pub(super) type FlowKey = (u8, IpAddr, u16, IpAddr, u16);

/// Of each flow how many packets came from which of the peer's addresses.
pub(super) type Flows = BTreeMap<FlowKey, BTreeMap<IpAddr, u64>>;

/// Sees what comes to a host through its paths.
pub(super) struct Trace {
    side: Side,
    thread: JoinHandle<Flows>,
}

impl Trace {
    /// Looks all the time: a user's socket has room for a moment only.
    pub(super) fn begin(site: &Site, side: Side) -> Self {
        let mut tap = Tap::open(site.lab.host(side));
        let other = site.lab.host(peer(side));
        let sources: BTreeSet<_> =
            (0..site.lab.links().len()).map(|link| other.address(link)).collect();
        let thread = thread::spawn(move || {
            let mut flows = Flows::new();
            loop {
                let Some((source, flow)) = carried(tap.next()) else { continue };
                if flow.0 == UDP && flow.4 == MARK {
                    return flows;
                }
                if sources.contains(&source) {
                    *flows.entry(flow).or_default().entry(source).or_insert(0) += 1;
                }
            }
        });
        Self { side, thread }
    }

    /// What has come so far.
    pub(super) fn end(self, site: &Site) -> Flows {
        let other = site.lab.host(peer(self.side));
        let socket = other.run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
        socket.send_to(&[0; 8], (inner(self.side, 4), MARK)).expect("room in the socket");
        self.thread.join().expect("a trace")
    }
}

fn peer(side: Side) -> Side {
    if side == Side::Left { Side::Right } else { Side::Left }
}

/// A port without a listener: the packet that ends a trace goes there, and is answered.
const MARK: u16 = 9;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The outer source and the flow of a packet that carries one with ports.
fn carried(packet: &[u8]) -> Option<(IpAddr, FlowKey)> {
    let [0x45, _, _, _, _, _, _, _, _, UDP, _, _, source @ ..] = packet else { return None };
    let source = IpAddr::from(*source.first_chunk::<4>()?);
    let (ports, datagram) = packet.get(20..)?.split_at_checked(8)?;
    // The port of GRE in UDP (RFC 8086), and a GRE header with a sequence number and perhaps a key.
    let (4754, flags) = (u16::from_be_bytes([ports[2], ports[3]]), datagram.first()?) else {
        return None;
    };
    let header = match flags {
        0x10 => 8,
        0x30 => 12,
        _ => return None,
    };
    Some((source, flow(datagram.get(header..)?)?))
}

fn flow(packet: &[u8]) -> Option<FlowKey> {
    let v4 = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
    let v6 = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
    let (protocol, source, destination, upper) = match packet.first()? >> 4 {
        4 => (packet[9], v4(12)?, v4(16)?, packet.get(20..)?),
        6 => (packet[6], v6(8)?, v6(24)?, packet.get(40..)?),
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(*upper.get(at..)?.first_chunk()?));
    matches!(protocol, TCP | UDP).then_some((protocol, source, port(0)?, destination, port(2)?))
}
