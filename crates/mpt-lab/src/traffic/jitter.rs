//! Jitter by two definitions that are both in use.
//!
//! The papers on the original MPT give the mean absolute difference of successive delays over all
//! packets of a run; RFC 3550 section 6.4.1 gives a running estimate of the same differences with a
//! gain of 1/16, so that its value at the end speaks mostly of the last packets. A report carries
//! both, since figures can be compared only within one definition.

use serde::Serialize;

/// Gain of the running estimate, RFC 3550 section 6.4.1.
const GAIN: f64 = 1.0 / 16.0;

/// Variation of delay between successive packets, in the unit of the delays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Jitter {
    /// Mean absolute difference of successive delays.
    pub mean: f64,
    /// The running estimate of RFC 3550 after the last packet.
    pub rfc3550: f64,
}

impl Jitter {
    /// The jitter of `delays` in order of arrival, `None` for fewer than two.
    ///
    /// A lost packet has no delay: its neighbours count as successive, as in both definitions.
    pub fn of(delays: &[f64]) -> Option<Self> {
        let differences = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let count = differences.len();
        if count == 0 {
            return None;
        }
        let rfc3550 = differences.clone().fold(0.0, |jitter, d| jitter + (d - jitter) * GAIN);
        Some(Self { mean: differences.sum::<f64>() / count as f64, rfc3550 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weighs_every_difference_equally() {
        let jitter = Jitter::of(&[10.0, 12.0, 9.0, 9.0]).unwrap();
        assert_eq!(jitter.mean, (2.0 + 3.0 + 0.0) / 3.0);
    }

    #[test]
    fn the_running_estimate_follows_its_formula_step_by_step() {
        let jitter = Jitter::of(&[10.0, 26.0, 10.0]).unwrap();
        // J1 = 0 + (16 - 0)/16 = 1; J2 = 1 + (16 - 1)/16 = 1.9375
        assert_eq!(jitter.rfc3550, 1.9375);
    }

    #[test]
    fn steady_delay_has_no_jitter_and_one_packet_gives_none() {
        assert_eq!(Jitter::of(&[5.0, 5.0, 5.0]), Some(Jitter { mean: 0.0, rfc3550: 0.0 }));
        assert_eq!(Jitter::of(&[5.0]), None);
        assert_eq!(Jitter::of(&[]), None);
    }
}
