use std::collections::BTreeMap;

use super::*;
use crate::results::{
    Bound, CellRecord, Coordinate, ExperimentEntry, Figure, LinkRecord, OfRuns, Published,
    SystemEntry, SystemRecord,
};

fn once(median: f64) -> Figure {
    Figure { median, min: median, max: median, count: 1 }
}

fn system(name: &str, figures: &[(&str, f64)]) -> SystemRecord {
    let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), once(*value))).collect();
    SystemRecord { system: name.into(), figures, ..SystemRecord::default() }
}

/// A cell in which `classic` reaches so much of an ideal of 100 and of published 90, and `mptcp` half
/// of it.
fn cell(delay: &str, goodput: f64) -> CellRecord {
    CellRecord {
        cell: vec![at(delay)],
        systems: vec![
            system("classic", &[("goodput_mbps", goodput), ("ideal_mbps", 100.0)]),
            system("mptcp", &[("goodput_mbps", goodput / 2.0)]),
        ],
        published: vec![Published {
            system: "classic".into(),
            figure: "goodput_mbps".into(),
            value: 90.0,
        }],
        ..CellRecord::default()
    }
}

fn at(delay: &str) -> Coordinate {
    Coordinate { axis: "delay".into(), label: delay.into(), value: None }
}

fn answer(cells: Vec<CellRecord>) -> Answer {
    let title = SystemEntry { name: "classic".into(), title: "MPT classic".into() };
    let entry = ExperimentEntry { systems: vec![title], ..ExperimentEntry::default() };
    Answer { entry, form: Form::Full, cells, missing: Vec::new(), remarks: Vec::new() }
}

fn target(bound: Bound, value: f64, of: &str) -> Target {
    Target {
        system: "classic".into(),
        figure: "goodput_mbps".into(),
        bound,
        value,
        of: of.into(),
        share: 1.0,
        ..Target::default()
    }
}

fn verdict(cells: &[f64], target: &Target) -> Verdict {
    let cells = cells.iter().enumerate().map(|(n, goodput)| cell(&n.to_string(), *goodput));
    judge(&answer(cells.collect()), target).verdict
}

#[test]
fn a_figure_itself_lies_above_or_below() {
    let (least, most) = (target(Bound::AtLeast, 95.0, ""), target(Bound::AtMost, 95.0, ""));
    assert_eq!(verdict(&[95.0, 99.0], &least), Verdict::Met);
    assert_eq!(verdict(&[94.9, 99.0], &least), Verdict::Missed);
    assert_eq!(verdict(&[95.0, 1.0], &most), Verdict::Met);
    assert_eq!(verdict(&[95.1, 1.0], &most), Verdict::Missed);
}

#[test]
fn a_quotient_by_another_figure_of_the_system() {
    let within = target(Bound::Within, 0.03, "ideal_mbps");
    assert_eq!(verdict(&[97.0, 103.0], &within), Verdict::Met, "the bound itself is reached");
    assert_eq!(verdict(&[96.9], &within), Verdict::Missed);
    assert_eq!(verdict(&[103.1], &within), Verdict::Missed);
}

#[test]
fn a_quotient_by_what_was_published() {
    let least = target(Bound::AtLeast, 1.0, "published");
    assert_eq!(verdict(&[90.0, 95.0], &least), Verdict::Met);
    assert_eq!(verdict(&[89.0], &least), Verdict::Missed);
}

#[test]
fn unpublished_cells_do_not_count_but_some_must_be_published() {
    let within = target(Bound::Within, 0.1, "published");
    let bare = CellRecord { published: Vec::new(), ..cell("1", 5.0) };
    let judged = judge(&answer(vec![cell("0", 90.0), bare.clone()]), &within);
    assert_eq!((judged.verdict, judged.cells), (Verdict::Met, 1));
    let judged = judge(&answer(vec![bare]), &within);
    assert_eq!((judged.verdict, judged.cells), (Verdict::NotMeasured, 0));
}

#[test]
fn a_quotient_by_another_system() {
    let twice = target(Bound::Within, 0.0, "mptcp/goodput_mbps");
    let judged = judge(&answer(vec![cell("0", 80.0)]), &twice);
    assert_eq!((judged.verdict, judged.misses[0].got), (Verdict::Missed, 2.0));
    assert_eq!(verdict(&[80.0], &target(Bound::AtLeast, 2.0, "mptcp/goodput_mbps")), Verdict::Met);
}

#[test]
fn a_quotient_by_a_link_measured_alone() {
    let mut with_link = cell("0", 80.0);
    with_link.links.push(LinkRecord {
        name: "fibre".into(),
        alone: Some(system("alone", &[("goodput_mbps", 40.0)])),
        ..LinkRecord::default()
    });
    let least = target(Bound::AtLeast, 2.0, "link:fibre/goodput_mbps");
    assert_eq!(judge(&answer(vec![with_link]), &least).verdict, Verdict::Met);
}

#[test]
fn only_some_cells_are_meant() {
    let mut least = target(Bound::AtLeast, 90.0, "");
    least.only = BTreeMap::from([("delay".into(), vec!["0".into(), "2".into()])]);
    assert_eq!(verdict(&[95.0, 10.0, 95.0], &least), Verdict::Met);
    assert_eq!(verdict(&[95.0, 99.0, 10.0], &least), Verdict::Missed);
    least.only = BTreeMap::from([("delay".into(), vec!["7".into()])]);
    assert_eq!(verdict(&[95.0], &least), Verdict::NotMeasured, "none is not all");
    least.only = BTreeMap::from([("speed".into(), vec!["0".into()])]);
    assert_eq!(verdict(&[95.0], &least), Verdict::NotMeasured, "no such axis");
}

#[test]
fn a_share_of_the_cells_is_enough() {
    let mut least = target(Bound::AtLeast, 90.0, "");
    least.share = 0.75;
    assert_eq!(verdict(&[95.0, 95.0, 95.0, 10.0], &least), Verdict::Met);
    assert_eq!(verdict(&[95.0, 95.0, 10.0, 10.0], &least), Verdict::Missed);
}

#[test]
fn a_share_of_nine_tenths_of_ten_is_nine() {
    let mut least = target(Bound::AtLeast, 90.0, "");
    least.share = 0.9;
    let mut cells = vec![95.0; 9];
    cells.push(10.0);
    assert_eq!(verdict(&cells, &least), Verdict::Met);
    cells[0] = 10.0;
    assert_eq!(verdict(&cells, &least), Verdict::Missed);
}

#[test]
fn nothing_passes_when_nothing_was_measured() {
    let mut least = target(Bound::AtLeast, 0.0, "");
    assert_eq!(verdict(&[], &least), Verdict::NotMeasured);
    least.share = 0.0;
    assert_eq!(verdict(&[], &least), Verdict::NotMeasured);
    let skipped = SystemRecord { skipped: Some("absent".into()), ..system("classic", &[]) };
    let cells = vec![CellRecord { systems: vec![skipped], ..cell("0", 1.0) }];
    assert_eq!(judge(&answer(cells), &least).verdict, Verdict::NotMeasured);
}

#[test]
fn missing_cells_do_not_change_a_certain_verdict() {
    let unknown = || CellRecord { systems: Vec::new(), ..cell("9", 0.0) };
    let mut least = target(Bound::AtLeast, 90.0, "");
    let with = |cells: Vec<CellRecord>, target: &Target| judge(&answer(cells), target);
    assert_eq!(with(vec![cell("0", 95.0), unknown()], &least).verdict, Verdict::NotMeasured);
    let missed = with(vec![cell("0", 5.0), unknown()], &least);
    assert_eq!(missed.verdict, Verdict::Missed, "one miss is enough");
    least.share = 0.5;
    assert_eq!(with(vec![cell("0", 95.0), unknown()], &least).verdict, Verdict::Met);
    assert_eq!(with(vec![cell("0", 5.0), unknown()], &least).verdict, Verdict::NotMeasured);
}

#[test]
fn cells_that_were_never_begun_are_missing_too() {
    let mut partial = answer(vec![cell("0", 95.0)]);
    partial.missing = vec![vec![at("1")], vec![at("2")]];
    let mut least = target(Bound::AtLeast, 90.0, "");
    let judged = judge(&partial, &least);
    assert_eq!((judged.verdict, judged.cells), (Verdict::NotMeasured, 3));
    assert!(judged.outcome().contains("2 not measured (delay 1: the cell was not measured"));
    least.only = BTreeMap::from([("delay".into(), vec!["0".into()])]);
    assert_eq!(judge(&partial, &least).verdict, Verdict::Met);
}

#[test]
fn figures_that_are_no_numbers_are_missing() {
    let (zero, nan) = (target(Bound::AtLeast, 0.0, "ideal_mbps"), target(Bound::AtMost, 5.0, ""));
    let mut no_ideal = cell("0", 50.0);
    no_ideal.systems[0].figures.insert("ideal_mbps".into(), once(0.0));
    let judged = judge(&answer(vec![no_ideal]), &zero);
    assert_eq!(judged.verdict, Verdict::NotMeasured);
    assert_eq!(judged.unknown[0].why, "ideal_mbps is 0");
    assert_eq!(verdict(&[f64::NAN], &nan), Verdict::NotMeasured);
}

#[test]
fn a_quick_run_has_no_verdict_that_needs_a_full_run() {
    let mut least = target(Bound::AtLeast, 90.0, "");
    least.full = true;
    let mut quick = answer(vec![cell("0", 99.0)]);
    quick.form = Form::Quick;
    assert_eq!(judge(&quick, &least).verdict, Verdict::NotClaimed);
    quick.form = Form::Full;
    assert_eq!(judge(&quick, &least).verdict, Verdict::Met);
    least.full = false;
    quick.form = Form::Quick;
    assert_eq!(judge(&quick, &least).verdict, Verdict::Met);
}

#[test]
fn the_worst_miss_is_reported_first_with_its_size() {
    let least = target(Bound::AtLeast, 0.97, "ideal_mbps");
    let mut cells = vec![cell("0", 96.0), cell("10", 91.0), cell("20", 99.0)];
    cells[1].doubtful = true;
    let mut limited = cells.clone();
    limited[1].host_limited = Some("a small buffer".into());
    let outcome = judge(&answer(limited), &least).outcome();
    assert!(outcome.ends_with("(delay 10: 0.910, doubtful, host-limited)"), "{outcome}");
    let judged = judge(&answer(cells), &least);
    assert_eq!(
        judged.misses.iter().map(|miss| miss.place.as_str()).collect::<Vec<_>>(),
        ["delay 10", "delay 0"]
    );
    assert!((judged.misses[0].by - 0.06).abs() < 1e-9);
    assert_eq!(
        judged.outcome(),
        "missed in 2 of 3 cells, most by 0.0600 (delay 10: 0.910, doubtful)"
    );
}

#[test]
fn a_target_without_title_gets_one() {
    let words = |target: &Target| judge(&answer(Vec::new()), target).text;
    assert_eq!(words(&target(Bound::AtLeast, 90.0, "")), "MPT classic: goodput at least 90 Mbit/s");
    let mut within = target(Bound::Within, 0.03, "published");
    assert_eq!(words(&within), "MPT classic: goodput ÷ published within 3 % of 1");
    within.only = BTreeMap::from([("delay".into(), vec!["10".into(), "20".into()])]);
    within.share = 0.9;
    assert!(words(&within).ends_with(", for delay 10, 20, in at least 90 % of the cells"));
    assert_eq!(
        words(&target(Bound::AtMost, 2.0, "mptcp/goodput_mbps")),
        "MPT classic: goodput ÷ goodput of mptcp at most 2"
    );
    within.text = "It holds.".into();
    assert_eq!(words(&within), "It holds.");
}

#[test]
fn the_worst_verdict_is_the_overall_verdict() {
    let of = |verdict| Judgement { verdict, ..judge(&answer(Vec::new()), &Target::default()) };
    let all =
        [of(Verdict::Met), of(Verdict::NotClaimed), of(Verdict::NotMeasured), of(Verdict::Missed)];
    assert_eq!(overall(&all), Some(Verdict::Missed));
    assert_eq!(overall(&all[..3]), Some(Verdict::NotMeasured));
    assert_eq!(overall(&all[..2]), Some(Verdict::NotClaimed));
    assert_eq!(overall(&all[..1]), Some(Verdict::Met));
    assert_eq!(overall(&[]), None);
}

/// Cells with delays 0, 1, 2 and so on, and these goodputs.
fn judged(cells: &[f64], target: &Target) -> Judgement {
    let cells = cells.iter().enumerate().map(|(n, goodput)| cell(&n.to_string(), *goodput));
    judge(&answer(cells.collect()), target)
}

#[test]
fn the_median_of_the_cells_may_count() {
    let median = Target { cells: Of::Median, ..target(Bound::AtLeast, 90.0, "") };
    let met = judged(&[95.0, 91.0, 1.0], &median);
    assert_eq!((met.verdict, met.median), (Verdict::Met, Some(91.0)));
    assert_eq!(met.outcome(), "median 91.0 of 3 cells");
    assert_eq!(judged(&[95.0, 89.0, 1.0], &median).verdict, Verdict::Missed);
    assert_eq!(judged(&[], &median).verdict, Verdict::NotMeasured);
    let mut partial = answer(vec![cell("0", 95.0), cell("1", 95.0), cell("2", 95.0)]);
    partial.missing = vec![vec![at("3")], vec![at("4")]];
    assert_eq!(judge(&partial, &median).verdict, Verdict::Met, "whatever the others are");
    partial.missing.push(vec![at("5")]);
    let unsure = judge(&partial, &median);
    assert_eq!(unsure.verdict, Verdict::NotMeasured);
    assert!(unsure.outcome().starts_with("median 95.0 of 3 cells; 3 not measured (delay 3"));
    partial.cells = vec![cell("0", 1.0), cell("1", 1.0), cell("2", 1.0), cell("6", 1.0)];
    assert_eq!(judge(&partial, &median).verdict, Verdict::Missed);
}

#[test]
fn so_many_cells_may_be_enough() {
    let two = Target { cells: Of::AtLeast(2), ..target(Bound::AtLeast, 90.0, "") };
    assert_eq!(judged(&[95.0, 95.0, 1.0, 1.0, 1.0], &two).verdict, Verdict::Met);
    assert_eq!(judged(&[95.0, 1.0, 1.0], &two).verdict, Verdict::Missed);
    assert!(judge(&answer(Vec::new()), &two).text.ends_with(", in at least 2 cells"));
}

#[test]
fn a_target_that_is_met_tells_the_closest_cell() {
    let least = target(Bound::AtLeast, 90.0, "");
    assert_eq!(
        judged(&[95.0, 91.0, 99.0], &least).outcome(),
        "in 3 of 3 cells, closest 91.0 (delay 1)"
    );
    let most = target(Bound::AtMost, 100.0, "");
    assert_eq!(
        judged(&[95.0, 91.0, 99.0], &most).outcome(),
        "in 3 of 3 cells, closest 99.0 (delay 2)"
    );
}

#[test]
fn the_worst_repetition_may_count() {
    let mut scattered = cell("0", 95.0);
    scattered.systems[0]
        .figures
        .insert("goodput_mbps".into(), Figure { median: 95.0, min: 80.0, max: 110.0, count: 3 });
    let verdict = |bound, value, of_runs| {
        let target = Target { of_runs, ..target(bound, value, "") };
        judge(&answer(vec![scattered.clone()]), &target).verdict
    };
    assert_eq!(verdict(Bound::AtLeast, 90.0, OfRuns::Median), Verdict::Met);
    assert_eq!(verdict(Bound::AtLeast, 90.0, OfRuns::Worst), Verdict::Missed);
    assert_eq!(verdict(Bound::AtMost, 100.0, OfRuns::Median), Verdict::Met);
    assert_eq!(verdict(Bound::AtMost, 100.0, OfRuns::Worst), Verdict::Missed);
}

#[test]
fn a_bound_may_grow_with_the_longest_round_trip() {
    let mut slow = cell("0", 150.0);
    for rtt_ms in [20.0, 50.0] {
        slow.links.push(LinkRecord { rtt_ms, ..LinkRecord::default() });
    }
    let verdict = |round_trips| {
        let most = Target { round_trips, ..target(Bound::AtMost, 0.0, "") };
        judge(&answer(vec![slow.clone()]), &most).verdict
    };
    assert_eq!((verdict(3.0), verdict(2.9)), (Verdict::Met, Verdict::Missed));
}

#[test]
fn a_quotient_by_what_was_published_of_another_system() {
    let mut with_rival = cell("0", 80.0);
    with_rival.published.push(Published {
        system: "rival".into(),
        figure: "goodput_mbps".into(),
        value: 40.0,
    });
    let twice = target(Bound::AtLeast, 2.0, "published/rival");
    assert_eq!(judge(&answer(vec![with_rival.clone()]), &twice).verdict, Verdict::Met);
    let more = Target { value: 2.1, ..twice.clone() };
    let missed = judge(&answer(vec![with_rival, cell("1", 1.0)]), &more);
    assert_eq!(
        (missed.verdict, missed.cells),
        (Verdict::Missed, 1),
        "of the other nothing is known"
    );
    assert_eq!(missed.text, "MPT classic: goodput ÷ published of rival at least 2.1");
}
