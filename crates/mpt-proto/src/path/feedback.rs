//! What the peer's feedback says of a path on which this end sends: what it lost, what it delivered, how fast, and how
//! long that took.

use std::time::Duration;

use super::estimator::round_trip;
use super::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::extended::feedback::Block;
use crate::wire::keepalive::Echo;

/// How much of the past the recent values are about.
const RECENT: Duration = Duration::from_secs(10);

/// How many points of the past are kept.
const POINTS: usize = 8;

/// A rate is not measured over less: a receiver that reads many datagrams at once sees no time between them.
const SHORTEST: Duration = Duration::from_millis(4);

/// A message with feedback, without its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its number, one more than that of the one before.
    pub number: u16,
    /// When it was written, in microseconds of the peer's clock.
    pub written: u32,
}

/// What is known of a path in the direction in which this end sends, by the peer's feedback.
#[derive(Debug, Default)]
pub(crate) struct PathFeedback {
    /// The number of the last feedback, and its block.
    last: Option<(u16, Counters)>,
    /// Received and lost by all feedback.
    received: u64,
    lost: u64,
    /// The last points at least an eighth of [`RECENT`] apart, the next to be replaced first.
    past: [Point; POINTS],
    /// Datagrams that a host itself has dropped, and that no feedback has counted as lost so far.
    dropped: u64,
    oldest: usize,
    /// When the last feedback came.
    told: Instant,
    rate: WindowedMax,
    round_trip: Option<RoundTrip>,
    delay: Option<Delay>,
    added: Added,
    /// Since when datagrams are outstanding without any progress; `None` if none are.
    silent_since: Option<Instant>,
}

/// What the last block has counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    highest: u32,
    received: u32,
    received_bytes: u64,
    lost: u32,
    overflows: u32,
}

/// What the last feedback added to that.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    received: u32,
    bytes: u64,
    lost: bool,
    /// Of how many datagrams its delays are.
    meant: u32,
    /// Whether a higher path sequence than before has arrived.
    progress: bool,
}

/// What had been received and lost at some time, modulo 2^32: there are several for each path of an idle session.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: Instant,
    received: u32,
    lost: u32,
}

/// Arrival by the peer's clock minus sending by ours, in microseconds. It means nothing alone, but its difference
/// between paths is how much longer one takes than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delay {
    /// The shortest in the last feedback, modulo 2^32.
    pub(crate) min: u32,
    /// The same, smoothed: without what datagrams of one burst wait for each other.
    pub(crate) least: u32,
    /// The smoothed mean, modulo 2^32.
    pub(crate) mean: u32,
    /// How much it varies: the smoothed mean deviation.
    pub(crate) deviation: Duration,
}

impl PathFeedback {
    /// Feedback about the path arrived, on which path sequences up to `sent` have been sent. Returns false if it is
    /// older than the last one or cannot be about this path, and is ignored. Delays `of_train` say nothing, except the
    /// least.
    pub(crate) fn on_feedback(
        &mut self,
        now: Instant,
        header: Header,
        block: &Block,
        sent: u32,
        of_train: bool,
    ) -> bool {
        let (number, before) =
            self.last.unwrap_or((header.number.wrapping_sub(1), Counters::default()));
        let newer = header.number.wrapping_sub(number).cast_signed() > 0;
        let received = block.received.wrapping_sub(before.received);
        let possible = !is_ahead(block.highest, sent) && received.cast_signed() >= 0;
        if !newer || !possible {
            return false;
        }
        let is_first = self.last.is_none();
        let counters = Counters {
            highest: block.highest,
            received: block.received,
            received_bytes: block.received_bytes,
            lost: block.lost,
            overflows: block.overflows,
        };
        self.last = Some((header.number, counters));
        if now.since(self.told) >= RECENT {
            // What was before a pause is none of what is told from here on.
            self.keep(self.told);
        }
        self.received += u64::from(received);
        if !is_first {
            self.on_dropped(block.overflows.wrapping_sub(before.overflows).into());
        }
        // Fewer than before, if some came after all.
        let lost = i64::from(block.lost.wrapping_sub(before.lost).cast_signed());
        let lost = lost - self.take_dropped(lost);
        self.lost = self.lost.saturating_add_signed(lost);
        let bytes = block.received_bytes.saturating_sub(before.received_bytes);
        let progress = is_first || is_ahead(block.highest, before.highest);
        // Those of others were told by feedback that is lost, or comes later than this one.
        let follows = header.number.wrapping_sub(number) == 1;
        let meant = if follows { received } else { block.of_delays(received, bytes) };
        self.added = Added { received, bytes, meant, lost: lost > 0, progress };
        self.told = now;
        self.remember(now);
        if received == 0 && !is_first && block.highest == before.highest {
            // A copy, or news of a loss alone: its times are known.
            return true;
        }
        self.on_delay(block, of_train);
        if progress {
            self.on_progress(now, header, block);
        }
        true
    }

    /// Whether feedback with a later number has told more of the path already, and came before this one or before another copy of it.
    pub(crate) fn is_overtaken(&self, header: Header, block: &Block) -> bool {
        self.last.is_some_and(|(number, last)| {
            let is_older = number.wrapping_sub(header.number).cast_signed() > 0;
            is_older && last.received.wrapping_sub(block.received).cast_signed() >= 0
        })
    }

    /// The kernel of this host refused datagrams that had taken a path sequence, or that of the peer had no room for
    /// some: feedback counts them as lost, but the path did not lose them.
    pub(crate) fn on_dropped(&mut self, datagrams: u64) {
        self.dropped = self.dropped.saturating_add(datagrams);
    }

    /// How many of so many lost datagrams the hosts have dropped.
    fn take_dropped(&mut self, lost: i64) -> i64 {
        let dropped = self.dropped.min(u64::try_from(lost).unwrap_or(0));
        self.dropped -= dropped;
        dropped.cast_signed()
    }

    /// A path sequence is reported that is higher than before: its times are of this feedback.
    fn on_progress(&mut self, now: Instant, header: Header, block: &Block) {
        self.silent_since = None;
        let held = header.written.wrapping_sub(block.highest_arrived);
        if let Some(round_trip) = round_trip(now, Echo { time: block.highest_sent, held }) {
            self.round_trip = Some(RoundTrip::after(self.round_trip, round_trip));
        }
        let time = block.highest_arrived.wrapping_sub(block.first_arrived);
        if time.cast_signed() > 0 && Duration::from_micros(time.into()) >= SHORTEST {
            let rate = u64::from(block.bytes_after_first) * 1_000_000 / u64::from(time);
            self.rate.on_sample(now, rate);
        }
    }

    fn on_delay(&mut self, block: &Block, of_train: bool) {
        let [mean, deviation] =
            if of_train { [0, 0] } else { [block.delay_mean, block.delay_deviation] };
        let mean = block.delay_min.wrapping_add(mean);
        let deviation = Duration::from_micros(deviation.into());
        self.delay = Some(match self.delay {
            None => Delay { min: block.delay_min, least: block.delay_min, mean, deviation },
            Some(before) => {
                let follow = |before: u32, new: u32| {
                    before.wrapping_add_signed(new.wrapping_sub(before).cast_signed() / 8)
                };
                Delay {
                    min: block.delay_min,
                    least: follow(before.least, block.delay_min),
                    mean: follow(before.mean, mean),
                    deviation: (before.deviation * 7 + deviation) / 8,
                }
            }
        });
    }

    fn remember(&mut self, now: Instant) {
        let latest = self.past[(self.oldest + POINTS - 1) % POINTS];
        if now.since(latest.at) >= RECENT / POINTS as u32 {
            self.keep(now);
        }
    }

    fn keep(&mut self, at: Instant) {
        self.past[self.oldest] =
            Point { at, received: self.received as u32, lost: self.lost as u32 };
        self.oldest = (self.oldest + 1) % POINTS;
    }

    /// Whether something longer than `len` must be among what arrived by the last feedback.
    pub(crate) fn has_longer(&self, len: usize) -> bool {
        self.added.bytes > u64::from(self.added.received) * len as u64
    }

    /// Whether the last feedback reports a loss that the path is to blame for.
    pub(crate) fn has_loss(&self) -> bool {
        self.added.lost
    }

    /// Of how many datagrams the delays are that the last feedback tells.
    pub(crate) fn meant(&self) -> u32 {
        self.added.meant
    }

    /// Whether the last feedback tells that something has arrived that was sent after all that was known to have arrived.
    pub(crate) fn has_progress(&self) -> bool {
        self.added.progress
    }

    /// Whether datagrams have been outstanding for longer than `patience` without any progress, where `sent` is the
    /// path sequence of the last one. To be called again and again while data is sent.
    pub(crate) fn is_silent(&mut self, now: Instant, sent: u32, patience: Duration) -> bool {
        let outstanding = self.last.is_some_and(|(_, counters)| is_ahead(sent, counters.highest));
        self.silent_since = self.silent_since.filter(|_| outstanding);
        let since = *self.silent_since.get_or_insert(now);
        outstanding && now.since(since) > patience
    }

    /// Datagrams that the peer has received, duplicates not counted.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Datagrams that the path has lost for certain.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The share that was lost of those of which feedback of the last ten seconds or so tells, from 0 to 1; `None` if it
    /// tells of none.
    pub(crate) fn loss_lately(&self, now: Instant) -> Option<f64> {
        if now.since(self.told) >= RECENT {
            return None;
        }
        let before = self.past.iter().filter(|point| now.since(point.at) >= RECENT);
        let before = before.max_by_key(|point| point.at).unwrap_or(&self.past[self.oldest]);
        let (lost, sent) = self.since(before);
        (sent > 0).then(|| lost as f64 / sent as f64)
    }

    /// The share that was lost of those sent last, in ten seconds or so of feedback, from 0 to 1; `None` if none were sent.
    /// While a path is idle, it stays what it was.
    pub(crate) fn loss_recent(&self) -> Option<f64> {
        let (lost, sent) = self.lost_recent();
        (sent > 0).then(|| lost as f64 / sent as f64)
    }

    /// The share that has to be expected to be lost: of a path by which little was sent, a few percent may be.
    pub(crate) fn loss_expected(&self) -> f64 {
        let (lost, sent) = self.lost_recent();
        (lost + 1) as f64 / (sent + 100) as f64
    }

    /// How many were lost in the last ten seconds or so, and how many were sent.
    fn lost_recent(&self) -> (u64, u64) {
        self.since(&self.past[self.oldest])
    }

    /// How many were lost since a point of the past, and how many were sent.
    fn since(&self, point: &Point) -> (u64, u64) {
        // Fewer than before, if some came after all.
        let lost = (self.lost as u32).wrapping_sub(point.lost).cast_signed().max(0) as u64;
        (lost, u64::from((self.received as u32).wrapping_sub(point.received)) + lost)
    }

    /// The highest rate at which the peer received in the last ten seconds or so, in bytes of UDP payload per second.
    /// It is no more than was sent, so a path that was not filled may be faster.
    pub(crate) fn delivery_rate(&self, now: Instant) -> Option<u64> {
        self.rate.get(now)
    }

    /// How long datagrams and their feedback take, without what the peer waits before it sends that.
    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trip
    }

    /// The delay from here to the peer; see [`Delay`] for what that says.
    pub(crate) fn delay(&self) -> Option<Delay> {
        self.delay
    }
}

/// The largest of some values in [`RECENT`], or half of that at least.
#[derive(Clone, Copy, Debug, Default)]
struct WindowedMax {
    /// Since `began`, and in the half before.
    max: Option<u64>,
    max_before: Option<u64>,
    began: Instant,
}

impl WindowedMax {
    fn on_sample(&mut self, now: Instant, value: u64) {
        if now.since(self.began) >= RECENT / 2 {
            let is_over = now.since(self.began) >= RECENT;
            self.max_before = self.max.take().filter(|_| !is_over);
            self.began = now;
        }
        self.max = self.max.max(Some(value));
    }

    fn get(&self, now: Instant) -> Option<u64> {
        let since = now.since(self.began);
        let before = self.max_before.filter(|_| since < RECENT / 2);
        self.max.filter(|_| since < RECENT).max(before)
    }
}

/// Whether a path sequence is ahead of another one, by RFC 1982.
fn is_ahead(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests;
