//! One train: when it is over, and at what rate it arrived.

use std::time::Duration;

use super::super::means::Delays;
use super::super::points::{Point, after};
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// The fewest datagrams that show something, and the shortest time in microseconds: a receiver that reads many at once
/// sees no time between them.
pub(super) const FEWEST: u32 = 6;
pub(super) const SHORTEST: u32 = 500;

/// Datagrams are hardly ever longer, where the peer does not say.
pub(super) const LONGEST_DATAGRAM: u64 = 1500;

/// A train takes no longer than so many seconds.
pub(super) const LONGEST_TRAIN: f64 = 0.03;

/// After two round trips and this time there is no feedback about it, and after so long in any case.
const SPARE: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(2);

/// A long train that has shown nothing by then may take so much longer to leave a slow path.
pub(super) const DRAINS: Duration = Duration::from_secs(1);

/// A train that was sent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Train {
    /// From when on no feedback will be about it any more.
    lost_at: Instant,
    /// Its first and last path sequence.
    from: u32,
    pub(super) last: u32,
    /// Bytes of UDP payload.
    bytes: u64,
    first: Option<First>,
    /// When all of it had arrived or was lost. Where delays vary it is kept, as feedback may have been overtaken.
    pub(super) over: Option<Instant>,
    pub(super) delays: Delays,
    /// What the trains of the series before it have shown by their mean delays, and whether closely.
    pub(super) before: Option<(f64, bool)>,
}

/// The first feedback about it.
#[derive(Clone, Copy, Debug)]
struct First {
    /// When the first datagram arrived.
    arrived: u32,
    /// What had arrived until then, this one included.
    packets: u32,
    bytes: u64,
}

impl Train {
    /// A train of so many datagrams with so many bytes of UDP payload, sent from this path sequence on, on a path with this round trip.
    pub(in super::super) fn new(
        now: Instant,
        from: u32,
        count: u32,
        bytes: u64,
        round_trip: Duration,
    ) -> Self {
        let lost_at = now + (round_trip * 2 + SPARE).min(LONGEST);
        Self {
            lost_at,
            from,
            last: from.wrapping_add(count - 1),
            bytes,
            first: None,
            over: None,
            delays: Delays::default(),
            before: None,
        }
    }

    /// Whether no feedback will be about it any more.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        now >= self.lost_at
    }

    /// Whether it may still stand in the queue of a slow path, having shown nothing.
    pub(super) fn drains(&self, now: Instant) -> bool {
        self.is_long() && now < self.lost_at + DRAINS
    }

    /// Bytes of UDP payload of a datagram.
    pub(super) fn len(&self) -> u64 {
        self.bytes / u64::from(self.count())
    }

    pub(super) fn count(&self) -> u32 {
        after(self.last, self.from).unsigned_abs() + 1
    }

    /// Whether it takes long enough to be measured well.
    pub(super) fn is_long(&self) -> bool {
        after(self.last, self.from) >= 15
    }

    /// Whether it takes longer at this rate than a train is to.
    pub(super) fn takes_long(&self, rate: Option<f64>) -> bool {
        rate.is_some_and(|rate| self.bytes as f64 >= rate * LONGEST_TRAIN)
    }

    /// Whether feedback is about it.
    pub(super) fn is_in(&self, block: &Block) -> bool {
        after(block.highest, self.from) >= 0
    }

    /// Whether this is one of its path sequences.
    pub(super) fn has(&self, sequence: u32) -> bool {
        after(sequence, self.from) >= 0 && after(self.last, sequence) >= 0
    }

    /// Feedback about it, and what the one before said. `Some` if all of the train is reported: the rate at which
    /// it arrived in bytes of IP packets per second, if that shows; `header` bytes of IP and UDP stand before each
    /// datagram.
    pub(super) fn on_block(
        &mut self,
        block: &Block,
        before: Option<&Point>,
        header: u64,
    ) -> Option<Option<f64>> {
        let first = *self.first.get_or_insert(First {
            arrived: block.first_arrived,
            packets: before.map_or(0, |before| before.packets).wrapping_add(1),
            bytes: block.received_bytes.saturating_sub(block.bytes_after_first.into()),
        });
        if after(block.highest, self.last) < 0 {
            return None;
        }
        let payload = block.received_bytes.saturating_sub(first.bytes);
        // Where delays vary the last one is not the last to arrive. What the rest took shows in feedback to come, unless that was overtaken
        // or the rest is lost.
        let is_settled = after(block.resolved, self.last) > 0;
        if block.highest == self.last && payload + LONGEST_DATAGRAM < self.bytes && !is_settled {
            return None;
        }
        // What had arrived long before it is reported with it, but is not among the bytes after the first.
        let packets =
            block.received.wrapping_sub(first.packets).min(block.highest.wrapping_sub(self.from));
        let micros = block.highest_arrived.wrapping_sub(first.arrived);
        if packets.wrapping_add(1) < FEWEST || !(SHORTEST..1 << 31).contains(&micros) {
            return Some(None);
        }
        // More than the train itself: it does not show how long before it the rest came.
        if payload >= self.bytes && block.highest == self.last {
            return Some(None);
        }
        let bytes = payload + u64::from(packets) * header;
        Some(Some(bytes as f64 * 1e6 / f64::from(micros)))
    }
}
