//! A whole experiment of the laboratory with the daemon that ships, from its file to its record.

use mpt_lab::experiment::{Experiment, runner::Bench, stop::Stop, watch::Silence};
use mpt_lab::record::Line;
use serde_json::Value;

use crate::site;
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[("an_experiment_from_file_to_record", whole)];

/// Slow links, so that what is measured is the tunnel and not this machine.
const FILE: &str = "
title = 'Two uneven links'
[[link]]
name = 'wide'
rate_mbps = 8
delay_ms = 5
[[link]]
name = 'narrow'
rate_mbps = 4
delay_ms = 5
[tunnel]
weights = [8, 4]
keepalive = 0.1
dead_time = 0.5
[traffic]
seconds = 10
omit = 1
[outage]
seconds = 8
cut = [{ link = 'wide', at = 2, until = 5 }]
";

fn whole() {
    let experiment = Experiment::parse("inline", FILE).unwrap_or_else(|error| panic!("{error}"));
    let (daemon, stop, mut silence) = (site::daemon(), Stop::default(), Silence);
    let mut bench = Bench::new(&daemon, &stop, &mut silence, false, &[experiment.clone()]);
    let record = bench.measure(&experiment, &experiment.cells[0]);
    let record = record.unwrap_or_else(|error| panic!("{error:#}"));
    let record = serde_json::to_value(Line::new(&record, "test")).expect("a record is JSON");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {record:#}"));

    let links: Vec<_> =
        record["links_mbps"].as_array().expect("a list").iter().map(number).collect();
    for (goodput, rate) in links.iter().zip([8.0, 4.0]) {
        assert!((0.5 * rate..rate).contains(goodput), "{links:?}");
    }
    let (tunnel, ideal) = (number(&record["tunnel_mbps"]), number(&record["ideal_mbps"]));
    assert!((10.0..12.0).contains(&ideal), "12 Mbit/s less what the headers take: {ideal}");
    let efficiency = number(&record["efficiency"]);
    assert!((efficiency - tunnel / ideal).abs() < 1e-9, "{tunnel} of {ideal}: {efficiency}");
    assert!((0.5..1.05).contains(&efficiency), "{efficiency}");
    assert!((number(&record["yield"]) - tunnel / 12.0).abs() < 1e-9, "{tunnel} of 12");
    assert!(record["retransmits"].is_u64() && record["doubtful"].is_boolean(), "{record:#}");

    let run = &record["systems"][0]["runs"][0];
    let share = |path: usize| number(&run["paths"][path]["share"]);
    assert!((share(0) - 2.0 / 3.0).abs() < 0.02, "8 to 4: {} and {}", share(0), share(1));
    let cut = &run["outage"]["cuts"][0];
    assert_eq!(cut["link"], "wide");
    let [before, during, after, gap] =
        ["before_mbps", "during_mbps", "after_mbps", "longest_gap_ms"].map(|key| number(&cut[key]));
    assert!(during < before && after > 0.0, "{before}, {during}, {after} Mbit/s");
    assert!((0.5..4.0).contains(&during), "the narrow link carries it alone: {during} Mbit/s");
    assert!(gap > 0.0 && gap < 6000.0, "{gap} ms");
}
