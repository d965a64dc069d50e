//! The commands of the binary, as a person types them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use mpt_lab::running::Folder;

use crate::world::{Test, lab};

pub(crate) const TESTS: &[Test] = &[
    ("doctor_names_every_need_and_its_verdict", doctor),
    ("shell_runs_a_command_in_the_host", shell),
    ("shell_says_what_is_up_if_asked_for_something_else", shell_of_nothing),
    ("a_stale_announcement_is_removed", stale),
    ("a_folder_open_to_others_is_refused", open_folder),
];

/// Those that measure the machine.
pub(crate) const TESTS_ALONE: &[Test] =
    &[("the_selftest_measures_every_property_and_the_exit_code_says_if_one_fails", selftest)];

fn mpt_lab(folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt-lab"));
    command.env("XDG_RUNTIME_DIR", folder.path());
    command
}

fn folder() -> (tempfile::TempDir, Folder) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder::at(temporary.path().join("mpt-lab")).unwrap();
    (temporary, folder)
}

fn words(output: &Output) -> (String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn doctor() {
    let (temporary, _folder) = folder();
    let output = mpt_lab(&temporary).args(["doctor", "--json"]).output().unwrap();
    let (out, err) = words(&output);
    let findings: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap_or_else(|error| {
        panic!("{error} in {out}{err}");
    });
    let verdict = |what: &str| {
        let finding = findings.iter().find(|finding| finding["what"] == what);
        finding.unwrap_or_else(|| panic!("{what} is missing"))["ok"].as_bool().unwrap()
    };
    // These tests run, so a host with a device can be made.
    assert!(verdict("TUN device") && verdict("host with a device"), "{out}");
    for what in ["kernel", "socket buffers", "TCP CUBIC", "IPv6"] {
        verdict(what);
    }
    let all_well = findings.iter().all(|finding| finding["ok"] == true);
    assert_eq!(output.status.code(), Some(i32::from(!all_well)), "{out}");
    for finding in &findings {
        assert!(finding["ok"] == true || finding["remedy"].is_string(), "{finding}");
    }
    let output = mpt_lab(&temporary).arg("doctor").output().unwrap();
    assert!(words(&output).0.lines().filter(|line| !line.starts_with(' ')).count() >= 7);
}

fn selftest() {
    let (temporary, _folder) = folder();
    let output = mpt_lab(&temporary).args(["selftest", "--quick", "--json"]).output().unwrap();
    let (out, err) = words(&output);
    let selftest: mpt_lab::results::SelfTest = serde_json::from_str(&out).unwrap_or_else(|error| {
        panic!("{error} in {out}{err}");
    });
    // A stalled machine may fail a check, but then the output says so.
    let passed = selftest.checks.iter().all(|check| check.passed);
    assert_eq!(output.status.code(), Some(i32::from(!passed)), "{out}{err}");
    assert!(passed || err.contains("the machine stalled"), "{out}{err}");
    for property in
        ["delay 10 ms", "delay 50 ms", "jitter 20 ms", "loss 1 %", "rate 20", "rate 100"]
    {
        let mut checks = selftest.checks.iter().filter(|check| check.name.starts_with(property));
        let (check, another) = (checks.next(), checks.next());
        assert!(another.is_none() && check.is_some_and(|check| check.got > 0.0), "{out}");
    }
    assert!(selftest.ceiling_mbps > 0.0, "{out}");
}

fn shell() {
    let (temporary, folder) = folder();
    let lab = lab("[[link]]\nname = 'wire'");
    let announced = folder.announce("garden", &lab).unwrap();
    assert!(folder.announce("garden", &lab).is_err(), "a name is taken once");

    // A socket that exists in the left host alone.
    let listener = lab.left().run(|| TcpListener::bind((lab.left().address(0), 0))).unwrap();
    let port = format!(":{:04X} ", listener.local_addr().unwrap().port());
    for (host, there) in [("left", true), ("right", false)] {
        let mut command = mpt_lab(&temporary);
        let command = command.args(["shell", host, "--", "cat", "/proc/net/tcp", "/proc/net/dev"]);
        let output = command.output().unwrap();
        let (out, err) = words(&output);
        assert!(output.status.success(), "{err}");
        assert!(out.contains(" wire:"), "{out}");
        assert_eq!(out.contains(&port), there, "{host}: {out}");
    }
    let mut command = mpt_lab(&temporary);
    let script = "echo $MPT_LAB_HOST; exit 5";
    let output = command.args(["shell", "right", "--lab", "garden", "--", "sh", "-c", script]);
    let output = output.output().unwrap();
    assert_eq!((output.status.code(), words(&output).0.as_str()), (Some(5), "garden/right\n"));

    let output = mpt_lab(&temporary).args(["shell", "middle"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).1.contains("there are left and right"), "{output:?}");
    drop(announced);
    assert!(folder.all().unwrap().is_empty());
}

fn shell_of_nothing() {
    let (temporary, folder) = folder();
    let complaint = |lab: Option<&str>| {
        let mut command = mpt_lab(&temporary);
        command.args(["shell", "left"]).args(lab.iter().flat_map(|lab| ["--lab", lab]));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        words(&output).1
    };
    assert!(complaint(None).contains("no lab is running: start one with `mpt-lab up FILE`"));
    let lab = lab("[[link]]\nname = 'wire'");
    let _announced = [folder.announce("one", &lab).unwrap(), folder.announce("two", &lab).unwrap()];
    assert!(
        complaint(Some("three")).contains("no running lab is called `three`; there are: one, two")
    );
    assert!(complaint(None).contains("select one with --lab: one, two"));
}

fn stale() {
    let (temporary, folder) = folder();
    let file = temporary.path().join("mpt-lab/old.json");
    // Process 1 exists, but was not started at this time.
    let old = r#"{"name":"old","pid":1,"started":18446744073709551615,"hosts":[]}"#;
    for text in [old, "{", ""] {
        fs::write(&file, text).unwrap();
        assert!(folder.all().unwrap().is_empty());
        assert!(!file.exists(), "{text:?} stayed");
    }
}

fn open_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("mpt-lab");
    drop(Folder::at(path.clone()).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Folder::at(path.clone()).unwrap_err();
    assert!(error.to_string().contains("not a folder of this user alone"), "{error}");
    fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink(temporary.path(), &path).unwrap();
    assert!(Folder::at(path).is_err(), "a link was followed");
}
