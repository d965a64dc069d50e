//! The receiving end's order: what is held for a gap, and when a gap is given up.
//!
//! These are the rules of [`crate::model::reorder`] in a form that takes a million packets a second.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use mpt_proto::Instant;

/// How far behind a number may be and still be known as given up.
const MEMORY: u64 = 20_000;

/// How packets are put in order, in the words of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many numbers from the expected one on can be held or expected; 0 means no order.
    pub window: u64,
    /// How long a packet is held at the most.
    pub max_delay: Duration,
    /// Whether a number is given up once every path has brought a higher one.
    pub early_release: bool,
    /// Whether a packet that comes after it was given up is delivered.
    pub deliver_late: bool,
}

/// What became of the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// The most packets held at once.
    pub most_held: u64,
    /// The longest that a packet was held for another that came after all.
    pub longest_useful: Duration,
    /// Numbers that were given up.
    pub given_up: u64,
    /// Packets that came after they were given up.
    pub late: u64,
}

/// A buffer that holds items by their numbers.
#[derive(Debug)]
pub(super) struct Buffer<T> {
    order: Order,
    next: u64,
    /// What is held from `next` on.
    slots: VecDeque<Option<(T, Instant)>>,
    held: u64,
    /// Numbers in the order of arrival, those delivered meanwhile included.
    since: VecDeque<(Instant, u64)>,
    given_up: BTreeSet<u64>,
    highest: Vec<Option<u64>>,
    stats: OrderStats,
}

impl<T> Buffer<T> {
    pub(super) fn new(order: Order, paths: usize) -> Self {
        Self {
            order,
            next: 0,
            slots: VecDeque::new(),
            held: 0,
            since: VecDeque::new(),
            given_up: BTreeSet::new(),
            highest: vec![None; paths],
            stats: OrderStats::default(),
        }
    }

    /// Expects `number` first, before anything came.
    pub(super) fn begin(&mut self, number: u64) {
        self.next = number;
    }

    pub(super) fn stats(&self) -> &OrderStats {
        &self.stats
    }

    /// When a packet will have been held for the longest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let mut since = self.since.iter();
        let (at, _) = since.find(|&&(_, number)| self.is_held(number))?;
        Some(*at + self.order.max_delay)
    }

    /// An item came; what may go is put into `out`.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        path: usize,
        number: u64,
        item: T,
        out: &mut Vec<T>,
    ) {
        if self.order.window == 0 {
            out.push(item);
            return;
        }
        self.highest[path] = self.highest[path].max(Some(number));
        if number < self.next {
            if self.given_up.remove(&number) {
                self.stats.late += 1;
                if self.order.deliver_late {
                    out.push(item);
                }
            }
            return;
        }
        self.give_up_below((number + 1).saturating_sub(self.order.window), out);
        let place = usize::try_from(number - self.next).unwrap_or(usize::MAX);
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        if self.slots[place].is_none() {
            let waited = self.waiting_since().filter(|_| place == 0).map(|since| now.since(since));
            self.slots[place] = Some((item, now));
            self.held += 1;
            if place > 0 {
                self.stats.most_held = self.stats.most_held.max(self.held);
                self.since.push_back((now, number));
            }
            if let Some(waited) = waited {
                self.stats.longest_useful = self.stats.longest_useful.max(waited);
            }
        }
        self.deliver_run(out);
        if self.order.early_release {
            let least = self.highest.iter().copied().min().flatten();
            self.give_up_below(least.unwrap_or(0), out);
        }
    }

    /// Gives up the gaps before what was held for the longest.
    pub(super) fn on_time(&mut self, now: Instant, out: &mut Vec<T>) {
        while let Some(&(since, number)) = self.since.front() {
            if self.is_held(number) {
                if now < since + self.order.max_delay {
                    break;
                }
                self.give_up_below(number, out);
            }
            self.since.pop_front();
        }
    }

    fn is_held(&self, number: u64) -> bool {
        number
            .checked_sub(self.next)
            .and_then(|place| self.slots.get(usize::try_from(place).ok()?))
            .is_some_and(Option::is_some)
    }

    /// Since when anything waits for the expected number.
    fn waiting_since(&self) -> Option<Instant> {
        let mut since = self.since.iter();
        since.find(|&&(_, number)| self.is_held(number)).map(|&(at, _)| at)
    }

    fn give_up_below(&mut self, number: u64, out: &mut Vec<T>) {
        while self.next < number {
            match self.slots.pop_front().flatten() {
                Some((item, _)) => {
                    self.held -= 1;
                    out.push(item);
                }
                None => {
                    self.stats.given_up += 1;
                    self.given_up.insert(self.next);
                }
            }
            self.next += 1;
        }
        while self.given_up.first().is_some_and(|&first| first + MEMORY < self.next) {
            self.given_up.pop_first();
        }
        self.deliver_run(out);
    }

    fn deliver_run(&mut self, out: &mut Vec<T>) {
        while let Some(Some(_)) = self.slots.front() {
            if let Some((item, _)) = self.slots.pop_front().flatten() {
                self.held -= 1;
                out.push(item);
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::reorder::{ReorderModel, Settings};

    proptest! {
        /// The same packets at the same times come out in the same order as of the reference.
        #[test]
        fn the_buffer_does_what_the_reference_does(
            window in 0_u64..12,
            max_delay in 1_u64..30,
            early_release: bool,
            deliver_late: bool,
            arrivals in prop::collection::vec((0_u64..8, 0_usize..3, 0_u64..12), 1..80),
        ) {
            let max_delay = Duration::from_nanos(max_delay);
            let order = Order { window, max_delay, early_release, deliver_late };
            let mut buffer = Buffer::new(order, 3);
            let mut reference =
                ReorderModel::new(Settings { window, max_delay, early_release, deliver_late });
            reference.begin(0);
            reference.set_live([0, 1, 2]);
            let (mut now, mut out, mut base) = (0, Vec::new(), 0);
            let mut seen = BTreeSet::new();
            for (wait, path, ahead) in arrivals {
                now += wait;
                let at = Instant::from_nanos(now);
                buffer.on_time(at, &mut out);
                reference.on_time(now);
                base += 1;
                let number = (base + ahead).saturating_sub(6);
                // A link brings nothing twice here.
                if window == 0 || seen.insert(number) {
                    buffer.insert(at, path, number, number, &mut out);
                    reference.insert(now, path, number);
                }
                prop_assert_eq!(&out[..], reference.delivered());
                prop_assert_eq!(buffer.deadline().map(Instant::as_nanos), reference.deadline());
            }
        }
    }
}
