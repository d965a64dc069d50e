//! The figures of a run, by name, in the units of the experiment's file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::flow::milliseconds;
use super::{
    BesideRecord, DaemonRecord, FlowRecord, Measured, Processor, RivalRecord, Run, StreamRecord,
};
use crate::results::Figure;
use crate::traffic::spread::Spread;

/// A gap in reception is an event's if it ends so soon after that.
const AFTER_EVENT: Duration = Duration::from_secs(1);

/// The names of all figures, sorted.
pub const FIGURES: &[&str] = &[
    "behind_best_16mb_ms",
    "behind_best_1mb_ms",
    "behind_best_4mb_ms",
    "beside_after_step_max_ms",
    "beside_delay_max_ms",
    "beside_delay_p50_ms",
    "beside_delay_p95_ms",
    "beside_delay_p99_ms",
    "beside_lost_share",
    "beside_over_base_p99_ms",
    "bound_mbps",
    "cpu_emulator_seconds_per_gigabit",
    "cpu_left_percent",
    "cpu_left_seconds_per_gigabit",
    "cpu_right_percent",
    "cpu_right_seconds_per_gigabit",
    "cpu_seconds_per_gigabit",
    "delay_max_ms",
    "delay_p50_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "download_mbps",
    "download_seconds",
    "dropped_calls",
    "efficiency",
    "event_gap_ms",
    "event_second_mos",
    "extra_share",
    "gain",
    "goodput_mbps",
    "ideal_mbps",
    "jain",
    "jitter_ms",
    "late_share",
    "least_fair_share",
    "leave_seconds",
    "long_efficiency",
    "long_gain",
    "long_goodput_mbps",
    "long_over_best_alone",
    "longest_gap_ms",
    "lost_packets",
    "lost_share",
    "over_best_alone",
    "own_fair_share",
    "predicted_mbps",
    "retransmits",
    "return_seconds",
    "rival_goodput_mbps",
    "rtt_avg_ms",
    "rtt_max_ms",
    "rtt_min_ms",
    "rtt_p50_ms",
    "rtt_stddev_ms",
    "sender_rtt_ms",
    "settled_efficiency",
    "settling_seconds",
    "startup_seconds",
    "to_16mb_seconds",
    "to_1mb_seconds",
    "to_4mb_seconds",
    "video_delay_p50_ms",
    "video_delay_p95_ms",
    "video_delay_p99_ms",
    "video_late_share",
    "video_lost_share",
    "voice_delay_p50_ms",
    "voice_delay_p95_ms",
    "voice_delay_p99_ms",
    "voice_late_share",
    "voice_lost_share",
    "voice_mos",
    "worst_second_mos",
    "yield",
];

/// The figures of a system over all its repetitions. `scale` is what its cell was scaled by.
pub(super) fn figures(measured: &Measured, scale: f64) -> BTreeMap<String, Figure> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    if measured.runs.is_empty() {
        return BTreeMap::new();
    }
    for run in measured.runs.iter() {
        for (name, value) in of_run(run) {
            all.entry(name.into()).or_default().push(unscaled(name, value, scale));
        }
    }
    let figure = |(name, values): (String, Vec<f64>)| Some((name, Figure::of(&values)?));
    let mut figures: BTreeMap<_, _> = all.into_iter().filter_map(figure).collect();
    let predicted = measured.predicted_mbps.map(|Figure { median, min, max, count }| Figure {
        median: median * scale,
        min: min * scale,
        max: max * scale,
        count,
    });
    figures.extend(predicted.map(|rate| ("predicted_mbps".into(), rate)));
    figures
}

/// A figure of a cell in slow motion as it would be at the file's own speed.
fn unscaled(name: &str, value: f64, scale: f64) -> f64 {
    if name.ends_with("_mbps") {
        value * scale
    } else if name.ends_with("_ms") || name.ends_with("_seconds") {
        value / scale
    } else {
        value
    }
}

/// Every figure of one run.
fn of_run(run: &Run) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let mut add = |name, value: Option<f64>| {
        figures.extend(value.filter(|value| value.is_finite()).map(|value| (name, value)));
    };
    add("ideal_mbps", run.ideal_mbps);
    add("bound_mbps", run.bound_mbps);
    add("efficiency", run.efficiency);
    add("long_efficiency", run.long_efficiency);
    add("yield", run.yields);
    let leave = run.events.iter().find_map(|event| event.leave_seconds);
    add("leave_seconds", leave);
    let back = run.events.iter().find_map(|event| event.return_seconds);
    add("return_seconds", back);
    if !run.events.is_empty() {
        add("lost_packets", run.flow.order.map(|order| order.lost as f64));
    }
    let gaps = run.events.iter().filter_map(|event| {
        let at = Duration::from_secs_f64(event.at);
        Some(run.flow.series.as_ref()?.longest_gap(at, at + AFTER_EVENT))
    });
    add("event_gap_ms", gaps.max().map(milliseconds));
    // The change that was followed worst.
    let settling = || run.events.iter().filter_map(|event| event.settling);
    add("settling_seconds", settling().map(|one| one.seconds).reduce(f64::max));
    add("settled_efficiency", settling().map(|one| one.efficiency).reduce(f64::min));
    if let Some(calls) = &run.flow.calls {
        let [event, other] = calls.lowest(run.events.iter().map(|event| event.at));
        add("dropped_calls", Some(calls.dropped as f64));
        add("event_second_mos", event);
        add("worst_second_mos", other);
    }
    add("extra_share", run.daemons.first().and_then(DaemonRecord::extra_share));
    of_flow(&run.flow, &mut add);
    of_processor(&run.processor, &mut add);
    figures
}

fn of_flow(flow: &FlowRecord, add: &mut impl FnMut(&'static str, Option<f64>)) {
    add("goodput_mbps", flow.goodput_mbps);
    add("long_goodput_mbps", flow.long_goodput_mbps);
    add("startup_seconds", flow.startup_seconds);
    let [one, four, sixteen] = flow.to_megabytes_seconds;
    add("to_1mb_seconds", one);
    add("to_4mb_seconds", four);
    add("to_16mb_seconds", sixteen);
    add("retransmits", flow.retransmits.map(|count| count as f64));
    add("longest_gap_ms", flow.longest_gap_ms);
    add("sender_rtt_ms", flow.sender_rtt_ms);
    add("jitter_ms", flow.jitter_ms.map(|jitter| jitter.mean));
    add("download_seconds", flow.download_seconds);
    add("download_mbps", flow.download_mbps);
    if let Some(rtt) = flow.rtt_ms {
        let Spread { min, mean, median, max, stddev, .. } = rtt;
        add("rtt_min_ms", Some(min));
        add("rtt_avg_ms", Some(mean));
        add("rtt_p50_ms", Some(median));
        add("rtt_max_ms", Some(max));
        add("rtt_stddev_ms", Some(stddev));
    }
    if let Some(delay) = flow.delay_ms {
        add("delay_p50_ms", Some(delay.median));
        add("delay_p95_ms", Some(delay.p95));
        add("delay_p99_ms", Some(delay.p99));
        add("delay_max_ms", Some(delay.max));
    }
    if let Some(order) = flow.order {
        add("lost_share", Some(order.lost as f64 / order.sent.max(1) as f64));
        add("late_share", Some(order.reordered as f64 / order.received.max(1) as f64));
    }
    if let Some(rival) = flow.rival {
        let RivalRecord { goodput_mbps, jain, least_fair_share, own_fair_share } = rival;
        add("rival_goodput_mbps", Some(goodput_mbps));
        add("jain", Some(jain));
        add("least_fair_share", Some(least_fair_share));
        add("own_fair_share", Some(own_fair_share));
    }
    if let Some(beside) = flow.beside {
        let BesideRecord { delay_ms, over_base_p99_ms, after_step_max_ms, lost_share } = beside;
        add("beside_delay_p50_ms", delay_ms.map(|delay| delay.median));
        add("beside_delay_p95_ms", delay_ms.map(|delay| delay.p95));
        add("beside_delay_p99_ms", delay_ms.map(|delay| delay.p99));
        add("beside_delay_max_ms", delay_ms.map(|delay| delay.max));
        add("beside_over_base_p99_ms", over_base_p99_ms);
        add("beside_after_step_max_ms", after_step_max_ms);
        add("beside_lost_share", Some(lost_share));
    }
    if let Some(StreamRecord { delay_ms, lost_share, late_share, mos }) = flow.voice {
        add("voice_delay_p50_ms", delay_ms.map(|delay| delay.median));
        add("voice_delay_p95_ms", delay_ms.map(|delay| delay.p95));
        add("voice_delay_p99_ms", delay_ms.map(|delay| delay.p99));
        add("voice_lost_share", Some(lost_share));
        add("voice_late_share", Some(late_share));
        add("voice_mos", mos);
    }
    if let Some(StreamRecord { delay_ms, lost_share, late_share, .. }) = flow.video {
        add("video_delay_p50_ms", delay_ms.map(|delay| delay.median));
        add("video_delay_p95_ms", delay_ms.map(|delay| delay.p95));
        add("video_delay_p99_ms", delay_ms.map(|delay| delay.p99));
        add("video_lost_share", Some(lost_share));
        add("video_late_share", Some(late_share));
    }
}

fn of_processor(processor: &Processor, add: &mut impl FnMut(&'static str, Option<f64>)) {
    let Processor { elapsed, total, emulator, left, right, gigabits } = *processor;
    if gigabits > 0.0 {
        add("cpu_seconds_per_gigabit", Some(total / gigabits));
        add("cpu_emulator_seconds_per_gigabit", Some(emulator / gigabits));
        add("cpu_left_seconds_per_gigabit", Some(left / gigabits));
        add("cpu_right_seconds_per_gigabit", Some(right / gigabits));
    }
    if elapsed > 0.0 {
        add("cpu_left_percent", Some(100.0 * left / elapsed));
        add("cpu_right_percent", Some(100.0 * right / elapsed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::EventRecord;
    use super::*;
    use crate::traffic::series::Series;

    fn run(goodput: f64) -> Run {
        let flow = FlowRecord {
            goodput_mbps: Some(goodput),
            longest_gap_ms: Some(40.0),
            retransmits: Some(3),
            ..FlowRecord::default()
        };
        let processor = Processor {
            elapsed: 10.0,
            total: 8.0,
            emulator: 3.0,
            left: 2.0,
            right: 1.0,
            gigabits: 2.0,
        };
        Run { flow, processor, efficiency: Some(f64::NAN), ..Run::default() }
    }

    #[test]
    fn the_names_are_sorted() {
        assert!(FIGURES.is_sorted(), "{FIGURES:?}");
    }

    #[test]
    fn figures_are_medians_in_the_units_of_the_file() {
        let runs = [80.0, 120.0, 90.0].map(run).to_vec().into();
        let measured =
            Measured { runs, predicted_mbps: Figure::of(&[100.0]), ..Measured::default() };
        let figures = figures(&measured, 5.0);
        let goodput = figures["goodput_mbps"];
        assert_eq!(
            (goodput.median, goodput.min, goodput.max, goodput.count),
            (450.0, 400.0, 600.0, 3)
        );
        assert_eq!(figures["longest_gap_ms"].median, 8.0);
        assert_eq!(figures["retransmits"].median, 3.0);
        assert_eq!(figures["predicted_mbps"].median, 500.0);
        assert_eq!(figures["cpu_seconds_per_gigabit"].median, 4.0);
        assert_eq!(figures["cpu_left_percent"].median, 20.0);
        assert!(!figures.contains_key("efficiency"), "what is no number is no figure");
    }

    #[test]
    fn the_gap_of_an_event_is_that_of_the_second_after_it() {
        // Something arrives each 100 ms, but nothing for 400 ms while a link fails, and for 800 ms long before.
        let mut series = Series::new(Duration::from_secs(6));
        for tenth in (0..60).filter(|tenth| !matches!(tenth, 10..17 | 31..34)) {
            series.on_delivery(Duration::from_millis(100 * tenth), 1000);
        }
        series.finish();
        let flow = FlowRecord::of_series(series, Duration::from_millis(500));
        let (link, change) = ("one".to_owned(), "cut".to_owned());
        let (before_mbps, leave_seconds, return_seconds, settling) = (0.0, None, None, None);
        let at = 3.0;
        let event =
            EventRecord { link, change, at, before_mbps, leave_seconds, return_seconds, settling };
        let events = vec![event];
        let runs = vec![Run { flow, events, ..Run::default() }].into();
        let figures = figures(&Measured { runs, ..Measured::default() }, 1.0);
        assert_eq!(figures["event_gap_ms"].median, 400.0);
        assert_eq!(figures["longest_gap_ms"].median, 800.0);
    }

    #[test]
    fn systems_that_did_not_run_have_no_figures() {
        let measured = Measured { predicted_mbps: Figure::of(&[1.0]), ..Measured::default() };
        assert!(figures(&measured, 1.0).is_empty());
    }
}
