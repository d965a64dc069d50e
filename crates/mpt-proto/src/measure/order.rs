//! The order of a stream of packets no number of which comes twice.
//!
//! Most streams are in order, and nothing but the next number and a count is kept of them, and a run
//! for each gap ([`records`](super::records)). When a packet comes late, the last packets are recalled
//! from the runs and every packet is looked at closely ([`Detail`]), until the stream has been in order
//! for so long that nothing depends on what came before.

use std::time::Duration;

use super::bits;
use super::density::Density;
use super::packed::{Packer, Unpacker};
use super::records::{Records, Run, Tail};
use super::reordering::Reordering;
use crate::sequence::Seq;
use crate::time::Instant;

/// How many packets before a reordered one are looked at.
const RECENT: usize = Reordering::MAX_N;

/// The order of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    begun: bool,
    /// Whether the packets that came last were in order.
    calm: bool,
    /// The number behind the highest: NextExp of RFC 4737 section 3.3.
    next: Seq,
    packets: u64,
    reordered: u64,
    /// How many packets had come when the sender's numbers began.
    begin: u64,
    /// How many packets the density has processed.
    told: u64,
    threshold: u32,
    records: Records,
    detail: Option<Box<Detail>>,
    /// What there was of it before a rest; empty if there was none.
    resting: Box<[u8]>,
}

/// What is kept once a packet was reordered.
#[derive(Clone, Debug)]
struct Detail {
    density: Density,
    /// The numbers of the last packets, that of packet n at place n modulo [`RECENT`].
    recent: [Seq; RECENT],
    /// How many of them are known.
    known: u32,
    /// How many packets came in order since the last that did not.
    in_order: u32,
    /// How many reordered packets came immediately after this many with higher numbers.
    degrees: [u64; RECENT + 1],
    extent_sum: u64,
    extent_max: u64,
    late_sum: Duration,
    late_max: Duration,
}

impl Default for Order {
    fn default() -> Self {
        Self::new(Reordering::DISPLACEMENT_THRESHOLD)
    }
}

impl Order {
    /// An order in which what is displaced by more than `threshold` is as good as lost.
    pub(super) fn new(threshold: u32) -> Self {
        Self {
            begun: false,
            calm: false,
            next: Seq::FIRST,
            packets: 0,
            reordered: 0,
            begin: 0,
            told: 0,
            threshold,
            records: Records::default(),
            detail: None,
            resting: Box::default(),
        }
    }

    /// Whether this is the number behind the highest.
    #[inline]
    pub(super) fn is_next(&self, seq: Seq) -> bool {
        seq == self.next && self.begun
    }

    /// The number behind the highest; of no meaning before anything came.
    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// Whether anything came since the sender's numbers began.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// How many packets came.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// The sender's numbers restart. The counts stay.
    pub(crate) fn restart(&mut self) {
        self.finish_density();
        (self.begun, self.calm) = (false, false);
    }

    /// Gives back what is not needed until packets are out of order again. The numbers are about to restart.
    pub(crate) fn rest(&mut self) {
        self.restart();
        self.records.rest();
        if let Some(detail) = self.detail.take() {
            self.resting = detail.packed();
        }
    }

    /// The detail, if a packet was ever reordered.
    fn detail(&mut self) -> Option<&mut Box<Detail>> {
        if !self.resting.is_empty() {
            self.detail =
                Some(Detail::unpacked(self.threshold, &std::mem::take(&mut self.resting)));
        }
        self.detail.as_mut()
    }

    /// The numbers begin with `first`, which may still be missing when others have come.
    pub(super) fn begin(&mut self, now: Instant, first: Seq) {
        self.records.begin(Run { start: first, index: self.packets as u32, at: now });
        (self.begun, self.calm, self.next) = (true, true, first);
        (self.begin, self.told) = (self.packets, self.packets);
    }

    /// A packet came whose number had not come before.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Instant, seq: Seq) {
        if seq == self.next && self.calm {
            self.next = seq.next();
            self.packets += 1;
        } else {
            self.on_other(now, seq);
        }
    }

    /// A packet that leaves a gap, or is reordered, or comes while such a one is remembered.
    fn on_other(&mut self, now: Instant, seq: Seq) {
        if !self.begun {
            self.begin(now, seq);
        }
        let offset = seq.offset_from(self.next);
        // No packet is late by more than the reach. Over one path so few may have come meanwhile that
        // the numbers have gone half around.
        let reordered = (-bits::LEN.cast_signed() - 1..0).contains(&offset);
        if reordered {
            self.on_reordered(now, seq);
        } else {
            if offset != 0 {
                self.records.push(Run { start: seq, index: self.packets as u32, at: now });
            }
            self.next = seq.next();
        }
        if let Some(detail) = self.detail.as_deref_mut().filter(|_| !self.calm) {
            detail.on_arrival(self.packets, seq, reordered);
            if detail.in_order > self.threshold && detail.density.is_calm() {
                // Those before were not all in runs. From here on they are.
                let index = self.packets + 1;
                self.records.push(Run { start: self.next, index: index as u32, at: now });
                (self.told, self.calm) = (index, true);
            }
        }
        self.packets += 1;
    }

    fn on_reordered(&mut self, now: Instant, seq: Seq) {
        self.reordered += 1;
        let above = self.records.first_above(seq);
        self.detail();
        let threshold = self.threshold;
        let detail = self.detail.get_or_insert_with(|| Detail::new(threshold));
        if self.calm {
            self.calm = false;
            let untold = self.packets - self.told;
            let count = untold.min(threshold.max(RECENT as u32).into());
            let tail = self.records.tail(self.packets, count as u32);
            let known = if u64::from(tail.len) == untold {
                self.packets - self.begin
            } else {
                tail.len.into()
            };
            detail.recall(self.packets, untold, known, tail);
        }
        let extent = u64::from((self.packets as u32).wrapping_sub(above.index));
        detail.extent_sum += extent;
        detail.extent_max = detail.extent_max.max(extent);
        let late = now.since(above.at);
        detail.late_sum += late;
        detail.late_max = detail.late_max.max(late);
    }

    /// Passes all packets to the density, as at the end of the stream.
    fn finish_density(&mut self) {
        let (calm, untold, packets) = (self.calm, self.packets - self.told, self.packets);
        if let Some(detail) = self.detail() {
            detail.density.finish();
            if calm {
                detail.density.in_place(untold);
            }
            self.told = packets;
        }
    }

    /// What was found out.
    pub(crate) fn report(&self) -> Reordering {
        let Self { packets, reordered, .. } = *self;
        let mut report = Reordering { packets, reordered, ..Reordering::default() };
        let mut finished = self.clone();
        finished.finish_density();
        match finished.detail {
            Some(detail) => detail.report(&mut report),
            None if packets > 0 => {
                report.density.insert(0, packets);
                report.buffer_occupancy.push(packets);
            }
            None => {}
        }
        report
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let detail = |detail: &Detail| size_of::<Detail>() + detail.density.memory();
        self.records.memory() + self.detail.as_deref().map_or(0, detail) + self.resting.len()
    }
}

impl Detail {
    fn new(threshold: u32) -> Box<Self> {
        Box::new(Self {
            density: Density::new(threshold),
            recent: [Seq::FIRST; RECENT],
            known: 0,
            in_order: 0,
            degrees: [0; RECENT + 1],
            extent_sum: 0,
            extent_max: 0,
            late_sum: Duration::ZERO,
            late_max: Duration::ZERO,
        })
    }

    /// Takes the last of this many packets, which all arrived in order since the last call. Then
    /// this many are known.
    fn recall(
        &mut self,
        packets: u64,
        untold: u64,
        known: u64,
        tail: Tail<impl Iterator<Item = Seq>>,
    ) {
        let len = u64::from(tail.len);
        if len < untold || self.density.is_empty() {
            self.density.finish();
            self.density.in_place(untold - len);
            self.density.begin(tail.least);
        }
        for (index, seq) in (packets - len..).zip(tail.numbers) {
            self.density.arrive(seq);
            self.recent[index as usize % RECENT] = seq;
        }
        self.known = known.min(RECENT as u64) as u32;
    }

    /// Packet number `index` came.
    fn on_arrival(&mut self, index: u64, seq: Seq, reordered: bool) {
        if reordered {
            let before = |n: &u32| self.recent[(index - 1 - u64::from(*n)) as usize % RECENT];
            let higher = |n: &u32| before(n).offset_from(seq) > 0;
            let degree = (0..self.known).take_while(higher).count();
            self.degrees[degree] += 1;
        }
        self.in_order = if reordered { 0 } else { self.in_order + 1 };
        self.recent[index as usize % RECENT] = seq;
        self.known = (self.known + 1).min(RECENT as u32);
        self.density.arrive(seq);
    }

    /// What has been counted, in few bytes. All packets have been passed to the density.
    fn packed(&self) -> Box<[u8]> {
        let sums = [self.extent_sum, self.extent_max];
        let times = [self.late_sum, self.late_max].map(|time| time.as_nanos() as u64);
        let mut packer = Packer::default();
        sums.into_iter().chain(times).for_each(|number| packer.number(number));
        packer.counts(&self.degrees);
        self.density.pack(packer)
    }

    fn unpacked(threshold: u32, bytes: &[u8]) -> Box<Self> {
        let mut detail = Self::new(threshold);
        let mut from = Unpacker::new(bytes);
        (detail.extent_sum, detail.extent_max) = (from.number(), from.number());
        detail.late_sum = Duration::from_nanos(from.number());
        detail.late_max = Duration::from_nanos(from.number());
        for (degree, count) in detail.degrees.iter_mut().zip(from.counts()) {
            *degree = count;
        }
        detail.density.unpack(&mut from);
        detail
    }

    fn report(&self, report: &mut Reordering) {
        report.extent_sum = self.extent_sum;
        report.extent_max = self.extent_max;
        report.late_sum = self.late_sum;
        report.late_max = self.late_max;
        // An n-reordered packet is (n - 1)-reordered as well.
        let mut n_reordered = 0;
        let n_reordering = self.degrees[1..].iter().rev().map(|degree| {
            n_reordered += degree;
            n_reordered
        });
        report.n_reordering = n_reordering.skip_while(|count| *count == 0).collect();
        report.n_reordering.reverse();
        let counts = self.density.counts();
        let late = (0..).zip(counts.late.iter().copied());
        let early = (1..).map(|places: i32| -places).zip(counts.early.iter().copied());
        report.density = late.chain(early).filter(|(_, packets)| *packets > 0).collect();
        report.buffer_occupancy = counts.occupancy.clone();
    }
}
