//! What a train shows: datagrams that are sent at once on a path with nothing else to send arrive at the rate of its
//! slowest link (packet dispersion: Dovrolis, Ramanathan, Moore, Packet-Dispersion Techniques and a Capacity-Estimation
//! Methodology, IEEE/ACM Transactions on Networking 12(6), 2004).
//!
//! It is what the link can send for a moment. A policer lets more pass at first, so no more than half of it is believed.

use std::time::Duration;

use super::means::{Alone, Delays};
use super::points::{Point, after};
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// Trains of so many datagrams follow each other.
const SIZES: [usize; 3] = [8, 16, 32];

/// One where delays vary is of so many at the most, once another has shown that it takes no longer than [`LONGEST_TRAIN`].
const MOST: usize = 64;

/// The fewest datagrams that show something, and the shortest time in microseconds: a receiver that reads many at once
/// sees no time between them.
const FEWEST: u32 = 6;
const SHORTEST: u32 = 500;

/// Datagrams are hardly ever longer, where the peer does not say.
const LONGEST_DATAGRAM: u64 = 1500;

/// After two round trips and this time there is no feedback about it, and after so long in any case.
const SPARE: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(2);

/// A long train that has shown nothing by then may take so much longer to leave a slow path.
const DRAINS: Duration = Duration::from_secs(1);

/// The share of what a train shows that a path starts with: a policer lets more pass for a moment than in the long run.
const SEED: f64 = 0.5;

/// A train takes no longer than so many seconds.
const LONGEST_TRAIN: f64 = 0.03;

/// How long after the last of a series another train may follow.
const TRAINS: Duration = Duration::from_secs(10);

/// What trains and bursts have shown of one path. Rates are in bytes of IP packets per second.
#[derive(Debug, Default)]
pub(super) struct Trains {
    /// The train that is on its way, how many there were (255 and more are one), and when the next may follow.
    on_way: Option<Box<Train>>,
    count: u8,
    next_at: Instant,
    /// The rate at which the last one arrived, whether nothing else was reported with it, and whether it was long enough to
    /// be measured well.
    shown: Option<f64>,
    is_exact: bool,
    is_shown_well: bool,
    /// The rate at which data arrived that were sent together.
    burst: Option<f64>,
    /// How long small datagrams take.
    pub(super) alone: Option<Alone>,
    /// Whether what was shown follows from mean delays.
    is_of_means: bool,
}

impl Trains {
    /// The mean delay of small datagrams that are sent alone, if it is of enough of them.
    pub(super) fn mean_alone(&self) -> Option<u32> {
        self.alone.and_then(Alone::known)
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.on_way.as_ref().map_or(0, |train| size_of_val(&**train))
    }

    /// Gives up a train of which nothing has come for long.
    pub(super) fn rest(&mut self) {
        self.on_way = None;
    }

    /// Of how many datagrams the next train is, if one may be sent on a path whose delay `varies` or not.
    pub(super) fn next(&self, now: Instant, varies: bool) -> Option<usize> {
        // Where delays vary, fewer show too little; and more are a load before the first ones have shown something.
        let nth = if varies { SIZES.len() - 1 } else { self.count.into() };
        let may_drain = varies && !self.is_of_means;
        let is_gone = |train: &Train| train.is_lost(now) && !(may_drain && train.drains(now));
        let is_free = self.on_way.as_deref().is_none_or(is_gone);
        // The longer one is the more it shows there.
        let size = match varies && self.is_of_means {
            true => MOST,
            false => SIZES[nth.min(SIZES.len() - 1)],
        };
        // No longer than others may have to wait for it.
        let shown = self.shown.filter(|_| !varies || self.is_of_means);
        let most = shown.map_or(usize::MAX, |rate| (rate * LONGEST_TRAIN / 1500.0) as usize);
        let size = Some(size.min(most)).filter(|size| *size >= SIZES[0]);
        size.filter(|_| is_free && now >= self.next_at)
    }

    /// Whether one is on its way: nothing else is to go with it.
    pub(super) fn is_on_way(&self, now: Instant) -> bool {
        self.on_way.as_ref().is_some_and(|train| !train.is_lost(now))
    }

    /// A train is sent.
    pub(super) fn on_sent(&mut self, now: Instant, train: Train) {
        if usize::from(self.count) >= SIZES.len() && self.is_of_means {
            // What the path carried at the time of the series before it may not carry any more.
            (self.shown, self.is_of_means) = (None, false);
        }
        self.on_way = Some(Box::new(train));
        self.count = self.count.saturating_add(1);
        self.next_at =
            now + if usize::from(self.count) < SIZES.len() { Duration::ZERO } else { TRAINS };
    }

    /// Whether feedback is about the train that is on its way.
    pub(super) fn is_in(&self, block: &Block) -> bool {
        self.on_way.as_ref().is_some_and(|train| train.is_in(block))
    }

    /// Feedback about it, the delays of which are of so many datagrams, and what the one before said. Delays exceed their least by `spread`
    /// microseconds on average, if they vary.
    pub(super) fn on_block(
        &mut self,
        block: &Block,
        meant: u32,
        before: Option<&Point>,
        header: u64,
        spread: Option<f64>,
    ) {
        if let (Some(train), Some(alone)) = (&mut self.on_way, self.alone) {
            train.delays.add(block, meant.min(train.count()), alone);
        }
        let arrived = self.on_way.as_mut().and_then(|train| train.on_block(block, before, header));
        if let (Some(spread), Some(alone), Some(train)) = (spread, self.alone, &self.on_way) {
            if let Some(least) = train.delays.rate(alone, spread) {
                // Of the trains of a series the one counts that shows most: each shows the least that it may be.
                let before = self.shown.filter(|_| self.is_of_means).unwrap_or(0.0);
                self.shown = Some(before.max(least * (train.len() + header) as f64));
                (self.is_of_means, self.is_exact, self.is_shown_well) = (true, true, false);
            }
            self.on_way = self.on_way.take().filter(|_| arrived.is_none());
        } else if let Some(arrived) = arrived {
            let train = self.on_way.take();
            let is_exact = train.as_ref().is_some_and(|train| train.last == block.highest);
            // What has come behind it makes it seem longer.
            if is_exact || arrived > self.shown {
                (self.is_exact, self.is_of_means) = (is_exact, false);
                self.is_shown_well = train.is_some_and(|train| train.is_long());
                self.shown = arrived.or(self.shown);
            }
        }
    }

    /// Feedback about data, and what the one before said.
    pub(super) fn on_burst(&mut self, block: &Block, before: Option<&Point>, header: u64) {
        if let Some(burst) = dispersion(block, before, header) {
            // Less than what the path can carry if the sender paused.
            let before = self.burst.unwrap_or(burst);
            self.burst = Some(burst.max(before + (burst - before) / 8.0));
        }
    }

    /// How fast datagrams that are sent together go through, as far as it is known. What follows from mean delays is not that: the most of several
    /// trains is too high by chance, and a path that becomes full would be sent on at that rate.
    pub(super) fn burst(&self) -> Option<f64> {
        let shown = self.shown.filter(|_| !self.is_of_means);
        self.burst.into_iter().chain(shown).reduce(f64::max)
    }

    /// The rate at which the last train arrived, unless something else came behind it: that can have made it seem slow.
    pub(super) fn known(&self) -> Option<f64> {
        self.shown.filter(|_| self.is_exact)
    }

    /// The last train has shown so much.
    #[cfg(test)]
    pub(super) fn show(&mut self, shown: Option<f64>) {
        (self.shown, self.is_exact) = (shown, true);
    }

    /// What the path starts with; 0 if nothing is known.
    pub(super) fn start(&self) -> f64 {
        // What follows from mean delays is the least that it may be.
        self.shown.unwrap_or(0.0) * if self.is_of_means { 1.0 } else { SEED }
    }

    /// Beyond what the path is not to go quickly.
    pub(super) fn limit(&self) -> Option<f64> {
        self.shown.filter(|_| self.is_shown_well)
    }
}

/// A train on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// From when on no feedback will be about it any more.
    lost_at: Instant,
    /// Its first and last path sequence.
    from: u32,
    last: u32,
    /// Bytes of UDP payload.
    bytes: u64,
    first: Option<First>,
    delays: Delays,
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
    pub(super) fn new(
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
            delays: Delays::default(),
        }
    }

    /// Whether no feedback will be about it any more.
    fn is_lost(&self, now: Instant) -> bool {
        now >= self.lost_at
    }

    /// Whether it may still stand in the queue of a slow path, having shown nothing.
    fn drains(&self, now: Instant) -> bool {
        self.is_long() && now < self.lost_at + DRAINS
    }

    /// Bytes of UDP payload of a datagram.
    fn len(&self) -> u64 {
        self.bytes / u64::from(self.count())
    }

    fn count(&self) -> u32 {
        after(self.last, self.from).unsigned_abs() + 1
    }

    /// Whether it takes long enough to be measured well.
    fn is_long(&self) -> bool {
        after(self.last, self.from) >= 15
    }

    /// Whether feedback is about it.
    fn is_in(&self, block: &Block) -> bool {
        after(block.highest, self.from) >= 0
    }

    /// Feedback about it, and what the one before said. `Some` if all of the train is reported: the rate at which
    /// it arrived in bytes of IP packets per second, if that shows; `header` bytes of IP and UDP stand before each
    /// datagram.
    fn on_block(
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

/// The rate in bytes of IP packets per second at which arrived what feedback is about, if that shows; `before` is what the
/// one before said.
fn dispersion(block: &Block, before: Option<&Point>, header: u64) -> Option<f64> {
    let before = before?;
    let after_first = block.received.wrapping_sub(before.packets).wrapping_sub(1);
    let micros = block.highest_arrived.wrapping_sub(block.first_arrived);
    if !(FEWEST..1 << 16).contains(&after_first) || !(SHORTEST..1 << 31).contains(&micros) {
        return None;
    }
    // Little that came before a pause is not among the bytes after the first, and no part of what is measured.
    let bytes = u64::from(block.bytes_after_first);
    let longest = block.longest.map_or(LONGEST_DATAGRAM, |longest| longest.get().into());
    let fewest = bytes.div_ceil(longest);
    let before = block.received_bytes.saturating_sub(before.payload).saturating_sub(bytes);
    let count = if before > longest { fewest } else { after_first.into() };
    if fewest < FEWEST.into() {
        return None;
    }
    let bytes = bytes + count * header;
    Some(bytes as f64 * 1e6 / f64::from(micros))
}

#[cfg(test)]
mod tests;
