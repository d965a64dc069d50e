//! A record as a table for people.

use std::env;
use std::path::Path;

use super::table::align;
use super::{Style, Terminal};
use crate::record::{CutRecord, Headline, Line, Measured, OutageRecord, PathRecord, Record, Run};
use crate::results::{CellRecord, Figure, SystemRecord};
use crate::system::System;
use crate::traffic::spread::Spread;

/// A bound this close to the ideal is not shown separately.
const SAME: f64 = 0.999;

/// Reasons for doubt that fit a screen.
const REASONS: usize = 4;

/// The whole answer: figures of each link and the tunnel, what they mean, what happened around
/// cuts, and loudly whether to believe it. `line` has the figures of all repetitions, `record` all of one of them.
pub fn text(record: &Record, line: &Line, terminal: Terminal) -> String {
    let mut lines = vec![String::new(), terminal.paint(Style::Bold, &record.title)];
    if !record.question.is_empty() {
        lines.push(terminal.paint(Style::Dim, &record.question));
    }
    lines.push(String::new());
    lines.extend(flows(record, line));
    section(&mut lines, skipped(&line.cell));
    let ran = |system: &&SystemRecord| system.skipped.is_none();
    match line.cell.systems.iter().filter(ran).count() {
        0 | 1 => section(&mut lines, figures(line)),
        _ => section(&mut lines, beside_each_other(record, line)),
    }
    section(&mut lines, traffic(record));
    section(&mut lines, cuts(record));
    section(&mut lines, doubts(&line.cell.reasons, terminal));
    lines.push(String::new());
    lines.join("\n")
}

/// Adds lines below an empty one, unless there are none.
fn section(lines: &mut Vec<String>, more: Vec<String>) {
    if !more.is_empty() {
        lines.push(String::new());
        lines.extend(more);
    }
}

/// A row per link and one per system.
fn flows(record: &Record, line: &Line) -> Vec<String> {
    let head = ["Mbit/s", "rate", "goodput", "start-up", "retransmits", "longest gap"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for link in &line.cell.links {
        let alone = link.alone.iter();
        rows.extend(alone.map(|alone| row(&format!("link {}", link.name), link.rate_mbps, alone)));
    }
    let sum = line.headline.links_rate_mbps.iter().copied().sum::<Option<f64>>();
    let ran = line.cell.systems.iter().filter(|system| system.skipped.is_none());
    rows.extend(ran.map(|system| {
        let is_only = line.cell.systems.len() == 1;
        let name = if is_only { "tunnel over all".into() } else { settings(record, system) };
        row(&name, sum, system)
    }));
    align(&rows)
}

/// A system's name with the weights it was given.
fn settings(record: &Record, system: &SystemRecord) -> String {
    let known = System::by_name(&system.system);
    known.map_or(system.system.clone(), |known| known.settings(&record.cell))
}

fn row(name: &str, rate: Option<f64>, system: &SystemRecord) -> Vec<String> {
    let of = |figure: &str| system.figures.get(figure).map(|figure| figure.median);
    vec![
        name.to_owned(),
        rate.map_or("no limit".into(), |rate| format!("{rate:.1}")),
        figure(of("goodput_mbps"), |goodput| format!("{goodput:.1}")),
        figure(of("startup_seconds"), |seconds| format!("{seconds:.1} s")),
        figure(of("retransmits"), |count| format!("{count:.0}")),
        figure(of("longest_gap_ms"), |gap| format!("{gap:.0} ms")),
    ]
}

/// Systems that did not run, and why.
fn skipped(cell: &CellRecord) -> Vec<String> {
    let all = cell.systems.iter();
    all.filter_map(|system| {
        Some(format!("{} skipped: {}", system.system, system.skipped.as_ref()?))
    })
    .collect()
}

fn figure<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or("-".into(), text)
}

/// What the goodput amounts to.
fn figures(line: &Line) -> Vec<String> {
    let rate = |value: f64| format!("{value:.1}");
    let ratio = |value: f64| format!("{value:.3}");
    let Headline { ideal_mbps, bound_mbps, efficiency, yields, .. } = line.headline;
    let Headline { over_best_alone, gain, .. } = line.headline;
    let main = line.cell.systems.iter().find(|system| system.skipped.is_none());
    let spread = main.and_then(|main| main.figures.get("goodput_mbps"));
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>, meaning: &str| {
        lines.extend(value.map(|value| format!("{name:<11}{value:>8}   {meaning}")));
    };
    line("ideal", ideal_mbps.map(rate), "Mbit/s that a perfect tunnel with these headers delivers");
    let bound = bound_mbps.filter(|&bound| ideal_mbps.is_some_and(|ideal| bound < SAME * ideal));
    line(
        "bound",
        bound.map(rate),
        "Mbit/s that these weights allow: min(capacity ÷ weight) x sum of weights",
    );
    line("efficiency", efficiency.map(ratio), "goodput ÷ ideal");
    line("yield", yields.map(ratio), "goodput ÷ sum of link rates");
    line("over best", over_best_alone.map(ratio), "goodput ÷ that of the best link alone");
    line("gain", gain.map(ratio), "share of what the other links could add");
    if let Some(&Figure { count, min, max, .. }) = spread.filter(|spread| spread.count > 1) {
        line(
            "spread",
            Some(rate(max - min)),
            &format!("Mbit/s: {min:.1} to {max:.1} in {count} runs"),
        );
    }
    lines
}

/// What the goodput of several systems amounts to.
fn beside_each_other(record: &Record, line: &Line) -> Vec<String> {
    let head = ["", "ideal", "bound", "goodput ÷ ideal", "÷ best link", "gain"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let ran = line.cell.systems.iter().filter(|system| system.skipped.is_none());
    rows.extend(ran.map(|system| {
        let of = |name: &str| system.figures.get(name).map(|figure| figure.median);
        let rate = |name| figure(of(name), |rate| format!("{rate:.1}"));
        let ratio = |name| figure(of(name), |ratio| format!("{ratio:.2}"));
        vec![
            settings(record, system),
            rate("ideal_mbps"),
            rate("bound_mbps"),
            ratio("efficiency"),
            ratio("over_best_alone"),
            ratio("gain"),
        ]
    }));
    align(&rows)
}

/// What only some kinds of traffic measure, and the paths that carried it.
fn traffic(record: &Record) -> Vec<String> {
    let Some(run) = first_run(record) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(order) = run.flow.order {
        lines.push(format!(
            "packets    {} sent, {} lost, {} doubled, {} reordered (extent {})",
            order.sent, order.lost, order.duplicated, order.reordered, order.reordering_extent,
        ));
    }
    if let (Some(sent), Some(lost)) = (run.flow.pings, run.flow.pings_lost) {
        lines.push(format!("pings      {sent} sent, {lost} lost"));
    }
    for (name, spread) in [("delay", run.flow.delay_ms), ("round trip", run.flow.rtt_ms)] {
        lines.extend(spread.map(|Spread { min, median, p99, max, .. }| {
            format!("{name:<11}{min:.2} min, {median:.2} median, {p99:.2} p99, {max:.2} max ms")
        }));
    }
    lines.extend(run.flow.jitter_ms.map(|jitter| {
        format!(
            "jitter     {:.3} ms mean difference, {:.3} ms by RFC 3550",
            jitter.mean, jitter.rfc3550
        )
    }));
    let several = record.systems.len() > 1;
    for system in &record.systems {
        let Some(run) = system.runs.first() else { continue };
        let all: u64 = run.paths.iter().map(|path| path.sent_packets).sum();
        let share = |path: &PathRecord| format!("{} {:.1} %", path.name, path.share * 100.0);
        let shares: Vec<_> = run.paths.iter().map(share).collect();
        let of = if several { format!("{}: ", system.system) } else { String::new() };
        if all > 0 {
            lines.push(format!("paths      {of}{} of {all} datagrams", shares.join(", ")));
        }
    }
    lines
}

/// The first run of the first system.
fn first_run(record: &Record) -> Option<&Run> {
    record.main().and_then(|main: &Measured| main.runs.first())
}

/// The first system that was measured while links failed, and that flow.
fn outage(record: &Record) -> Option<(&Measured, &OutageRecord)> {
    record.systems.iter().find_map(|system| Some((system, system.runs.first()?.outage.as_ref()?)))
}

/// What happened around every cut.
fn cuts(record: &Record) -> Vec<String> {
    let cuts = outage(record).map_or(&[][..], |(_, outage)| &outage.cuts);
    let head = ["around the cut", "before", "during", "after", "longest gap", "full rate again"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(cuts.iter().map(cut_row));
    if cuts.is_empty() { Vec::new() } else { align(&rows) }
}

fn cut_row(cut: &CutRecord) -> Vec<String> {
    vec![
        format!("link {}, {} to {} s", cut.link, cut.at, cut.until),
        format!("{:.1}", cut.before_mbps),
        format!("{:.1}", cut.during_mbps),
        format!("{:.1}", cut.after_mbps),
        format!("{:.0} ms", cut.longest_gap_ms),
        cut.back_seconds.map_or("never".into(), |seconds| format!("after {seconds:.1} s")),
    ]
}

fn doubts(reasons: &[String], terminal: Terminal) -> Vec<String> {
    if reasons.is_empty() {
        return Vec::new();
    }
    let title = "DOUBTFUL: something other than links and tunnel affected these figures:";
    let mut lines = vec![terminal.paint(Style::Yellow, title)];
    lines.extend(reasons.iter().take(REASONS).map(|reason| format!("  - {reason}")));
    let rest = reasons.len().saturating_sub(REASONS);
    if rest > 0 {
        lines.push(format!("  - and {rest} more reasons: see the output of `run --json`"));
    }
    lines.push("Repeat it on a less busy machine; `mpt-lab doctor` may find the cause.".into());
    lines
}

/// A sentence or two on what was seen, and where to go from here. It is about the system that was measured while links
/// failed, or else the first one.
pub fn closing(record: &Record) -> String {
    let line = Line::new(record, "");
    let told = outage(record).map(|(system, _)| system).or_else(|| record.main());
    let name = told.map_or("", |told| &told.system);
    let rates = line.headline.links_rate_mbps.iter().flatten();
    let rates: Vec<String> = rates.map(|rate| format!("{rate:.0}")).collect();
    let goodput =
        |name: &str| figure(line.cell.figure(name, "goodput_mbps"), |rate| format!("{rate:.1}"));
    let mut sentence = format!(
        "One TCP flow got {} Mbit/s out of links of {} Mbit/s",
        goodput(name),
        rates.join(" and "),
    );
    if let Some(efficiency) = line.cell.figure(name, "efficiency") {
        sentence += &format!(", {:.1} % of the ideal", efficiency * 100.0);
    }
    let others = line.cell.systems.iter();
    for other in others.filter(|other| other.system != name && other.skipped.is_none()) {
        let (settings, goodput) = (settings(record, other), goodput(&other.system));
        sentence +=
            &format!(",\nwith nothing typed in but addresses; `{settings}` got {goodput} Mbit/s");
    }
    let cut = outage(record).and_then(|(_, outage)| outage.cuts.first());
    if let Some(cut) = cut {
        sentence += &format!(
            ".\nWhen link {} failed silently, the flow had a gap of {:.1} s, and got\n{:.1} Mbit/s \
             on average until the link was back",
            cut.link,
            cut.longest_gap_ms / 1e3,
            cut.during_mbps,
        );
    }
    format!(
        "{sentence}.\n\
         Next: `{} up demo --system adaptive`\n\
         opens this lab for interactive use; README.md shows how to set up a tunnel between two machines.",
        program()
    )
}

/// This program, as it can be typed where it was started.
fn program() -> String {
    let Ok(program) = env::current_exe() else { return "mpt-lab".into() };
    let here = env::current_dir().ok();
    let near = here.and_then(|here| program.strip_prefix(here).ok().map(Path::to_path_buf));
    near.unwrap_or(program).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::record::FlowRecord;

    fn text(record: &Record) -> String {
        super::text(record, &Line::new(record, ""), Terminal::PLAIN)
    }

    #[test]
    fn every_figure_stands_in_the_table() {
        let text = text(&record(vec![run(56.0)]));
        for line in [
            "Two uneven links",
            "link fibre       40.0     38.6     0.5 s            7        12 ms",
            "link lte         20.0     38.6     0.5 s            7        12 ms",
            "tunnel over all  60.0     56.0     0.5 s            7        12 ms",
            "ideal          56.5   Mbit/s that a perfect tunnel with these headers delivers",
            "efficiency    0.991   goodput ÷ ideal",
            "yield         0.933   goodput ÷ sum of link rates",
            "over best     1.451   goodput ÷ that of the best link alone",
            "gain          0.972   share of what the other links could add",
            "paths      fibre 75.0 % of 300 datagrams",
            "link fibre, 6 to 13 s    55.0    12.0   53.0      2400 ms      after 1.5 s",
        ] {
            assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
        }
        assert!(!text.contains("bound"), "a bound that is the ideal says nothing");
        assert!(!text.contains("DOUBTFUL") && !text.contains("spread"));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_bound_below_the_ideal_stands_beside_it() {
        let bound = Run { bound_mbps: Some(37.6), ..run(37.0) };
        let text = text(&record(vec![bound]));
        assert!(text.contains("bound          37.6   Mbit/s"), "{text}");
    }

    #[test]
    fn doubts_are_prominent_and_bounded() {
        let reasons = (0..9).map(|number| format!("reason {number}")).collect();
        let doubtful = Run { reasons, ..run(56.0) };
        let text = text(&record(vec![doubtful]));
        assert!(text.contains("DOUBTFUL") && text.contains("  - classic: reason 3"), "{text}");
        assert!(!text.contains("reason 4") && text.contains("and 5 more reasons"), "{text}");
    }

    #[test]
    fn several_runs_have_a_spread() {
        let text = text(&record(vec![run(50.0), run(56.0), run(54.0)]));
        assert!(text.contains("tunnel over all  60.0     54.0"), "the median: {text}");
        assert!(text.contains("spread          6.0   Mbit/s: 50.0 to 56.0 in 3 runs"), "{text}");
    }

    #[test]
    fn the_closing_sentence_says_what_was_measured() {
        let text = closing(&record(vec![run(28.0)]));
        assert!(text.contains("28.0 Mbit/s out of links of 40 and 20 Mbit/s, 49.6 %"), "{text}");
        assert!(text.contains("had a gap of 2.4 s, and got\n12.0 Mbit/s"), "{text}");
        let typed = |line: &&str| !line.starts_with("Next: ");
        assert!(text.lines().filter(typed).all(|line| line.chars().count() <= 96), "{text}");
        assert!(text.contains(" up demo --system adaptive`") && text.contains("README.md"));
    }

    #[test]
    fn systems_stand_beside_each_other_with_their_weights() {
        let mut both = record(vec![Run { outage: None, ..run(28.0) }]);
        both.systems[0].system = "mpt".into();
        both.systems.push(Measured {
            system: "adaptive".into(),
            runs: vec![run(55.0)].into(),
            ..Measured::default()
        });
        let text = text(&both);
        for line in [
            "mpt, weights 1:1  60.0     28.0     0.5 s            7        12 ms",
            "adaptive          60.0     55.0     0.5 s            7        12 ms",
            "mpt, weights 1:1   56.5   56.5             0.50         0.73  -0.59",
            "adaptive           56.5   56.5             0.97         1.42   0.92",
            "paths      adaptive: fibre 75.0 % of 300 datagrams",
            "link fibre, 6 to 13 s    55.0    12.0   53.0      2400 ms      after 1.5 s",
        ] {
            assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
        }
        let closing = closing(&both);
        for part in [
            "One TCP flow got 55.0 Mbit/s out of links of 40 and 20 Mbit/s, 97.3 % of the ideal",
            "with nothing typed in but addresses; `mpt, weights 1:1` got 28.0 Mbit/s.",
        ] {
            assert!(closing.contains(part), "no {part:?} in\n{closing}");
        }
    }

    fn record(runs: Vec<Run>) -> Record {
        let text = "title = 'Two uneven links'
            [[link]]
            name = 'fibre'
            rate_mbps = 40
            [[link]]
            name = 'lte'
            rate_mbps = 20";
        let mut experiment = Experiment::parse("x", text).unwrap();
        let measured = |system: &str, runs: Vec<Run>| Measured {
            system: system.into(),
            runs: runs.into(),
            ..Measured::default()
        };
        Record {
            experiment: "x".into(),
            title: experiment.entry.title,
            question: String::new(),
            count: 1,
            repetition: 1,
            quick: false,
            cell: experiment.cells.remove(0),
            alone: ["a", "b"].map(|_| measured("alone", vec![run(38.6)])).into(),
            systems: vec![measured("classic", runs)],
            send_buffer: None,
            failures: Vec::new(),
        }
    }

    /// A run with this goodput in Mbit/s.
    fn run(goodput: f64) -> Run {
        let flow = FlowRecord {
            goodput_mbps: Some(goodput),
            startup_seconds: Some(0.5),
            retransmits: Some(7),
            longest_gap_ms: Some(12.3),
            ..FlowRecord::default()
        };
        let cut = CutRecord {
            link: "fibre".into(),
            at: 6.0,
            until: 13.0,
            before_mbps: 55.0,
            during_mbps: 12.0,
            after_mbps: 53.0,
            longest_gap_ms: 2400.0,
            back_seconds: Some(1.5),
        };
        let path = PathRecord {
            name: "fibre".into(),
            weight: 1,
            state: "up".into(),
            sent_packets: 300,
            received_packets: 300,
            share: 0.75,
        };
        Run {
            flow: flow.clone(),
            ideal_mbps: Some(56.5),
            bound_mbps: Some(56.5),
            efficiency: Some(goodput / 56.5),
            yields: Some(goodput / 60.0),
            paths: vec![path],
            outage: Some(OutageRecord { flow, cuts: vec![cut] }),
            ..Run::default()
        }
    }
}
