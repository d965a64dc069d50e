//! A transfer by Linux's TCP through a tunnel over several links, without a byte of payload.
//!
//! The links are the real ones ([`crate::link`]), TCP is [`crate::tcp`], and between them stands what a
//! tunnel does, as docs/protocol.md describes it: each inner packet gets a number and goes by the next
//! path of the sending vector; the other end puts the numbers in order again. Acknowledgements take the
//! same way back. A second of 100 Mbit/s takes some ten milliseconds of processor time, so that a program
//! can afford to ask what would happen.
//!
//! [`run`] is deterministic: the same plan gives the same [`Outcome`].

mod datagram;
mod order;
mod plan;
mod tunnel;

use std::time::Duration;

use mpt_proto::Instant;

use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Sender, Stats};
use crate::tcp::{Acknowledgement, Segment};
use datagram::{Datagram, Inner};
pub use order::{Order, OrderStats};
pub use plan::{Path, Plan};
use tunnel::Way;

/// The width of a sample of [`Outcome::samples`].
pub const SAMPLE: Duration = Duration::from_millis(100);

/// At most this many consecutive segments that arrive at once and have the same timestamps are
/// merged into one, as by the kernel's GRO: 64 kB.
const MOST_MERGED: u64 = 44;

/// IP and TCP headers of an acknowledgement with time stamps, less the IP header.
const TCP_HEADER: usize = 32;

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bytes of payload that reached the receiving applications, per sample.
    pub samples: Vec<u64>,
    /// What the senders did, together.
    pub senders: Stats,
    /// What became of the order in the direction of the data.
    pub there: OrderStats,
    /// What became of it in the direction of the acknowledgements.
    pub back: OrderStats,
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Outcome {
    let mut run = Run::new(plan);
    run.send_all();
    let end = Instant::ZERO + plan.length;
    while let Some(moment) = run.next_moment().filter(|&moment| moment < end) {
        run.now = run.now.max(moment);
        run.step();
    }
    run.outcome()
}

struct Run<'p> {
    plan: &'p Plan,
    now: Instant,
    there: Way,
    back: Way,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    samples: Vec<u64>,
}

impl<'p> Run<'p> {
    fn new(plan: &'p Plan) -> Self {
        let mut there = Way::new(plan, 0);
        let mut back = Way::new(plan, 1);
        // SYN, its answer, and the answer to that have gone before the first segment.
        let round_trip = there.pass() + back.pass();
        for flow in 0..plan.flows {
            if flow > 0 {
                there.pass();
                back.pass();
            }
            there.pass();
        }
        let most = (plan.send_buffer / plan.segment.max(1)) as u64;
        let sender = || Sender::new(plan.growth, round_trip, most);
        let samples = plan.length.as_nanos().div_ceil(SAMPLE.as_nanos());
        Self {
            plan,
            now: Instant::ZERO,
            there,
            back,
            senders: (0..plan.flows).map(|_| sender()).collect(),
            receivers: vec![Receiver::default(); plan.flows],
            samples: vec![0; usize::try_from(samples).unwrap_or(0)],
        }
    }

    fn next_moment(&self) -> Option<Instant> {
        let ways = [self.there.next_due(), self.back.next_due()].into_iter().flatten();
        let senders = self.senders.iter().filter_map(Sender::next_due);
        let receivers = self.receivers.iter().filter_map(Receiver::next_due);
        ways.chain(senders).chain(receivers).min()
    }

    fn step(&mut self) {
        let now = self.now;
        let arrived = self.there.receive(now);
        self.take_segments(&arrived);
        for flow in 0..self.receivers.len() {
            if let Some(acknowledgement) = self.receivers[flow].on_time(now) {
                self.acknowledge(flow, acknowledgement);
            }
        }
        for datagram in self.back.receive(now) {
            if let Inner::Acknowledgement(acknowledgement) = datagram.inner {
                let sender = &mut self.senders[datagram.flow];
                sender.on_acknowledgement(now, &acknowledgement);
                self.send(datagram.flow);
            }
        }
        for sender in &mut self.senders {
            if sender.next_due().is_some_and(|due| due <= now) {
                sender.on_time(now);
            }
        }
        self.send_all();
    }

    /// Gives what came at once to the receivers, merged where it follows each other.
    fn take_segments(&mut self, arrived: &[Datagram]) {
        let mut at = 0;
        while let Some(&Datagram { flow, inner: Inner::Segment(first), .. }) = arrived.get(at) {
            let follows = |count: u64, datagram: &Datagram| {
                let Inner::Segment(segment) = datagram.inner else { return false };
                let next = Segment { number: first.number + count, ..first };
                datagram.flow == flow && segment == next
            };
            let rest = (1..MOST_MERGED).zip(&arrived[at + 1..]);
            let count = 1 + rest.take_while(|&(count, datagram)| follows(count, datagram)).count();
            at += count;
            let receiver = &mut self.receivers[flow];
            let before = receiver.delivered();
            let acknowledgement = receiver.on_segments(self.now, first, count as u64);
            let bytes = (receiver.delivered() - before) * self.plan.segment as u64;
            let sample = self.now.as_nanos() / SAMPLE.as_nanos() as u64;
            self.samples[sample as usize] += bytes;
            if let Some(acknowledgement) = acknowledgement {
                self.acknowledge(flow, acknowledgement);
            }
        }
    }

    fn acknowledge(&mut self, flow: usize, acknowledgement: Acknowledgement) {
        let size = self.plan.inner_header + TCP_HEADER + acknowledgement.option_bytes();
        self.back.send(self.now, flow, Inner::Acknowledgement(acknowledgement), size);
    }

    fn send_all(&mut self) {
        (0..self.senders.len()).for_each(|flow| self.send(flow));
    }

    fn send(&mut self, flow: usize) {
        let size = self.plan.inner_header + TCP_HEADER + self.plan.segment;
        while let Some(segment) = self.senders[flow].poll(self.now) {
            self.there.send(self.now, flow, Inner::Segment(segment), size);
        }
    }

    fn outcome(self) -> Outcome {
        let mut senders = Stats::default();
        for stats in self.senders.iter().map(Sender::stats) {
            senders.repetitions += stats.repetitions;
            senders.recoveries += stats.recoveries;
            senders.timeouts += stats.timeouts;
            senders.undone += stats.undone;
        }
        let (there, back) = (*self.there.stats(), *self.back.stats());
        Outcome { samples: self.samples, senders, there, back }
    }
}

#[cfg(test)]
mod tests;
