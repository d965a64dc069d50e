//! One thread for a tunnel or two: the same tunnel, also while it answers requests.

use std::fs;

use mpt_control::PathStatus;
use mpt_lab::topology::Side;

use crate::site::{SHORT, Site, TWO_LINKS, threads_line};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("one_thread_at_one_end_and_two_at_the_other", mixed),
    ("requests_are_answered_under_load", requests),
];

/// A site whose daemons, left and right, have so many threads for their tunnels.
fn start([left, right]: [u64; 2]) -> Site {
    Site::start_with(TWO_LINKS, "", |side, config| {
        let threads = if side == Side::Left { left } else { right };
        config.replace(&threads_line(), &format!("threads = {threads}\n"))
    })
}

fn mixed() {
    let site = start([1, 2]);
    for side in [Side::Left, Side::Right] {
        let threads = site.status(side).tunnels[0].threads;
        assert_eq!(packet_threads(&site, side), threads);
        if std::env::var_os("MPT_THREADS").is_none() {
            assert_eq!(threads, if side == Side::Left { 1 } else { 2 });
        }
    }
    site.assert_flawless(4);
    site.assert_flawless(6);
}

/// Threads of a daemon that are named after its tunnel.
fn packet_threads(site: &Site, side: Side) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", site.daemon(side).pid())).expect("a process");
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).expect("a name");
    let names = tasks.map(|task| name(task.expect("a thread")));
    names.filter(|name| name.trim_end().ends_with("mpt0")).count() as u64
}

fn requests() {
    let site = Site::start(TWO_LINKS, "");
    let stream = site.stream(4, SHORT);
    for _ in 0..20 {
        for status in [PathStatus::Off, PathStatus::Available] {
            site.daemon(Side::Left).set_path("one", status).expect("an answer");
            // What was done before the answer is seen after it.
            let state = site.path(Side::Left, 0).state;
            assert_eq!(state == "off", status == PathStatus::Off, "{state}");
        }
    }
    let order = stream.finish().expect("a report").order;
    assert_eq!(order.duplicated, 0, "{order:?}");
    site.await_all_up();
    site.assert_flawless(4);
}
