//! The *early delay*: how long packets of TCP connections take at the least from the first one on.
//!
//! BBR (draft-ietf-ccwg-bbr) keeps twice its least round trip in flight, and believes in that round trip for ten
//! seconds. The first packets of a connection meet empty paths, so they take the fastest and come back as soon as can
//! be. If that path carries little, or if it was luck because delays vary, what is in flight is not enough for the paths
//! that carry much. So the peer holds packets of TCP connections, from the first one on, until they have taken about half
//! as long as they will take when the paths are full. When they are, that delays nothing.
//!
//! Where delays vary, what comes in order waits for the slowest packets, and for lost ones until others have proved them lost
//! and they have come again. A round trip is then rarely as short as the luck of the first packets makes it, so
//! it is not half but all of that.
//!
//! A path that carries little compared with the best does not have all wait that long. There it is half of what a packet rarely
//! takes longer, and no more than what the path adds is worth.
//!
//! If the paths that this leaves out carry most, half is not enough: until more waits for the fastest path than the
//! difference of the delays nothing takes the others, and such a sender stops before. Then it is the whole difference,
//! and all paths are as good from the first packet on.

use std::time::Duration;

use crate::id::PathId;
use crate::queue::Early;

/// A window of two round trips is taken to fill so much of them: some of it is needed for what waits in queues.
const FILLS: f64 = 1.8;

/// Fewer paths suffice if they carry this share of what the best one of all does: rates are not known better.
const ENOUGH: f64 = 0.8;

/// More are worth it if they carry so much more.
const WORTH: f64 = 1.04;

/// A path that carries a tenth of what the faster ones do is worth a tenth of the first, and so on; but none is worth more than
/// the second, or than the third if the faster ones carry less than it: half of what the slowest path in use may take longer.
const WORTH_DELAY: Duration = Duration::from_millis(240);
const MOST: Duration = Duration::from_millis(90);
const MOST_OF_BEST: Duration = Duration::from_millis(170);

/// What comes in order takes so many times longer than by the fastest path as delays exceed their least on average.
const WAITS: u32 = 5;

/// Delays rarely exceed their least by more than the first times what they do on average. Where the rate of a path is a guess it is the
/// second: it may carry little, and then nobody should wait for it; but it may carry most.
const RARELY: [u32; 2] = [3, 2];

/// What carries less than this share of the best path does not have all wait as long as it may take where its delays vary.
pub(super) const LITTLE: f64 = 0.25;

/// No early delay is longer: a path that takes so long is left to those senders that fill it by themselves.
const LONGEST: Duration = Duration::from_millis(70);

/// What is known of a path before it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) path: PathId,
    /// In bytes per second, if anything is known of it; and whether it is more than a guess.
    pub(super) rate: Option<u64>,
    pub(super) is_known: bool,
    /// How much longer than by the fastest path packets take at their best.
    pub(super) skew: Duration,
    /// How much delays exceed the least one on average although nothing stands in a queue.
    pub(super) spread: Duration,
}

/// How much longer than by the fastest path what comes in order takes where delays vary; zero where they do not. The best path
/// has the rate `most`.
fn wait(ways: &[Way], most: f64) -> Duration {
    let varies = |way: &&Way| !way.spread.is_zero();
    // One of which that is not known is not worth a longer round trip by another that is steady.
    let all_vary = ways.iter().all(|way| varies(&way));
    let carries = |way: &&Way| way.rate.map_or(all_vary, |rate| rate as f64 >= LITTLE * most);
    let slow = ways.iter().filter(varies).filter(carries);
    slow.map(|way| way.skew + way.spread * WAITS).max().unwrap_or_default().min(LONGEST)
}

/// The early delay over some paths, the fastest of which has this round trip.
pub(super) fn early_delay(ways: &mut [Way], round_trip: Duration) -> Early {
    ways.sort_by_key(|way| (way.skew, way.path));
    let most = ways.iter().filter_map(|way| way.rate).max().unwrap_or_default() as f64;
    let [mut carried, mut reached] = [0.0; 2];
    // How much longer a round trip has to be, so that a window of two of them fills one that takes so much longer.
    let half_of = |longer| (round_trip + longer).div_f64(FILLS).saturating_sub(round_trip);
    let mut early = Early::default();
    let fastest = ways.first().map(|way| way.path);
    for way in ways.iter() {
        let Some(rate) = way.rate else { continue };
        carried += rate as f64;
        // At their best is not how long packets take where delays vary.
        let usual = half_of(way.skew + way.spread);
        let is_needed = reached < ENOUGH * most && usual.max(way.skew) <= LONGEST;
        let longest = if reached < ENOUGH * rate as f64 { MOST_OF_BEST } else { MOST };
        let worth = WORTH_DELAY.mul_f64(rate as f64 / reached.max(1.0)).min(longest);
        let is_worth_it = usual <= worth && carried >= WORTH * reached;
        // What comes in order takes longer yet. For paths that are needed `wait` adds that.
        let rarely = if is_needed { 1 } else { RARELY[usize::from(!way.is_known)] };
        let half = half_of(way.skew + way.spread * rarely).min(worth).max(usual);
        let needs = if is_needed { half.max(way.skew) } else { half };
        let is_longer = half > early.delay;
        if is_longer && !is_needed && !is_worth_it {
            continue;
        }
        reached = carried;
        if is_longer {
            // By the fastest path alone the first round trip is as much a matter of luck.
            let is_needed = is_needed && Some(way.path) != fastest;
            early.delay = needs;
            early.is_needed |= is_needed;
        }
    }
    let delay = early.delay.max(wait(ways, most));
    Early { delay, enough: half_of(delay), ..early }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The early delay in milliseconds over paths of so many Mbit/s, if that is known, so much slower than the fastest, whose delays
    /// exceed their least by so much on average.
    fn early(paths: &[(u64, u64, u64)], round_trip: u64) -> u128 {
        let ms = Duration::from_millis;
        let way = |(index, &(mbps, skew, spread)): (usize, &(u64, u64, u64))| {
            let rate = Some(mbps * 125_000).filter(|_| mbps > 0);
            Way {
                path: PathId(index as u8),
                rate,
                is_known: true,
                skew: ms(skew),
                spread: ms(spread),
            }
        };
        let mut ways: Vec<Way> = paths.iter().enumerate().map(way).collect();
        early_delay(&mut ways, ms(round_trip)).delay.as_millis()
    }

    #[test]
    fn paths_that_a_window_of_two_round_trips_fills_need_none() {
        assert_eq!(early(&[], 20), 0);
        assert_eq!(early(&[(50, 0, 0), (50, 0, 0)], 20), 0);
        assert_eq!(early(&[(50, 0, 0), (50, 10, 0)], 20), 0);
    }

    #[test]
    fn a_slower_path_that_doubles_the_rate_is_worth_half_its_delay() {
        assert_eq!(early(&[(50, 0, 0), (50, 25, 0)], 20), 5);
        assert_eq!(early(&[(50, 50, 0), (50, 0, 0)], 20), 18);
        assert_eq!(early(&[(50, 0, 0), (50, 150, 0)], 20), 74);
        assert_eq!(early(&[(50, 0, 0), (50, 175, 0)], 20), 88);
        assert_eq!(early(&[(50, 0, 0), (50, 180, 0)], 20), 0, "that would be 91 ms");
        assert_eq!(early(&[(40, 0, 0), (20, 130, 0)], 35), 56);
        assert_eq!(early(&[(40, 0, 0), (20, 143, 0)], 33), 64);
        assert_eq!(
            early(&[(40, 0, 0), (10, 143, 0)], 33),
            0,
            "that would be 64 ms, it is worth 60"
        );
        assert_eq!(early(&[(300, 0, 0), (30, 16, 0)], 8), 5, "it adds a tenth");
        assert_eq!(early(&[(300, 0, 0), (10, 16, 0)], 8), 0, "it adds little");
        assert_eq!(early(&[(300, 0, 0), (30, 11, 5)], 8), 10, "half of what it rarely exceeds");
        assert_eq!(early(&[(90, 0, 0), (10, 12, 20)], 16), 26, "more is not worth a tenth");
    }

    #[test]
    fn of_a_path_whose_rate_is_a_guess_less_is_enough() {
        let (rate, spread) = (Some(100), Duration::from_millis(10));
        for (is_known, millis) in [(true, 18), (false, 12)] {
            let way = |path, skew| Way {
                path: PathId(path),
                rate,
                is_known,
                skew: Duration::from_millis(skew),
                spread: Duration::ZERO,
            };
            // One that is steady and carries more has nobody wait for all that delays vary by.
            let steady = Way { rate: Some(1000), ..way(0, 0) };
            let mut ways = [steady, Way { spread, ..way(1, 15) }];
            let delay = early_delay(&mut ways, Duration::from_millis(15)).delay;
            assert_eq!(delay.as_millis(), millis, "{is_known}");
        }
    }

    #[test]
    fn a_path_that_carries_most_is_worth_its_whole_delay() {
        assert_eq!(early(&[(5, 0, 0), (50, 25, 0)], 10), 25);
        assert_eq!(early(&[(5, 0, 0), (50, 180, 0)], 10), 95, "half of it where that is too long");
        assert_eq!(early(&[(10, 0, 0), (100, 1, 0)], 20), 0);
    }

    #[test]
    fn a_path_that_carries_more_than_the_faster_ones_is_worth_half_of_any_delay() {
        assert_eq!(early(&[(78, 0, 0), (230, 237, 0)], 62), 104);
        assert_eq!(
            early(&[(78, 0, 0), (80, 237, 0)], 62),
            0,
            "it adds no more than the faster one carries"
        );
        assert_eq!(early(&[(12, 0, 0), (27, 168, 0), (63, 233, 0)], 10), 125);
    }

    #[test]
    fn it_is_needed_where_the_fastest_path_carries_little() {
        let is_needed = |rates: [u64; 2], skew: u64, spread: u64| {
            let way = |index: usize| {
                let skew = Duration::from_millis(if index > 0 { skew } else { 0 });
                let (path, rate) = (PathId(index as u8), Some(rates[index] * 125_000));
                Way { path, rate, is_known: true, skew, spread: Duration::from_millis(spread) }
            };
            early_delay(&mut [way(0), way(1)], Duration::from_millis(20)).is_needed
        };
        assert!(is_needed([5, 50], 25, 0) && is_needed([5, 50], 25, 10));
        assert!(!is_needed([50, 50], 25, 0) && !is_needed([50, 50], 0, 10));
        assert!(!is_needed([5, 50], 10, 0), "two round trips of the first fill both");
        assert!(
            !is_needed([50, 50], 0, 30),
            "the first round trip is luck by the best path alone as well"
        );
    }

    #[test]
    fn what_began_with_a_round_trip_of_which_two_fill_the_present_one_takes_it() {
        let way = |path, mbps: u64, skew| {
            let (skew, spread) = (Duration::from_millis(skew), Duration::ZERO);
            Way { path: PathId(path), rate: Some(mbps * 125_000), is_known: true, skew, spread }
        };
        let enough = |round_trip| {
            let early =
                early_delay(&mut [way(0, 5, 0), way(1, 50, 36)], Duration::from_millis(round_trip));
            assert_eq!(early.delay.as_millis(), 36);
            early.enough.as_millis()
        };
        assert_eq!([enough(0), enough(18), enough(36)], [20, 12, 4]);
    }

    #[test]
    fn where_delays_vary_it_is_all_that_packets_wait_for_each_other() {
        assert_eq!(early(&[(50, 0, 10), (50, 0, 10)], 20), 50);
        assert_eq!(early(&[(50, 0, 2), (50, 20, 4)], 20), 40);
        assert_eq!(early(&[(0, 0, 4), (0, 0, 12)], 20), 60, "whatever they carry");
        assert_eq!(early(&[(50, 0, 20), (50, 0, 0)], 20), 70, "no longer");
        assert_eq!(early(&[(50, 0, 0), (10, 0, 20)], 20), 24, "half of it, as it carries little");
        assert_eq!(early(&[(50, 0, 0), (0, 0, 20)], 20), 0, "it may carry little");
        assert_eq!(early(&[(50, 0, 0), (20, 0, 10)], 20), 50);
    }
}
