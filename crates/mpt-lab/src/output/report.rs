//! A record as a table for people.

use super::table::align;
use super::{Style, Terminal};
use crate::record::{CutRecord, FlowRecord, Record};
use crate::traffic::spread::Spread;

/// A bound this close to the ideal says nothing of its own.
const SAME: f64 = 0.999;

/// Reasons for doubt that fit a screen.
const REASONS: usize = 4;

/// The whole answer: figures of each link and the tunnel, what they mean, what happened around
/// cuts, and loudly whether to believe it.
pub fn text(record: &Record, terminal: Terminal) -> String {
    let mut lines = vec![String::new(), terminal.paint(Style::Bold, &record.title)];
    if !record.question.is_empty() {
        lines.push(terminal.paint(Style::Dim, &record.question));
    }
    lines.push(String::new());
    lines.extend(flows(record));
    section(&mut lines, figures(record));
    section(&mut lines, traffic(record));
    section(&mut lines, cuts(record));
    section(&mut lines, doubts(record, terminal));
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

/// A row per link and one for the tunnel.
fn flows(record: &Record) -> Vec<String> {
    let head = ["Mbit/s", "rate", "goodput", "start-up", "retransmits", "longest gap"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let Some(run) = record.repetitions.first() else { return align(&rows) };
    for (index, name) in record.links.iter().enumerate() {
        let rate = record.links_rate_mbps.get(index).copied().flatten();
        let goodput = record.links_mbps.get(index).copied();
        rows.extend(
            run.links.get(index).map(|flow| row(&format!("link {name}"), rate, goodput, flow)),
        );
    }
    let sum = record.links_rate_mbps.iter().copied().sum::<Option<f64>>();
    rows.push(row("tunnel over all", sum, record.tunnel_mbps, &run.tunnel));
    align(&rows)
}

fn row(name: &str, rate: Option<f64>, goodput: Option<f64>, flow: &FlowRecord) -> Vec<String> {
    vec![
        name.to_owned(),
        rate.map_or("no limit".into(), |rate| format!("{rate:.1}")),
        figure(goodput, |goodput| format!("{goodput:.1}")),
        figure(flow.startup_seconds, |seconds| format!("{seconds:.1} s")),
        figure(flow.retransmits, |count| count.to_string()),
        figure(flow.longest_gap_ms, |gap| format!("{gap:.0} ms")),
    ]
}

fn figure<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or("-".into(), text)
}

/// What the goodput amounts to.
fn figures(record: &Record) -> Vec<String> {
    let rate = |value: f64| format!("{value:.1}");
    let ratio = |value: f64| format!("{value:.3}");
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>, meaning: &str| {
        lines.extend(value.map(|value| format!("{name:<11}{value:>8}   {meaning}")));
    };
    line(
        "ideal",
        record.ideal_mbps.map(rate),
        "Mbit/s that a perfect tunnel with these headers delivers",
    );
    let bound = record
        .bound_mbps
        .filter(|&bound| record.ideal_mbps.is_some_and(|ideal| bound < SAME * ideal));
    line(
        "bound",
        bound.map(rate),
        "Mbit/s that these weights allow: min(capacity ÷ weight) x sum of weights",
    );
    line("efficiency", record.efficiency.map(ratio), "goodput ÷ ideal");
    line("yield", record.yields.map(ratio), "goodput ÷ sum of link rates");
    if let Some(spread) = record.tunnel_mbps_spread {
        let Spread { count, min, max, .. } = spread;
        line(
            "spread",
            Some(rate(max - min)),
            &format!("Mbit/s: {min:.1} to {max:.1} in {count} runs"),
        );
    }
    lines
}

/// What only some kinds of traffic measure, and the paths that carried it.
fn traffic(record: &Record) -> Vec<String> {
    let Some(run) = record.repetitions.first() else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(order) = run.tunnel.order {
        lines.push(format!(
            "packets    {} sent, {} lost, {} doubled, {} reordered (extent {})",
            order.sent, order.lost, order.duplicated, order.reordered, order.reordering_extent,
        ));
    }
    if let (Some(sent), Some(lost)) = (run.tunnel.pings, run.tunnel.pings_lost) {
        lines.push(format!("pings      {sent} sent, {lost} lost"));
    }
    for (name, spread) in [("delay", run.tunnel.delay_ms), ("round trip", run.tunnel.rtt_ms)] {
        lines.extend(spread.map(|Spread { min, median, p99, max, .. }| {
            format!("{name:<11}{min:.2} min, {median:.2} median, {p99:.2} p99, {max:.2} max ms")
        }));
    }
    lines.extend(run.tunnel.jitter_ms.map(|jitter| {
        format!(
            "jitter     {:.3} ms mean difference, {:.3} ms by RFC 3550",
            jitter.mean, jitter.rfc3550
        )
    }));
    let all: u64 = run.paths.iter().map(|path| path.sent_packets).sum();
    let shares = run.paths.iter().map(|path| format!("{} {:.1} %", path.name, path.share * 100.0));
    if all > 0 {
        let shares = shares.collect::<Vec<_>>().join(", ");
        lines.push(format!("paths      {shares} of {all} datagrams"));
    }
    lines
}

/// What happened around every cut.
fn cuts(record: &Record) -> Vec<String> {
    let mut outages = record.repetitions.iter().filter_map(|run| run.outage.as_ref());
    let cuts = outages.next().map_or(&[][..], |outage| &outage.cuts);
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

fn doubts(record: &Record, terminal: Terminal) -> Vec<String> {
    if !record.doubtful {
        return Vec::new();
    }
    let title = "DOUBTFUL: these figures are not only those of links and tunnel, because";
    let mut lines = vec![terminal.paint(Style::Yellow, title)];
    lines.extend(record.reasons.iter().take(REASONS).map(|reason| format!("  - {reason}")));
    let rest = record.reasons.len().saturating_sub(REASONS);
    if rest > 0 {
        lines.push(format!(
            "  - and {rest} more reasons, all of them in the output of `run --json`"
        ));
    }
    lines
        .push("Run it again on a quieter machine; `mpt-lab doctor` may know what is wrong.".into());
    lines
}

/// One sentence on what was seen, and where to go from here.
pub fn closing(record: &Record) -> String {
    let rates: Vec<String> =
        record.links_rate_mbps.iter().flatten().map(|rate| format!("{rate:.0}")).collect();
    let mut sentence = format!(
        "One TCP flow got {} Mbit/s out of links of {} Mbit/s",
        figure(record.tunnel_mbps, |rate| format!("{rate:.1}")),
        rates.join(" and "),
    );
    if let Some(efficiency) = record.efficiency {
        sentence += &format!(", {:.1} % of what is possible", efficiency * 100.0);
    }
    let outage = record.repetitions.iter().find_map(|run| run.outage.as_ref());
    if let Some(cut) = outage.and_then(|outage| outage.cuts.first()) {
        sentence += &format!(
            ".\nWhen link {} died without a word, the flow was silent for {:.1} s, and got\n{:.1} Mbit/s \
             on average until the link was back",
            cut.link,
            cut.longest_gap_ms / 1e3,
            cut.during_mbps,
        );
    }
    format!(
        "{sentence}.\n\
         Next: `mpt-lab up crates/mpt-lab/experiments/demo.toml` opens this lab for you to play in;\n\
         README.md shows how to set up a tunnel between two machines of yours."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::record::{OutageRecord, PathRecord, Repetition};

    #[test]
    fn every_figure_stands_in_the_table() {
        let text = text(&record(vec![run(56.0)]), Terminal::PLAIN);
        for line in [
            "Two uneven links",
            "link fibre       40.0     38.6     0.5 s            7        12 ms",
            "link lte         20.0     38.6     0.5 s            7        12 ms",
            "tunnel over all  60.0     56.0     0.5 s            7        12 ms",
            "ideal          56.5   Mbit/s that a perfect tunnel with these headers delivers",
            "efficiency    0.991   goodput ÷ ideal",
            "yield         0.933   goodput ÷ sum of link rates",
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
        let bound = Repetition { bound_mbps: Some(37.6), ..run(37.0) };
        let text = text(&record(vec![bound]), Terminal::PLAIN);
        assert!(text.contains("bound          37.6   Mbit/s"), "{text}");
    }

    #[test]
    fn doubts_are_loud_and_bounded() {
        let reasons = (0..9).map(|number| format!("reason {number}")).collect();
        let doubtful = Repetition { reasons, ..run(56.0) };
        let text = text(&record(vec![doubtful]), Terminal::PLAIN);
        assert!(text.contains("DOUBTFUL") && text.contains("  - reason 3"), "{text}");
        assert!(!text.contains("reason 4") && text.contains("and 5 more reasons"), "{text}");
    }

    #[test]
    fn several_runs_have_a_spread() {
        let text = text(&record(vec![run(50.0), run(56.0), run(54.0)]), Terminal::PLAIN);
        assert!(text.contains("tunnel over all  60.0     54.0"), "the median: {text}");
        assert!(text.contains("spread          6.0   Mbit/s: 50.0 to 56.0 in 3 runs"), "{text}");
    }

    #[test]
    fn the_closing_sentence_says_what_was_measured() {
        let text = closing(&record(vec![run(28.0)]));
        assert!(text.contains("28.0 Mbit/s out of links of 40 and 20 Mbit/s, 49.6 %"), "{text}");
        assert!(text.contains("silent for 2.4 s, and got\n12.0 Mbit/s"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 92), "{text}");
        assert!(text.contains("mpt-lab up") && text.contains("README.md"));
    }

    fn record(runs: Vec<Repetition>) -> Record {
        let text = "title = 'Two uneven links'
            [[link]]
            name = 'fibre'
            rate_mbps = 40
            [[link]]
            name = 'lte'
            rate_mbps = 20";
        Record::new(&Experiment::parse("x", text).unwrap(), runs)
    }

    /// A run whose tunnel got so many Mbit/s.
    fn run(goodput: f64) -> Repetition {
        let flow = |goodput| FlowRecord {
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
        Repetition {
            seed: 1,
            links: vec![flow(38.6), flow(38.6)],
            tunnel: flow(goodput),
            inner_mtu: 1464,
            ideal_mbps: Some(56.5),
            bound_mbps: Some(56.5),
            efficiency: Some(goodput / 56.5),
            yields: Some(goodput / 60.0),
            paths: vec![path],
            daemons: Vec::new(),
            outage: Some(OutageRecord { flow: flow(40.0), cuts: vec![cut] }),
            emulator: Vec::new(),
            reasons: Vec::new(),
        }
    }
}
