//! Order by evidence: a packet waits only for its predecessor in its flow, and for no longer than that can still come
//! (section 8.5 of `docs/protocol.md`).
//!
//! All numbers before the one expected next are *resolved*: delivered or given up. Of those from there on, some were
//! delivered already, because their predecessors were; some are held, and wait for theirs; the others are missing. When
//! a number is resolved, the packet that waits for it follows at once, and what waits for that. A packet whose
//! predecessor is not known waits for all numbers before it.
//!
//! Numbers are given up in their order, as soon as
//!
//! - every live path has [passed](path) them: a higher number, or a beacon, has come by it, and what that can have
//!   overtaken has had time to come;
//! - or a later number has been here for the wait of the path that it came by, which is how much slower the slowest
//!   path is;
//! - or they no longer fit the window.
//!
//! A packet that was sent out of turn says nothing of what its path will bring, and waits for the [longest
//! time](LONGEST_WAIT) at the most.
//!
//! A number that comes after it was given up is delivered. A session says where its numbers begin, so a number out of
//! reach is a stray and nothing else.

mod beyond;
mod bits;
mod give_up;
mod margin;
mod path;
mod paths;
mod repairs;
mod waiting;

use super::arrived::{Accepted, After, Arrived};
use super::history::{History, REACH};
use crate::config::ReorderConfig;
use crate::id::PathId;
use crate::sequence::Seq;
use crate::sink::{Held, Sink};
use crate::stats::{Drop, ReorderStats};
use crate::time::Instant;
use beyond::Beyond;
use bits::bits;
use margin::LONGEST_WAIT;
use path::{PathEvidence, Record};
use repairs::Repairs;
use waiting::Waiting;

/// The order of one session, at the receiver.
#[derive(Debug)]
pub(super) struct EvidenceOrder {
    config: ReorderConfig,
    /// The number expected next: the first that is not resolved.
    next: Seq,
    /// The number behind the highest one that came, or is known to have been sent; `next` if nothing is missing.
    end: Seq,
    /// What was delivered of the numbers before `end`.
    history: History,
    waiting: Waiting,
    paths: Vec<PathEvidence>,
    /// The paths that have records, one bit each.
    recorded: u64,
    /// What follows from the records of a path that is gone: up to this number all is given up at that time.
    inherited: Option<Record>,
    /// The packets that were sent out of turn and are held.
    out_of_turn: PathEvidence,
    /// The live paths, one bit each.
    live: u64,
    /// A live path that had not passed the expected number when that was last examined.
    slowest: u8,
    /// When something came out of order, or was given up, last.
    now: Instant,
    /// When it was last examined what is overdue, and by which path a packet had come.
    examined: (Instant, PathId),
    /// Until then late packets say nothing about the order of a path.
    copies_until: Instant,
    /// Numbers out of reach that came last.
    beyond: Beyond,
    /// Packets that are sent again.
    pub(super) repairs: Repairs,
    /// Packets that came after they had been given up, without those that had been sent again.
    pub(super) late_in_turn: u64,
    stats: ReorderStats,
}

/// Why numbers are given up.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Passed,
    Overdue,
    Window,
}

impl EvidenceOrder {
    /// An order in which nothing came yet, by no path, and `next` is expected. It counts on from `stats`.
    pub(super) fn new(config: ReorderConfig, next: Seq, stats: ReorderStats) -> Self {
        Self {
            config,
            next,
            end: next,
            history: History::default(),
            waiting: Waiting::default(),
            paths: Vec::new(),
            recorded: 0,
            inherited: None,
            out_of_turn: PathEvidence::new(LONGEST_WAIT),
            live: 0,
            slowest: 0,
            now: Instant::ZERO,
            examined: (Instant::ZERO, PathId(u8::MAX)),
            copies_until: Instant::ZERO,
            beyond: Beyond::default(),
            repairs: Repairs::default(),
            late_in_turn: 0,
            stats,
        }
    }

    pub(super) fn config(&self) -> &ReorderConfig {
        &self.config
    }

    /// Bytes of memory apart from its own size, and from the packets that are held.
    pub(super) fn memory(&self) -> usize {
        let paths = self.paths.capacity() * size_of::<PathEvidence>();
        let records: usize = self.paths.iter().map(PathEvidence::memory).sum();
        self.waiting.memory() + self.history.memory() + paths + records + self.out_of_turn.memory()
    }

    /// Gives back memory that is needed while packets are held, if none is. What was given up does not come any more.
    pub(super) fn shrink(&mut self) {
        if self.next == self.end {
            self.history.fill();
        }
        if self.waiting.held() == 0 {
            self.waiting = Waiting::default();
            self.paths.iter_mut().for_each(PathEvidence::shrink);
            self.paths.shrink_to_fit();
            self.out_of_turn.shrink();
        }
    }

    /// How many paths there is room for, by their numbers.
    pub(super) fn paths(&self) -> usize {
        self.paths.len()
    }

    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// The number expected next.
    pub(super) fn next(&self) -> Option<Seq> {
        Some(self.next)
    }

    pub(super) fn stats(&self) -> ReorderStats {
        ReorderStats { held: u64::from(self.waiting.held()), ..self.stats }
    }

    /// A packet without a number: nothing can be said about its place.
    pub(super) fn pass(&mut self, packet: &[u8], sink: &mut impl Sink) {
        self.stats.unsequenced += 1;
        sink.deliver(packet);
    }

    /// A packet with a number came.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        arrived: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        let Arrived { path, seq, in_turn, .. } = arrived;
        if seq != self.next || self.end != seq {
            return self.out_of_order(now, arrived, packet, sink);
        }
        self.stats.in_order += 1;
        sink.deliver(packet);
        self.history.set_delivered(seq);
        self.next = seq.next();
        self.end = self.next;
        if in_turn {
            self.paths[path.index()].highest = Some(seq);
        }
        Ok(Accepted::Fits)
    }

    /// A packet came while numbers are missing, or others are from now on.
    fn out_of_order(
        &mut self,
        now: Instant,
        arrived: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        let Arrived { path, seq, after, in_turn } = arrived;
        self.now = now;
        match seq.offset_from(self.next) {
            REACH.. => return self.out_of_reach(now, arrived, packet, sink),
            ..0 => return self.behind(now, arrived, packet, sink),
            0 if self.end != seq => {
                self.fill_first(now, arrived, packet, sink);
                return Ok(Accepted::Fits);
            }
            _ => {}
        }
        self.beyond.end_row();
        let is_ahead = self.extend(seq);
        if self.ahead(seq) >= self.config.window {
            self.give_up_to(seq.minus(self.config.window - 1), Loss::Window, sink);
        }
        self.waiting.cover(self.next, seq);
        if !is_ahead {
            if self.history.was_delivered(seq) || self.waiting.contains(seq) {
                return Err(Drop::Duplicate);
            }
            self.repairs.on_filled(in_turn);
            self.stats.repaired += u64::from(!in_turn);
        }
        if in_turn {
            self.paths[path.index()].on_arrival(now, seq, self.next);
            self.recorded |= 1 << path.index();
        }
        if seq == self.next || self.is_resolved(after) {
            self.deliver(seq, packet, sink);
        } else if let Some(held) = sink.hold(packet) {
            self.hold(seq, after, held);
            if !in_turn {
                self.out_of_turn.record(now, seq, self.next);
            }
        } else {
            // Where nothing can be held nothing can be waited for either.
            self.give_up_to(seq, Loss::Window, sink);
            self.deliver(seq, packet, sink);
        }
        self.give_up_after(now, path, sink);
        Ok(Accepted::Fits)
    }

    /// The packet came that is expected next, and that others wait for. It shows no loss: no path has passed what
    /// follows it.
    #[inline]
    fn fill_first(
        &mut self,
        now: Instant,
        Arrived { path, seq, in_turn, .. }: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) {
        self.repairs.on_filled(in_turn);
        self.stats.repaired += u64::from(!in_turn);
        if in_turn {
            self.paths[path.index()].on_arrival(now, seq, seq);
        }
        self.deliver(seq, packet, sink);
    }

    /// A number came that was resolved before.
    fn behind(
        &mut self,
        now: Instant,
        arrived: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        let Arrived { path, seq, in_turn, .. } = arrived;
        if seq.offset_from(self.end) < -REACH {
            return self.out_of_reach(now, arrived, packet, sink);
        }
        if self.history.was_delivered(seq) {
            return Err(Drop::Duplicate);
        }
        self.beyond.end_row();
        self.stats.late += 1;
        sink.deliver(packet);
        self.history.set_delivered(seq);
        self.repairs.on_late(in_turn);
        if in_turn {
            self.late_in_turn += 1;
            self.paths[path.index()].on_late(now, seq, now < self.copies_until);
        }
        Ok(Accepted::Fits)
    }

    /// Whether a packet with this predecessor has nothing to wait for.
    fn is_resolved(&self, after: After) -> bool {
        match after {
            After::First => true,
            After::Seq(seq) => seq.offset_from(self.next) < 0 || self.history.was_delivered(seq),
            After::Unknown | After::Far => false,
        }
    }

    /// Delivers a packet that waits for nothing, and those that wait for it.
    fn deliver(&mut self, seq: Seq, packet: &[u8], sink: &mut impl Sink) {
        self.stats.in_order += 1;
        sink.deliver(packet);
        self.history.set_delivered(seq);
        let is_next = seq == self.next;
        if is_next {
            self.next = seq.next();
        }
        self.deliver_followers(seq, sink);
        if is_next {
            self.advance(sink);
        }
    }

    fn hold(&mut self, seq: Seq, after: After, held: Held) {
        self.waiting.put(self.now, self.next, seq, held);
        if let After::Seq(predecessor) = after {
            self.waiting.follow(predecessor, seq);
        }
        self.stats.held_max = self.stats.held_max.max(u64::from(self.waiting.held()));
    }

    /// `seq` was resolved: what waits for it follows, and what waits for that.
    fn deliver_followers(&mut self, mut seq: Seq, sink: &mut impl Sink) {
        while let Some((follower, held)) = self.waiting.take_follower(seq) {
            self.deliver_held(follower, held, sink);
            // Most flows have no other between their packets.
            if follower == self.next {
                self.next = follower.next();
            }
            seq = follower;
        }
    }

    fn deliver_held(&mut self, seq: Seq, (held, since): (Held, u32), sink: &mut impl Sink) {
        self.stats.reordered += 1;
        self.stats.hold_times.add(self.now.micros().wrapping_sub(since));
        sink.deliver_held(held);
        self.history.set_delivered(seq);
    }

    /// Moves the expected number past what was delivered, and delivers what waited for all before it.
    fn advance(&mut self, sink: &mut impl Sink) {
        while self.next != self.end {
            let run = self.history.run(self.next).min(self.ahead(self.end));
            if run > 0 {
                self.next = self.next.plus(run);
            } else if let Some(held) = self.waiting.take(self.next) {
                self.deliver_held(self.next, held, sink);
                self.deliver_followers(self.next, sink);
            } else {
                return;
            }
        }
        bits(std::mem::take(&mut self.recorded)).for_each(|path| self.paths[path].forget_records());
        self.out_of_turn.forget_records();
        self.inherited = None;
    }

    /// `seq` was sent. Returns whether that was not known before.
    #[inline]
    fn extend(&mut self, seq: Seq) -> bool {
        let more = seq.next().offset_from(self.end);
        if more <= 0 {
            return false;
        }
        self.history.set_missing(self.end, more.unsigned_abs());
        self.end = seq.next();
        true
    }

    /// Delivers everything that is held, and waits for nothing before it.
    pub(super) fn release_all(&mut self, sink: &mut impl Sink) {
        self.give_up_to(self.end, Loss::Window, sink);
    }

    /// Other settings. What is held leaves if its window is another.
    pub(super) fn set_config(&mut self, now: Instant, config: ReorderConfig, sink: &mut impl Sink) {
        if config.window != self.config.window {
            self.release_all(sink);
        }
        self.config = config;
        self.on_timeout(now, sink);
    }

    /// How far `seq`, which is not behind, is ahead of the expected number.
    fn ahead(&self, seq: Seq) -> u32 {
        seq.offset_from(self.next).unsigned_abs()
    }
}

#[cfg(test)]
mod tests;
