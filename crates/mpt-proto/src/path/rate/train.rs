//! What a train shows: datagrams that are sent at once on a path with nothing else to send arrive at the rate of its
//! slowest link (packet dispersion: Dovrolis, Ramanathan, Moore, Packet-Dispersion Techniques and a Capacity-Estimation
//! Methodology, IEEE/ACM Transactions on Networking 12(6), 2004).
//!
//! It is what the link can send for a moment. A policer lets more pass at first, so no more than half of it is believed.

use std::time::Duration;

use super::means::{Alone, Shown, Told};
use super::points::Point;
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

use sent::{FEWEST, LONGEST_DATAGRAM, LONGEST_TRAIN, SHORTEST};

pub(super) use sent::Train;

mod sent;

/// Trains of so many datagrams follow each other.
const SIZES: [usize; 3] = [8, 16, 32];

/// One where delays vary is of so many at the most, once another has shown that it takes no longer than [`LONGEST_TRAIN`].
const MOST: usize = 64;

/// So long after all of a train has arrived feedback may come that was overtaken by others.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// The share of what a train shows that a path starts with: a policer lets more pass for a moment than in the long run.
const SEED: f64 = 0.5;

/// What exceeds another rate by less is the same.
const NEARLY: f64 = 1.1;

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
    /// Whether what was shown follows from mean delays, and what the path is likely to carry then.
    is_of_means: bool,
    likely: f64,
}

impl Trains {
    /// The mean delay of small datagrams that are sent alone, if it is of enough of them.
    pub(super) fn mean_alone(&self) -> Option<u32> {
        self.alone.and_then(Alone::known)
    }

    /// What their mean hardly exceeds, as [`Alone::most`].
    pub(super) fn most_alone(&self, noise: f64) -> Option<u32> {
        self.alone.and_then(|alone| alone.most(noise))
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
        let drains = |train: &Train| train.over.is_none() && may_drain && train.drains(now);
        let is_free = !self.is_awaited(now) && !self.on_way.as_deref().is_some_and(drains);
        // The longer one is the more it shows there.
        let size = match varies && self.is_of_means {
            true => MOST,
            false => SIZES[nth.min(SIZES.len() - 1)],
        };
        // No longer than others may have to wait for it.
        // Where delays vary the least that a path may carry would have the next train too short to show more.
        let shown = self.shown.filter(|_| !varies || self.is_of_means);
        let shown =
            shown.map(|shown| if self.is_of_means { shown.max(self.likely) } else { shown });
        let most = shown.map_or(usize::MAX, |rate| (rate * LONGEST_TRAIN / 1500.0) as usize);
        // Of one that something came behind the path may have been faster.
        let most = if self.is_exact { most } else { most.max(SIZES[0]) };
        let size = Some(size.min(most)).filter(|size| *size >= SIZES[0]);
        size.filter(|_| is_free && now >= self.next_at)
    }

    /// Whether one is on its way: nothing else is to go with it.
    pub(super) fn is_on_way(&self, now: Instant) -> bool {
        self.on_way.as_ref().is_some_and(|train| train.over.is_none() && !train.is_lost(now))
    }

    /// Whether one is on its way, or what feedback tells of it.
    pub(super) fn is_awaited(&self, now: Instant) -> bool {
        self.on_way.as_ref().is_some_and(|train| match train.over {
            Some(over) => now < over + OVERTAKEN && !self.is_told(train),
            None => !train.is_lost(now),
        })
    }

    /// Whether feedback has told of all of a train.
    fn is_told(&self, train: &Train) -> bool {
        self.alone.is_none_or(|alone| train.delays.count(alone) >= train.count())
    }

    /// Whether feedback that comes now may include datagrams of a train that those after them have overtaken.
    pub(super) fn is_overtaken(&self, now: Instant) -> bool {
        self.on_way.as_ref().and_then(|train| train.over).is_some_and(|over| now < over + OVERTAKEN)
    }

    /// A train is sent.
    pub(super) fn on_sent(&mut self, now: Instant, mut train: Train) {
        if usize::from(self.count) >= SIZES.len() && self.is_of_means {
            // What the path carried at the time of the series before it may not carry any more.
            (self.shown, self.is_of_means) = (None, false);
        }
        let before = self.shown.filter(|_| self.is_of_means);
        train.before = before.map(|shown| (shown, self.is_shown_well));
        self.on_way = Some(Box::new(train));
        self.count = self.count.saturating_add(1);
        self.next_at =
            now + if usize::from(self.count) < SIZES.len() { Duration::ZERO } else { TRAINS };
    }

    /// Whether feedback is about the train that is on its way.
    pub(super) fn is_in(&self, block: &Block) -> bool {
        self.on_way.as_ref().is_some_and(|train| train.over.is_none() && train.is_in(block))
    }

    /// Feedback about it that came at that time, the delays of which are of about so many datagrams, and what the one before said.
    pub(super) fn on_block(
        &mut self,
        now: Instant,
        block: &Block,
        meant: u32,
        before: Option<&Point>,
        about: About,
    ) {
        if let (Some(train), Some(alone)) = (&mut self.on_way, self.alone) {
            train.delays.add(Told::new(about.number, block, meant.min(train.count())), alone);
        }
        let About { header, spread, .. } = about;
        let arrived = self.on_way.as_mut().and_then(|train| train.on_block(block, before, header));
        if let (Some(_), Some(_), Some(train)) = (spread, self.alone, &mut self.on_way) {
            train.over = arrived.map(|_| now);
            self.show_least(about);
        } else if let Some(arrived) = arrived {
            let train = self.on_way.take();
            let is_exact = train.as_ref().is_some_and(|train| train.last == block.highest);
            // What has come behind it makes it seem longer, so it shows no more than the least.
            let known = self.known().map(|known| known * NEARLY);
            if is_exact || arrived > self.shown && arrived > known {
                (self.is_exact, self.is_of_means) = (is_exact, false);
                self.is_shown_well = train
                    .is_some_and(|train| train.is_long() || is_exact && train.takes_long(arrived));
                self.shown = arrived.or(self.shown);
            }
        }
    }

    /// Feedback that another one has overtaken, which may be about the train that was sent last.
    pub(super) fn on_overtaken(&mut self, block: &Block, about: About) {
        let of_last = self.on_way.as_mut().filter(|train| train.has(block.highest));
        if let (Some(train), Some(alone)) = (of_last, self.alone) {
            let after_first = u64::from(block.bytes_after_first) / train.len().max(1);
            let count = train.count().min(after_first as u32 + 1);
            train.delays.add(Told::new(about.number, block, count), alone);
            self.show_least(about);
        }
    }

    /// The train shows by its delays what the path carries at the least, if they vary.
    fn show_least(&mut self, About { header, spread, .. }: About) {
        let (Some(spread), Some(alone), Some(train)) = (spread, self.alone, &self.on_way) else {
            return;
        };
        let Some(Shown { rate, is_close, likely }) = train.delays.shown(alone, spread) else {
            return;
        };
        let bytes = (train.len() + header) as f64;
        let new = (rate * bytes, is_close);
        self.likely = likely * bytes;
        // Of the trains of a series the one counts that shows most, as each shows the least that it may be, unless one shows it closely.
        let counts = |(before, was_close): &(f64, bool)| match *was_close == is_close {
            true => *before > new.0,
            false => *was_close,
        };
        let (shown, is_close) = train.before.filter(counts).unwrap_or(new);
        self.shown = Some(shown);
        (self.is_of_means, self.is_exact, self.is_shown_well) = (true, true, is_close);
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

    /// Beyond what the path is not to go quickly, as it hardly carries more. Where its delay `varies`, how far apart datagrams arrive does not
    /// show that.
    pub(super) fn limit(&self, varies: bool) -> Option<f64> {
        self.shown.filter(|_| self.is_shown_well && (self.is_of_means || !varies))
    }
}

/// What is known of feedback about a train beside its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    /// Its number.
    pub(super) number: u16,
    /// So many bytes of IP and UDP stand before each datagram.
    pub(super) header: u64,
    /// By how many microseconds delays exceed their least on average, if they vary.
    pub(super) spread: Option<f64>,
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
