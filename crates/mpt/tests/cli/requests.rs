//! Commands that ask the daemon: what they ask, and what they make of its reply.

use std::fs;

use mpt_control::{ErrorKind, Explanation, PathStatus, Reply, Request, Status};

use crate::pretended::{Pretended, status};
use crate::program::{complaint, mpt, stdout};

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

#[test]
fn an_unexpected_reply_is_a_failure() {
    let daemon = Pretended::new(vec![Reply::Done, status()]);
    assert_eq!(daemon.mpt(&["status"]).status.code(), Some(2));
    assert_eq!(daemon.mpt(&["path", "up", "fibre"]).status.code(), Some(2));
}
