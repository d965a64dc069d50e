//! The commands that make reports and comparisons.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::synthetic;

fn lab(arguments: &[&str], place: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mpt-lab")).args(arguments).current_dir(place).output().unwrap()
}

#[test]
fn a_report_is_written_to_the_given_place() {
    let place = tempfile::tempdir().unwrap();
    synthetic::write(&place.path().join("results"), 1.0);
    let output = lab(&["report", "results"], place.path());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let (files, targets) = said.split_once("\n\n").unwrap();
    assert_eq!(files, "results/report.html\nresults/report.md");
    let targets: Vec<_> = targets.lines().collect();
    assert_eq!(targets[0], "journal-2023-table-1: 2 of 3 met");
    assert!(
        targets[1].starts_with(
            "  met           MPT classic: goodput ÷ published at least 0.9 – in 7 of 7 cells"
        ),
        "{said}"
    );
    assert!(
        targets[2].starts_with("  missed        Half of the cells")
            && targets[2].contains(" missed in "),
        "{said}"
    );
    let markdown = fs::read_to_string(place.path().join("results/report.md")).unwrap();
    assert!(
        markdown.contains(
            "| journal-2023-table-1 | Delay on both links | missed | 2 of 3 met | 7 | full |"
        ),
        "{markdown}"
    );
    let code = |line: &&str| line.starts_with("$ ");
    assert!(!markdown.lines().filter(|line| !code(line)).any(|line| line.contains("<script")));
    assert!(!markdown.contains("NaN"));

    let output =
        lab(&["report", "results", "--html", "a.html", "--markdown", "b.md"], place.path());
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("a.html\nb.md\n\n"));
    assert_eq!(fs::read_to_string(place.path().join("b.md")).unwrap(), markdown);
}

#[test]
fn plots_are_files_on_demand() {
    let place = tempfile::tempdir().unwrap();
    synthetic::write(&place.path().join("results"), 1.0);
    let output = lab(&["report", "results", "--plots", "plots"], place.path());
    let said = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = said.lines().filter(|line| line.starts_with("plots/")).collect();
    assert!(names.contains(&"plots/journal-2023-table-1-plot-1-1.svg"), "{names:?}");
    assert!(names.contains(&"plots/electronics-2025-figure-10-plot-1-legend.svg"), "{names:?}");
    for name in names {
        let text = fs::read_to_string(place.path().join(name)).unwrap();
        assert!(text.starts_with("<?xml") && text.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn a_folder_without_results_is_a_failure_with_a_reason() {
    let place = tempfile::tempdir().unwrap();
    let output = lab(&["report", "."], place.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mpt-lab run --out"), "{output:?}");
}

#[test]
fn a_regression_sets_the_exit_code() {
    let place = tempfile::tempdir().unwrap();
    synthetic::write(&place.path().join("a"), 1.0);
    synthetic::write(&place.path().join("b"), 0.7);
    let code = |arguments: &[&str]| lab(arguments, place.path()).status.code();
    assert_eq!(code(&["compare", "a", "b"]), Some(0), "nobody asked for a verdict");
    assert_eq!(code(&["compare", "a", "b", "--worse", "20"]), Some(1));
    assert_eq!(code(&["compare", "a", "b", "--worse", "40"]), Some(0));
    assert_eq!(code(&["compare", "b", "a", "--worse", "5"]), Some(0), "it became better");
    assert_eq!(code(&["compare", "a", "nothing"]), Some(2));

    let output = lab(&["compare", "a", "b", "--json"], place.path());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &json["changes"][0];
    assert_eq!(
        (first["meaning"].as_str(), first["system"].as_str()),
        (Some("worse"), Some("classic"))
    );
    assert!((first["ratio"].as_f64().unwrap() - 0.7).abs() < 1e-9, "{first}");
    let text = String::from_utf8(lab(&["compare", "a", "b"], place.path()).stdout).unwrap();
    assert!(text.contains("WORSE") && text.starts_with("journal-2023-table-1\n"), "{text}");
}

/// A path that is full, a queue, and a finding, over a second.
const TRACE: &str = r#"{"at_seconds":5.0,"kind":"begin","version":"0.1.0","unix_seconds":0.0}
{"at_seconds":5.1,"connection":"c","kind":"path","name":"fibre","sent":{"packets":9,"bytes":9000},"share":1.0,"estimate":{"rate":9000000,"queueing_ms":2.5,"skew_ms":0.0}}
{"at_seconds":5.5,"connection":"c","kind":"event","path":"fibre","found":"rate","from":9000000,"to":4000000}
{"at_seconds":6.0,"connection":"c","kind":"path","name":"fibre","sent":{"packets":9,"bytes":9000},"share":1.0,"estimate":{"rate":4000000,"queueing_ms":3.5,"skew_ms":0.0}}
{"at_seconds":6.0,"connection":"c","kind":"queue","waiting":3,"waiting_bytes":4000}
{"at_seconds":6.1,"kind":"end","reason":"time","missed":0}
"#;

#[test]
fn a_trace_becomes_a_page_alone_or_with_its_results() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("one.jsonl"), TRACE).unwrap();
    let output = lab(&["report", "one.jsonl", "--plots", "plots"], place.path());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("one.html\nplots/one-legend.svg\nplots/one-1.svg\n"), "{said}");
    let page = fs::read_to_string(place.path().join("one.html")).unwrap();
    for part in
        ["Rates and findings", "Queue on the way", "What waits here", "rate 9.0 to 4.0 Mbit/s"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("NaN"));

    synthetic::write(&place.path().join("results"), 1.0);
    fs::create_dir(place.path().join("results/traces")).unwrap();
    fs::write(place.path().join("results/traces/a.b.jsonl"), TRACE).unwrap();
    let output = lab(&["report", "results"], place.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("results/traces/a.b.html\n"), "{said}");

    fs::write(place.path().join("two.jsonl"), "{}\n").unwrap();
    let output = lab(&["report", "two.jsonl"], place.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no trace"), "{output:?}");
}
