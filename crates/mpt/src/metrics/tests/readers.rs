//! What others make of a page: the Python client of Prometheus, promtool, the alerts and the dashboard.
//!
//! What is not installed is skipped with a message; with `MPT_NO_SKIP=1` the test fails instead.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::super::{Format, page};
use super::format::parse;
use super::pages::full;

/// Prints each sample as name, labels and value.
const PYTHON: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text
parse = openmetrics if sys.argv[1] == 'openmetrics' else text
for family in parse(sys.stdin.read()):
    assert family.documentation.endswith('.'), family
    for sample in family.samples:
        labels = ','.join(f'{name}={value!r}' for name, value in sorted(sample.labels.items()))
        print(f'{sample.name} {labels} {float(sample.value)}')
";

/// A file of `contrib/prometheus`.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus").join(name)
}

fn skip(test: &str, remedy: &str) {
    assert_ne!(env::var("MPT_NO_SKIP").as_deref(), Ok("1"), "{test}: {remedy}");
    println!("SKIPPED {test}: {remedy}");
}

/// The Python that has what a test imports: `MPT_PYTHON`, or the system's; none if neither has.
fn python(module: &str) -> Option<String> {
    let named = env::var("MPT_PYTHON").ok().into_iter();
    named.chain(["/usr/bin/python3".to_owned()]).find(|python| {
        let found = Command::new(python)
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status();
        found.is_ok_and(|status| status.success())
    })
}

/// What a program says that reads `input`.
fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A reader that gives up does not read the rest; its exit code says so.
    let _ = writer.join().unwrap();
    output
}

fn has_promtool() -> bool {
    let found = Command::new("promtool").arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

#[test]
fn the_python_client_reads_the_same_from_both_formats() {
    let Some(python) = python("prometheus_client.openmetrics.parser") else {
        let remedy = "no Python client of Prometheus; `apt-get install python3-prometheus-client` brings one";
        return skip("the_python_client_reads_the_same_from_both_formats", remedy);
    };
    let mut status = full();
    status.tunnels[0].connections[0].name = "a \"quoted\\ one\"}\nand more".into();
    let read = |format, name: &str| -> BTreeSet<String> {
        let text = page(&status, format);
        let output = run(Command::new(&python).args(["-c", PYTHON, name]), &text);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {complaint}\n{text}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let open = read(Format::OpenMetrics, "openmetrics");
    let text = read(Format::Text, "text");
    let differing: Vec<&String> = open.symmetric_difference(&text).collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert_eq!(open.len(), parse(&page(&status, Format::OpenMetrics)).unwrap().series.len());
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    if !has_promtool() {
        let remedy = "no promtool; Debian's package `prometheus` has it";
        return skip("promtool_finds_nothing_to_complain_of", remedy);
    }
    let text = page(&full(), Format::Text);
    let check = |text: &str| run(Command::new("promtool").args(["check", "metrics"]), text);
    let output = check(&text);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(!check(&page(&full(), Format::OpenMetrics)).status.success(), "it reads one format");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]] {
        let mut promtool = Command::new("promtool");
        let output = run(promtool.args(arguments).current_dir(file("")), "");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

/// A name in an alert or the dashboard that the daemon does not export is an alert that never comes.
#[test]
fn alerts_and_dashboard_name_what_there_is() {
    let page = parse(&page(&full(), Format::OpenMetrics)).unwrap();
    let exported: BTreeSet<&str> =
        page.series.keys().map(|series| series.split('{').next().unwrap_or_default()).collect();
    for (name, least) in [("alerts.yml", 6), ("dashboard.json", 15)] {
        let text = fs::read_to_string(file(name)).unwrap();
        let part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named: BTreeSet<&str> =
            text.split(|c| !part_of_name(c)).filter(|word| word.starts_with("mpt_")).collect();
        let unknown: Vec<_> = named.difference(&exported).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert!(named.len() >= least, "{name}: {named:?}");
    }
    // Each label that an alert compares is one that the series has.
    let labels: BTreeSet<&str> = page
        .series
        .keys()
        .flat_map(|series| series.split(['{', ',']))
        .filter_map(|part| Some(part.split_once("=\"")?.0))
        .collect();
    for label in ["tunnel", "connection", "path", "state", "direction", "reason", "scheduler"] {
        assert!(labels.contains(label), "{label}");
    }
}

#[test]
fn the_dashboard_is_of_grafanas_schema() {
    let Some(python) = python("grafana_foundation_sdk") else {
        let remedy = "no types of Grafana; `pip install 'grafana-foundation-sdk==1769699998!10.1.0'` in the Python that \
                      MPT_PYTHON names brings them";
        return skip("the_dashboard_is_of_grafanas_schema", remedy);
    };
    let check = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("dashboard.json");
        fs::write(&copy, text).unwrap();
        let mut command = Command::new(&python);
        run(command.arg(file("check-dashboard.py")).arg(copy), "")
    };
    let text = fs::read_to_string(file("dashboard.json")).unwrap();
    let output = check(&text);
    assert!(output.status.success(), "{output:?}");
    for (from, to) in [
        ("\"gridPos\"", "\"place\""),
        ("\"expr\"", "\"expression\""),
        ("\"displayMode\"", "\"mode\""),
        ("\"schemaVersion\": 36", "\"schema\": 36"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(!check(&text.replace(from, to)).status.success(), "{from} -> {to}");
    }
}
