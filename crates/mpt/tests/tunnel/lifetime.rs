//! Starting, restarting and ending: nothing is lost for long, and nothing is left behind.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mpt_lab::daemon::Daemon;
use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, daemon, eventually, exists, has_interface, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("the_left_daemon_is_restarted", || restart(Side::Left)),
    ("the_right_daemon_is_restarted", || restart(Side::Right)),
    ("a_daemon_that_was_killed_is_replaced", killed),
    ("a_daemon_that_was_away_until_its_paths_were_down_is_replaced", away),
    ("the_end_leaves_nothing_behind", end),
    ("packets_before_and_during_the_start_harm_nobody", start_under_traffic),
    ("a_taken_interface_name_is_a_clear_error", taken_name),
    ("a_path_whose_local_address_is_not_there_waits_for_it", foreign_address),
];

fn restart(side: Side) {
    let mut site = Site::start(TWO_LINKS, "");
    for _ in 0..2 {
        site.assert_flawless(4);
        site.end_daemon(side);
        site.start_daemon(side);
        site.await_all_up();
        assert_eq!(site.ping(4, 10).lost, 0);
        site.assert_flawless(4);
        site.assert_flawless(6);
    }
}

fn killed() {
    let mut site = Site::start(TWO_LINKS, "");
    site.assert_flawless(4);
    drop(site.left.take());
    // Its peer was not notified and still takes the paths for up.
    site.start_daemon(Side::Left);
    site.await_all_up();
    assert_eq!(site.ping(4, 10).lost, 0);
    site.assert_flawless(4);
}

fn away() {
    let mut site = Site::start(TWO_LINKS, "");
    for _ in 0..2 {
        site.assert_flawless(4);
        drop(site.left.take());
        for path in 0..2 {
            eventually("the path is down", || site.path(Side::Right, path).state == "down");
        }
        site.start_daemon(Side::Left);
        site.await_all_up();
        assert_eq!(site.ping(4, 20).lost, 0, "{:?}", site.connection(Side::Right).drops);
    }
}

fn end() {
    let mut site = Site::start(TWO_LINKS, "networks = []");
    let socket = site.daemon(Side::Left).socket();
    assert!(exists(&socket) && has_interface(site.lab.left(), "mpt0"));
    site.end_daemon(Side::Left);
    assert!(!has_interface(site.lab.left(), "mpt0"), "the interface, and with it all routes");
    let told = site.path(Side::Right, 0).cause.unwrap_or_default();
    assert_eq!(told, "the peer has stopped", "the peer was told");
    let log = site.daemon(Side::Right).log();
    assert!(log.contains("was up, is down (the peer has stopped)"), "{log}");
    assert!(!log.contains("switched off"), "{log}");
}

fn start_under_traffic() {
    let mut site = Site::links_only(TWO_LINKS, "");
    let socket = site.lab.left().run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Refused until the interface is there. Not so many that they stand in a queue.
                std::thread::sleep(Duration::from_micros(200));
                if socket.send_to(&[0; 100], (inner(Side::Right, 4), 9)).is_ok() {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        site.start_daemon(Side::Left);
        eventually("packets come before the paths", || taken.load(Ordering::Relaxed) > 100);
        site.start_daemon(Side::Right);
        site.await_all_up();
        stop.store(true, Ordering::Relaxed);
    });
    assert!(site.connection(Side::Left).drops["no_path"] > 0);
    site.assert_flawless(4);
}

fn taken_name() {
    let site = Site::start(TWO_LINKS, "");
    let config = site.config(Side::Left).replace("'mpt0'", "'one'");
    let error = Daemon::start(site.lab.left(), "second", &config, &daemon());
    let error = format!("{:#}", error.expect_err("the name is a link's"));
    assert!(error.contains("one"), "{error}");
}

fn foreign_address() {
    let mut site = Site::links_only(TWO_LINKS, "");
    let address = site.lab.left().address(0).to_string();
    let config = site.config(Side::Left).replace(&address, "203.0.113.77");
    site.start_daemon_with(Side::Left, &config);
    site.start_daemon(Side::Right);
    site.await_state(1, "up");
    let path = site.path(Side::Left, 0);
    assert_eq!(path.state, "down");
    let cause = path.cause.expect("a cause");
    assert!(cause.contains("does not have the address 203.0.113.77"), "{cause}");
    assert_eq!(site.ping(4, 10).lost, 0);
}
