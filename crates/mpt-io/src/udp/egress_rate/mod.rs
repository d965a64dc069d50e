//! How fast a socket's datagrams leave, found out by watching its queue.
//!
//! Sent datagrams are queued at the outgoing interface until a shaper or the network card takes
//! them, and the kernel reports how many bytes of a socket are still queued ([`Socket::unsent`]).
//! So the rate of a slow first hop needs no configuration. [`EgressRate`] samples that queue before
//! and after each send, and evaluates the samples about every 10 ms:
//!
//! - The queue was never empty: what left it meanwhile is what the interface can do. The estimate is the
//!   median of the last five such [samples](SAMPLES), so that a machine that stood still between
//!   reading the clock and looking spoils none.
//! - It was empty at times: the interface can do at least what was sent. That counts where there was a
//!   queue at all. A shaper that has to cut super-datagrams can keep the processor so busy that its
//!   queue never lasts from one send to the next, and shorter send batches are what ends that.
//! - There never was a queue: nothing holds anything back. An estimate that is below what was sent is
//!   no longer true.
//!
//! Looks cost a system call each. Where the queue is empty each time, as on a fast interface, only
//! one send in [16](SELDOM) is watched.
//!
//! The queue is counted in bytes of kernel memory and not of payload. The increase by a send gives
//! the ratio of the two.

mod window;

use std::time::Duration;

use super::{MAX_SUPER, SendBatch, Sent, Socket};
use window::{Verdict, Window};

/// Samples of which the median counts.
const SAMPLES: usize = 5;

/// Watched sends in a row before which there is no queue, after which only one in [`SELDOM`] is watched.
const PATIENCE: u32 = 64;
const SELDOM: u32 = 16;

/// What a send batch may take of an interface's time.
///
/// Shapers let pass at once what their bucket holds, and that is commonly 32 kB up to 1 Gbit/s, which
/// is 260 us. What is longer they cut into single packets, at many times the cost. The kernel's own TCP
/// takes up to 1 ms (`tcp_tso_autosize` in `net/ipv4/tcp_output.c`).
const BATCH_TIME: Duration = Duration::from_micros(200);

/// An estimate of the rate at which a socket's datagrams leave this host.
///
/// For paths that share a socket but leave through different interfaces, it is the sum.
#[derive(Debug, Default)]
pub struct EgressRate {
    window: Option<Window>,
    samples: Samples,
    /// Bytes of payload per second.
    rate: Option<u64>,
    /// Watched sends in a row that found no queue.
    empty: u32,
    /// Sends since the last that was watched.
    unwatched: u32,
}

impl EgressRate {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of payload per second that leave this host at most, as far as is known; `None` if nothing
    /// holds them back.
    pub fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// What the rate allows as the [limit of a send batch](super::SendBatch::set_limit), in bytes: 200 us of it.
    pub fn send_batch_limit(&self) -> usize {
        self.rate.map_or(MAX_SUPER, |rate| {
            let bytes = u128::from(rate) * BATCH_TIME.as_micros() / 1_000_000;
            usize::try_from(bytes).unwrap_or(MAX_SUPER).clamp(1, MAX_SUPER)
        })
    }

    /// Whether the next send should be measured.
    fn is_due(&self) -> bool {
        self.empty < PATIENCE || self.unwatched + 1 >= SELDOM
    }

    /// Some payload was sent without a measurement.
    fn on_unwatched(&mut self, payload: usize) {
        self.unwatched += 1;
        if let Some(window) = &mut self.window {
            window.on_unwatched(payload as u64);
        }
    }

    /// Some payload was sent at `now`; `before` and `after` that, so much was queued.
    fn on_watched(&mut self, now: Duration, before: u64, after: u64, payload: usize) {
        self.unwatched = 0;
        self.empty = if before == 0 { self.empty.saturating_add(1) } else { 0 };
        self.on_queue(now, before);
        if let Some(window) = &mut self.window {
            window.on_sent(before, after, payload as u64);
        }
    }

    /// At `now` so much is queued.
    fn on_queue(&mut self, now: Duration, queued: u64) {
        let longest = self.send_batch_limit() as u64;
        let Some(window) = &mut self.window else {
            self.window = Some(Window::new(now, queued));
            return;
        };
        window.on_look(queued);
        let Some(verdict) = window.judge(now, queued, longest) else { return };
        self.window = Some(Window::new(now, queued));
        self.on_verdict(verdict);
    }

    fn on_verdict(&mut self, verdict: Verdict) {
        // A bucket that was full at the beginning, or a send too many at the end, is no contradiction.
        let beyond = |passed: u64| self.rate.is_some_and(|rate| passed > rate + rate / 4);
        match verdict {
            Verdict::Drained(rate) => {
                self.samples.push(rate);
                self.rate = self.samples.median();
            }
            Verdict::AtLeast(passed) if self.rate.is_none() || beyond(passed) => {
                self.samples = Samples::default();
                self.rate = Some(passed);
            }
            Verdict::Passed(passed) if beyond(passed) => {
                self.samples = Samples::default();
                self.rate = None;
            }
            Verdict::AtLeast(_) | Verdict::Passed(_) | Verdict::Nothing => {}
        }
    }
}

/// The last samples.
#[derive(Debug, Default)]
struct Samples {
    values: [u64; SAMPLES],
    /// How many there were.
    count: usize,
}

impl Samples {
    fn push(&mut self, value: u64) {
        self.values[self.count % SAMPLES] = value;
        self.count += 1;
    }

    /// The middle one, or the lower of the two in the middle.
    fn median(&self) -> Option<u64> {
        let mut values = self.values;
        let values = &mut values[..self.count.min(SAMPLES)];
        values.sort_unstable();
        values.get(values.len().checked_sub(1)? / 2).copied()
    }
}

impl Socket {
    /// Sends a send batch like [`send`](Self::send), in pieces as long as `egress_rate` thinks right for the rate
    /// at which this socket's datagrams leave, and lets it watch. All sends of a socket should be given the
    /// same `egress_rate`.
    ///
    /// `now` is the time since any fixed moment; it may be some microseconds old.
    pub fn send_watched(
        &self,
        send_batch: &mut SendBatch,
        egress_rate: &mut EgressRate,
        now: Duration,
    ) -> Sent {
        send_batch.set_limit(egress_rate.send_batch_limit());
        let before = egress_rate.is_due().then(|| self.unsent());
        let sent = self.send(send_batch);
        match before {
            Some(before) => egress_rate.on_watched(now, before, self.unsent(), sent.bytes),
            None => egress_rate.on_unwatched(sent.bytes),
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MICROSECOND: u64 = 1_000;
    /// Bytes per second: 1 Gbit/s.
    const GIGABIT: u64 = 125_000_000;

    /// A socket with a queue that egress_rates at a rate, and a clock.
    struct Host {
        egress_rate: EgressRate,
        now: u64,
        /// Bytes per second of payload; `None` for all at once.
        rate: Option<u64>,
        /// Payload in nanobytes, so that nothing is lost in rounding.
        queued: u128,
        /// Bytes of memory for one of payload, in percent.
        memory: u64,
        sends: u32,
        watched: u32,
    }

    impl Host {
        fn new(rate: Option<u64>, memory: u64) -> Self {
            let egress_rate = EgressRate::new();
            Self { egress_rate, now: 0, rate, queued: 0, memory, sends: 0, watched: 0 }
        }

        fn look(&self) -> u64 {
            (self.queued / 1_000_000_000) as u64 * self.memory / 100
        }

        fn pass(&mut self, nanoseconds: u64) {
            self.now += nanoseconds;
            let drained =
                self.rate.map_or(u128::MAX, |rate| u128::from(rate) * u128::from(nanoseconds));
            self.queued = self.queued.saturating_sub(drained);
        }

        fn send(&mut self, payload: usize) {
            self.sends += 1;
            let due = self.egress_rate.is_due();
            let before = self.look();
            if self.rate.is_some() {
                self.queued += payload as u128 * 1_000_000_000;
            }
            if due {
                self.watched += 1;
                let now = Duration::from_nanos(self.now);
                self.egress_rate.on_watched(now, before, self.look(), payload);
            } else {
                self.egress_rate.on_unwatched(payload);
            }
        }

        /// Sends this amount this many times, at intervals.
        fn run(&mut self, sends: u32, payload: usize, interval: u64) {
            for _ in 0..sends {
                self.send(payload);
                self.pass(interval);
            }
        }

        /// Keeps about 20 ms queued for as long as the shaper needs for that many send batches.
        fn saturate(&mut self, sends: u32, payload: usize) {
            let rate = self.rate.expect("what is saturated has a rate");
            let interval = payload as u64 * 1_000_000_000 / rate;
            self.send((rate / 50) as usize);
            self.run(sends, payload, interval);
        }
    }

    fn assert_near(rate: Option<u64>, expected: u64) {
        let rate = rate.expect("a rate");
        assert!(rate.abs_diff(expected) * 50 <= expected, "{rate} instead of {expected}");
    }

    #[test]
    fn a_queue_that_never_empties_shows_the_rate() {
        for (rate, payload) in [(GIGABIT, 60_000), (GIGABIT / 10, 20_000), (GIGABIT / 1000, 1400)] {
            // However much memory a byte of payload takes.
            for memory in [100, 104, 155, 1200] {
                let mut host = Host::new(Some(rate), memory);
                host.saturate(2000, payload);
                assert_near(host.egress_rate.rate(), rate);
                let limit = rate / 5000;
                assert!((host.egress_rate.send_batch_limit() as u64).abs_diff(limit) * 40 <= limit);
            }
        }
    }

    #[test]
    fn without_a_queue_there_is_no_limit_and_few_measurements() {
        let mut host = Host::new(None, 104);
        host.run(64 + 1600, 60_000, 50 * MICROSECOND);
        assert_eq!(
            (host.egress_rate.rate(), host.egress_rate.send_batch_limit()),
            (None, MAX_SUPER)
        );
        assert_eq!(host.watched, 64 + 100);
    }

    #[test]
    fn a_queue_is_detected_again_with_few_measurements() {
        let mut host = Host::new(None, 104);
        host.run(1000, 60_000, 50 * MICROSECOND);
        host.rate = Some(GIGABIT);
        host.saturate(200, 60_000);
        assert_near(host.egress_rate.rate(), GIGABIT);
    }

    #[test]
    fn a_queue_that_empties_shows_what_passed_at_least() {
        // Half the rate is used: each send batch waits, and none is left when the next comes.
        let mut host = Host::new(Some(GIGABIT), 155);
        host.run(200, 60_000, 960 * MICROSECOND);
        assert_near(host.egress_rate.rate(), GIGABIT / 2);
        // Then more passes: that is believed.
        host.run(200, 60_000, 600 * MICROSECOND);
        let raised = host.egress_rate.rate().unwrap();
        assert!((GIGABIT * 2 / 3..=GIGABIT * 4 / 5).contains(&raised), "{raised}");
        // Then less is sent: the interface is no slower for that.
        host.run(200, 60_000, 3000 * MICROSECOND);
        assert_eq!(host.egress_rate.rate(), Some(raised));
        // Then all of it is needed.
        host.saturate(200, 60_000);
        assert_near(host.egress_rate.rate(), GIGABIT);
    }

    #[test]
    fn bursts_give_no_rate_between_them() {
        // A card that reports completion with a short delay, as most do.
        let mut host = Host::new(Some(GIGABIT), 104);
        for _ in 0..600 {
            host.run(8, 25_000, 250 * MICROSECOND);
            host.pass(250_000 * MICROSECOND);
        }
        assert_eq!(
            (host.egress_rate.rate(), host.egress_rate.send_batch_limit()),
            (None, MAX_SUPER)
        );
    }

    #[test]
    fn a_slow_phase_is_discarded_even_if_followed_by_a_slower_one() {
        for rate in [GIGABIT / 50, GIGABIT / 20, GIGABIT / 11] {
            let mut host = Host::new(Some(GIGABIT / 1000), 104);
            host.saturate(2000, 1400);
            assert_near(host.egress_rate.rate(), GIGABIT / 1000);
            host.rate = None;
            host.pass(1);
            let payload = (rate / 10_000) as usize;
            host.run(20_000, payload, 100 * MICROSECOND);
            assert_eq!(host.egress_rate.rate(), None, "{rate}");
        }
    }

    #[test]
    fn a_stalled_queue_is_discarded() {
        let mut host = Host::new(Some(GIGABIT / 10), 104);
        host.send(300_000);
        host.rate = Some(1);
        host.pass(60_000_000 * MICROSECOND);
        host.rate = Some(GIGABIT / 10);
        host.run(20_000, 1000, 100 * MICROSECOND);
        assert!(
            host.egress_rate.rate().is_none_or(|rate| rate >= GIGABIT / 20),
            "{:?}",
            host.egress_rate
        );
    }

    #[test]
    fn a_card_with_late_completions_is_measured_seldom() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.run(64 + 1600, 1000, 1000 * MICROSECOND);
        assert_eq!(host.watched, 64 + 100);
    }

    #[test]
    fn a_low_send_rate_gives_no_estimate() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.run(1000, 60, 1000 * MICROSECOND);
        assert_eq!(host.egress_rate.rate(), None);
    }

    #[test]
    fn a_rate_that_changes_is_followed() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.saturate(200, 60_000);
        for rate in [GIGABIT / 20, GIGABIT / 2] {
            host.rate = Some(rate);
            host.saturate(400, 10_000);
            assert_near(host.egress_rate.rate(), rate);
        }
    }

    #[test]
    fn a_limit_that_is_gone_is_forgotten_once_more_passes() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.saturate(200, 60_000);
        host.rate = None;
        host.pass(1);
        // Less than the rate: this gives no information.
        host.run(1000, 25_000, 400 * MICROSECOND);
        assert_near(host.egress_rate.rate(), GIGABIT);
        host.run(1000, 25_000, 100 * MICROSECOND);
        assert_eq!(host.egress_rate.rate(), None);
    }

    #[test]
    fn a_clock_that_stands_still_shows_nothing() {
        let mut egress_rate = EgressRate::new();
        for send in 0..1000 {
            egress_rate.on_watched(Duration::from_secs(1), send * 50, send * 50 + 100, 100);
        }
        assert_eq!(egress_rate.rate(), None);
        // Nor does one that goes back.
        egress_rate.on_watched(Duration::ZERO, 50_000, 50_100, 100);
        assert_eq!(egress_rate.rate(), None);
    }

    #[test]
    fn one_machine_stall_does_not_change_the_estimate() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.saturate(400, 60_000);
        // The clock was read, then the machine stood still; the queue drained.
        host.send(6_000_000);
        let before = host.now;
        host.pass(20_000 * MICROSECOND);
        host.now = before + 100 * MICROSECOND;
        for _ in 0..100 {
            host.run(1, 60_000, 480 * MICROSECOND);
            assert_near(host.egress_rate.rate(), GIGABIT);
        }
    }

    #[test]
    fn what_other_paths_of_the_socket_send_elsewhere_is_not_counted() {
        let mut host = Host::new(Some(GIGABIT), 104);
        host.send(4_000_000);
        for _ in 0..400 {
            host.send(25_000);
            host.pass(100 * MICROSECOND);
            // Through an interface that takes all at once: the queue does not grow.
            let (now, queued) = (Duration::from_nanos(host.now), host.look());
            host.egress_rate.on_watched(now, queued, queued, 60_000);
            host.pass(100 * MICROSECOND);
        }
        assert_near(host.egress_rate.rate(), GIGABIT);
    }

    #[test]
    fn a_queue_that_others_fill_is_no_sample() {
        let mut egress_rate = EgressRate::new();
        for send in 0..100 {
            // Each time there is more than the last send left.
            let before = 10_000 + send * 1_000_000;
            egress_rate.on_watched(Duration::from_millis(send * 5), before, before + 1500, 1400);
        }
        assert_eq!(egress_rate.rate(), None);
    }

    proptest! {
        /// Any values of a kernel and a clock.
        #[test]
        fn limits_stay_in_range(
            looks in prop::collection::vec(
                (any::<u32>(), prop_oneof![Just(0), any::<u32>()], any::<u32>(), 0..300_000_usize),
                1..200,
            ),
        ) {
            let mut egress_rate = EgressRate::new();
            for (now, before, after, payload) in looks {
                if egress_rate.is_due() {
                    let now = Duration::from_micros(now.into());
                    egress_rate.on_watched(now, before.into(), after.into(), payload);
                } else {
                    egress_rate.on_unwatched(payload);
                }
                prop_assert!((1..=MAX_SUPER).contains(&egress_rate.send_batch_limit()));
            }
        }
    }
}
