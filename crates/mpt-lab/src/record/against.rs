//! What a tunnel is worth beside its best link alone.
//!
//! Links and systems of a cell are measured one after the other, once in each repetition. A run of a system is
//! compared with the best link of the same repetition, which has its seed, so that both met the same chance and
//! about the same machine. Where there is none, as in a repetition that failed, the links' medians stand for it.

use std::collections::BTreeMap;

use super::{MEGABYTES, Measured, Run};
use crate::results::Figure;
use crate::traffic::spread::median;

/// The figures of a system beside the links of its cell, each measured alone; none if no link was. `scale` is what
/// the cell was scaled by.
pub(super) fn figures(
    system: &Measured,
    alone: &[Measured],
    scale: f64,
) -> BTreeMap<String, Figure> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in system.runs.iter() {
        let best = best(alone, run.seed, f64::max, |run| run.flow.goodput_mbps);
        if let (Some(got), Some(best)) = (run.flow.goodput_mbps, best.filter(|best| *best > 0.0)) {
            all.entry("over_best_alone").or_default().push(got / best);
            all.entry("gain").or_default().extend(gain(got, run.ideal_mbps, best));
            if let Some(long) = run.flow.long_goodput_mbps {
                all.entry("long_over_best_alone").or_default().push(long / best);
                all.entry("long_gain").or_default().extend(gain(long, run.ideal_mbps, best));
            }
        }
        for (name, at) in BEHIND.into_iter().zip(0..) {
            let time = |run: &Run| run.flow.to_megabytes_seconds[at];
            let behind = time(run).zip(best_of(alone, run.seed, time));
            let behind = behind.map(|(own, best)| (own - best) * 1e3 / scale);
            all.entry(name).or_default().extend(behind);
        }
    }
    let figure = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), Figure::of(&values)?));
    all.into_iter().filter_map(figure).collect()
}

/// The figures of how much later the first megabytes have arrived than over the best link.
const BEHIND: [&str; MEGABYTES.len()] =
    ["behind_best_1mb_ms", "behind_best_4mb_ms", "behind_best_16mb_ms"];

/// Of what the other links could add to the best one, the share that was added: 1 = the ideal, 0 = the best link
/// alone, below 0 = less than that. `None` where headers take more than the other links could add.
fn gain(got: f64, ideal: Option<f64>, best: f64) -> Option<f64> {
    let room = ideal? - best;
    (room > 0.0).then(|| (got - best) / room)
}

/// The shortest time of a link alone.
fn best_of(alone: &[Measured], seed: u64, time: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    best(alone, seed, f64::min, time)
}

/// The best value of any link alone, by `better`: in the run of this seed, or else at the median of its runs.
fn best(
    alone: &[Measured],
    seed: u64,
    better: fn(f64, f64) -> f64,
    value: impl Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    let of_link = |link: &Measured| {
        let same = link.runs.iter().find(|run| run.seed == seed).and_then(&value);
        let all = || median(&link.runs.iter().filter_map(&value).collect::<Vec<_>>());
        same.or_else(all)
    };
    alone.iter().filter_map(of_link).reduce(better)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FlowRecord;

    /// A repetition with its seed, goodput in Mbit/s, and seconds until 1 and 4 MB.
    fn run(seed: u64, goodput: f64, times: [f64; 2]) -> Run {
        let [one, four] = times.map(Some);
        let flow = FlowRecord {
            goodput_mbps: Some(goodput),
            to_megabytes_seconds: [one, four, None],
            ..FlowRecord::default()
        };
        Run { seed, flow, ideal_mbps: Some(100.0), ..Run::default() }
    }

    fn measured(runs: Vec<Run>) -> Measured {
        Measured { runs: runs.into(), ..Measured::default() }
    }

    #[test]
    fn a_run_is_compared_with_the_best_link_of_its_own_repetition() {
        let one = measured(vec![run(1, 50.0, [0.4, 1.0]), run(2, 25.0, [0.4, 1.0])]);
        let two = measured(vec![run(1, 20.0, [0.2, 1.5]), run(2, 40.0, [0.4, 1.0])]);
        let system = measured(vec![run(1, 75.0, [0.3, 0.9]), run(2, 70.0, [0.5, 1.2])]);
        let figures = figures(&system, &[one, two], 1.0);
        let over = figures["over_best_alone"];
        assert_eq!((over.min, over.max, over.count), (1.5, 1.75, 2));
        assert_eq!((figures["gain"].min, figures["gain"].max), (0.5, 0.5));
        let behind = figures["behind_best_1mb_ms"];
        assert!((behind.min - 100.0).abs() < 1e-9 && (behind.max - 100.0).abs() < 1e-9);
        let behind = figures["behind_best_4mb_ms"];
        assert!((behind.min + 100.0).abs() < 1e-9 && (behind.max - 200.0).abs() < 1e-9);
        assert!(!figures.contains_key("behind_best_16mb_ms"), "nobody got so far");
    }

    #[test]
    fn without_a_link_of_the_same_repetition_the_median_stands_for_it() {
        let link = measured([40.0, 50.0, 90.0].map(|rate| run(7, rate, [1.0, 2.0])).into());
        let system = measured(vec![run(1, 100.0, [1.0, 2.0])]);
        assert_eq!(figures(&system, &[link], 1.0)["over_best_alone"].median, 2.0);
        assert!(figures(&system, &[], 1.0).is_empty(), "no link was measured");
    }

    #[test]
    fn times_of_slow_motion_are_those_of_the_file_and_shares_stay() {
        let link = measured(vec![run(1, 50.0, [1.0, 2.0])]);
        let system = measured(vec![run(1, 25.0, [2.0, 4.0])]);
        let figures = figures(&system, &[link], 10.0);
        assert_eq!(figures["behind_best_1mb_ms"].median, 100.0);
        assert_eq!(figures["gain"].median, -0.5, "less than the best link alone");
    }

    #[test]
    fn the_later_part_of_a_long_run_is_compared_too() {
        let mut system = run(1, 60.0, [1.0, 2.0]);
        system.flow.long_goodput_mbps = Some(75.0);
        let link = measured(vec![run(1, 50.0, [1.0, 2.0])]);
        let figures = figures(&measured(vec![system]), &[link], 1.0);
        assert_eq!((figures["gain"].median, figures["long_gain"].median), (0.2, 0.5));
        assert_eq!(figures["long_over_best_alone"].median, 1.5);
    }

    #[test]
    fn nothing_can_be_gained_where_headers_take_it_all() {
        let mut system = run(1, 9.0, [1.0, 2.0]);
        system.ideal_mbps = Some(9.3);
        let link = measured(vec![run(1, 9.6, [1.0, 2.0])]);
        assert!(!figures(&measured(vec![system]), &[link], 1.0).contains_key("gain"));
    }
}
