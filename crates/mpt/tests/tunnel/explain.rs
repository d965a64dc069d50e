//! Why packets went where they went: what the real daemon says of it, and what its users read.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mpt_control::{
    ErrorKind, Explanation, Finding, Limit, PathExplanation, Reply, Request, TraceLine, Traced,
};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::site::{Site, daemon, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("full_paths_are_explained_and_those_that_are_not_needed", measured),
    ("what_is_idle_is_never_called_full", idle),
    ("weights_are_explained_and_paths_that_are_off", weighted),
    ("a_trace_has_samples_findings_and_events", traced),
    ("a_trace_that_cannot_be_written_ends_alone", unwritable),
];

/// 20 Mbit/s and 10 Mbit/s, the second one slower by 20 ms.
const LINKS: &str = "[[link]]\nname = 'fast'\nrate_mbps = 20\ndelay_ms = 5\n\
                     [[link]]\nname = 'slow'\nrate_mbps = 10\ndelay_ms = 25\n";

const EARLIEST: &str = "framing = 'extended'\nscheduler = 'earliest'\n";

fn ask(site: &Site, side: Side) -> Explanation {
    let request = Request::Explain { connection: Some("peer".into()) };
    let reply = site.daemon(side).request(&request).expect("an answer");
    let Reply::Explanation { mut connections } = reply else { panic!("{reply:?}") };
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

/// What `mpt` says with these arguments.
fn mpt(site: &Site, side: Side, arguments: &[&str]) -> String {
    let output = Command::new(daemon())
        .args(arguments)
        .arg("--socket")
        .arg(site.daemon(side).socket())
        .output()
        .expect("mpt runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A text as one line.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn measured() {
    let site = Site::start(LINKS, EARLIEST);
    eventually("a session begins", || site.connection(Side::Left).framing == "extended");
    let options = udp::Options::at_rate(60_000_000, 1200, Duration::from_secs(8));
    let stream = site.stream(4, options);
    let mut it = ask(&site, Side::Left);
    eventually("both paths are full, and the queue of the first one is short", || {
        it = ask(&site, Side::Left);
        let limits = it.paths.iter().map(|path| path.limit).collect::<Vec<_>>();
        let skew = it.paths[1].estimate.as_ref().and_then(|estimate| estimate.skew_ms);
        limits == [Limit::Rate, Limit::Rate] && it.seconds > 2.0 && skew > Some(5.0)
    });
    assert_eq!((it.scheduler.as_str(), it.framing.as_str()), ("earliest", "extended"));
    let share: f64 = it.paths.iter().map(|path| path.share).sum();
    assert!((0.99..1.01).contains(&share), "{it:?}");
    assert!(it.paths[0].share > it.paths[1].share && it.paths[1].share > 0.1, "{it:?}");
    let estimates: Vec<_> = it.paths.iter().filter_map(|path| path.estimate.as_ref()).collect();
    for estimate in &estimates {
        assert!(estimate.pace.is_some() && estimate.queueing_target_ms.is_some(), "{estimate:?}");
        assert!(!estimate.found.is_empty(), "{estimate:?}");
    }
    let queue = it.queue.expect("packets wait");
    assert!(queue.waiting > 0 && queue.dropped_delay + queue.dropped_full > 0, "{queue:?}");
    eventually("the peer tells the order", || ask(&site, Side::Right).order.delivered > 100);

    let text = unwrapped(&mpt(&site, Side::Left, &["explain"]));
    for part in [
        "connection peer of tunnel mpt0",
        "Each packet takes the path",
        " full",
        "longer by it than by",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = mpt(&site, Side::Left, &["explain", "peer", "--json"]);
    let read: Vec<Explanation> = serde_json::from_str(&json).expect("explanations");
    assert_eq!(read.len(), 1);
    stream.finish().expect("a report");

    // The last seconds go by, and nothing is needed any more.
    eventually("what is over is forgotten", || {
        let it = ask(&site, Side::Left);
        it.sent.packets == 0 && it.paths.iter().all(|path| path.limit == Limit::Load)
    });
    let refused = Request::Explain { connection: Some("nobody".into()) };
    let refused = site.daemon(Side::Left).request(&refused).expect("an answer");
    assert!(
        matches!(refused, Reply::Error { kind: ErrorKind::NoSuchConnection, .. }),
        "{refused:?}"
    );
}

fn idle() {
    let site = Site::start(LINKS, EARLIEST);
    for side in [Side::Left, Side::Right] {
        let mut wrong = Vec::new();
        eventually("what is found out at the beginning is known, and seconds have passed", || {
            let it = ask(&site, side);
            let stage = |path: &PathExplanation| path.estimate.as_ref().map(|it| it.stage.clone());
            let is_over = it.paths.iter().all(|path| stage(path).as_deref() == Some("open"));
            let limit = |path: &PathExplanation| !matches!(path.limit, Limit::Load | Limit::Down);
            let is_over = is_over && it.seconds > 2.0;
            wrong.extend(it.paths.into_iter().filter(limit));
            is_over
        });
        assert!(wrong.is_empty(), "{side:?}: {wrong:?}");
        let text = unwrapped(&mpt(&site, side, &["explain"]));
        assert!(!text.contains("is full"), "{text}");
        assert_eq!(text.matches("It has never been full").count(), 2, "{text}");
    }
}

fn weighted() {
    let site = Site::start(LINKS, "framing = 'plain'\nscheduler = 'weighted'\n");
    site.await_all_up();
    site.stream(4, udp::Options::at_rate(2_000_000, 1000, Duration::from_millis(500)))
        .finish()
        .expect("a report");
    let it = ask(&site, Side::Left);
    assert_eq!((it.scheduler.as_str(), it.queue), ("weighted", None));
    assert!(
        it.paths.iter().all(|path| path.limit == Limit::Weight && path.estimate.is_none()),
        "{it:?}"
    );
    assert!(it.paths.iter().all(|path| (0.4..0.6).contains(&path.share)), "{it:?}");
    mpt(&site, Side::Left, &["path", "down", "slow"]);
    eventually("it is said to be off", || ask(&site, Side::Left).paths[1].limit == Limit::Off);
    let text = unwrapped(&mpt(&site, Side::Left, &["explain"]));
    assert!(text.contains("Its weight is 1 of 1 in all"), "{text}");
    assert!(text.contains("It is switched off; `mpt path up slow`"), "{text}");
}

/// `mpt trace` of the left side with these arguments.
fn trace(site: &Site, arguments: &[&str]) -> Child {
    let mut command = Command::new(daemon());
    command.arg("trace").args(arguments).arg("--socket").arg(site.daemon(Side::Left).socket());
    command.stderr(Stdio::piped()).spawn().expect("mpt runs")
}

fn traced() {
    let site = Site::start(LINKS, EARLIEST);
    eventually("a session begins", || site.connection(Side::Left).framing == "extended");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.jsonl");
    let written = || -> Vec<TraceLine> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        // The last line may be written at this moment.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let child = trace(&site, &["peer", "--output", file.to_str().expect("UTF-8")]);
    eventually("tracing begins", || !written().is_empty());
    assert_eq!(site.status(Side::Left).tunnels[0].traced, 1);
    let options = udp::Options::at_rate(60_000_000, 1200, Duration::from_secs(3));
    site.stream(4, options).finish().expect("a report");
    mpt(&site, Side::Left, &["path", "down", "slow"]);
    eventually("the end of the path is traced", || {
        written().iter().any(
            |line| matches!(&line.what, Traced::Status { path: Some(path), .. } if path == "slow"),
        )
    });
    signal::kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");

    let lines = written();
    assert!(matches!(lines[0].what, Traced::Begin { .. }), "{:?}", lines[0]);
    let last = lines.last().expect("lines");
    assert!(matches!(&last.what, Traced::End { reason, .. } if reason == "signal"), "{last:?}");
    for name in ["fast", "slow"] {
        let samples = lines.iter().filter_map(|line| {
            let Traced::Path(path) = &line.what else { return None };
            (path.name == name).then_some(path)
        });
        let sent: u64 = samples.clone().map(|path| path.sent.packets).sum();
        assert!(sent > 500, "{name} carries its share: {sent}");
        assert!(samples.clone().any(|path| path.limit == Limit::Rate), "{name} was full");
        assert!(samples.clone().count() > 10);
        let events = lines.iter().filter_map(|line| {
            let Traced::Event { path, what } = &line.what else { return None };
            (path == name).then_some(what)
        });
        assert!(events.clone().any(|what| matches!(what, Finding::Full { .. })), "{name}");
    }
    let waited = |line: &TraceLine| matches!(line.what, Traced::Queue(queue) if queue.waiting > 0);
    assert!(lines.iter().any(waited), "packets waited");
    eventually("nobody asks, so nothing is traced", || {
        site.status(Side::Left).tunnels[0].traced == 0
    });
}

fn unwritable() {
    let site = Site::start(LINKS, EARLIEST);
    site.await_all_up();
    // Every write there fails as on a disk that is full.
    let output = trace(&site, &["--output", "/dev/full"]).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("/dev/full") && text.contains("the daemon goes on"), "{text}");
    site.assert_flawless(4);
    let output = trace(&site, &["nobody"]).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
