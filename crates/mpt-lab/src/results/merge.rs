//! The repetitions of a cell, which are lines of their own, as one record.
//!
//! Runs of the lab that continue another one ([`Manifest::continues`]) and those they continue are a series. The
//! latest series that has a place answers for it, with all its repetitions; of a repetition that was measured twice the
//! later line counts. Other runs never mix: what was measured anew replaces what was there.

use std::collections::BTreeMap;

use super::{CellRecord, Figure, LinkRecord, Manifest, Part, SystemRecord};

/// What computed figures begin with: they are the same in every repetition.
const PREDICTED: &str = "predicted";

/// The record of a place from all its lines, oldest first; `None` if there are none.
pub fn merge(runs: &[Manifest], lines: &[&CellRecord]) -> Option<CellRecord> {
    let lines = series(runs, lines);
    let newest = *lines.last()?;
    // The lines of earlier versions hold all repetitions.
    if newest.repetition == 0 {
        let parts = vec![Part { repetition: 0, run: newest.run.clone() }];
        return Some(CellRecord { parts, ..newest.clone() });
    }
    let mut latest: BTreeMap<u32, &CellRecord> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.repetition > 0) {
        latest.insert(line.repetition, line);
    }
    // What measured something else than the newest line is older than a change of the experiment's file.
    latest.retain(|_, line| measured_the_same(newest, line));
    let lines: Vec<&CellRecord> = latest.into_values().collect();
    let parts =
        lines.iter().map(|line| Part { repetition: line.repetition, run: line.run.clone() });
    let mut merged = CellRecord {
        parts: parts.collect(),
        systems: systems(newest, &lines),
        host_limited: lines.iter().rev().find_map(|line| line.host_limited.clone()),
        ..newest.clone()
    };
    for link in &mut merged.links {
        let of_line =
            |line: &&CellRecord| alone(line, link).cloned().map(|it| (line.repetition, it));
        link.alone = system(lines.iter().filter_map(of_line).collect());
    }
    merged.reasons = reasons(&lines);
    merged.doubtful = !merged.reasons.is_empty();
    Some(merged)
}

/// The lines of the latest series that has any.
fn series<'a>(runs: &[Manifest], lines: &[&'a CellRecord]) -> Vec<&'a CellRecord> {
    let of = |run: &Manifest| -> Vec<&CellRecord> {
        let is_own = |line: &&&CellRecord| line.run == run.id || run.continues.contains(&line.run);
        lines.iter().filter(is_own).copied().collect()
    };
    let found = runs.iter().rev().map(of).find(|own| !own.is_empty());
    // A run whose manifest is lost stands for itself.
    let last = || {
        let last = lines.last().map_or("", |line| &line.run);
        lines.iter().filter(|line| line.run == last).copied().collect()
    };
    found.unwrap_or_else(last)
}

fn alone<'a>(line: &'a CellRecord, link: &LinkRecord) -> Option<&'a SystemRecord> {
    line.links.iter().find(|other| other.name == link.name)?.alone.as_ref()
}

/// Whether nothing that both have was measured in another way.
fn measured_the_same(one: &CellRecord, other: &CellRecord) -> bool {
    let systems = one.systems.iter().map(|it| (Some(it), other.system(&it.system)));
    let links = one.links.iter().map(|link| (link.alone.as_ref(), alone(other, link)));
    systems.chain(links).all(|pair| match pair {
        (Some(one), Some(other)) => one.key == other.key,
        _ => true,
    })
}

/// The systems of all lines, those of the newest one first.
fn systems(newest: &CellRecord, lines: &[&CellRecord]) -> Vec<SystemRecord> {
    let mut names: Vec<&str> = Vec::new();
    for line in [newest].into_iter().chain(lines.iter().copied()) {
        for record in &line.systems {
            if !names.contains(&record.system.as_str()) {
                names.push(&record.system);
            }
        }
    }
    let of_name = |name: &str| {
        let of_line = |line: &&CellRecord| Some((line.repetition, line.system(name)?.clone()));
        system(lines.iter().filter_map(of_line).collect())
    };
    names.into_iter().filter_map(of_name).collect()
}

/// A system's repetitions as one record; `None` if there are none.
fn system(repetitions: Vec<(u32, SystemRecord)>) -> Option<SystemRecord> {
    let (_, last) = repetitions.last()?;
    let mut merged = last.clone();
    let ran = |record: &SystemRecord| !record.figures.is_empty();
    if repetitions.iter().any(|(_, record)| ran(record)) {
        merged.skipped = None;
        merged.failed = false;
    }
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut computed: BTreeMap<String, Figure> = BTreeMap::new();
    for (name, figure) in repetitions.iter().flat_map(|(_, record)| &record.figures) {
        if name.starts_with(PREDICTED) {
            computed.insert(name.clone(), *figure);
        } else {
            values.entry(name).or_default().push(figure.median);
        }
    }
    let figure = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), Figure::of(&values)?));
    merged.figures = values.into_iter().filter_map(figure).collect();
    merged.figures.extend(computed);
    merged.samples_mbps = typical(&repetitions).map_or(Vec::new(), |it| it.samples_mbps.clone());
    merged.runs = repetitions.iter().flat_map(|(_, record)| record.runs.iter().cloned()).collect();
    Some(merged)
}

/// The repetition whose goodput is the median, or the lower of the two around it.
fn typical(repetitions: &[(u32, SystemRecord)]) -> Option<&SystemRecord> {
    let goodput = |it: &SystemRecord| it.figures.get("goodput_mbps").map_or(0.0, |it| it.median);
    let mut sorted: Vec<_> = repetitions.iter().map(|(_, record)| record).collect();
    sorted.retain(|record| !record.figures.is_empty());
    sorted.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Why the cell is doubtful, and in which repetition; one that failed while others did not is among them.
fn reasons(lines: &[&CellRecord]) -> Vec<String> {
    let mut reasons = Vec::new();
    for line in lines {
        let ran = |it: &SystemRecord| {
            lines
                .iter()
                .any(|line| line.system(&it.system).is_some_and(|other| !other.figures.is_empty()))
        };
        let failed = line.systems.iter().filter(|it| it.failed && ran(it));
        let failed =
            failed.filter_map(|it| Some(format!("{}: {}", it.system, it.skipped.as_ref()?)));
        for reason in line.reasons.iter().cloned().chain(failed) {
            reasons.push(match lines.len() {
                1 => reason,
                _ => format!("repetition {}: {reason}", line.repetition),
            });
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with the goodput of a system and of the link alone.
    fn line(run: &str, repetition: u32, goodput: f64) -> CellRecord {
        let record = |system: &str, goodput: f64| SystemRecord {
            system: system.into(),
            key: "k".into(),
            figures: [
                ("goodput_mbps".to_owned(), Figure::of(&[goodput]).unwrap()),
                (
                    "predicted_mbps".to_owned(),
                    Figure { median: 9.0, min: 8.0, max: 10.0, count: 1 },
                ),
            ]
            .into(),
            samples_mbps: vec![goodput],
            runs: vec![goodput.into()],
            ..SystemRecord::default()
        };
        let alone = Some(record("alone", goodput / 2.0));
        CellRecord {
            run: run.into(),
            repetition,
            systems: vec![record("mpt", goodput)],
            links: vec![LinkRecord { name: "a".into(), alone, ..LinkRecord::default() }],
            ..CellRecord::default()
        }
    }

    fn run(id: &str, continues: &[&str]) -> Manifest {
        let continues = continues.iter().map(|id| (*id).to_owned()).collect();
        Manifest { id: id.into(), continues, ..Manifest::default() }
    }

    fn merged(runs: &[Manifest], lines: &[CellRecord]) -> CellRecord {
        merge(runs, &lines.iter().collect::<Vec<_>>()).expect("there are lines")
    }

    fn goodput(cell: &CellRecord) -> (f64, usize) {
        let figure = cell.system("mpt").unwrap().figures["goodput_mbps"];
        (figure.median, figure.count)
    }

    #[test]
    fn figures_are_medians_over_the_repetitions_of_a_run_and_those_it_continues() {
        let runs = [run("one", &[]), run("two", &["one"])];
        let cell =
            merged(&runs, &[line("one", 1, 10.0), line("two", 3, 40.0), line("two", 2, 30.0)]);
        let mpt = cell.system("mpt").unwrap();
        assert_eq!(
            mpt.figures["goodput_mbps"],
            Figure { median: 30.0, min: 10.0, max: 40.0, count: 3 }
        );
        assert_eq!(mpt.figures["predicted_mbps"].min, 8.0, "it was computed and not measured");
        assert_eq!(mpt.samples_mbps, [30.0], "of the run at the median");
        assert_eq!(mpt.runs, [10.0, 30.0, 40.0], "in the order of the repetitions");
        assert_eq!(cell.figure("link:a", "goodput_mbps"), Some(15.0));
        let parts: Vec<_> = cell.parts.iter().map(|it| (it.repetition, it.run.as_str())).collect();
        assert_eq!(parts, [(1, "one"), (2, "two"), (3, "two")]);
    }

    #[test]
    fn runs_that_do_not_continue_each_other_never_mix() {
        let lines = [line("one", 1, 10.0), line("one", 2, 20.0), line("two", 1, 30.0)];
        let runs = [run("one", &[]), run("two", &[])];
        assert_eq!(goodput(&merged(&runs, &lines)), (30.0, 1), "the latest run counts");
        assert_eq!(goodput(&merged(&[], &lines)), (30.0, 1), "also without its manifest");
        assert_eq!(goodput(&merged(&runs, &lines[..2])), (15.0, 2));
        // A run that found nothing missing says that both count.
        let runs = [runs.as_slice(), &[run("three", &["one", "two"])]].concat();
        assert_eq!(goodput(&merged(&runs, &lines)), (25.0, 2), "the later line of repetition 1");
    }

    #[test]
    fn what_another_file_measured_is_left_out() {
        let runs = [run("one", &[]), run("two", &["one"])];
        let mut edited = line("two", 1, 50.0);
        edited.systems[0].key = "other".into();
        let cell = merged(&runs, &[line("one", 1, 10.0), line("one", 2, 20.0), edited]);
        assert_eq!(goodput(&cell), (50.0, 1));
    }

    #[test]
    fn a_system_that_only_some_repetitions_have_is_kept() {
        let mut more = line("one", 2, 20.0);
        more.systems[0].system = "adaptive".into();
        let cell = merged(&[run("one", &[])], &[line("one", 1, 10.0), more]);
        assert_eq!(cell.figure("mpt", "goodput_mbps"), Some(10.0));
        assert_eq!(cell.figure("adaptive", "goodput_mbps"), Some(20.0));
    }

    #[test]
    fn reasons_name_their_repetition_and_a_failure_is_one_of_them() {
        let mut failed = line("one", 2, 0.0);
        failed.systems[0] = SystemRecord {
            system: "mpt".into(),
            key: "k".into(),
            skipped: Some("it failed: no such luck".into()),
            failed: true,
            ..SystemRecord::default()
        };
        let mut doubtful = line("one", 3, 30.0);
        doubtful.reasons = vec!["mpt: it stood still".into()];
        let cell = merged(&[run("one", &[])], &[line("one", 1, 10.0), failed.clone(), doubtful]);
        assert_eq!(
            cell.reasons,
            ["repetition 2: mpt: it failed: no such luck", "repetition 3: mpt: it stood still"]
        );
        assert!(cell.doubtful && cell.system("mpt").unwrap().skipped.is_none());
        assert_eq!(goodput(&cell), (20.0, 2));
        let cell = merged(&[run("one", &[])], &[failed]);
        assert!(cell.system("mpt").unwrap().skipped.is_some(), "it never ran");
        assert!(!cell.doubtful, "which says enough");
    }

    #[test]
    fn lines_of_earlier_versions_hold_all_repetitions() {
        let mut whole = line("one", 0, 10.0);
        whole.systems[0]
            .figures
            .insert("goodput_mbps".into(), Figure { count: 5, ..Figure::default() });
        let cell = merged(&[run("one", &[])], &[line("one", 0, 7.0), whole]);
        assert_eq!(goodput(&cell).1, 5);
        assert_eq!(cell.parts.len(), 1);
    }
}
