//! What one direction of a wire is like.
//!
//! A [`Profile`] is plain data. Its default is the perfect wire: no delay, no limit, no loss.
//! [`Profile::validate`] finds what cannot be meant; reading one from a file does so by itself.
//!
//! As TOML, everything optional, with the units in the names:
//!
//! ```toml
//! rate_mbps = 40
//! queue_bytes = 250000
//! policed = false                                 # true: no packet waits, the queue is a token bucket
//! delay_ms = 10
//! jitter_ms = 0.5
//! keep_order = true
//! loss = 0.01                                     # or { p = 0.01, r = 0.3, h = 0, k = 1 }
//! duplicate = 0.001
//! corrupt = 0.001
//! reorder = 0
//! largest_bytes = 1400                            # longer packets vanish without a word
//! blackouts = [[2.0, 3.5]]                        # seconds
//! ```

mod form;

use std::time::Duration;

use crate::loss::{GilbertElliott, Loss};

/// How long the default queue takes to drain.
const DEFAULT_QUEUE_TIME_MS: u128 = 50;

/// The least default queue, in bytes: slow links still need room for a burst.
const DEFAULT_QUEUE_FLOOR_BYTES: u64 = 64_000;

/// One direction of a wire. Bytes are those of whole IP packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Bits per second, at least one. `None` is infinitely fast and so has no queue.
    pub rate: Option<u64>,
    /// The most bytes that may wait for the transmitter; `None` is max(50 ms x rate, 64 kB).
    ///
    /// A packet that finds the transmitter idle need not wait, so even 0 lets some through.
    pub queue: Option<u64>,
    /// A policer in place of a queue: packets leave at once, as long as `rate` and `queue` are kept as the rate and the
    /// depth of a token bucket; others are dropped.
    pub policed: bool,
    /// Propagation delay, added after the queue.
    pub delay: Duration,
    /// Standard deviation of the normally distributed part of the delay. The sum never falls
    /// below zero. Neighbours may overtake each other unless `keep_order`.
    pub jitter: Duration,
    /// Never deliver a packet before one that was sent earlier: it waits for its predecessor.
    pub keep_order: bool,
    /// Loss before the queue.
    pub loss: Loss,
    /// Probability that a packet is sent twice, in 0..=1. The copy is not duplicated again.
    pub duplicate: f64,
    /// Probability that one bit of a packet is inverted, in 0..=1.
    pub corrupt: f64,
    /// Probability that a packet skips delay and jitter and so overtakes others, in 0..=1.
    pub reorder: f64,
    /// The longest packet that passes, in bytes; longer ones are dropped silently. `None`: no
    /// limit.
    ///
    /// A router with a smaller next-hop MTU behaves so, if it sends no ICMP message or the message
    /// is lost.
    pub largest: Option<u64>,
    /// Windows from start (inclusive) to end (exclusive), counted from the link's origin, in
    /// which nothing enters the wire. What is on the way arrives.
    pub blackouts: Vec<(Duration, Duration)>,
}

impl Profile {
    /// The queue limit in force in bytes; `None` without a rate.
    pub fn queue_limit(&self) -> Option<u64> {
        let rate = self.rate?;
        Some(self.queue.unwrap_or_else(|| {
            let bytes = u128::from(rate) * DEFAULT_QUEUE_TIME_MS / 8_000;
            u64::try_from(bytes).unwrap_or(u64::MAX).max(DEFAULT_QUEUE_FLOOR_BYTES)
        }))
    }

    /// Looks for values that cannot be meant.
    ///
    /// # Errors
    ///
    /// The first [`ProfileError`] in the order of the fields.
    pub fn validate(&self) -> Result<(), ProfileError> {
        match (self.rate, self.queue) {
            (Some(0), _) => return Err(ProfileError::ZeroRate),
            (None, Some(_)) => return Err(ProfileError::QueueWithoutRate),
            (None, None) if self.policed => return Err(ProfileError::PolicedWithoutRate),
            (Some(_) | None, _) => {}
        }
        if self.keep_order && self.reorder > 0.0 {
            return Err(ProfileError::ReorderInOrder);
        }
        match self.loss {
            Loss::None => {}
            Loss::Random(p) => probability("loss", p)?,
            Loss::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                probability("loss.p", p)?;
                probability("loss.r", r)?;
                probability("loss.h", h)?;
                probability("loss.k", k)?;
            }
        }
        probability("duplicate", self.duplicate)?;
        probability("corrupt", self.corrupt)?;
        probability("reorder", self.reorder)?;
        for (index, &(start, end)) in self.blackouts.iter().enumerate() {
            if end <= start {
                return Err(ProfileError::BlackoutOrder { index, start, end });
            }
        }
        Ok(())
    }
}

/// Why a profile cannot be meant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A quantity is negative, infinite, too large to represent, or not a number.
    #[error("`{field}` is {value}, but must be a finite number that is not negative")]
    Amount {
        /// The key, as written in the file.
        field: &'static str,
        /// What was given.
        value: f64,
    },
    /// A black-out ends at or before its start.
    #[error(
        "black-out {} ends at {:?}, which is not after its start at {:?}",
        .index + 1, .end, .start
    )]
    BlackoutOrder {
        /// Its place in the list, from zero.
        index: usize,
        /// Its start.
        start: Duration,
        /// Its end.
        end: Duration,
    },
    /// A policer that lets everything pass.
    #[error("`policed` means nothing without `rate_mbps`")]
    PolicedWithoutRate,
    /// A probability lies outside 0..=1 or is not a number.
    #[error("`{field}` is {value}, but a probability lies between 0 and 1 (1 % is 0.01)")]
    Probability {
        /// The key, as written in the file.
        field: &'static str,
        /// What was given.
        value: f64,
    },
    /// A queue limit where nothing ever queues.
    #[error(
        "`queue_bytes` means nothing without `rate_mbps`: an infinitely fast link has no queue"
    )]
    QueueWithoutRate,
    /// Reordering is asked for and forbidden at once.
    #[error("`reorder` and `keep_order` exclude each other")]
    ReorderInOrder,
    /// A rate below one bit per second.
    #[error("`rate_mbps` is zero; leave it out for no limit, or use a black-out for a dead link")]
    ZeroRate,
}

fn probability(field: &'static str, value: f64) -> Result<(), ProfileError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::Probability { field, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_queue_is_fifty_milliseconds_but_at_least_64_kilobytes() {
        let queue = |rate| Profile { rate, ..Profile::default() }.queue_limit();
        assert_eq!(queue(Some(100_000_000)), Some(625_000));
        assert_eq!(queue(Some(1_000_000)), Some(64_000));
        assert_eq!(queue(None), None);
        let own = Profile { rate: Some(1_000_000), queue: Some(9), ..Profile::default() };
        assert_eq!(own.queue_limit(), Some(9));
    }

    #[test]
    fn invalid_values_are_named_in_the_error() {
        let cases = [
            (Profile { rate: Some(0), ..Profile::default() }, "`rate_mbps` is zero"),
            (Profile { queue: Some(1), ..Profile::default() }, "`queue_bytes` means nothing"),
            (Profile { policed: true, ..Profile::default() }, "`policed` means nothing"),
            (Profile { loss: Loss::Random(1.5), ..Profile::default() }, "`loss` is 1.5"),
            (Profile { duplicate: -0.1, ..Profile::default() }, "`duplicate` is -0.1"),
            (Profile { corrupt: f64::NAN, ..Profile::default() }, "`corrupt` is NaN"),
            (Profile { reorder: 2.0, ..Profile::default() }, "`reorder` is 2"),
            (Profile { reorder: 0.1, keep_order: true, ..Profile::default() }, "exclude"),
            (
                Profile {
                    loss: Loss::GilbertElliott(GilbertElliott { p: 0.1, r: 0.1, h: 7.0, k: 1.0 }),
                    ..Profile::default()
                },
                "`loss.h` is 7",
            ),
            (
                Profile {
                    blackouts: vec![
                        (Duration::ZERO, Duration::from_secs(1)),
                        (Duration::from_secs(3), Duration::from_secs(2)),
                    ],
                    ..Profile::default()
                },
                "black-out 2 ends at 2s",
            ),
        ];
        for (profile, part) in cases {
            let error = profile.validate().unwrap_err().to_string();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        assert_eq!(Profile::default().validate(), Ok(()));
    }
}
