//! What a property was set to, what the packets say, and whether that is the same.

use std::time::Duration;

use super::stream::Arrivals;
use crate::results::Check;
use crate::traffic::spread::median;

/// How far the median of the delay may lie off, in milliseconds.
const DELAY_TOLERANCE: f64 = 0.3;
/// How far the standard deviation of the delay may lie off, as a share.
const JITTER_TOLERANCE: f64 = 0.05;
/// How far a rate may lie off, as a share.
const RATE_TOLERANCE: f64 = 0.01;
/// How many standard deviations the share of lost packets may lie off.
const LOSS_DEVIATIONS: f64 = 3.0;

/// A property of a link, as it was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Property {
    /// One-way delay.
    Delay(Duration),
    /// Normally distributed delay.
    Jitter { mean: Duration, deviation: Duration },
    /// Share of packets lost.
    Loss(f64),
    /// Outer IP bits per second.
    Rate(u64),
}

impl Property {
    /// Compares it with what arrived. What cannot be measured, for want of packets, is not passed.
    pub(super) fn check(self, arrivals: &Arrivals) -> Check {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        match self {
            Self::Delay(delay) => check(
                format!("delay {} ms, median", ms(delay)),
                ms(delay),
                median(&arrivals.delays_ms()),
                DELAY_TOLERANCE,
                "ms",
            ),
            Self::Jitter { mean, deviation } => check(
                format!("jitter {} ms ± {} ms, standard deviation", ms(mean), ms(deviation)),
                ms(deviation),
                deviation_of(&arrivals.undisturbed_delays_ms()),
                ms(deviation) * JITTER_TOLERANCE,
                "ms",
            ),
            Self::Loss(share) => {
                let sent = arrivals.sent as f64;
                let lost =
                    (arrivals.sent > 0).then(|| (1.0 - arrivals.times.len() as f64 / sent) * 100.0);
                let tolerance = LOSS_DEVIATIONS * (share * (1.0 - share) / sent).sqrt() * 100.0;
                let name = format!("loss {} % of {} packets", share * 100.0, arrivals.sent);
                check(name, share * 100.0, lost, tolerance, "%")
            }
            Self::Rate(rate) => {
                let mbps = rate as f64 / 1e6;
                let name = format!("rate {mbps} Mbit/s");
                check(name, mbps, rate_mbps(arrivals), mbps * RATE_TOLERANCE, "Mbit/s")
            }
        }
    }
}

fn check(name: String, set: f64, got: Option<f64>, tolerance: f64, unit: &str) -> Check {
    let passed = got.is_some_and(|got| (got - set).abs() <= tolerance);
    Check { name, set, got: got.unwrap_or_default(), tolerance, unit: unit.into(), passed }
}

/// The rate between the first arrival and the last: a link that is overloaded is never idle between
/// the two.
fn rate_mbps(arrivals: &Arrivals) -> Option<f64> {
    let (&(_, first), &(_, last)) = (arrivals.times.first()?, arrivals.times.last()?);
    let bits = (arrivals.times.len() - 1) as f64 * arrivals.size as f64 * 8.0;
    let seconds = last.saturating_sub(first).as_secs_f64();
    (seconds > 0.0).then(|| bits / seconds / 1e6)
}

/// The standard deviation of a sample; `None` of fewer than two values.
fn deviation_of(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Packets of 1250 bytes, one each `interval`, delayed as listed, in microseconds.
    fn arrivals(sent: u64, interval: u64, delays: impl Iterator<Item = u64>) -> Arrivals {
        let times = (0..).zip(delays);
        let times = times.map(|(n, delay)| (micros(n * interval), micros(n * interval + delay)));
        Arrivals { sent, size: 1250, times: times.collect(), stalls: Vec::new() }
    }

    #[test]
    fn the_median_of_the_delay_may_lie_three_tenths_off() {
        let property = Property::Delay(Duration::from_millis(10));
        for (delay, passed) in [(10_290, true), (9_710, true), (10_310, false), (9_690, false)] {
            // Few packets, however late, move no median.
            let delays = (0..101).map(|n| if n % 3 == 0 { 90_000 } else { delay });
            let check = property.check(&arrivals(101, 1000, delays));
            assert_eq!(check.passed, passed, "{check:?}");
            assert!((check.got - delay as f64 / 1e3).abs() < 1e-9);
        }
    }

    #[test]
    fn the_rate_is_that_between_the_first_and_the_last_arrival() {
        let property = Property::Rate(10_000_000);
        // 1250 bytes each 1000 us are 10 Mbit/s.
        for (interval, passed) in
            [(1000, true), (1009, true), (992, true), (1011, false), (989, false)]
        {
            let check = property.check(&arrivals(1000, interval, std::iter::repeat_n(7, 1000)));
            assert_eq!(check.passed, passed, "{check:?}");
        }
        assert_eq!(property.check(&arrivals(1, 1, [5].into_iter())).got, 0.0);
    }

    #[test]
    fn loss_is_judged_by_its_own_chance() {
        let property = Property::Loss(0.01);
        // Three standard deviations of 200 in 20 000 are 42.2 packets.
        for (lost, passed) in [(200, true), (242, true), (158, true), (243, false), (157, false)] {
            let delays = std::iter::repeat_n(5, 20_000 - lost);
            let check = property.check(&arrivals(20_000, 1, delays));
            assert_eq!(check.passed, passed, "{check:?}");
        }
    }

    #[test]
    fn jitter_is_a_standard_deviation() {
        let (mean, deviation) = (Duration::from_millis(20), Duration::from_millis(2));
        let property = Property::Jitter { mean, deviation };
        for (off, passed) in
            [(2000, true), (2090, true), (1910, true), (2110, false), (1890, false)]
        {
            let delays = (0..4000).map(|n| if n % 2 == 0 { 20_000 + off } else { 20_000 - off });
            let check = property.check(&arrivals(4000, 500, delays));
            assert_eq!(check.passed, passed, "{check:?}");
        }
    }

    #[test]
    fn without_packets_nothing_is_passed() {
        let ms = Duration::from_millis(10);
        let all = [
            Property::Delay(ms),
            Property::Jitter { mean: ms, deviation: ms },
            Property::Loss(0.01),
            Property::Rate(1),
        ];
        for property in all {
            assert!(!property.check(&Arrivals::default()).passed, "{property:?}");
        }
    }
}
