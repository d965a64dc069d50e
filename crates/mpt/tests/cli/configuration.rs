//! `mpt check` and `mpt run`: what they say of a file, of this host and of their environment.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::program::{command, complaint, mpt, stdout};

/// A configuration without an error.
pub(crate) const GOOD: &str = r#"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24"]
[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2"]
[[tunnel.connection.path]]
name = "fibre"
remote = "203.0.113.5"
[[tunnel.connection.path]]
name = "radio"
remote = "203.0.113.6"
"#;

#[test]
fn run_and_check_take_the_file_of_the_service_where_none_is_named() {
    let output = mpt(&["check"]);
    let said = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/etc/mpt/mpt.toml"), "{said}");
}

#[test]
fn a_good_file_is_said_to_be_good() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("good.toml");
    fs::write(&file, GOOD).unwrap();
    let output = mpt(&["check", "--file-only", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty());
    let text = stdout(&output);
    assert!(text.ends_with("good.toml: good: 1 tunnel, 1 connection, 2 paths\n"), "{text}");
    assert_eq!(text.lines().count(), 1, "nothing about this host: {text}");
}

/// What exactly is said is tested where the host is made for it; here only what holds on any.
#[test]
fn missing_host_requirements_are_reported_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("good.toml");
    let text = GOOD.replacen("remote", "interface = \"no-such-if\"\nremote", 1);
    let text =
        text.replacen("[[tunnel.connection]]", "[[tunnel.connection]]\nlocal_port = 4799", 1);
    let radio = "interface = \"lo\"\nlocal = \"203.0.113.77\"\nremote = \"203.0.113.6\"";
    fs::write(&file, text.replace("remote = \"203.0.113.6\"", radio)).unwrap();
    let output = mpt(&["check", file.to_str().unwrap()]);
    let text = stdout(&output);
    for what in [
        "good.toml: good: 1 tunnel",
        "warning: interface no-such-if does not exist: path fibre of server",
        "\n  fix: ip -brief link",
        "warning: no interface has the address 203.0.113.77: path radio of server",
    ] {
        assert!(text.contains(what), "{text}");
    }
    // Warnings are no reason not to run. Errors are, and this user may meet some.
    if text.contains("\nerror: ") {
        assert_eq!(output.status.code(), Some(1));
        assert!(complaint(&output).contains("cannot be run here: fix"), "{output:?}");
    } else {
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let not_text = directory.path().join("not-text");
    fs::write(&not_text, b"[control]\n\xff\n").unwrap();
    for (file, text) in [
        (directory.path().join("missing.toml"), "No such file"),
        (directory.path().to_path_buf(), "directory"),
        (PathBuf::from("/dev/zero"), "larger than"),
        (not_text, "line 2 is not UTF-8"),
    ] {
        for command in ["check", "run"] {
            let output = mpt(&[command, file.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let line = complaint(&output);
            assert!(line.contains(text) && line.contains(file.to_str().unwrap()), "{line}");
        }
    }
    let missing = directory.path().join("missing.toml");
    for command in ["check", "run"] {
        let line = complaint(&mpt(&[command, missing.to_str().unwrap()]));
        let remedy = "name another file, or have `mpt init` or `mpt join` write one";
        assert!(line.contains(remedy), "{line}");
    }
}

#[test]
fn templates_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mpt.toml");
    let text = "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n\
                [[tunnel.accept]]\nname = 'client'\npeers = ['10.9.0.0/24']\n";
    fs::write(&file, text).unwrap();
    let said = stdout(&mpt(&["check", "--file-only", file.to_str().unwrap()]));
    assert!(said.ends_with("0 paths; clients of 1 template are accepted\n"), "{said}");
}

#[test]
fn a_wrong_file_is_not_run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-config/weight-zero.toml");
    let output = mpt(&["run", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(report.contains("weight = 0"), "{report}");
    assert!(!report.contains('\x1b'), "colour where there is no terminal: {report}");
}

#[test]
fn a_second_daemon_on_the_socket_is_detected_before_creating_anything() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let lock = directory.path().join("control.sock.lock");
    let file = directory.path().join("mpt.toml");
    // No host has this address, so to start the tunnel would be another complaint.
    let control = format!("[control]\nsocket = '{}'\n", socket.display());
    let tunnel = GOOD.replace("remote", "local = '203.0.113.77'\nremote");
    fs::write(&file, control + &tunnel).unwrap();
    let run = || {
        let output = mpt(&["run", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        complaint(&output)
    };

    let living = UnixListener::bind(&socket).unwrap();
    let line = run();
    assert!(line.contains("listens on") && line.contains("already"), "{line}");
    drop(living);

    let held = fs::File::create(&lock).unwrap();
    let held = Flock::lock(held, FlockArg::LockExclusive).unwrap();
    let line = run();
    assert!(line.contains(lock.to_str().unwrap()) && line.contains("try again"), "{line}");
    drop(held);
}

#[test]
fn an_unknown_log_level_is_explained() {
    let output = command(&["run", "/nowhere"]).env("MPT_LOG", "loud=very").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("debug"), "{output:?}");
}

#[test]
fn a_wrong_word_in_the_environment_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mpt.toml");
    fs::write(&file, GOOD).unwrap();
    for (variable, wrong, right) in [
        ("MPT_THREADS", "3", "1 or 2"),
        ("MPT_THREADS", "two", "1 or 2"),
        ("MPT_THREADS", "", "1 or 2"),
        ("MPT_OFFLOADS", "teleport", "vnet, tso"),
        ("MPT_PARTIAL_CHECKSUMS", "yes", "on or off"),
    ] {
        let mut run = command(&["run", file.to_str().unwrap()]);
        let output = run.env(variable, wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let line = complaint(&output);
        assert!([variable, &format!("`{wrong}`"), right].iter().all(|word| line.contains(word)));
    }
}
