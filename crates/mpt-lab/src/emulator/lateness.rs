//! How late packets were sent, in bounded memory.
//!
//! A histogram with sixteen buckets per power of two, so that a value is known to within a
//! sixteenth of itself, whatever its size: 8 KiB, however many packets.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Buckets per power of two, as a power of two.
const FINENESS: u32 = 4;
const PER_OCTAVE: usize = 1 << FINENESS;
/// Every 64-bit number of nanoseconds has its bucket.
const BUCKETS: usize = (64 - FINENESS as usize + 1) * PER_OCTAVE;

/// A record of how late packets were sent.
#[derive(Clone)]
pub(super) struct Record {
    buckets: Box<[u64; BUCKETS]>,
    packets: u64,
    max: Duration,
}

/// How late packets were sent: the time between when a link's model said and when it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// How many packets were sent.
    pub packets: u64,
    /// Half of them were at most this late. Rounded up to a sixteenth, as is `p99`.
    #[serde(rename = "p50_seconds", serialize_with = "seconds")]
    pub p50: Duration,
    /// 99 of 100 were at most this late.
    #[serde(rename = "p99_seconds", serialize_with = "seconds")]
    pub p99: Duration,
    /// The latest was this late.
    #[serde(rename = "max_seconds", serialize_with = "seconds")]
    pub max: Duration,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), packets: 0, max: Duration::ZERO }
    }

    pub(super) fn add(&mut self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.packets += 1;
        self.max = self.max.max(late);
    }

    pub(super) fn summary(&self) -> Lateness {
        Lateness {
            packets: self.packets,
            p50: self.quantile(50),
            p99: self.quantile(99),
            max: self.max,
        }
    }

    /// The value that `percent` of the packets did not exceed, rounded up to its bucket's end.
    fn quantile(&self, percent: u64) -> Duration {
        let wanted = (u128::from(self.packets) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if count > 0 && seen >= wanted {
                return Duration::from_nanos(last_of(index)).min(self.max);
            }
        }
        Duration::ZERO
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)
    }
}

/// The bucket of a number: its leading bit and the `FINENESS` bits below it.
fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINENESS + 1);
    shift as usize * PER_OCTAVE + (nanos >> shift) as usize
}

/// The largest number of a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket / PER_OCTAVE).saturating_sub(1);
    let leading = (bucket - shift * PER_OCTAVE) as u128;
    u64::try_from(((leading + 1) << shift) - 1).unwrap_or(u64::MAX)
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_bucket_that_ends_at_most_a_sixteenth_above_it() {
        let mut previous = 0;
        for value in (0..1000).chain((10..64).map(|n| 1 << n)).chain([u64::MAX - 1, u64::MAX]) {
            let index = bucket(value);
            assert!(index < BUCKETS && index >= previous, "{value} in {index}");
            let last = last_of(index);
            assert!(last >= value && last - value <= value / 16, "{value} up to {last}");
            assert_eq!(bucket(last), index);
            if last < u64::MAX {
                assert_eq!(bucket(last + 1), index + 1);
            }
            previous = index;
        }
    }

    #[test]
    fn quantiles_count_packets() {
        let mut record = Record::new();
        assert_eq!(record.summary(), Lateness::default());
        for micros in 1..=200 {
            record.add(Duration::from_micros(micros));
        }
        let Lateness { packets, p50, p99, max } = record.summary();
        assert_eq!((packets, max), (200, Duration::from_micros(200)));
        let near = |value: Duration, micros: u64| {
            let exact = Duration::from_micros(micros);
            value >= exact && value <= exact + exact / 16
        };
        assert!(near(p50, 100) && near(p99, 198), "{p50:?} {p99:?}");
    }
}
