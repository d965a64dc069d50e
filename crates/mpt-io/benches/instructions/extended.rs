//! The whole way of a packet in a session, in extended framing and sealed. It is what `whole` does in plain framing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mpt_io::tun::Coalescer;
use mpt_proto::wire::extended::sealed::{MAC_LEN, TAG_LEN};
use mpt_proto::{
    ConnectionId, Drop, Endpoint, FramingConfig, Held, Instant, Origin, PathId, ReceiveSide,
    ReorderConfig, Sink, SocketId, TransmitKind, TransmitSide,
};

use super::arrivals::{self, RECEIVER, SENDER};
use super::interface::{self, Protocol};
use super::nowhere::Nowhere;
use super::whole::Tx;
use super::{Case, core};

/// How long it takes a path of 1 Gbit/s to carry a round of 44 packets.
const ROUND: Duration = Duration::from_micros(500);
/// How long both ends may take to agree on a session, on a path without delay.
const PATIENCE: Duration = Duration::from_secs(5);

/// TCP, split and sent by some paths.
pub(super) fn tx<const PATHS: usize>() -> Box<dyn Case> {
    tx_in(FramingConfig::Extended, PATHS)
}

/// The same, sealed.
pub(super) fn tx_sealed<const PATHS: usize>() -> Box<dyn Case> {
    tx_in(FramingConfig::Sealed, PATHS)
}

fn tx_in(framing: FramingConfig, paths: usize) -> Box<dyn Case> {
    let Ends { now, mut sender, .. } = Ends::in_session(framing, paths);
    core::keep_what_is_allowed(now, &mut sender);
    Box::new(Tx::new(paths, now, sender))
}

/// TCP, received in order by some paths and put together again.
pub(super) fn rx<const PATHS: usize>() -> Box<dyn Case> {
    rx_in(FramingConfig::Extended, PATHS, 0)
}

/// The same, sealed.
pub(super) fn rx_sealed<const PATHS: usize>() -> Box<dyn Case> {
    rx_in(FramingConfig::Sealed, PATHS, TAG_LEN)
}

fn rx_in(framing: FramingConfig, paths: usize, trailer: usize) -> Box<dyn Case> {
    Box::new(Rx {
        ends: Ends::in_session(framing, paths),
        packets: interface::packets(Protocol::Tcp),
        datagrams: Vec::new(),
        paths,
        trailer,
        coalescer: Coalescer::new(),
        arrived: 0,
    })
}

/// Initiations that somebody sends who does not know the key of the host, each from another origin. None is answered.
pub(super) fn forged_initiations() -> Box<dyn Case> {
    let end = |addresses| {
        let reorder = ReorderConfig::default();
        arrivals::endpoint(addresses, &[1], reorder, FramingConfig::Sealed)
    };
    let mut sender = end([SENDER, RECEIVER]);
    let (_, mut initiation) = polled(&mut sender, Instant::ZERO).remove(0);
    let mac1 = initiation.len() - 2 * MAC_LEN;
    initiation[mac1] ^= 1;
    let (answers, receiver) = end([RECEIVER, SENDER]).split();
    let now = Instant::ZERO;
    Box::new(Hellos {
        now,
        receiver,
        answers,
        hello: initiation,
        forged: 0,
        answered: 0,
        share: None,
    })
}

/// Hellos that somebody has forged, each from another origin, and the answers.
pub(super) fn forged_hellos() -> Box<dyn Case> {
    let end = |addresses| {
        let reorder = ReorderConfig::default();
        arrivals::endpoint(addresses, &[1], reorder, FramingConfig::Extended)
    };
    let mut sender = end([SENDER, RECEIVER]);
    let (_, hello) = polled(&mut sender, Instant::ZERO).remove(0);
    let (answers, receiver) = end([RECEIVER, SENDER]).split();
    Box::new(Hellos {
        now: Instant::ZERO,
        receiver,
        answers,
        hello,
        forged: 0,
        answered: 0,
        share: Some(4),
    })
}

/// The responder of forged hellos or initiations.
struct Hellos {
    now: Instant,
    receiver: ReceiveSide,
    answers: TransmitSide,
    hello: Vec<u8>,
    forged: u32,
    answered: u32,
    /// One of so many is answered; none if absent.
    share: Option<u32>,
}

impl Case for Hellos {
    fn packets(&self) -> usize {
        arrivals::BATCH as usize
    }

    fn round(&mut self) {
        self.now += ROUND;
        for _ in 0..arrivals::BATCH {
            self.forged += 1;
            let remote = SocketAddr::from((Ipv4Addr::from_bits(0x0b00_0000 + self.forged), 4754));
            let origin = Origin { socket: SocketId(0), remote, tos: 0 };
            let mut arrivals = self.receiver.arrivals(origin);
            arrivals.handle_datagram(self.now, &mut self.hello, &mut Refuses);
        }
        while let Some((connection, message)) = self.receiver.poll_message() {
            self.answers.handle_message(self.now, connection, message);
        }
        let mut datagram = [0; 1500];
        while let Some(transmit) = self.answers.poll_transmit(self.now) {
            let place = &mut datagram[..transmit.size()];
            self.answers.emit(self.now, &transmit, place, |_, _| ());
            self.answered += u32::from(transmit.kind() == TransmitKind::Reply);
        }
    }

    fn check(&self) {
        let right = match self.share {
            Some(share) => self.answered * share > self.forged,
            None => {
                let count = self.receiver.drops().count(Drop::HandshakeMac);
                self.answered == 0 && count == u64::from(self.forged)
            }
        };
        assert!(right, "{} of {}", self.answered, self.forged);
    }
}

/// Two ends that have a session.
struct Ends {
    now: Instant,
    sender: TransmitSide,
    receiver: ReceiveSide,
}

impl Ends {
    /// Exchanges what both ends poll until all paths carry packets.
    fn in_session(framing: FramingConfig, paths: usize) -> Self {
        let end = |addresses| {
            let reorder = ReorderConfig { evidence: true, ..ReorderConfig::default() };
            arrivals::endpoint(addresses, &vec![1; paths], reorder, framing)
        };
        let mut ends = [end([SENDER, RECEIVER]), end([RECEIVER, SENDER])];
        let mut now = Instant::ZERO;
        while !ends.iter().all(|end| is_ready(end, paths)) {
            now += Duration::from_millis(1);
            assert!(now < Instant::ZERO + PATIENCE, "no session on {paths} paths");
            for from in [0, 1] {
                for (origin, mut datagram) in polled(&mut ends[from], now) {
                    ends[1 - from].handle_datagram(now, origin, &mut datagram, &mut Refuses);
                }
                ends[from].handle_timeout(now, &mut Refuses);
            }
        }
        let [sender, receiver] = ends;
        Self { now, sender: sender.split().0, receiver: receiver.split().1 }
    }
}

/// Whether an end is in a session, and all of its paths carry.
fn is_ready(end: &Endpoint, paths: usize) -> bool {
    let connection = end.connection(ConnectionId(0));
    let carries = |path| connection.path(PathId(path as u8)).state == mpt_proto::PathState::Up;
    connection.has_session() && (0..paths).all(carries)
}

/// What an end has to send, and where it comes from in the eyes of its peer.
fn polled(end: &mut Endpoint, now: Instant) -> Vec<(Origin, Vec<u8>)> {
    let mut datagrams = Vec::new();
    while let Some(transmit) = end.poll_transmit(now) {
        let is_reply = transmit.kind() == TransmitKind::Reply;
        let path = if is_reply { end.destination().0.0 as u8 } else { transmit.path.0 };
        let mut datagram = vec![0; transmit.size()];
        end.emit(now, &transmit, &mut datagram);
        datagrams.push((origin(path), datagram));
    }
    datagrams
}

fn origin(path: u8) -> Origin {
    let remote: SocketAddr = arrivals::remote(path);
    Origin { socket: SocketId(u16::from(path)), remote, tos: 0 }
}

struct Rx {
    ends: Ends,
    packets: Vec<Vec<u8>>,
    /// Those of a round, and where each comes from: first all of the first path, then those of the next.
    datagrams: Vec<(Origin, Vec<u8>)>,
    paths: usize,
    /// Bytes behind the packet in a datagram.
    trailer: usize,
    coalescer: Coalescer,
    arrived: u64,
}

impl Case for Rx {
    fn packets(&self) -> usize {
        self.packets.len()
    }

    fn prepare(&mut self) {
        let Ends { now, sender, receiver } = &mut self.ends;
        while receiver.poll_message().is_some() {}
        *now += ROUND;
        self.datagrams.clear();
        for packet in &self.packets {
            let transmit = sender.handle_inner(*now, packet).expect("a path");
            let mut datagram = vec![0; transmit.size()];
            sender.emit(*now, &transmit, &mut datagram, |packet, place| {
                place.copy_from_slice(packet);
            });
            self.datagrams.push((origin(transmit.path.0), datagram));
        }
        self.datagrams.sort_by_key(|(origin, _)| origin.socket.0);
        let used = self.datagrams.chunk_by(|one, other| one.0.socket == other.0.socket).count();
        assert_eq!(used, self.paths, "all paths carry");
    }

    fn round(&mut self) {
        let Ends { now, receiver, .. } = &mut self.ends;
        let mut place = 0;
        // Those of one origin arrive together, as the daemon reads them.
        while let Some(&(origin, _)) = self.datagrams.get(place) {
            let mut arrivals = receiver.arrivals(origin);
            while let Some((_, datagram)) =
                self.datagrams.get_mut(place).filter(|(other, _)| other.socket == origin.socket)
            {
                let opened = arrivals.open(*now, datagram);
                let (datagrams, trailer) = (&self.datagrams[..], self.trailer);
                let coalescer = &mut self.coalescer;
                let mut sink = Merging { datagrams, place, trailer, coalescer };
                if let Some(opened) = opened {
                    arrivals.receive(*now, &opened, &datagrams[place].1, &mut sink);
                }
                place += 1;
            }
        }
        self.coalescer.flush(&Nowhere);
        self.arrived += self.datagrams.len() as u64;
    }

    fn check(&self) {
        let stats = self.ends.receiver.connection(ConnectionId(0)).stats();
        let reorder = stats.reorder;
        assert_eq!(reorder.in_order + reorder.reordered + reorder.held, self.arrived, "{stats:?}");
        let lost = reorder.lost_early_release + reorder.lost_max_delay + reorder.lost_window;
        assert_eq!(lost + reorder.late + stats.drops.total(), 0, "{stats:?}");
        interface::check_merged(&self.coalescer);
    }
}

/// Merges what is delivered; what is early waits where it was received.
struct Merging<'a> {
    datagrams: &'a [(Origin, Vec<u8>)],
    place: usize,
    trailer: usize,
    coalescer: &'a mut Coalescer,
}

/// The header of a data packet of extended framing (section 8.1 of `docs/protocol.md`).
const HEADER: usize = 24;

impl Sink for Merging<'_> {
    fn deliver(&mut self, packet: &[u8]) {
        self.coalescer.push(&Nowhere, packet);
    }

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        Some(Held(self.place as u32))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let datagram = &self.datagrams[held.0 as usize].1;
        let packet = &datagram[HEADER..datagram.len() - self.trailer];
        self.coalescer.push(&Nowhere, packet);
        packet.len()
    }
}

/// Nothing is delivered before a session.
struct Refuses;

impl Sink for Refuses {
    fn deliver(&mut self, _: &[u8]) {}

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}
