//! The command that runs experiments, without any daemon: links alone, and a system that a script makes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mpt_lab::results::Results;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::world::{Test, eventually};

pub(crate) const TESTS: &[Test] = &[
    ("every_cell_is_one_json_object_and_stays_on_disk", cells),
    ("a_system_is_whatever_a_script_makes", external),
    ("what_runs_beside_a_flow_is_measured_too", beside),
    ("a_script_that_ends_early_is_told_with_its_words", broken),
    ("an_interrupted_run_removes_everything_and_keeps_what_was_measured", interrupted),
    ("an_interrupted_run_is_continued_and_nothing_is_measured_twice", continued),
    ("a_run_that_is_captured_leaves_a_file_per_step", captured),
];

/// Two cells of slow links, each measured alone, and nothing else.
const ALONE: &str = "
title = 'Alone'
question = 'What is a link worth?'
systems = ['mptcp']
[[link]]
name = 'a'
rate_mbps = 4
[[axis]]
name = 'rate'
set = ['link.a.rate_mbps']
values = [4, 8]
";

/// Two cells of pings over a link alone: MPTCP carries none.
const PINGS: &str = "
title = 'Pings'
systems = ['mptcp']
[[link]]
name = 'a'
[traffic]
kind = 'ping'
[[axis]]
name = 'delay'
set = ['link.a.delay_ms']
values = [1, 2]
";

/// A tunnel without a tunnel: the inner addresses lie on the link itself. They are added by a netlink
/// message, because not every machine has `ip`.
const SCRIPT: &str = "#!/bin/sh
set -e
set -- $MPT_LAB_LINKS
python3 - \"$1\" <<'PYTHON'
import os, socket, struct, sys
# RTM_NEWADDR by hand: family, prefix, flags, scope, index; attributes 1 and 2 are address and local.
device = sys.argv[1].encode()
inner, prefix = os.environ['MPT_LAB_INNER'].split('/')
address = socket.inet_aton(inner)
attributes = b''.join(struct.pack('HH', 8, kind) + address for kind in (1, 2))
body = struct.pack('BBBBI', socket.AF_INET, int(prefix), 0, 0, socket.if_nametoindex(device.decode()))
message = struct.pack('IHHII', 16 + len(body) + len(attributes), 20, 0x605, 1, 0) + body + attributes
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
netlink.send(message)
code = struct.unpack('i', netlink.recv(4096)[16:20])[0]
sys.exit(0 if code == 0 else 'the kernel refuses the address: %d' % code)
PYTHON
exec sleep 1000
";

fn mpt_lab(folder: &Path, file: &str, text: &str) -> Command {
    let path = folder.join(file);
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt-lab"));
    command.arg("run").arg(path).arg("--json");
    command
}

fn lines(output: &Output) -> Vec<Value> {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn cells() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut command = mpt_lab(folder.path(), "alone.toml", ALONE);
    command.args(["--quick", "--ceiling", "100", "--out"]).arg(&results);
    let lines = lines(&command.output().unwrap());
    let [four, eight] = lines.as_slice() else { panic!("{lines:?}") };
    for (line, rate) in [(four, 4.0), (eight, 8.0)] {
        assert_eq!(line["experiment"], "alone");
        assert_eq!(line["cell"][0]["value"].as_f64(), Some(rate));
        let goodput = line["links_mbps"][0].as_f64().unwrap();
        assert!(goodput > 0.5 * rate && goodput < rate, "{goodput} of {rate}");
        assert!(line["quick"] == true && line["scale"] == 1.0);
    }
    let results = Results::read(&results).unwrap();
    let [run] = results.runs.as_slice() else { panic!("{:?}", results.runs) };
    let selftest = run.selftest.as_ref().unwrap();
    assert_eq!(selftest.ceiling_mbps, 100.0, "as was said");
    assert!(!selftest.checks.is_empty(), "every folder carries the emulator's test");
    assert_eq!(results.cells.len(), 2);
    assert!(results.cells.iter().all(|cell| cell.run == run.id));
}

fn external() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tunnel.sh");
    fs::write(&script, SCRIPT).unwrap();
    let text = format!(
        "title = 't'\nalone = false\n[[system]]\nname = 'mine'\nscript = '{}'\n[[link]]\nname = 'a'\n\
         rate_mbps = 8\n",
        script.display()
    );
    make_executable(&script);
    let mut command = mpt_lab(folder.path(), "mine.toml", &text);
    let lines = lines(&command.arg("--quick").output().unwrap());
    let system = &lines[0]["systems"][0];
    assert_eq!(system["system"], "mine");
    let goodput = system["figures"]["goodput_mbps"]["median"].as_f64().unwrap();
    assert!(goodput > 4.0 && goodput < 8.0, "{goodput}");
    assert_eq!(lines[0]["tunnel_mbps"].as_f64(), Some(goodput));
}

fn beside() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tunnel.sh");
    fs::write(&script, SCRIPT).unwrap();
    make_executable(&script);
    let text = format!(
        "title = 't'\n[[system]]\nname = 'mine'\nscript = '{}'\n[[link]]\nname = 'a'\n\
         rate_mbps = 8\n[traffic]\nbeside = {{ interval = 0.05 }}\nrival = 'plain'\n",
        script.display()
    );
    let mut command = mpt_lab(folder.path(), "beside.toml", &text);
    let lines = lines(&command.arg("--quick").output().unwrap());
    let figures = &lines[0]["systems"][0]["figures"];
    let figure = |name: &str| {
        figures[name]["median"].as_f64().unwrap_or_else(|| panic!("no {name}: {figures}"))
    };
    assert!(figure("beside_delay_p99_ms") >= figure("beside_delay_p50_ms"));
    assert!(figure("beside_delay_p50_ms") > 0.0 && figure("beside_lost_share") < 1.0);
    let (ours, theirs) = (figure("goodput_mbps"), figure("rival_goodput_mbps"));
    assert!(ours > 0.0 && theirs > 0.0 && ours + theirs < 8.0, "{ours} and {theirs} of 8");
    assert!((0.5..=1.0).contains(&figure("jain")));
    let alone = &lines[0]["links"][0]["alone"]["figures"];
    assert!(alone["goodput_mbps"]["median"].as_f64().unwrap() > ours, "alone there is no rival");
    assert!(alone.get("jain").is_none() && alone.get("beside_lost_share").is_none());
    let best = alone["goodput_mbps"]["median"].as_f64().unwrap();
    assert!((figure("over_best_alone") - ours / best).abs() < 1e-9);
}

fn broken() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("broken.sh");
    fs::write(&script, "#!/bin/sh\necho no such luck on the $1\nexit 3\n").unwrap();
    make_executable(&script);
    let text = format!(
        "title = 't'\nalone = false\n[[system]]\nname = 'mine'\nscript = '{}'\n[[link]]\nname = 'a'\n",
        script.display()
    );
    let output = mpt_lab(folder.path(), "mine.toml", &text).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("no such luck on the"), "{error}");
}

fn interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut command = mpt_lab(folder.path(), "alone.toml", ALONE);
    command.args(["--quick", "--ceiling", "100", "--out"]).arg(&results);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.contains("\"links_mbps\""), "the first cell: {line}");
    eventually("the next cell has its hosts", || namespaces_of(child.id()).len() > 1);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(2));
    let results = Results::read(&results).unwrap();
    assert_eq!(results.cells.len(), 1, "what was measured before stays");
}

fn continued() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let run = |more: &[&str]| {
        let mut command = mpt_lab(folder.path(), "pings.toml", PINGS);
        command.args(["--quick", "--ceiling", "100", "--repetitions", "2", "--continue", "--out"]);
        command.arg(&results).args(more);
        command
    };
    let on_disk = || fs::read_to_string(results.join("cells.jsonl")).unwrap_or_default();
    let child = run(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.unwrap();
    eventually("a first repetition is complete", || on_disk().ends_with('\n'));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let before = on_disk();
    assert!((1..4).contains(&before.lines().count()), "{before}");

    let lines_of_all = lines(&run(&[]).output().unwrap());
    let after = on_disk();
    assert!(after.starts_with(&before), "what was there stays");
    let of_cells = Results::read(&results).unwrap().cells;
    let measured = of_cells.iter().map(|cell| (cell.place(), cell.repetition));
    let expected = [("delay 1", 1), ("delay 2", 1), ("delay 1", 2), ("delay 2", 2)];
    assert_eq!(measured.collect::<Vec<_>>(), expected.map(|(place, n)| (place.to_owned(), n)));
    assert_eq!(lines_of_all.len(), 2, "a cell has one line, of all its repetitions");
    for line in &lines_of_all {
        let alone = &line["links"][0]["alone"];
        assert_eq!(alone["figures"]["rtt_avg_ms"]["count"], 2, "{line}");
        assert_eq!(alone["runs"].as_array().map(Vec::len), Some(2));
        assert_eq!(line["systems"][0]["failed"], false, "it was not expected to run");
    }

    assert_eq!(lines(&run(&[]).output().unwrap()).len(), 2);
    assert_eq!(on_disk(), after, "nothing was missing");

    // As if the first run had been made by another build.
    let file = results.join("runs.jsonl");
    let runs = Results::read(&results).unwrap().runs;
    let other = fs::read_to_string(&file).unwrap().replacen(&runs[0].lab_sha256, "0123", 1);
    fs::write(&file, other).unwrap();
    assert_eq!(lines(&run(&["--mix-versions"]).output().unwrap()).len(), 2);
    assert_eq!(on_disk(), after, "nothing was missing");
    let mut report = Command::new(env!("CARGO_BIN_EXE_mpt-lab"));
    assert!(report.arg("report").arg(&results).output().unwrap().status.success());
    let report = fs::read_to_string(results.join("report.md")).unwrap();
    assert_eq!(report.matches("Measured by version").count(), 2, "{report}");
    assert!(report.contains("mpt-lab 0123, "), "{report}");
}

fn captured() {
    let folder = tempfile::tempdir().unwrap();
    let captures = folder.path().join("captures");
    let mut command = mpt_lab(folder.path(), "alone.toml", ALONE);
    command.args(["--quick", "--at", "rate=4", "--capture"]).arg(&captures);
    assert_eq!(lines(&command.output().unwrap()).len(), 1);
    let files: Vec<_> = fs::read_dir(&captures).unwrap().flatten().collect();
    assert_eq!(files.len(), 2, "the link alone, and MPTCP over it: {files:?}");
    for file in files {
        let bytes = fs::read(file.path()).unwrap();
        assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header block");
        assert!(bytes.len() > 1_000_000, "4 s of 4 Mbit/s at both ends");
    }
}

/// The network namespaces that threads of a process are in.
fn namespaces_of(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_link(task.path().join("ns/net")).ok());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.dedup();
    names
}

fn make_executable(script: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
}
