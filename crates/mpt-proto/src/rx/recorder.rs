//! What arrived on one path, by path sequence: what feedback reports to the sender (section 8.2 of
//! `docs/protocol.md`).
//!
//! Of the last path sequences it is remembered which were received. One that is missing is *lost* when it leaves this
//! window, or when later ones have been here for the margin within which the path may overtake. Every path sequence
//! before the *resolved* one was received or is lost. On a path that keeps its order, and loses nothing, that is all
//! of them, and no window is needed.

mod report;
mod samples;
mod told;
mod window;

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;
use samples::Samples;
use told::Told;
use window::{LEN, Window};

/// So many more datagrams than arrived can have been sent at any time, and per millisecond since the last one: more
/// than 1 Gbit/s of datagrams of 1472 bytes. What jumps further is a forgery, or a path that began anew.
const PLAUSIBLE: u64 = 16_384;
const PLAUSIBLE_PER_MILLISECOND: u64 = 100;

/// So many path sequences in a row that do not fit are believed, if each is ahead of the one before, by at most
/// [`NEAR`].
const BELIEVED: u8 = 4;
const NEAR: u32 = 64;

/// A datagram as it arrived on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Path sequence.
    pub(crate) sequence: u32,
    /// Send timestamp, in microseconds of the peer's clock.
    pub(crate) sent: u32,
    /// When it came to this host, which may have looked later.
    pub(crate) at: Instant,
    /// Length of the UDP payload in bytes.
    pub(crate) len: usize,
    /// Whether its outer header had the congestion mark CE.
    pub(crate) ce: bool,
    /// Whether it says something about the delay: of those that were sent in one burst and read in one only the first
    /// one does.
    pub(crate) is_sample: bool,
}

/// What a datagram is by its path sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It came for the first time, as the next one of a path that has kept its order so far.
    InOrder,
    /// It came for the first time.
    Received,
    /// It came for the first time, after it was counted as lost.
    Late,
    /// It came before.
    Duplicate,
    /// Its path sequence is out of reach. It counts nowhere.
    Stray,
}

impl Recorded {
    /// Whether it came for the first time.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        matches!(self, Self::InOrder | Self::Received | Self::Late)
    }
}

/// A margin is kept to a part of this: so many times are remembered in one. All that follows a loss waits for what it takes longer to
/// be told.
const MARKS: u32 = 6;

/// The record of one path in one session.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// The highest path sequence, its send timestamp and its arrival; `None` before the first datagram.
    highest: Option<Highest>,
    /// The first path sequence that was neither received nor lost; the one after the highest if there is none.
    resolved: u32,
    /// How many path sequences there are from the first one to the highest.
    span: u64,
    window: Window,
    received: u64,
    received_bytes: u64,
    lost: u64,
    duplicates: u16,
    /// How many of them have been [asked](Self::has_repeated) for.
    asked: u16,
    late: u16,
    ce: u32,
    /// How long a datagram may be overtaken by others on the path.
    margin: Duration,
    /// What is missing before this path sequence is lost when the margin has passed since that time. First the earliest;
    /// none are there if nothing is missing.
    marks: VecDeque<(u32, Instant)>,
    /// The last path sequence that did not fit, and how many in a row there were.
    misfit: (u32, u8),
    last_at: Instant,
    /// Since the last feedback.
    samples: Samples,
    /// What the last feedbacks said.
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Highest {
    sequence: u32,
    sent: u32,
    at: Instant,
}

impl Recorder {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.window.memory() + self.marks.capacity() * size_of::<(u32, Instant)>()
    }

    /// Gives back memory that is not needed while nothing comes. What was lost before does not come any more.
    pub(crate) fn rest(&mut self) {
        let next = self.highest.map(|highest| highest.sequence.wrapping_add(1));
        if next == Some(self.resolved) && self.marks.is_empty() {
            self.window = Window::default();
            self.marks.shrink_to(0);
        }
    }

    /// Whether a datagram has come twice since this was asked last.
    pub(crate) fn has_repeated(&mut self) -> bool {
        std::mem::replace(&mut self.asked, self.duplicates) != self.duplicates
    }

    /// How long a datagram may be overtaken by others before it counts as lost; 0 on a path that keeps its order.
    pub(crate) fn set_margin(&mut self, margin: Duration) {
        self.margin = margin;
    }

    /// A datagram arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Instant, datagram: Datagram) -> Recorded {
        let Datagram { sequence, sent, at, .. } = datagram;
        let is_next = self.resolved == sequence && !self.window.is_used() && self.marks.is_empty();
        if let Some(highest) = self.highest.as_mut().filter(|_| is_next)
            && highest.sequence.wrapping_add(1) == sequence
        {
            *highest = Highest { sequence, sent, at };
            self.resolved = sequence.wrapping_add(1);
            self.span += 1;
            self.count(now, datagram, true);
            return Recorded::InOrder;
        }
        self.on_other_arrival(now, datagram)
    }

    /// A datagram arrived on a path where something is missing, or is from now on.
    fn on_other_arrival(&mut self, now: Instant, datagram: Datagram) -> Recorded {
        let sequence = datagram.sequence;
        let Some(highest) = self.highest else {
            self.begin(now, datagram);
            return Recorded::Received;
        };
        let step = sequence.wrapping_sub(highest.sequence);
        if step.cast_signed() > 0 {
            if !self.is_plausible(now, step) {
                return self.misfit(now, datagram);
            }
            self.advance(now, datagram, step);
        } else {
            let back = step.wrapping_neg();
            if back >= LEN {
                return self.misfit(now, datagram);
            }
            if self.was_received(sequence, back) {
                self.duplicates = self.duplicates.wrapping_add(1);
                return Recorded::Duplicate;
            }
            return self.fill(now, datagram, back);
        }
        self.count(now, datagram, true);
        Recorded::Received
    }

    /// The first datagram, or the first after another order of path sequences.
    fn begin(&mut self, now: Instant, datagram: Datagram) {
        self.window.clear();
        self.told.forget();
        let Datagram { sequence, sent, at, .. } = datagram;
        self.highest = Some(Highest { sequence, sent, at });
        self.resolved = datagram.sequence.wrapping_add(1);
        self.span = 1;
        self.marks.clear();
        self.window.set_received(datagram.sequence);
        self.count(now, datagram, true);
    }

    fn is_plausible(&self, now: Instant, step: u32) -> bool {
        let elapsed = now.since(self.last_at).as_millis() as u64;
        u64::from(step)
            <= PLAUSIBLE.saturating_add(elapsed.saturating_mul(PLAUSIBLE_PER_MILLISECOND))
    }

    /// A path sequence out of reach. If it goes on from there, the path has begun anew.
    fn misfit(&mut self, now: Instant, datagram: Datagram) -> Recorded {
        let (last, count) = self.misfit;
        let follows = (1..=NEAR).contains(&datagram.sequence.wrapping_sub(last));
        self.misfit = (datagram.sequence, if follows { count + 1 } else { 1 });
        if self.misfit.1 < BELIEVED {
            return Recorded::Stray;
        }
        if let Some(highest) = self.highest {
            self.resolve_to(highest.sequence);
        }
        self.begin(now, datagram);
        Recorded::Received
    }

    /// A datagram is ahead of all others by so many path sequences.
    fn advance(&mut self, now: Instant, datagram: Datagram, step: u32) {
        let sequence = datagram.sequence;
        let next = sequence.wrapping_sub(step).wrapping_add(1);
        if self.window.is_used() || step > 1 {
            // The window holds all that was received up to the highest; until a datagram is missing that is known.
            self.window.allocate(next.wrapping_sub(1), self.span);
            self.leave_window(sequence.wrapping_sub(LEN - 1), next);
            self.window.set_missing(next, step.min(LEN));
            self.window.set_received(sequence);
        }
        if self.resolved == sequence {
            self.resolved = sequence.wrapping_add(1);
        }
        self.span += u64::from(step);
        self.highest = Some(Highest { sequence, sent: datagram.sent, at: datagram.at });
        if self.resolved != sequence.wrapping_add(1) || !self.marks.is_empty() {
            self.count_lost(now);
        } else if sequence.is_multiple_of(LEN) {
            self.leave_unused(sequence);
        }
    }

    /// Needs no window any more once all that it holds was received.
    fn leave_unused(&mut self, highest: u32) {
        if self.window.received_below(highest.wrapping_add(1), LEN) == LEN {
            self.window = Window::default();
        }
    }

    /// What is missing before the `oldest` path sequence that stays in the window is lost. `next` follows the highest
    /// so far.
    fn leave_window(&mut self, oldest: u32, next: u32) {
        if is_before(next, oldest) {
            self.resolve_to(next);
            self.lost += u64::from(oldest.wrapping_sub(next));
            self.resolved = oldest;
        } else {
            self.resolve_to(oldest);
        }
    }

    /// A datagram arrived after later ones, for the first time.
    fn fill(&mut self, now: Instant, datagram: Datagram, back: u32) -> Recorded {
        let sequence = datagram.sequence;
        let (highest, span) = (sequence.wrapping_add(back), self.span);
        self.window.allocate(highest, span);
        self.window.set_received(sequence);
        self.count(now, datagram, false);
        if !is_before(sequence, self.resolved) {
            if sequence == self.resolved {
                self.pass_received(highest);
            }
            self.count_lost(now);
            return Recorded::Received;
        }
        if u64::from(back) >= span {
            // It was sent before the first one that arrived, and so was never missed.
            return Recorded::Received;
        }
        self.late = self.late.wrapping_add(1);
        self.lost -= 1;
        Recorded::Late
    }

    /// Whether a path sequence that is `back` behind the highest was received.
    fn was_received(&self, sequence: u32, back: u32) -> bool {
        match self.window.is_used() {
            true => self.window.was_received(sequence),
            false => u64::from(back) < self.span,
        }
    }

    /// Counts a datagram that came for the first time.
    #[inline]
    fn count(&mut self, now: Instant, datagram: Datagram, is_highest: bool) {
        self.received += 1;
        self.received_bytes += datagram.len as u64;
        self.ce = self.ce.wrapping_add(u32::from(datagram.ce));
        self.misfit.1 = 0;
        self.last_at = now;
        self.samples.on_arrival(datagram.at, datagram.len, is_highest);
        if datagram.is_sample || self.samples.is_empty() {
            self.samples.on_sample(datagram.at, datagram.sent);
        }
    }

    /// Counts as lost what the margin allows to count.
    fn count_lost(&mut self, now: Instant) {
        let Some(Highest { sequence: highest, .. }) = self.highest else { return };
        if self.resolved == highest.wrapping_add(1) {
            self.marks.clear();
            return;
        }
        if self.margin.is_zero() {
            self.marks.clear();
            self.resolve_to(highest);
            return;
        }
        while let Some(&(before, since)) = self.marks.front()
            && now.since(since) >= self.margin
        {
            self.marks.pop_front();
            self.resolve_to(before);
        }
        if self.resolved == highest.wrapping_add(1) {
            self.marks.clear();
        } else if self.marks.back().is_none_or(|(before, since)| {
            *before != highest && now.since(*since) >= self.margin / MARKS
        }) {
            self.marks.push_back((highest, now));
        }
    }

    /// What is missing before `sequence`, which is at most one after the highest, is lost.
    fn resolve_to(&mut self, sequence: u32) {
        if !is_before(self.resolved, sequence) {
            return;
        }
        let count = sequence.wrapping_sub(self.resolved);
        self.lost += u64::from(self.window.missing(self.resolved, count));
        self.resolved = sequence;
        if let Some(highest) = self.highest {
            self.pass_received(highest.sequence);
        }
    }

    /// Moves the resolved path sequence past those that were received.
    fn pass_received(&mut self, highest: u32) {
        let left = highest.wrapping_add(1).wrapping_sub(self.resolved);
        self.resolved = self.resolved.wrapping_add(self.window.received(self.resolved, left));
    }

    /// Whether none that has arrived was sent after the one with this path sequence.
    #[inline]
    pub(crate) fn is_highest(&self, sequence: u32) -> bool {
        self.highest.is_some_and(|highest| highest.sequence == sequence)
    }

    /// When the last datagram came that was not a copy; `None` before the first one.
    pub(crate) fn last_at(&self) -> Option<Instant> {
        self.highest.map(|_| self.last_at)
    }

    /// How many datagrams were lost for certain in this session.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many were received, duplicates not counted.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether a later path sequence than this has arrived, or this one: then a beacon that names it is true, whatever
    /// path it came by.
    pub(crate) fn has_reached(&self, sequence: u32) -> bool {
        self.highest.is_some_and(|highest| !is_before(highest.sequence, sequence))
    }
}

/// Whether a path sequence is before another one, by RFC 1982.
fn is_before(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other).cast_signed() < 0
}

#[cfg(test)]
mod tests;
