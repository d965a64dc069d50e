//! The classic order: a window and a maximum delay, and nothing known but the numbers and their paths.
//!
//! The number expected next divides the world. A packet that carries it is delivered at once, and
//! so are the held packets that it was missing to. One that is ahead is held. It leaves when the
//! gap before it is filled, or when the gap is given up, which happens to each gap alone:
//!
//! - *early release*: every live path has delivered a higher number. A path keeps its order, so
//!   what has not come by then was lost;
//! - *maximum delay*: a packet behind the gap has been held for that long;
//! - *window*: a packet came so far ahead that the gap no longer fits.
//!
//! A packet that is behind was delivered before, and is a duplicate, or was given up, and is late.
//! What is out of all reach is a [`restart_detector`] of a restarted peer.

mod left;
mod misfit;
mod restart_detector;
mod ring;
mod tentative;

use super::arrived::Accepted;
use super::history::{self, CLASSIC_REACH as REACH, History};
use crate::config::{Late, MAX_WINDOW, ReorderConfig};
use crate::id::PathId;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::{Drop, ReorderStats};
use crate::time::Instant;
use left::LeftOrders;
use restart_detector::RestartDetector;
use ring::Ring;
use tentative::Tentative;

const _: () = assert!(MAX_WINDOW <= REACH as u32 && REACH as u32 <= history::LEN);

/// How many of a sender's first packets another can overtake: as many as TCP sends before it hears
/// of anything, and as long as a send batch.
const OVERTAKEN: u32 = 64;

/// The order of one connection, at the receiver.
#[derive(Debug)]
pub(super) struct ClassicOrder {
    config: ReorderConfig,
    /// Whether numbers that were before may come again, because the peer has restarted.
    infers_restarts: bool,
    /// The number expected next; unknown until the first one came.
    next: Option<Seq>,
    ring: Ring,
    history: History,
    restart_detector: RestartDetector,
    tentative: Tentative,
    /// The orders before this one, and how many packets had come when this one began.
    left: LeftOrders,
    begun_at: u64,
    /// The highest number that came by each path.
    highest: Vec<Option<Seq>>,
    /// The live paths, one bit each.
    live: u64,
    /// Until then numbers from behind are no evidence.
    copies_until: Instant,
    stats: ReorderStats,
}

/// Why numbers are given up.
#[derive(Clone, Copy)]
enum Loss {
    EarlyRelease,
    MaxDelay,
    Window,
}

impl ClassicOrder {
    /// An order in which nothing came yet, by no path. It begins with `next`, or by the numbers that come if that is not
    /// known, which also tell of a restart then. It counts on from `stats`.
    pub(super) fn new(config: ReorderConfig, next: Option<Seq>, stats: ReorderStats) -> Self {
        let history = if next.is_some() { History::default() } else { History::none() };
        Self {
            config,
            infers_restarts: next.is_none(),
            // Without a window nothing is remembered.
            next: next.filter(|_| config.window > 0),
            ring: Ring::new(config.window),
            history,
            restart_detector: RestartDetector::default(),
            tentative: Tentative::default(),
            left: LeftOrders::default(),
            begun_at: stats.in_order + stats.reordered + stats.late,
            highest: Vec::new(),
            live: 0,
            copies_until: Instant::ZERO,
            stats,
        }
    }

    pub(super) fn config(&self) -> &ReorderConfig {
        &self.config
    }

    /// Bytes of memory apart from its own size, and from the packets that are held.
    pub(super) fn memory(&self) -> usize {
        let highest = self.highest.capacity() * size_of::<Option<Seq>>();
        self.ring.memory() + self.history.memory() + highest
    }

    /// Gives back memory that is needed while packets are held, if none is.
    pub(super) fn shrink(&mut self) {
        if self.ring.held() == 0 {
            self.ring = Ring::new(self.config.window);
        }
    }

    /// How many paths there is room for, by their numbers.
    pub(super) fn paths(&self) -> usize {
        self.highest.len()
    }

    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// The number expected next.
    pub(super) fn next(&self) -> Option<Seq> {
        self.next
    }

    pub(super) fn stats(&self) -> ReorderStats {
        ReorderStats { held: u64::from(self.ring.held()), ..self.stats }
    }

    /// When a held packet will have waited for the maximum delay.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ring.longest_held().map(|(_, since)| since + self.config.max_delay)
    }

    /// A packet without a number: nothing can be said about its place.
    pub(super) fn pass(&mut self, packet: &[u8], sink: &mut impl Sink) {
        self.stats.unsequenced += 1;
        sink.deliver(packet);
    }

    /// A packet with a number came by `path`.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        path: PathId,
        seq: Seq,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        if self.config.window == 0 {
            self.stats.in_order += 1;
            sink.deliver(packet);
            return Ok(Accepted::Fits);
        }
        let next = *self.next.get_or_insert_with(|| first(seq));
        match seq.offset_from(next) {
            0..REACH => {
                self.restart_detector.clear();
                if self.tentative.is_any() {
                    self.tentative.on_number(seq);
                }
                self.fit(now, path, seq, packet, sink)?;
                Ok(Accepted::Fits)
            }
            offset => self.misfit(now, path, seq, offset, packet, sink),
        }
    }

    /// Other settings. What is held leaves if its window is another or its time is over by them.
    pub(super) fn set_config(&mut self, now: Instant, config: ReorderConfig, sink: &mut impl Sink) {
        if config.window != self.config.window {
            self.release_all(sink);
            self.ring = Ring::new(config.window);
            // Without a window nothing is remembered: the order begins with the number that comes first.
            if config.window == 0 {
                self.next = None;
                self.restart_detector.clear();
                self.left.clear();
                self.history.clear();
                self.highest.fill(None);
            }
        }
        self.config = config;
        self.on_timeout(now, sink);
        self.release_early(sink);
    }

    /// A path is new, or gone: nothing has come by it.
    pub(super) fn forget_path(&mut self, path: PathId) {
        if self.highest.len() <= path.index() {
            self.highest.resize(path.index() + 1, None);
        }
        self.highest[path.index()] = None;
    }

    /// Delivers everything that is held, and waits for nothing before it.
    pub(super) fn release_all(&mut self, sink: &mut impl Sink) {
        while let Some((held, _)) = self.ring.longest_held() {
            self.give_up_to(held, Loss::Window, sink);
        }
    }

    /// The peer announced a restart.
    pub(super) fn on_restart_announced(&mut self) {
        self.restart_detector.on_announcement();
    }

    /// The peer may have restarted: it has sent a keepalive like that after a start.
    pub(super) fn on_restart_possible(&mut self) {
        self.restart_detector.on_hint();
    }

    /// The peer may send again what it sent before, in long rows: until then nothing follows from that.
    pub(super) fn expect_copies(&mut self, until: Instant) {
        self.copies_until = until;
    }

    /// Other paths than before are live, one bit each.
    pub(super) fn set_live(&mut self, live: u64, sink: &mut impl Sink) {
        self.live = live;
        self.release_early(sink);
    }

    /// Gives up the gaps before packets that have been held for the maximum delay.
    pub(super) fn on_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        while let Some((seq, since)) = self.ring.longest_held() {
            if now < since + self.config.max_delay {
                break;
            }
            self.give_up_to(seq, Loss::MaxDelay, sink);
        }
    }

    /// A number that is the expected one, or ahead of it and within reach.
    fn fit(
        &mut self,
        now: Instant,
        path: PathId,
        seq: Seq,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Drop> {
        if self.ahead(seq) >= self.config.window {
            self.give_up_to(seq.minus(self.config.window - 1), Loss::Window, sink);
        }
        if self.ahead(seq) == 0 {
            self.expected(path, seq, packet, sink);
            return Ok(());
        }
        if self.ring.contains(seq) {
            return Err(Drop::Duplicate);
        }
        let Some(held) = sink.hold(packet) else {
            // Where nothing can be held nothing can be waited for either.
            self.give_up_to(seq, Loss::Window, sink);
            self.expected(path, seq, packet, sink);
            return Ok(());
        };
        self.ring.put(seq, held, now);
        self.stats.held_max = self.stats.held_max.max(u64::from(self.ring.held()));
        self.came_by(path, seq);
        self.release_early(sink);
        Ok(())
    }

    fn expected(&mut self, path: PathId, seq: Seq, packet: &[u8], sink: &mut impl Sink) {
        self.stats.in_order += 1;
        sink.deliver(packet);
        self.advance(seq);
        self.came_by(path, seq);
        self.deliver_run(sink);
        self.release_early(sink);
    }

    /// Every number below the least of the highest that the live paths have delivered is lost.
    fn release_early(&mut self, sink: &mut impl Sink) {
        let Some(next) = self.next else { return };
        if !self.config.early_release || self.ring.held() == 0 {
            return;
        }
        let mut live = self.live;
        let mut least = None;
        while live != 0 {
            let path = live.trailing_zeros() as usize;
            live &= live - 1;
            // A path that was idle while the numbers went half around seems to be ahead.
            match self.highest[path].map(|highest| highest.offset_from(next)) {
                Some(offset @ 1..=REACH) => {
                    least = Some(least.map_or(offset, |l: i32| l.min(offset)))
                }
                _ => return,
            }
        }
        if let Some(least) = least {
            self.give_up_to(next.plus(least.unsigned_abs()), Loss::EarlyRelease, sink);
        }
    }

    /// Moves the expected number to `seq`, and past the packets that are held from there on.
    fn give_up_to(&mut self, seq: Seq, loss: Loss, sink: &mut impl Sink) {
        while let Some(next) = self.next
            && seq.offset_from(next) > 0
        {
            if self.deliver_held(next, sink) {
                continue;
            }
            let missing = if self.ring.held() == 0 { self.ahead(seq) } else { 1 };
            match loss {
                Loss::EarlyRelease => self.stats.lost_early_release += u64::from(missing),
                Loss::MaxDelay => self.stats.lost_max_delay += u64::from(missing),
                Loss::Window => self.stats.lost_window += u64::from(missing),
            }
            if !self.infers_restarts && self.config.late == Late::Drop {
                // What does not fit the window has come, but is not held.
                let witnesses = self.ring.held() + u32::from(matches!(loss, Loss::Window));
                self.tentative.on_given_up(next, missing, witnesses);
            }
            self.history.set_missing(next, missing);
            self.next = Some(next.plus(missing));
        }
        self.deliver_run(sink);
    }

    /// Delivers the held packets that follow without a gap.
    fn deliver_run(&mut self, sink: &mut impl Sink) {
        while let Some(next) = self.next
            && self.deliver_held(next, sink)
        {}
    }

    fn deliver_held(&mut self, next: Seq, sink: &mut impl Sink) -> bool {
        let Some(held) = self.ring.take(next) else {
            return false;
        };
        self.stats.reordered += 1;
        sink.deliver_held(held);
        self.advance(next);
        true
    }

    /// `seq` was delivered in order.
    fn advance(&mut self, seq: Seq) {
        self.history.set_delivered(seq);
        self.next = Some(seq.next());
    }

    fn came_by(&mut self, path: PathId, seq: Seq) {
        let highest = &mut self.highest[path.index()];
        if highest.is_none_or(|highest| seq.offset_from(highest) > 0) {
            *highest = Some(seq);
        }
    }

    /// How far `seq`, which is not behind, is ahead of the expected number.
    fn ahead(&self, seq: Seq) -> u32 {
        self.next.map_or(0, |next| seq.offset_from(next).unsigned_abs())
    }
}

/// The number to begin with when `seq` is the first that came. If it is one of a sender's first, it
/// may have overtaken those before it, which are waited for; if not, they are ignored.
fn first(seq: Seq) -> Seq {
    if seq.value() < OVERTAKEN { Seq::FIRST } else { seq }
}

#[cfg(test)]
mod tests;
