//! BBR in its first version as Linux has it (tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00): it sends at the
//! rate at which it was delivered, keeps twice that rate times its least round trip in flight, and every ten seconds
//! keeps almost nothing for 200 ms to measure that round trip again.
//!
//! Like Linux since 5.0 it allows for acknowledgements that come at once (`extra_acked`), and takes for a rate what was
//! delivered over the longer of the times in which that was sent and acknowledged. Loss means nothing to it; its
//! policer detection (`lt_bw`) and the round of packet conservation after a loss are left out.

mod aggregation;

use std::collections::VecDeque;
use std::time::Duration;

use mpt_proto::Instant;

use aggregation::Aggregation;

/// The least round trip is measured again after this time, for this time, with so many packets in flight.
const EXPIRY: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_millis(200);
const LEAST_WINDOW: f64 = 4.0;

/// Before anything is known (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// The pace in start-up, and in the round trips of a cycle after it, as shares of the rate.
const STARTUP: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The pace stays below the rate by so much, so that no queue grows (`bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;

/// Packets in flight, as a share of rate times round trip.
const WINDOW: f64 = 2.0;

/// In flight beyond that so that super-packets can be built: three of a millisecond, of two packets at least.
const SUPER_PACKETS: f64 = 3.0;
const SUPER_PACKET_TIME: f64 = 0.001;

/// A sender whose timer was late makes up for this time.
const CATCH_UP: Duration = Duration::from_millis(1);

/// The rate is the largest of so many round trips.
const ROUNDS: u64 = 10;

/// What it does at present.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// The best rate so far, and rounds without more.
    Startup(f64, u8),
    /// What start-up left in the queue is sent.
    Emptying,
    Cycle,
    /// The least round trip is measured: until when, once so little is in flight, and whether a round has passed since.
    Probe(Option<Instant>, bool),
}

/// The state of the control.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    window: f64,
    /// Packets delivered so far, when the last one was, and when the newest of these was sent.
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Until so many are delivered, rates are those of a sender that held back.
    held_back_to: u64,
    /// Packets per second, by round trip.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_ends: u64,
    least: Option<(Duration, Instant)>,
    aggregation: Aggregation,
    /// Whether start-up is over, and the window before the least round trip was measured.
    is_full: bool,
    window_before: f64,
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
    first_sent_at: Instant,
    held_back: bool,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup(0.0, 0),
            window: INITIAL_WINDOW,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            held_back_to: 0,
            rates: VecDeque::new(),
            round: 0,
            round_ends: 0,
            least: None,
            aggregation: Aggregation::default(),
            is_full: false,
            window_before: 0.0,
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

    /// So many times what is in the pipe at the rate and the least round trip, and some more.
    fn in_flight_for(&self, gain: f64, more: f64) -> Option<f64> {
        let (rate, (least, _)) = (self.rate()?, self.least?);
        let super_packet = (rate * SUPER_PACKET_TIME).floor().max(2.0);
        let raised = if self.mode == Mode::Cycle && self.phase == 0 { 2.0 } else { 0.0 };
        let pipe = (gain * rate * least.as_secs_f64()).ceil();
        Some(pipe + more + SUPER_PACKETS * super_packet + raised)
    }

    /// How many packets may be in flight.
    pub fn window(&self) -> f64 {
        match self.mode {
            Mode::Probe(..) => self.window.min(LEAST_WINDOW),
            Mode::Startup(..) | Mode::Emptying | Mode::Cycle => self.window,
        }
    }

    /// When the next packet may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A packet leaves, while so many are in flight.
    pub fn on_sent(&mut self, now: Instant, in_flight: usize) -> Sent {
        let gain = match self.mode {
            Mode::Startup(..) => STARTUP,
            Mode::Emptying => 1.0 / STARTUP,
            Mode::Cycle => CYCLE[self.phase],
            Mode::Probe(..) => 1.0,
        };
        let interval = |rate: f64| Duration::from_secs_f64(1.0 / (MARGIN * rate * gain).max(1.0));
        let late = now.before(CATCH_UP);
        self.next = self.next.max(late) + self.rate().map_or(Duration::ZERO, interval);
        if in_flight == 0 {
            (self.delivered_at, self.first_sent_at) = (now, now);
        }
        let &mut Self { delivered, delivered_at, first_sent_at, .. } = self;
        let held_back = self.held_back_to > delivered;
        Sent { at: now, delivered, delivered_at, first_sent_at, held_back }
    }

    /// `count` packets arrived that had been taken for lost.
    pub fn on_found(&mut self, count: usize) {
        self.delivered += count as u64;
    }

    /// `count` packets left the wire as they should, the last of which was sent so, with so many left in flight.
    pub fn on_acknowledged(&mut self, now: Instant, count: usize, sent: Sent, in_flight: usize) {
        self.delivered += count as u64;
        self.delivered_at = now;
        self.first_sent_at = self.first_sent_at.max(sent.at);
        let is_round = sent.delivered >= self.round_ends;
        if is_round {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        self.on_rate(now, sent);
        if let Some(rate) = self.rate() {
            self.aggregation.on_acknowledged(now, count, rate, self.window, is_round);
        }
        let before = (in_flight + count) as f64;
        self.cycle(now, before);
        if is_round && !sent.held_back {
            self.end_round();
        }
        if self.mode == Mode::Emptying
            && self.in_flight_for(1.0, 0.0).is_some_and(|pipe| in_flight as f64 <= pipe)
        {
            self.begin_cycle(now);
        }
        self.on_round_trip(now, now.since(sent.at), in_flight, is_round);
        self.set_window(count);
    }

    /// What was delivered since the packet was sent, over the longer of two times: that in which it was sent, and that in
    /// which it was acknowledged.
    fn on_rate(&mut self, now: Instant, sent: Sent) {
        let elapsed = now.since(sent.delivered_at).max(sent.at.since(sent.first_sent_at));
        if self.least.is_some_and(|(least, _)| elapsed < least) || elapsed.is_zero() {
            return;
        }
        let rate = (self.delivered - sent.delivered) as f64 / elapsed.as_secs_f64();
        if !sent.held_back || self.rate().is_none_or(|best| rate >= best) {
            // Only what is the largest from here on matters.
            while self.rates.back().is_some_and(|(_, before)| *before <= rate) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, rate));
        }
        let oldest = self.round.saturating_sub(ROUNDS);
        while self.rates.len() > 1 && self.rates.front().is_some_and(|(at, _)| *at < oldest) {
            self.rates.pop_front();
        }
    }

    fn set_window(&mut self, count: usize) {
        let gain =
            if matches!(self.mode, Mode::Startup(..) | Mode::Emptying) { STARTUP } else { WINDOW };
        let more = if self.is_full { self.aggregation.extra(self.rate()) } else { 0.0 };
        let Some(target) = self.in_flight_for(gain, more) else { return };
        let grown = self.window + count as f64;
        if self.is_full {
            self.window = grown.min(target);
        } else if self.window < target || (self.delivered as f64) < INITIAL_WINDOW {
            self.window = grown;
        }
        self.window = self.window.max(LEAST_WINDOW);
    }

    fn on_round_trip(&mut self, now: Instant, sample: Duration, in_flight: usize, is_round: bool) {
        let expired = self.least.is_some_and(|(_, at)| now.since(at) > EXPIRY);
        if expired || self.least.is_none_or(|(least, _)| sample <= least) {
            self.least = Some((sample, now));
        }
        if expired && !matches!(self.mode, Mode::Probe(..)) {
            self.mode = Mode::Probe(None, false);
            self.window_before = self.window;
        }
        let Mode::Probe(until, had_round) = &mut self.mode else { return };
        self.held_back_to = self.delivered + in_flight.max(1) as u64;
        match *until {
            None if in_flight as f64 <= LEAST_WINDOW => {
                *until = Some(now + PROBE);
                self.round_ends = self.delivered;
            }
            None => {}
            Some(until) => {
                *had_round |= is_round;
                if *had_round && now > until {
                    self.least = self.least.map(|(least, _)| (least, now));
                    self.window = self.window.max(self.window_before);
                    if self.is_full {
                        self.begin_cycle(now);
                    } else {
                        self.mode = Mode::Startup(0.0, 0);
                    }
                }
            }
        }
    }

    fn end_round(&mut self) {
        let Some(rate) = self.rate() else { return };
        let Mode::Startup(best, rounds) = &mut self.mode else { return };
        if rate >= 1.25 * *best {
            (*best, *rounds) = (rate, 0);
        } else {
            *rounds += 1;
            if *rounds >= 3 {
                self.mode = Mode::Emptying;
                self.is_full = true;
            }
        }
    }

    fn begin_cycle(&mut self, now: Instant) {
        self.mode = Mode::Cycle;
        (self.phase, self.phase_began) = (2, now);
    }

    /// The next part of the cycle, if it is time, so many having been in flight.
    fn cycle(&mut self, now: Instant, in_flight: f64) {
        let (Mode::Cycle, Some((least, _))) = (self.mode, self.least) else { return };
        let gain = CYCLE[self.phase];
        let has = |share: f64| self.in_flight_for(share, 0.0).unwrap_or_default();
        let is_over = now.since(self.phase_began) > least;
        let ends = match gain {
            _ if gain > 1.0 => is_over && in_flight >= has(gain),
            _ if gain < 1.0 => is_over || in_flight <= has(1.0),
            _ => is_over,
        };
        if ends {
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
                let sent = bbr.on_sent(now, flying.len());
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
