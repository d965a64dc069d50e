//! The answer to an experiment, from all its repetitions.

use std::fs;
use std::thread;

use super::{Record, Repetition, megabits};
use crate::experiment::{Experiment, ideal};
use crate::traffic::series::SAMPLE;
use crate::traffic::spread::{Spread, median};

impl Record {
    /// Medians over the repetitions, and everything they came from.
    pub fn new(experiment: &Experiment, repetitions: Vec<Repetition>) -> Self {
        let over = |figure: fn(&Repetition) -> Option<f64>| {
            repetitions.iter().filter_map(figure).collect::<Vec<_>>()
        };
        let tunnel = over(|run| run.tunnel.goodput_mbps);
        let efficiency = over(|run| run.efficiency);
        let retransmits = over(|run| run.tunnel.retransmits.map(|count| count as f64));
        let link = |index: usize| {
            let goodputs = repetitions.iter().filter_map(|run| run.links.get(index)?.goodput_mbps);
            median(&goodputs.collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let several = |values: &[f64]| Spread::of(values).filter(|spread| spread.count > 1);
        let links = &experiment.topology.links;
        Self {
            title: experiment.title.clone(),
            question: experiment.question.clone(),
            tunnel_mbps: median(&tunnel),
            links_mbps: (0..links.len()).map(link).collect(),
            links_rate_mbps: ideal::rates(experiment)
                .iter()
                .map(|rate| rate.map(megabits))
                .collect(),
            ideal_mbps: median(&over(|run| run.ideal_mbps)),
            bound_mbps: median(&over(|run| run.bound_mbps)),
            efficiency: median(&efficiency),
            yields: median(&over(|run| run.yields)),
            retransmits: median(&retransmits).map(|count| count.round() as u64),
            startup_seconds: median(&over(|run| run.tunnel.startup_seconds)),
            doubtful: repetitions.iter().any(|run| !run.reasons.is_empty()),
            reasons: reasons(&repetitions),
            tunnel_mbps_spread: several(&tunnel),
            efficiency_spread: several(&efficiency),
            sample_seconds: SAMPLE.as_secs_f64(),
            samples_mbps: typical(&repetitions)
                .map_or(Vec::new(), |run| run.tunnel.samples_mbps.clone()),
            seed: experiment.topology.seed,
            scale: 1.0,
            links: links.iter().map(|link| link.name.clone()).collect(),
            tunnel: experiment.tunnel.clone(),
            traffic: experiment.traffic.clone(),
            outage: experiment.outage.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            kernel: kernel(),
            processors: thread::available_parallelism().map_or(0, usize::from),
            repetitions,
        }
    }
}

/// All reasons; with several repetitions, each says whose it is.
fn reasons(repetitions: &[Repetition]) -> Vec<String> {
    let many = repetitions.len() > 1;
    let numbered = repetitions.iter().enumerate().flat_map(|(index, run)| {
        run.reasons.iter().map(move |reason| {
            if many { format!("run {}: {reason}", index + 1) } else { reason.clone() }
        })
    });
    numbered.collect()
}

/// The repetition whose goodput is the median, or the lower of the two around it.
fn typical(repetitions: &[Repetition]) -> Option<&Repetition> {
    let mut sorted: Vec<_> = repetitions.iter().collect();
    let goodput = |run: &Repetition| run.tunnel.goodput_mbps.unwrap_or(0.0);
    sorted.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// The kernel's release, as `uname -r` prints it.
fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |release| release.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FlowRecord;

    #[test]
    fn figures_are_medians_with_spread_and_reasons_tell_their_run() {
        let runs = [80.0, 120.0, 90.0].map(|goodput| run(goodput, &[]));
        let record = Record::new(&experiment(), runs.into());
        assert_eq!(record.tunnel_mbps, Some(90.0));
        assert_eq!(record.tunnel_mbps_spread.unwrap().max, 120.0);
        assert_eq!(record.samples_mbps, [90.0], "those of the run that is the median");
        assert!(!record.doubtful);
    }

    #[test]
    fn one_doubtful_run_makes_the_answer_doubtful() {
        let record = Record::new(&experiment(), vec![run(1.0, &[]), run(2.0, &["stalled"])]);
        assert!(record.doubtful);
        assert_eq!(record.reasons, ["run 2: stalled"]);
    }

    #[test]
    fn the_record_is_one_object_with_the_promised_keys() {
        let record = Record::new(&experiment(), vec![run(1.0, &[])]);
        let value = serde_json::to_value(&record).unwrap();
        for key in [
            "title",
            "tunnel_mbps",
            "links_mbps",
            "links_rate_mbps",
            "ideal_mbps",
            "efficiency",
            "yield",
            "retransmits",
            "startup_seconds",
            "samples_mbps",
            "doubtful",
            "reasons",
            "seed",
            "scale",
            "kernel",
            "version",
            "repetitions",
        ] {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!(value["tunnel_mbps_spread"], serde_json::Value::Null, "one run has no spread");
    }

    fn experiment() -> Experiment {
        Experiment::parse("x", "title = 't'\n[[link]]\nname = 'a'").unwrap()
    }

    fn run(goodput: f64, reasons: &[&str]) -> Repetition {
        let flow = FlowRecord {
            goodput_mbps: Some(goodput),
            samples_mbps: vec![goodput],
            ..FlowRecord::default()
        };
        Repetition {
            seed: 1,
            links: vec![flow.clone()],
            tunnel: flow,
            inner_mtu: 1464,
            ideal_mbps: None,
            bound_mbps: None,
            efficiency: None,
            yields: None,
            paths: Vec::new(),
            daemons: Vec::new(),
            outage: None,
            emulator: Vec::new(),
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        }
    }
}
