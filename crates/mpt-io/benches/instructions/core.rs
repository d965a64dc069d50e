//! The core alone: parse, schedule, emit, put in order. The same situations as in the core's own
//! benchmarks of time.

use std::hint::black_box;
use std::time::Duration;

use mpt_proto::wire::extended::sealed::TAG_LEN;
use mpt_proto::wire::{extended, gre, inner};
use mpt_proto::{Instant, Transmit, TransmitSide};

use super::Case;
use super::arrivals::{self, Arrivals, BATCH, By, Keep};

/// Length of the inner packets, in bytes: what fits a wire with an MTU of 1500.
const SIZE: usize = 1400;

/// Longest datagram, in bytes.
const DATAGRAM: usize = SIZE + extended::DATA_LEN;

/// A GRE header and the IP header behind it.
pub(super) fn parse() -> Box<dyn Case> {
    let packet = arrivals::packet(SIZE);
    let mut sender = sender(&[1]);
    let transmit = transmit(&mut sender, &packet);
    let mut datagram = vec![0; transmit.size()];
    sender.emit(Instant::ZERO, &transmit, &mut datagram, copy);
    Box::new(Parse(datagram))
}

struct Parse(Vec<u8>);

impl Case for Parse {
    fn packets(&self) -> usize {
        BATCH as usize
    }

    fn round(&mut self) {
        for _ in 0..BATCH {
            let datagram = gre::parse(black_box(&self.0)).expect("what emit wrote");
            black_box(inner::parse(datagram.payload).expect("what was put in"));
            black_box(datagram.header);
        }
    }
}

/// A header and a copy.
pub(super) fn emit() -> Box<dyn Case> {
    let packet = arrivals::packet(SIZE).leak();
    let mut sender = sender(&[1]);
    let transmits = (0..BATCH).map(|_| transmit(&mut sender, packet)).collect();
    Box::new(Emit { sender, transmits, send_batch: vec![0; BATCH as usize * DATAGRAM] })
}

struct Emit {
    sender: TransmitSide,
    transmits: Vec<Transmit<'static>>,
    send_batch: Vec<u8>,
}

impl Case for Emit {
    fn packets(&self) -> usize {
        self.transmits.len()
    }

    fn round(&mut self) {
        let mut rest = &mut self.send_batch[..];
        for transmit in &self.transmits {
            let datagram;
            (datagram, rest) = rest.split_at_mut(transmit.size());
            self.sender.emit(Instant::ZERO, transmit, datagram, copy);
        }
        black_box(&self.send_batch);
    }
}

/// A header, and a copy of the inner packet for retransmission; the packet is in its place already.
pub(super) fn keep() -> Box<dyn Case> {
    let packet = arrivals::packet(SIZE).leak();
    let mut sender = sender(&[1, 1]);
    let transmit = transmit(&mut sender, packet);
    let mut datagram = vec![0; transmit.size()];
    sender.emit(Instant::ZERO, &transmit, &mut datagram, copy);
    Box::new(KeepCopy { sender, transmit, datagram, now: Instant::ZERO })
}

struct KeepCopy {
    sender: TransmitSide,
    transmit: Transmit<'static>,
    datagram: Vec<u8>,
    now: Instant,
}

impl Case for KeepCopy {
    fn packets(&self) -> usize {
        BATCH as usize
    }

    fn round(&mut self) {
        for _ in 0..BATCH {
            let datagram = black_box(&mut self.datagram);
            self.sender.emit(self.now, &self.transmit, datagram, |_, _| ());
        }
        // 60 Mbit/s: all of them are kept.
        self.now += Duration::from_millis(8);
    }
}

/// Has a sender keep as much as it may at one time, so that it keeps nothing more then.
pub(super) fn keep_what_is_allowed(now: Instant, sender: &mut TransmitSide) {
    const ALLOWED: usize = 64 << 20;
    let packet = arrivals::packet(SIZE);
    let mut datagram = vec![0; DATAGRAM + TAG_LEN];
    for _ in 0..=ALLOWED / SIZE {
        let transmit = transmit(sender, &packet);
        sender.emit(now, &transmit, &mut datagram[..transmit.size()], copy);
    }
}

/// The choice of one of some paths, and what else makes a transmit of a packet.
pub(super) fn schedule<const PATHS: usize>() -> Box<dyn Case> {
    let sender = sender(&[1; PATHS]);
    Box::new(Schedule { sender, packet: arrivals::packet(SIZE) })
}

/// The same where each of twelve paths has another weight.
pub(super) fn schedule_uneven() -> Box<dyn Case> {
    let sender = sender(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    Box::new(Schedule { sender, packet: arrivals::packet(SIZE) })
}

struct Schedule {
    sender: TransmitSide,
    packet: Vec<u8>,
}

impl Case for Schedule {
    fn packets(&self) -> usize {
        // Each of as many as twelve paths has its turn.
        12 * BATCH as usize
    }

    fn round(&mut self) {
        for _ in 0..self.packets() {
            black_box(transmit(&mut self.sender, black_box(&self.packet)));
        }
    }
}

/// The transmit side of an endpoint with paths of these weights.
fn sender(weights: &[u16]) -> TransmitSide {
    arrivals::sender(weights).split().0
}

fn copy(packet: &[u8], place: &mut [u8]) {
    place.copy_from_slice(packet);
}

fn transmit<'a>(sender: &mut TransmitSide, packet: &'a [u8]) -> Transmit<'a> {
    sender.handle_inner(Instant::ZERO, packet).expect("a path is up")
}

/// Nothing waits.
pub(super) fn in_order() -> Box<dyn Case> {
    Box::new(Arrivals::in_order(&vec![arrivals::packet(SIZE); BATCH as usize], By::Number))
}

/// The same in the order by evidence.
pub(super) fn in_order_by_evidence() -> Box<dyn Case> {
    Box::new(Arrivals::in_order(&vec![arrivals::packet(SIZE); BATCH as usize], By::Evidence))
}

/// Half of everything waits in the largest buffer, where it was received.
pub(super) fn skewed() -> Box<dyn Case> {
    Box::new(Arrivals::skewed(&arrivals::packet(SIZE), Keep::Reference, By::Number))
}

/// The same in the order by evidence.
pub(super) fn skewed_by_evidence() -> Box<dyn Case> {
    Box::new(Arrivals::skewed(&arrivals::packet(SIZE), Keep::Reference, By::Evidence))
}

/// Half of everything waits in the largest buffer, as a copy.
pub(super) fn skewed_copied() -> Box<dyn Case> {
    Box::new(Arrivals::skewed(&arrivals::packet(SIZE), Keep::copy(), By::Number))
}

/// As many as fit the largest buffer, in random order.
pub(super) fn shuffled() -> Box<dyn Case> {
    Box::new(Arrivals::shuffled(&arrivals::packet(SIZE), Keep::Reference))
}

impl Case for Arrivals {
    fn packets(&self) -> usize {
        self.len()
    }

    fn round(&mut self) {
        for _ in 0..self.packets() {
            self.arrive(&mut |packet| {
                black_box(packet);
            });
        }
    }

    fn check(&self) {
        Self::check(self);
    }
}
