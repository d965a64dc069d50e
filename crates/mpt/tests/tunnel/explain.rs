//! Why packets went where they went: what the real daemon says of it, and what its users read.

use std::process::Command;
use std::time::Duration;

use mpt_control::{ErrorKind, Explanation, Limit, Reply, Request};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{Site, daemon, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("full_paths_are_explained_and_those_that_are_not_needed", measured),
    ("weights_are_explained_and_paths_that_are_off", weighted),
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
