//! The command line as its users meet it: the real binary, its output and its exit codes.
//!
//! What needs a daemon meets one that is only pretended and says what the test wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use mpt_control::{
    ErrorKind, Explanation, PathStatus, Reply, Request, Status, TunnelStatus, codec,
};
use nix::fcntl::{Flock, FlockArg};

const GOOD: &str = r#"
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
fn help_lists_all_commands() {
    let output = mpt(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    insta::assert_snapshot!("help", stdout(&output));
}

#[test]
fn groups_of_commands_have_help_with_examples() {
    for group in ["path", "peer", "connection", "web"] {
        let text = stdout(&mpt(&[group, "--help"]));
        let examples = text.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("mpt {group} ")), "{text}");
        assert!(examples.lines().all(|line| line.len() <= 100), "{text}");
    }
}

#[test]
fn every_command_has_help_with_an_example_and_exit_codes() {
    for command in [
        &["run"][..],
        &["check"],
        &["status"],
        &["explain"],
        &["doctor"],
        &["trace"],
        &["man"],
        &["completions"],
        &["path", "up"],
        &["path", "down"],
        &["path", "weight"],
        &["path", "priority"],
        &["path", "remove"],
        &["path", "add"],
        &["reload"],
        &["config"],
        &["connection", "add"],
        &["connection", "remove"],
        &["peer", "add"],
        &["peer", "remove"],
        &["peer", "list"],
        &["peer", "reload"],
        &["web", "token"],
        &["genkey"],
        &["pubkey"],
        &["import"],
        &["init"],
        &["invite"],
        &["join"],
        &["leave"],
    ] {
        let output = mpt(&[command, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        let text = stdout(&output);
        assert!(text.contains("Example"), "{text}");
        assert!(text.contains(&format!("mpt {}", command[0])), "{text}");
        assert!(text.contains("Exit codes: 0"), "{text}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn help_is_a_command_too_and_shows_examples_of_the_command_itself() {
    for arguments in
        [&["help", "status"][..], &["path", "help", "weight"], &["help", "path", "weight"]]
    {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let name = arguments.last().unwrap();
        let text = stdout(&output);
        let examples = text.split("Example").nth(1).unwrap();
        assert!(examples.contains(name) && !examples.contains("path down"), "{text}");
    }
}

#[test]
fn help_has_help_which_is_the_list_of_commands() {
    let top = stdout(&mpt(&["help"]));
    let paths = stdout(&mpt(&["path", "help"]));
    for (arguments, expected) in [
        (&["help", "--help"][..], &top),
        (&["help", "-h"], &top),
        (&["path", "help", "--help"], &paths),
        (&["help", "path", "--help"], &paths),
    ] {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(stdout(&output), *expected, "{arguments:?}");
    }
    // A file may have that name.
    let output = mpt(&["check", "help", "--help"]);
    assert!(stdout(&output).contains("Usage: mpt check"), "{output:?}");
}

#[test]
fn manual_pages_and_completions_need_no_package() {
    assert!(stdout(&mpt(&["man"])).contains(".TH mpt 1"));
    for page in ["status", "mpt-status", "path-weight", "mpt.toml"] {
        let output = mpt(&["man", page]);
        assert_eq!(output.status.code(), Some(0), "{page}: {output:?}");
        assert!(stdout(&output).contains(".TH "), "{page}");
    }
    let output = mpt(&["man", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("mpt-status"), "{output:?}");
    let folder = tempfile::tempdir().unwrap();
    let output = mpt(&["man", "--output", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(folder.path().join("man1/mpt-status.1").exists());
    assert!(folder.path().join("man5/mpt.toml.5").exists());
    for shell in ["bash", "zsh", "fish"] {
        let output = mpt(&["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("status"), "{shell}");
    }
}

#[test]
fn run_and_check_take_the_file_of_the_service_where_none_is_named() {
    let output = mpt(&["check"]);
    let said = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/etc/mpt/mpt.toml"), "{said}");
}

#[test]
fn version_in_both_ways() {
    let expected = format!("mpt {}\n", env!("CARGO_PKG_VERSION"));
    for arguments in [&["version"][..], &["-V"], &["--version"]] {
        let output = mpt(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected.clone()));
    }
}

#[test]
fn an_explanation_is_words_or_json() {
    let explanation = Explanation {
        connection: "server".into(),
        tunnel: "mpt0".into(),
        scheduler: "earliest".into(),
        ..Explanation::default()
    };
    for (arguments, name, part) in [
        (&["explain"][..], None, "connection server of tunnel mpt0, the last 0 ms\n"),
        (&["explain", "server"], Some("server"), "Nothing was sent."),
        (&["explain", "--json"], None, "\"scheduler\": \"earliest\""),
    ] {
        let daemon =
            Pretended::new(vec![Reply::Explanation { connections: vec![explanation.clone()] }]);
        let output = daemon.mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stdout(&output).contains(part), "{}", stdout(&output));
        assert_eq!(daemon.requests(), [Request::Explain { connection: name.map(str::to_owned) }]);
    }
    let refusal = Reply::error(ErrorKind::NoSuchConnection, "no connection `x`");
    let output = Pretended::new(vec![refusal]).mpt(&["explain", "x"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(complaint(&output), "mpt: no connection `x`");
}

#[test]
fn wrong_usage_is_one_line_and_2() {
    for (arguments, text) in [
        (&[][..], "no command given"),
        (&["chek"], "similar subcommand exists: 'check'"),
        (&["check", "a", "b"], "unexpected argument 'b'"),
        (&["status", "--jsn"], "'--json'"),
        (&["path", "left", "fibre"], "'left'"),
        (&["path", "up"], "<PATH>"),
        (&["path", "up", "a", "b", "c"], "'c'"),
    ] {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let line = complaint(&output);
        assert!(line.contains(text) && line.contains("--help"), "{line}");
    }
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

#[test]
fn without_a_daemon_the_error_has_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("none.sock");
    let socket = socket.to_str().unwrap();
    for arguments in [
        &["status", "--socket", socket][..],
        &["status", "--json", "--socket", socket],
        &["path", "up", "fibre", "--socket", socket],
    ] {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let line = complaint(&output);
        assert!(line.contains("mpt run FILE") && line.contains(socket), "{line}");
    }
}

#[test]
fn status_for_people_and_for_programs() {
    let daemon = Pretended::new(vec![status(), status()]);
    let output = daemon.mpt(&["status"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    assert!(text.starts_with("mpt 9.8.7, process 11, up 5.0 s\n"), "{text}");
    assert!(text.contains("tunnel mpt0"), "{text}");
    assert!(!text.contains('\x1b'), "colour where there is no terminal: {text}");

    let output = daemon.mpt(&["status", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let Reply::Status { status } = status() else { unreachable!() };
    assert_eq!(serde_json::from_slice::<Status>(&output.stdout).unwrap(), *status);
    assert_eq!(daemon.requests(), [Request::Status {}, Request::Status {}]);
}

#[test]
fn paths_up_and_down() {
    let daemon = Pretended::new(vec![Reply::Done, Reply::Done]);
    for arguments in [&["path", "down", "fibre"][..], &["path", "up", "server", "fibre"]] {
        let output = daemon.mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
    let request =
        |connection: Option<&str>, status| Request::path_status(connection, "fibre", status);
    assert_eq!(
        daemon.requests(),
        [request(None, PathStatus::Off), request(Some("server"), PathStatus::Available)]
    );
}

#[test]
fn a_refusal_of_the_daemon_is_one_line() {
    for (kind, code) in [
        (ErrorKind::NoSuchPath, 1),
        (ErrorKind::NoSuchConnection, 1),
        (ErrorKind::AmbiguousPath, 1),
        (ErrorKind::Unavailable, 2),
        (ErrorKind::NotAllowed, 2),
    ] {
        let daemon = Pretended::new(vec![Reply::error(kind, "because\nof that")]);
        let output = daemon.mpt(&["path", "down", "wire"]);
        assert_eq!(output.status.code(), Some(code), "{kind:?}");
        assert_eq!(complaint(&output), "mpt: because of that");
    }
}

#[test]
fn every_change_is_asked_for_and_its_outcome_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("branch.toml");
    fs::write(&file, "name = 'branch'\n").unwrap();
    let file = file.to_str().unwrap();
    let changes = || Reply::Changed { changes: vec!["one".into(), "two".into()] };
    let path = |weight, priority| {
        let (connection, path) = (Some("server".into()), "fibre".into());
        Request::Path { connection, path, status: None, weight, priority }
    };
    for (arguments, reply, request, printed) in [
        (&["reload"][..], changes(), Request::Reload {}, "one\ntwo\n"),
        (
            &["reload"],
            Reply::Changed { changes: vec![] },
            Request::Reload {},
            "nothing has changed\n",
        ),
        (&["config"], Reply::Config { text: "a = 1\n".into() }, Request::Config {}, "a = 1\n"),
        (&["path", "weight", "server", "fibre", "--to", "7"], Reply::Done, path(Some(7), None), ""),
        (
            &["path", "priority", "server", "fibre", "--to", "255"],
            Reply::Done,
            path(None, Some(255)),
            "",
        ),
        (
            &["path", "add", "--connection", "server", "name = 'lte'", "weight = 3"],
            changes(),
            Request::PathAdd {
                connection: Some("server".into()),
                settings: "name = 'lte'\nweight = 3\n".into(),
            },
            "one\ntwo\n",
        ),
        (
            &["path", "remove", "lte"],
            changes(),
            Request::PathRemove { connection: None, path: "lte".into() },
            "one\ntwo\n",
        ),
        (
            &["connection", "add", "--tunnel", "mpt0", file],
            changes(),
            Request::ConnectionAdd {
                tunnel: Some("mpt0".into()),
                settings: "name = 'branch'\n".into(),
            },
            "one\ntwo\n",
        ),
        (
            &["connection", "remove", "branch"],
            changes(),
            Request::ConnectionRemove { connection: "branch".into() },
            "one\ntwo\n",
        ),
    ] {
        let daemon = Pretended::new(vec![reply]);
        let output = daemon.mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(stdout(&output), printed, "{arguments:?}");
        assert_eq!(daemon.requests(), [request]);
    }
    for arguments in [
        &["path", "weight", "fibre", "--to", "0"][..],
        &["path", "weight", "fibre", "--to", "10001"],
        &["path", "weight", "fibre"],
        &["path", "priority", "fibre", "--to", "256"],
        &["path", "add"],
        &["connection", "add", "/does/not/exist"],
    ] {
        assert_eq!(mpt(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn wrong_settings_are_shown_with_their_places() {
    let report = "error: it is wrong\n --> path add:1:10\n";
    for arguments in [&["reload"][..], &["path", "add", "weight = 0"]] {
        let daemon = Pretended::new(vec![Reply::bad_config("nothing has changed", report)]);
        let output = daemon.mpt(arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text, format!("{report}mpt: nothing has changed\n"));
    }
}

/// Of 1970.
const EXPIRED: &str = "mpt:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAAAAAAAAD6BKSD3Zwbi5leGFtcGxlLm9yZwN2YW4BBAoJAAIYAQQKCQABAAD5Jfrd";

/// The same in a version that is not known.
const LATER: &str = "mpt:AgEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAAAAAAAAD6BKSD3Zwbi5leGFtcGxlLm9yZwN2YW4BBAoJAAIYAQQKCQABAADHONbu";

#[test]
fn an_invitation_that_cannot_be_used_is_refused_with_a_remedy_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mpt");
    let folder = folder.to_str().unwrap();
    for (line, code, words) in [
        (EXPIRED, 1, "expired at 1970-01-01T00:16:40Z"),
        (EXPIRED, 1, "`mpt invite van` on the server"),
        (LATER, 2, "version 2"),
        (&EXPIRED.replace("AQEBAQ", "AQEBAR"), 2, "damaged"),
        (&EXPIRED[..EXPIRED.len() - 3], 2, "damaged"),
        ("https://example.org", 2, "begin with `mpt:`"),
    ] {
        let output = mpt(&["join", line, "--dir", folder]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = complaint(&output);
        assert!(said.contains(words), "{said}");
        assert!(fs::read_dir(place.path()).unwrap().next().is_none(), "{line}");
    }
    let output = mpt(&["leave", "--dir", folder]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("nothing to leave"), "{output:?}");
    let output = mpt(&["invite", "van", "--dir", folder]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("mpt init --server"), "{output:?}");
}

#[test]
fn a_configuration_that_somebody_wrote_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mpt.toml");
    fs::write(&file, GOOD).unwrap();
    let dir = folder.path().to_str().unwrap();
    for arguments in [&["init", "--server", "vpn.example.org"][..], &["join", EXPIRED]] {
        let output = mpt(&[arguments, &["--dir", dir]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(complaint(&output).contains("move it away"), "{output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), GOOD);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_server_of_a_bad_name_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mpt");
    let dir = folder.to_str().unwrap();
    for (arguments, words) in [
        (&["--server", "vpn:99999"][..], "is not a port"),
        (&["--server", "vpn.example.org", "--address", "10.0.0.1/32"], "no room"),
        (&["--server", "a b"], "nor a host name"),
    ] {
        let output = mpt(&[&["init", "--dir", dir][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complaint(&output).contains(words), "{output:?}");
        assert!(!folder.exists(), "{arguments:?}");
    }
}

#[test]
fn an_unexpected_reply_is_a_failure() {
    let daemon = Pretended::new(vec![Reply::Done, status()]);
    assert_eq!(daemon.mpt(&["status"]).status.code(), Some(2));
    assert_eq!(daemon.mpt(&["path", "up", "fibre"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_has_seen_enough_is_success() {
    for arguments in [&["status"][..], &["status", "--json"]] {
        let daemon = Pretended::holding(vec![status()]);
        let mut child = daemon
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The reader is gone before there is anything to read.
        drop(child.stdout.take());
        daemon.go_on();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_full_disk_is_no_success() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["version"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("No space left"), "{output:?}");
}

/// A daemon that gives prepared replies, one per connection.
struct Pretended {
    directory: tempfile::TempDir,
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Request>>,
}

impl Pretended {
    fn new(replies: Vec<Reply>) -> Self {
        let count = replies.len();
        let daemon = Self::holding(replies);
        (0..count).for_each(|_| daemon.go_on());
        daemon
    }

    /// A daemon that waits for the test before each reply.
    fn holding(replies: Vec<Reply>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("control.sock")).unwrap();
        let (go_on, wait) = mpsc::channel();
        let thread = thread::spawn(move || {
            replies
                .into_iter()
                .map(|reply| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut line = String::new();
                    BufReader::new(&stream).read_line(&mut line).unwrap();
                    wait.recv().unwrap();
                    stream.write_all(&codec::encode_reply(&reply).unwrap()).unwrap();
                    codec::decode_request(line.as_bytes()).unwrap()
                })
                .collect()
        });
        Self { directory, go_on, thread }
    }

    fn go_on(&self) {
        self.go_on.send(()).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.arg("--socket").arg(self.directory.path().join("control.sock"));
        command
    }

    fn mpt(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn requests(self) -> Vec<Request> {
        self.thread.join().unwrap()
    }
}

fn status() -> Reply {
    let tunnel = TunnelStatus { name: "mpt0".into(), ..TunnelStatus::default() };
    Reply::Status {
        status: Box::new(Status {
            version: "9.8.7".into(),
            pid: 11,
            uptime_seconds: 5.0,
            tunnels: vec![tunnel],
            ..Status::default()
        }),
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
    for variable in ["MPT_LOG", "MPT_OFFLOADS", "MPT_THREADS", "MPT_PARTIAL_CHECKSUMS"] {
        command.env_remove(variable);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

fn mpt(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line on standard error.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(text.starts_with("mpt: ") && text.ends_with('\n'), "{text:?}");
    assert_eq!(text.lines().count(), 1, "{text:?}");
    text.trim_end().to_owned()
}
