//! Two ends that may not fit, and what each says of that: in its status, its log, its events and to `mpt doctor`.

use std::process::Command;

use mpt_control::{Event, Problem};
use mpt_lab::topology::Side;

use crate::site::{Site, daemon, eventually};

/// Two daemons with these further lines for each connection. Nobody waits for anything.
pub(super) fn site(
    topology: &str,
    connection: &str,
    edit: impl Fn(Side, String) -> String,
) -> Site {
    let mut site = Site::links_only(topology, connection);
    for side in [Side::Left, Side::Right] {
        let config = edit(side, site.config(side));
        site.start_daemon_with(side, &config);
    }
    site
}

/// A configuration without paths.
pub(crate) fn without_paths(config: &str) -> String {
    config.split("[[tunnel.connection.path]]").next().expect("a connection").to_owned()
}

pub(super) fn problems(site: &Site, side: Side) -> Vec<Problem> {
    site.status(side).tunnels.remove(0).problems
}

/// Waits until a daemon names the cause of this code in such words, and asserts that the log, the events and `mpt
/// doctor` do so too, and that it took five seconds from its start at the most.
pub(crate) fn await_problem(site: &Site, side: Side, code: &str, words: &str) -> Problem {
    let problem = await_named(site, side, code, words);
    let events = site.status(side).tunnels.remove(0).events;
    let of = |event: &&Event| event.text.contains(&problem.text);
    let event = events.iter().find(of).expect("an event");
    assert!(event.at_seconds < 5.0, "{event:?}");
    problem
}

/// The same of a daemon that may have run before.
pub(crate) fn await_named(site: &Site, side: Side, code: &str, words: &str) -> Problem {
    let find = |problem: &Problem| problem.code == code && problem.text.contains(words);
    let mut found = None;
    eventually(&format!("{code} at {side:?}: {words}"), || {
        found = problems(site, side).into_iter().find(find);
        found.is_some()
    });
    let problem = found.expect("it was found");
    assert!(!problem.remedy.is_empty(), "{problem:?}");
    let line = format!("{}: {}", problem.text, problem.remedy);
    eventually(&format!("the log of {side:?} has {line}"), || {
        let log = site.daemon(side).log();
        log.lines().any(|logged| logged.contains("WARN") && logged.contains(&line))
    });
    let events = site.status(side).tunnels.remove(0).events;
    assert!(events.iter().any(|event| event.text.contains(&line)), "{events:?}");
    let (status, text) = doctor(site, side, &[]);
    assert_eq!(status, Some(1), "{text}");
    let line = match (&problem.connection, &problem.path) {
        (Some(connection), Some(path)) => format!("\n- {connection}/{path}: {line}\n"),
        (Some(connection), None) => format!("\n- {connection}: {line}\n"),
        _ => format!("\n- {line}\n"),
    };
    assert!(text.contains(&line), "{line} in {text}");
    problem
}

/// What `mpt doctor` says at a side, and its exit code.
pub(super) fn doctor(site: &Site, side: Side, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(daemon());
    command.arg("doctor").args(arguments).arg("--socket").arg(site.daemon(side).socket());
    let output = site.lab.host(side).run(|| command.output()).expect("mpt runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until nothing is wrong any more at either end.
pub(super) fn await_health(site: &Site) {
    site.await_all_up();
    for side in [Side::Left, Side::Right] {
        eventually("no problem is left", || problems(site, side).is_empty());
    }
}
