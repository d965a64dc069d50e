//! One direction of a wire, through which whole packets go.
//!
//! A packet passes these stations, in netem's order:
//!
//! 1. a black-out, on command or by the profile's windows, swallows it;
//! 2. it vanishes if it is longer than what passes;
//! 3. the loss process may drop it;
//! 4. it may be sent twice, the copy following at once;
//! 5. one of its bits may be inverted;
//! 6. it waits for the transmitter (`link::transmitter`), or is dropped because too many bytes wait; with a policer
//!    none waits, and it is dropped if too many would;
//! 7. when its last bit has left, delay and jitter begin, or are skipped to reorder it;
//! 8. at its due time the receiver may take it.
//!
//! The link never reads a clock: the simulator calls it in virtual time, the lab's emulator in real
//! time. Each impairment has its own random stream, so that enabling one does not affect the
//! others, and the same seed and calls give the same run.

mod carried;
mod chance;
mod flight;
mod stats;
mod transmitter;

use std::time::Duration;

use mpt_proto::Instant;

use crate::loss::LossProcess;
use crate::profile::Profile;
pub use carried::Carried;
use chance::Dice;
pub(crate) use chance::chance;
use flight::Flight;
pub use stats::{Count, DropReason, Stats};
use transmitter::Transmitter;

/// What became of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It will arrive at this time.
    Queued {
        /// When the receiver may take it.
        due: Instant,
    },
    /// It is gone, for this reason.
    Dropped(DropReason),
}

/// One direction of a wire.
#[derive(Clone, Debug)]
pub struct Link<P = Vec<u8>> {
    profile: Profile,
    origin: Instant,
    cut: bool,
    loss: LossProcess,
    dice: Dice,
    transmitter: Transmitter,
    flight: Flight<P>,
    last_due: Instant,
    stats: Stats,
}

impl Link {
    /// An idle link for real packets, whose black-out windows count from [`Instant::ZERO`].
    ///
    /// The profile should have passed [`Profile::validate`]; here a probability outside 0..=1
    /// acts as the nearest bound, a zero rate as one bit per second.
    pub fn new(profile: Profile, seed: u64) -> Self {
        Self::carrying(profile, seed)
    }
}

impl<P: Carried> Link<P> {
    /// As [`Link::new`], for whatever stands for packets.
    pub fn carrying(profile: Profile, seed: u64) -> Self {
        Self {
            origin: Instant::ZERO,
            cut: false,
            loss: LossProcess::new(profile.loss),
            dice: Dice::new(seed),
            transmitter: Transmitter::new(profile.rate),
            flight: Flight::default(),
            last_due: Instant::ZERO,
            stats: Stats::default(),
            profile,
        }
    }

    /// The same link with its black-out windows counted from `origin`.
    #[must_use]
    pub fn with_origin(mut self, origin: Instant) -> Self {
        self.origin = origin;
        self
    }

    /// Offers a packet at `now`, which must not be earlier than in any call before.
    pub fn send(&mut self, now: Instant, packet: P) -> Fate {
        self.stats.offered.add(packet.size());
        if self.is_blacked_out(now) {
            return self.lose(DropReason::Blackout, packet.size());
        }
        if self.profile.largest.is_some_and(|largest| packet.size() as u64 > largest) {
            return self.lose(DropReason::TooLong, packet.size());
        }
        if self.loss.is_lost(&mut self.dice.loss) {
            return self.lose(DropReason::Loss, packet.size());
        }
        let copy = chance(&mut self.dice.duplicate, self.profile.duplicate).then(|| packet.clone());
        let fate = self.enqueue(now, packet);
        if let Some(copy) = copy {
            self.stats.duplicated.add(copy.size());
            self.enqueue(now, copy);
        }
        fate
    }

    /// When the next packet can be received; `None` while the wire is empty.
    pub fn next_due(&self) -> Option<Instant> {
        self.flight.next_due()
    }

    /// Takes the earliest packet that is due by `now`, with its due time. Among packets due at
    /// the same time the one offered first comes first.
    pub fn receive(&mut self, now: Instant) -> Option<(Instant, P)> {
        let (due, packet) = self.flight.pop_due(now)?;
        self.stats.in_flight.remove(packet.size());
        self.stats.delivered.add(packet.size());
        Some((due, packet))
    }

    /// Cuts or restores the wire. Packets in flight arrive.
    pub fn set_blackout(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// Whether a packet offered at `now` would find the wire cut, by command or by a window.
    pub fn is_blacked_out(&self, now: Instant) -> bool {
        let age = now.since(self.origin);
        let mut windows = self.profile.blackouts.iter();
        self.cut || windows.any(|&(start, end)| now >= self.origin && start <= age && age < end)
    }

    /// Replaces the profile at `now`. Packets under way keep their due times, and the transmitter
    /// first finishes what waits for it at the rate it was planned with.
    pub fn set_profile(&mut self, now: Instant, profile: Profile) {
        self.loss.set_loss(profile.loss);
        self.transmitter.set_rate(now, profile.rate);
        self.profile = profile;
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Bytes that wait for the transmitter at `now`, including the rest of the packet on it.
    pub fn backlog(&self, now: Instant) -> u64 {
        self.transmitter.backlog(now)
    }

    /// How long a packet that is offered at `now` waits for the transmitter.
    pub fn queueing(&self, now: Instant) -> Duration {
        self.transmitter.free().since(now)
    }

    /// What happened so far. The sum always balances: see [`Stats`].
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Stations 5 to 7.
    fn enqueue(&mut self, now: Instant, mut packet: P) -> Fate {
        if chance(&mut self.dice.corrupt, self.profile.corrupt) && packet.size() > 0 {
            self.dice.invert_one_bit(&mut packet);
            self.stats.corrupted.add(packet.size());
        }
        let backlog = self.transmitter.backlog(now);
        let limit = self.profile.queue_limit().unwrap_or(u64::MAX);
        // An idle transmitter takes any packet: it does not wait.
        if backlog > 0 && backlog.saturating_add(packet.size() as u64) > limit {
            return self.lose(DropReason::Queue, packet.size());
        }
        let transmitted = self.transmitter.send(now, packet.size());
        let sent = if self.profile.policed { now } else { transmitted };
        let mut due = sent + self.propagation(packet.size());
        if self.profile.keep_order {
            due = due.max(self.last_due);
        }
        self.last_due = self.last_due.max(due);
        self.stats.in_flight.add(packet.size());
        self.flight.push(due, packet);
        Fate::Queued { due }
    }

    /// The time from the last bit sent to the last bit received.
    fn propagation(&mut self, len: usize) -> Duration {
        if chance(&mut self.dice.reorder, self.profile.reorder) {
            self.stats.reordered.add(len);
            return Duration::ZERO;
        }
        self.dice.delay(self.profile.delay, self.profile.jitter)
    }

    fn lose(&mut self, reason: DropReason, len: usize) -> Fate {
        self.stats.drop_mut(reason).add(len);
        Fate::Dropped(reason)
    }
}

#[cfg(test)]
mod tests;
