//! Equal delays where paths are taken by weight.
//!
//! A long flow takes all paths, each for its share, and is in order at the peer when the slowest has brought its packets. So
//! its round trip is that of the slowest path, but for the packets before the first of those: they take the fastest, and
//! are back early. Congestion control that compares later round trips with these (HyStart, RFC 9406; BBR,
//! draft-ietf-ccwg-bbr) takes the difference of the paths for a queue, and ends its start at a fraction of what the paths
//! carry. So the peer holds full segments of TCP, from the first one on, until they have taken as long as by the slowest
//! path. What is shorter, which is requests, acknowledgements and key strokes, is not held.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::framing::datagram::Item;
use crate::scheduler::earliest::MOST_SKEW;
use crate::wire::segment;

/// Paths whose delays differ by less are not worth it, nor is a change of it that is less.
const LEAST: Duration = Duration::from_millis(4);

/// A path that takes fewer than one packet in so many is not waited for.
const RARE: u32 = 32;

/// A packet of so many bytes is a full segment.
const FULL: usize = 1000;

/// How long full segments take at least.
#[derive(Debug, Default)]
pub(super) struct ByWeight {
    /// How much longer than by the fastest path.
    delay: Duration,
    /// Whether there was a delay in this session: then the flag stays, so that no packet overtakes what still waits.
    is_used: bool,
}

impl ByWeight {
    /// Whether the peer is to hold the packet.
    #[inline(always)]
    pub(super) fn holds(&self, item: &Item<'_>) -> bool {
        self.is_used && item.packet.len() >= FULL && segment::is_tcp(item.packet, item.inner)
    }

    /// Follows the weights of the paths and their least round trips, as far as they are known. Returns whether the peer is to
    /// be told of another delay.
    pub(super) fn follow(
        &mut self,
        paths: impl Iterator<Item = (u16, Option<Duration>)> + Clone,
    ) -> bool {
        let all: u32 = paths.clone().map(|(weight, _)| u32::from(weight)).sum();
        let taken = paths.filter(|(weight, _)| u32::from(*weight) * RARE >= all);
        let (least, most) = taken
            .filter_map(|(_, trip)| trip)
            .fold((Duration::MAX, Duration::ZERO), |(least, most), trip| {
                (least.min(trip), most.max(trip))
            });
        let skew = most.saturating_sub(least) / 2;
        let skew = if skew < LEAST || skew > MOST_SKEW { Duration::ZERO } else { skew };
        let is_other = skew.abs_diff(self.delay) >= LEAST.max(self.delay / 8);
        if is_other {
            (self.delay, self.is_used) = (skew, self.is_used || !skew.is_zero());
        }
        is_other
    }

    /// As path status tells it, in microseconds.
    pub(super) fn told(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(u32::try_from(self.delay.as_micros()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The delay in milliseconds that paths of these weights and round trips in milliseconds are given.
    fn delay(by_weight: &mut ByWeight, paths: &[(u16, u32)]) -> u128 {
        by_weight.follow(paths.iter().map(|&(weight, trip)| (weight, Some(MS * trip))));
        by_weight.delay.as_millis()
    }

    #[test]
    fn is_half_the_difference_of_the_round_trips_of_paths_that_are_taken() {
        let delay = |paths: &[(u16, u32)]| delay(&mut ByWeight::default(), paths);
        assert_eq!(delay(&[]), 0);
        assert_eq!(delay(&[(1, 20)]), 0);
        assert_eq!(delay(&[(10, 0), (100, 100)]), 50);
        assert_eq!(delay(&[(100, 20), (10, 40), (50, 30)]), 10);
        assert_eq!(delay(&[(100, 20), (1, 40)]), 0, "few packets take it");
        assert_eq!(delay(&[(1, 20), (1, 26)]), 0, "too little");
        assert_eq!(delay(&[(1, 20), (1, 2000)]), 0, "too much");
    }

    #[test]
    fn does_not_follow_each_small_change() {
        let mut by_weight = ByWeight::default();
        assert_eq!(delay(&mut by_weight, &[(1, 20), (1, 120)]), 50);
        assert_eq!(delay(&mut by_weight, &[(1, 20), (1, 110)]), 50);
        assert_eq!(delay(&mut by_weight, &[(1, 20), (1, 100)]), 40);
        assert_eq!(delay(&mut by_weight, &[(1, 20)]), 0);
        assert!(by_weight.is_used, "what waits is not to be overtaken");
    }
}
