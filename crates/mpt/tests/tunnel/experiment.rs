//! A complete experiment of the lab with the daemon that ships, from its file to its record.

use mpt_lab::experiment::{Experiment, runner::Bench, watch::Silence};
use mpt_lab::record::Line;
use mpt_lab::stop::Stop;
use mpt_lab::trace::{Kind, Trace};
use serde_json::Value;

use crate::site;
use crate::suite::{self, Test};

pub(crate) const TESTS: &[Test] = &[
    ("an_experiment_from_file_to_record", whole),
    ("a_link_that_fails_is_left_and_used_again", events),
    ("adaptive_is_told_keys_and_addresses_alone_and_has_a_rival", adaptive),
    ("the_sender_is_traced_on_demand", traced),
    ("mptcp_is_measured_beside_the_tunnel_and_once", beside),
];

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
    let record = serde_json::to_value(answer(FILE, false)).expect("a record is JSON");
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

/// A link is cut and restored during a stream of packets that the other carries alone.
const EVENTS: &str = "
title = 'A link that fails'
systems = ['classic', 'mptcp']
alone = false
[[link]]
name = 'one'
rate_mbps = 8
[[link]]
name = 'two'
rate_mbps = 8
[tunnel]
keepalive = 0.1
dead_time = 0.5
[traffic]
kind = 'udp'
rate_mbps = 4
size = 500
seconds = 10
omit = 1
[[event]]
at = 3
link = 'two'
change = 'cut'
[[event]]
at = 6
link = 'two'
change = 'mend'
";

fn events() {
    let line = answer(EVENTS, false);
    let figures = |system: usize| &line.cell.systems[system].figures;
    let figure = |name: &str| figures(0).get(name).map(|figure| figure.median);
    assert!(figure("lost_packets").is_some_and(|lost| lost > 0.0), "{:?}", figures(0));
    assert!(figure("leave_seconds").is_some_and(|time| time > 0.0), "{:?}", figures(0));
    assert!(figure("return_seconds").is_some(), "{:?}", figures(0));
    let skipped = line.cell.systems[1].skipped.as_deref().expect("it is skipped with a reason");
    assert!(skipped.contains("carries only TCP") && figures(1).is_empty(), "{skipped}");
}

/// Weights that would be wrong, if anybody told them.
const ADAPTIVE: &str = "
title = 'Told nothing'
systems = ['adaptive']
alone = false
[[link]]
name = 'one'
rate_mbps = 8
delay_ms = 5
[[link]]
name = 'two'
rate_mbps = 8
delay_ms = 5
[tunnel]
weights = [1, 9]
[traffic]
seconds = 11
beside = { interval = 0.05 }
rival = 'tunnel'
[[event]]
at = 5
link = 'two'
change = 'rate'
share = 0.5
";

fn adaptive() {
    let line = answer(ADAPTIVE, false);
    let system = &line.cell.systems[0];
    let status = &system.runs[0]["daemons"][0]["status"]["tunnels"];
    for tunnel in [0, 1] {
        let connection = &status[tunnel]["connections"][0];
        assert_eq!(connection["framing"], "sealed", "there are keys: {connection:#}");
        assert_eq!(connection["scheduler"], "earliest", "as shipped: {connection:#}");
        assert_eq!(connection["paths"][1]["weight"], 1, "as shipped: {connection:#}");
    }
    let figure = |name: &str| {
        let figure = system.figures.get(name).map(|figure| figure.median);
        figure.unwrap_or_else(|| panic!("no {name}: {:?}", system.figures))
    };
    let ideal = figure("ideal_mbps");
    // Of nine seconds that are measured three have 16 Mbit/s and six have 12; headers take a twelfth.
    assert!((12.0..13.0).contains(&ideal), "each rate for as long as it was: {ideal}");
    assert!((figure("bound_mbps") - ideal).abs() < 1e-9, "there are no weights to be bound by");
    assert!(figure("goodput_mbps") > 0.0 && figure("rival_goodput_mbps") > 0.0);
    assert!(figure("settling_seconds") > 0.0 && figure("settled_efficiency") > 0.0);
    assert!(figure("beside_over_base_p99_ms") > 0.0 && figure("beside_after_step_max_ms") > 0.0);
}

/// Two links that one flow fills.
const TRACED: &str = "
title = 'Traced'
systems = ['adaptive']
alone = false
[[link]]
name = 'one'
rate_mbps = 8
delay_ms = 5
[[link]]
name = 'two'
rate_mbps = 8
delay_ms = 15
[traffic]
seconds = 10
";

fn traced() {
    let experiment = Experiment::parse("inline", TRACED).unwrap_or_else(|error| panic!("{error}"));
    let (daemon, stop, mut silence) = (site::daemon(), Stop::default(), Silence);
    let mut bench =
        Bench::new(&daemon, &stop, &mut silence, false, std::slice::from_ref(&experiment));
    let folder = tempfile::tempdir().expect("a folder");
    bench.trace_to(folder.path().to_path_buf());
    let record = bench.measure(&experiment, &experiment.cells[0], 1);
    let line = Line::new(&record.unwrap_or_else(|error| panic!("{error:#}")), "test");
    let files: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
    assert_eq!(files.len(), line.cell.systems[0].runs.len(), "one for each run: {files:?}");
    let trace = Trace::read(&files[0].path()).expect("a trace");
    assert!(trace.is_whole, "it was ended and not killed");
    let names: Vec<_> = trace.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    for path in &trace.paths {
        let most = path.sent_mbps.iter().map(|(_, mbps)| *mbps).fold(0.0, f64::max);
        assert!(most > 1.0, "{} carries: {most} Mbit/s", path.name);
        assert!(!path.rate_mbps.is_empty() && !path.queue_ms.is_empty(), "{}", path.name);
    }
    let full =
        |path| trace.events.iter().any(|it| it.path == Some(path) && it.kind == Some(Kind::Full));
    assert!(full(0) || full(1), "{:?}", trace.events);
}

/// Two cells of the same links, of which MPTCP does not know the difference.
const BESIDE: &str = "
title = 'Beside MPTCP'
systems = ['classic', 'mptcp']
[[link]]
name = 'one'
rate_mbps = 8
[[link]]
name = 'two'
rate_mbps = 8
[traffic]
seconds = 10
[[axis]]
name = 'window'
set = ['tunnel.reorder.window']
values = [100, 200]
";

fn beside() {
    let file = Experiment::parse("inline", BESIDE).unwrap_or_else(|error| panic!("{error}"));
    let quick = file.quick();
    let (daemon, stop, mut silence) = (site::daemon(), Stop::default(), Silence);
    let mut bench = Bench::new(&daemon, &stop, &mut silence, true, std::slice::from_ref(&quick));
    let [first, second] = quick.cells.as_slice() else { panic!("two cells") };
    let lines = [first, second].map(|cell| {
        let record = bench.measure(&quick, cell, 1).unwrap_or_else(|error| panic!("{error:#}"));
        Line::new(&record, "test").cell
    });
    for cell in &lines {
        for system in ["classic", "mptcp"] {
            if let Some(why) = cell.system(system).and_then(|system| system.skipped.as_ref()) {
                suite::skip(why);
            }
            let over = cell.figure(system, "over_best_alone").expect("links were measured alone");
            assert!(over > 1.2, "{system} uses both links: {over}");
            let cost = cell.figure(system, "cpu_seconds_per_gigabit").expect("it costs something");
            assert!(cost > 0.0, "{cost}");
        }
        assert!(cell.figure("classic", "predicted_mbps").is_some_and(|rate| rate > 10.0));
    }
    let shared = |cell: usize, system: &str| {
        lines[cell].system(system).and_then(|system| system.shared.as_deref())
    };
    let of_the_first = Some("inline (window 100)");
    assert_eq!((shared(0, "mptcp"), shared(1, "mptcp")), (None, of_the_first));
    assert_eq!(shared(1, "classic"), None, "its window differs");
}

/// The line of an experiment with one cell.
fn answer(text: &str, quick: bool) -> Line {
    let experiment = Experiment::parse("inline", text).unwrap_or_else(|error| panic!("{error}"));
    let (daemon, stop, mut silence) = (site::daemon(), Stop::default(), Silence);
    let mut bench =
        Bench::new(&daemon, &stop, &mut silence, quick, std::slice::from_ref(&experiment));
    let record = bench.measure(&experiment, &experiment.cells[0], 1);
    Line::new(&record.unwrap_or_else(|error| panic!("{error:#}")), "test")
}
