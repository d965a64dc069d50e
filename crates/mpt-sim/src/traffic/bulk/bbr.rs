//! What matters of BBR (draft-ietf-ccwg-bbr; version 1, as Linux has it) to a tunnel: it sends at the rate at which it
//! was delivered, keeps twice that rate times its least round trip in flight, and every ten seconds sends almost
//! nothing for 200 ms to measure that round trip again. Loss means nothing to it.

use std::collections::VecDeque;
use std::time::Duration;

use mpt_proto::Instant;

/// The least round trip is measured again after this time, for this time, with so many packets in flight.
const EXPIRY: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_millis(200);
const PROBE_WINDOW: f64 = 4.0;

/// The pace in start-up, and in the round trips of a cycle after it, as shares of the rate.
const STARTUP: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Packets in flight, as a share of rate times round trip.
const WINDOW: f64 = 2.0;

/// A sender whose timer was late makes up for this time.
const CATCH_UP: Duration = Duration::from_millis(1);

/// The rate is the largest of so many round trips.
const ROUNDS: u64 = 10;

/// The state of the control.
#[derive(Clone, Debug)]
pub struct Bbr {
    /// Packets delivered so far, and when the last one was.
    delivered: u64,
    delivered_at: Instant,
    /// Packets per second, by round trip.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_ends: u64,
    least: Option<(Duration, Instant)>,
    probes_until: Option<Instant>,
    /// The best rate of start-up, and rounds without more; `None` after start-up.
    startup: Option<(f64, u8)>,
    drains: bool,
    phase: usize,
    phase_began: Instant,
    next: Instant,
}

/// What was known when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            rates: VecDeque::new(),
            round: 0,
            round_ends: 0,
            least: None,
            probes_until: None,
            startup: Some((0.0, 0)),
            drains: false,
            phase: 0,
            phase_began: Instant::ZERO,
            next: Instant::ZERO,
        }
    }
}

impl Bbr {
    /// Packets per second.
    fn rate(&self) -> Option<f64> {
        self.rates.iter().map(|(_, rate)| *rate).max_by(f64::total_cmp)
    }

    fn in_pipe(&self) -> Option<f64> {
        Some(self.rate()? * self.least?.0.as_secs_f64())
    }

    /// How many packets may be in flight.
    pub fn window(&self) -> f64 {
        match self.in_pipe() {
            _ if self.probes_until.is_some() => PROBE_WINDOW,
            Some(pipe) if self.startup.is_some() => (STARTUP * pipe).max(10.0),
            Some(pipe) => (WINDOW * pipe).max(PROBE_WINDOW),
            None => 10.0,
        }
    }

    /// When the next packet may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A packet leaves.
    pub fn on_sent(&mut self, now: Instant) -> Sent {
        let gain = match self.startup {
            Some(_) => STARTUP,
            None if self.drains => 1.0 / STARTUP,
            None => CYCLE[self.phase],
        };
        let interval = self
            .rate()
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / (rate * gain).max(1.0)));
        let late = Instant::ZERO + now.since(Instant::ZERO + CATCH_UP);
        self.next = self.next.max(late) + interval;
        if self.delivered == 0 {
            self.delivered_at = now;
        }
        Sent { at: now, delivered: self.delivered, delivered_at: self.delivered_at }
    }

    /// `count` packets left the wire as they should, the last of which was sent so, with so many left in flight.
    pub fn on_acknowledged(&mut self, now: Instant, count: usize, sent: Sent, in_flight: usize) {
        self.delivered += count as u64;
        self.delivered_at = now;
        let elapsed = now.since(sent.delivered_at).as_secs_f64();
        let rate = (self.delivered - sent.delivered) as f64 / elapsed.max(1e-6);
        if sent.delivered >= self.round_ends {
            self.round += 1;
            self.round_ends = self.delivered;
            self.end_round();
        }
        // While it probes for the round trip it is its own limit.
        if self.probes_until.is_none() || self.rate().is_none_or(|best| rate > best) {
            self.rates.push_back((self.round, rate));
        }
        let oldest = self.round.saturating_sub(ROUNDS);
        while self.rates.len() > 1 && self.rates.front().is_some_and(|(at, _)| *at < oldest) {
            self.rates.pop_front();
        }
        self.on_round_trip(now, now.since(sent.at));
        self.cycle(now, in_flight as f64);
    }

    fn on_round_trip(&mut self, now: Instant, sample: Duration) {
        let expired = self.least.is_some_and(|(_, at)| now.since(at) >= EXPIRY);
        if expired && self.probes_until.is_none() && self.startup.is_none() {
            self.probes_until = Some(now + PROBE);
        }
        if expired || self.least.is_none_or(|(least, _)| sample < least) {
            self.least = Some((sample, now));
        }
        if self.probes_until.is_some_and(|until| now >= until) {
            self.probes_until = None;
            self.least = self.least.map(|(least, _)| (least, now));
        }
    }

    fn end_round(&mut self) {
        let Some(rate) = self.rate() else { return };
        let Some((best, rounds)) = &mut self.startup else { return };
        if rate >= 1.25 * *best {
            (*best, *rounds) = (rate, 0);
        } else {
            *rounds += 1;
            if *rounds >= 3 {
                (self.startup, self.drains) = (None, true);
            }
        }
    }

    fn cycle(&mut self, now: Instant, in_flight: f64) {
        let (Some(pipe), Some((least, _))) = (self.in_pipe(), self.least) else { return };
        if self.startup.is_some() {
            return;
        }
        if self.drains {
            self.drains = in_flight > pipe;
            (self.phase, self.phase_began) = (2, now);
        } else if now.since(self.phase_began) >= least {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_began = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends over a path of so many packets per second with a round trip that depends on the time; returns how many
    /// were delivered by each second.
    fn run(rate: f64, trip: impl Fn(Instant) -> Duration, seconds: u64) -> (Vec<u64>, Bbr) {
        let (mut bbr, mut flying, mut free) = (Bbr::default(), VecDeque::new(), Instant::ZERO);
        let mut delivered = vec![0; seconds as usize];
        for tick in 0..seconds * 10_000 {
            let now = Instant::from_nanos(tick * 100_000);
            while let Some((at, sent)) = flying.front().copied().filter(|(at, _)| *at <= now) {
                flying.pop_front();
                bbr.on_acknowledged(now.max(at), 1, sent, flying.len());
                delivered[(tick / 10_000) as usize] += 1;
            }
            while (flying.len() as f64) < bbr.window() && bbr.next() <= now {
                let sent = bbr.on_sent(now);
                free = free.max(now) + Duration::from_secs_f64(1.0 / rate);
                flying.push_back((free + trip(now), sent));
            }
        }
        (delivered, bbr)
    }

    #[test]
    fn it_fills_a_path_and_knows_its_round_trip() {
        let (delivered, bbr) = run(4000.0, |_| Duration::from_millis(20), 9);
        assert!(delivered[2..].iter().all(|&count| count > 3800), "{delivered:?}");
        let least = bbr.least.map(|(least, _)| least.as_millis());
        assert!(least.is_some_and(|least| (20..22).contains(&least)), "{least:?}");
    }

    #[test]
    fn a_round_trip_that_is_more_than_twice_as_long_costs_its_rate_until_it_is_measured() {
        let later = Instant::ZERO + Duration::from_secs(3);
        let trip = |now| Duration::from_millis(if now < later { 20 } else { 50 });
        let (delivered, _) = run(4000.0, trip, 18);
        assert!(delivered[9] < 2000, "{delivered:?}");
        assert!(delivered[17] > 2 * delivered[9], "{delivered:?}");
    }
}
