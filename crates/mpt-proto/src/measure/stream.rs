//! The stream of a connection's numbers as they arrive: which came, which came again, which are missing.
//!
//! The numbers on which the [`Order`] is judged come once each. So whatever is not the next number is
//! looked up first in a set of those that came; the set is made when it is needed first.

use super::bits::{self, Bits};
use super::order::Order;
use super::reordering::Reordering;
use crate::sequence::Seq;
use crate::time::Instant;

/// How many numbers out of reach in a row, each near the one before, are taken for a new beginning where
/// the reorder buffer does not judge.
const STRAYS: u32 = 32;

/// How many numbers that had come it takes: a path that stood still brings many of these in a row.
const BEHIND: u32 = 1024;

/// Two suspicious numbers are near if they differ by no more.
const NEAR: u32 = 1024;

/// How many of a sender's first packets another can overtake.
const OVERTAKEN: u32 = 64;

/// What is known of the numbers of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    order: Order,
    arrived: Option<Arrived>,
    /// The number that the stream began with, and how many packets of earlier ones had come then.
    begin: (Seq, u64),
    duplicates: u64,
    lost: u64,
    misfits: Misfits,
}

/// What a number was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It had not come before.
    First,
    /// It had come before.
    Duplicate,
    /// It is out of reach.
    Stray,
    /// The sender's numbers restarted, and this is the first of them.
    Restart,
}

/// Which of the numbers before `until` came.
#[derive(Clone, Debug)]
struct Arrived {
    /// Whatever is too old to be missed is in it.
    numbers: Bits,
    until: Seq,
    /// How many numbers before `until` there are since the beginning, as far as they are remembered.
    known: u32,
    /// How many packets of the order have been entered.
    entered: u64,
}

/// Numbers in a row that did not fit.
#[derive(Clone, Debug, Default)]
struct Misfits {
    row: u32,
    last: Seq,
    /// How many packets had come that did fit.
    fits: u64,
}

impl Stream {
    /// A packet with this number came.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Instant, seq: Seq) -> Arrival {
        if self.order.is_next(seq) {
            self.order.on_arrival(now, seq);
            Arrival::First
        } else {
            self.on_other(now, seq)
        }
    }

    fn on_other(&mut self, now: Instant, seq: Seq) -> Arrival {
        if !self.order.has_begun() {
            self.begin(now, seq);
            return Arrival::First;
        }
        let (order, begin) = (&self.order, self.begin);
        let arrived = self.arrived.get_or_insert_with(|| Arrived::new(begin));
        self.lost += arrived.enter_run(order);
        let ahead = seq.offset_from(order.next());
        let known = -i64::from(arrived.known);
        let stray = !(known..i64::from(bits::LEN)).contains(&i64::from(ahead));
        let duplicate = !stray && ahead < 0 && arrived.numbers.contains(seq);
        if stray || duplicate {
            if self.misfits.on_misfit(order.packets(), seq, if stray { STRAYS } else { BEHIND }) {
                self.restart();
                self.begin(now, seq);
                return Arrival::Restart;
            }
            self.duplicates += u64::from(duplicate);
            return if stray { Arrival::Stray } else { Arrival::Duplicate };
        }
        self.lost += arrived.enter(seq, ahead);
        self.order.on_arrival(now, seq);
        Arrival::First
    }

    /// The sender's numbers restart with the next packet. The counts stay, and missing packets are
    /// lost.
    pub(crate) fn restart(&mut self) {
        if let Some(mut arrived) = self.arrived.take() {
            self.lost += arrived.enter_run(&self.order);
            self.lost += u64::from(arrived.missing());
        }
        self.order.restart();
        self.misfits.row = 0;
    }

    /// Nothing comes for a while: what is missing is lost, and memory is given back.
    pub(crate) fn rest(&mut self) {
        self.restart();
        self.order.rest();
    }

    /// Packets pass unseen. What is missing may be among them, so nothing is said of it.
    pub(crate) fn pause(&mut self) {
        self.arrived = None;
        self.order.restart();
        self.misfits.row = 0;
    }

    /// The first packet came. If it is one of a sender's first, those before it may have been overtaken.
    fn begin(&mut self, now: Instant, seq: Seq) {
        let begin = if seq.value() < OVERTAKEN { Seq::FIRST } else { seq };
        self.begin = (begin, self.order.packets());
        self.order.begin(now, begin);
        if seq != begin {
            let arrived = self.arrived.insert(Arrived::new(self.begin));
            self.lost += arrived.enter(seq, seq.offset_from(begin));
        }
        self.order.on_arrival(now, seq);
    }

    /// What was found out.
    pub(crate) fn report(&self) -> Reordering {
        let mut report = Reordering { duplicates: self.duplicates, ..self.order.report() };
        report.lost = self.lost;
        if let Some(mut arrived) = self.arrived.clone() {
            report.lost += arrived.enter_run(&self.order);
            report.missing = arrived.missing().into();
        }
        report
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let set = self.arrived.as_ref().map_or(0, |arrived| arrived.numbers.memory());
        self.order.memory() + set
    }
}

impl Arrived {
    /// None of the numbers from `begin` on has arrived, after this many packets.
    fn new((begin, packets): (Seq, u64)) -> Self {
        Self { numbers: Bits::full(), until: begin, known: 0, entered: packets }
    }

    /// Enters what came in order since the last packet that was entered; returns how many numbers are
    /// lost, being too old to be missed.
    fn enter_run(&mut self, order: &Order) -> u64 {
        let run = order.packets() - self.entered;
        let count = run.min(bits::LEN.into()) as u32;
        let lost = self.numbers.fill(order.next().minus(count), count, true);
        self.entered = order.packets();
        self.pass(order.next(), count);
        lost.into()
    }

    /// Enters a packet that is so far ahead of the number behind the highest, or behind it; returns
    /// how many numbers are lost.
    fn enter(&mut self, seq: Seq, ahead: i32) -> u64 {
        self.entered += 1;
        if ahead < 0 {
            self.numbers.insert(seq);
            return 0;
        }
        let gap = self.numbers.fill(self.until, ahead.unsigned_abs(), false);
        let own = self.numbers.fill(seq, 1, true);
        self.pass(seq.next(), ahead.unsigned_abs() + 1);
        u64::from(gap + own)
    }

    fn pass(&mut self, until: Seq, count: u32) {
        self.until = until;
        self.known = (self.known + count).min(bits::LEN);
    }

    /// How many numbers have not come but still could.
    fn missing(&self) -> u32 {
        bits::LEN - self.numbers.count(self.until, bits::LEN)
    }
}

impl Misfits {
    /// A number did not fit, after this many that did. Returns whether it exceeds the limit.
    fn on_misfit(&mut self, fits: u64, seq: Seq, limit: u32) -> bool {
        let near = seq.offset_from(self.last).unsigned_abs() <= NEAR;
        if fits != self.fits || !near {
            self.row = 0;
        } else if self.row > 0 && seq == self.last {
            return false;
        }
        self.row += 1;
        (self.last, self.fits) = (seq, fits);
        self.row >= limit
    }
}
