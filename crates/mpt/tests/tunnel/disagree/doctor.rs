//! What `mpt doctor` finds where the daemons recognise nothing.

use std::process::Command;

use mpt_control::PathStatus;
use mpt_lab::topology::Side;

use super::ends::{doctor, site};
use crate::site::{Site, TWO_LINKS, daemon, eventually};
use crate::suite::skip;

/// What no daemon recognises, and the doctor finds by looking further.
pub(super) fn found_by_the_doctor() {
    let mut site = site(TWO_LINKS, "framing = 'extended'", |_, config| config);
    site.await_all_up();
    let finds = |site: &Site, side, words: &str| {
        let (status, text) = doctor(site, side, &["peer"]);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(words), "{words} in {text}");
    };
    // The peer's firewall lets nothing out of its tunnel.
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c iifname mpt0 drop";
    let nft = |site: &Site, side, rules: &str| {
        let done = site.lab.host(side).run(|| Command::new("nft").arg(rules).output());
        if !done.is_ok_and(|output| output.status.success()) {
            skip("nft cannot set a rule here");
        }
    };
    nft(&site, Side::Right, rules);
    finds(&site, Side::Left, "10.9.0.2 does not answer through the tunnel, although paths are up");
    nft(&site, Side::Right, "delete table inet t");

    // Large packets are dropped on the way, and nobody says so.
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; }; \
                 add rule inet t c iifname mpt0 meta length > 1000 drop";
    nft(&site, Side::Right, rules);
    finds(&site, Side::Left, "bytes do not reach 10.9.0.2, smaller ones do");
    nft(&site, Side::Right, "delete table inet t");

    site.daemon(Side::Left).set_path("two", PathStatus::Off).expect("a path");
    finds(&site, Side::Left, "peer/two is switched off here: mpt path up two");
    finds(&site, Side::Right, "peer/two is down");
    site.daemon(Side::Left).set_path("two", PathStatus::Available).expect("a path");
    site.await_all_up();

    // A firewall of this host.
    let rules = "add table inet t; add chain inet t c { type filter hook output priority 0; }; \
                 add rule inet t c udp dport 4754 drop";
    nft(&site, Side::Left, rules);
    eventually("a path is down", || site.path(Side::Left, 0).state == "down");
    finds(&site, Side::Left, "this host's kernel refuses to send: does a firewall of this host");
    nft(&site, Side::Left, "delete table inet t");
    site.await_all_up();

    // Settings of both ends that do not fit.
    site.end_daemon(Side::Right);
    let config = site.config(Side::Right);
    let config = config.replace("framing = 'extended'", "framing = 'extended'\nrepair = false");
    site.start_daemon_with(Side::Right, &config);
    site.await_all_up();
    finds(&site, Side::Left, "the peer does not take part: remove `repair = false` there");
    let mut command = Command::new(daemon());
    command.args(["doctor", "nobody", "--socket"]).arg(site.daemon(Side::Left).socket());
    let output = site.lab.left().run(|| command.output()).expect("mpt runs");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("no connection `nobody`: see `mpt status`"), "{complaint}");
}

/// Each end learns how the other one is set, and what does not fit.
pub(super) fn compared() {
    let site = site(TWO_LINKS, "framing = 'extended'", |side, config| match side {
        Side::Left => config,
        Side::Right => config
            .replace("name = 'two'", "name = 'two'\npriority = 1")
            .replace("addresses =", "mtu = 1300\naddresses ="),
    });
    site.await_all_up();
    let knows = |side: Side, place: usize, of: &dyn Fn(&mpt_control::PeerSettings) -> bool| {
        eventually("the peer says how it is set", || {
            site.path(side, place).peer.as_ref().is_some_and(of)
        });
    };
    knows(Side::Left, 1, &|of| of.priority == 1 && of.mtu == Some(1300) && of.mtu_is_set);
    knows(Side::Left, 0, &|of| of.mtu == Some(1300));
    knows(Side::Right, 1, &|of| of.priority == 0 && !of.mtu_is_set && of.dead_time > 0.0);
    knows(Side::Right, 0, &|_| true);
    let (status, text) = doctor(&site, Side::Left, &[]);
    assert_eq!(status, Some(1), "{text}");
    for words in [
        "settings there: scheduler earliest, MTU 1300 (set by `mtu`), order with window 4096",
        "two there: priority 1, dead time ",
        "priorities: one 0 here, 0 there; two 0 here, 1 there: set the same `priority`",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, text) = doctor(&site, Side::Right, &[]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("one 0 here, 0 there; two 1 here, 0 there"), "{text}");
    // What changes is told at once.
    let alike = mpt_control::Request::Path {
        connection: None,
        path: "two".into(),
        status: None,
        weight: None,
        priority: Some(1),
    };
    site.daemon(Side::Left).change(&alike).expect("a change");
    knows(Side::Right, 1, &|of| of.priority == 1);
    for side in [Side::Left, Side::Right] {
        let (status, text) = doctor(&site, side, &[]);
        assert_eq!(status, Some(0), "{text}");
    }
    // Asked from another network namespace, it does not take what lies there for the tunnel.
    let mut command = Command::new(daemon());
    command.args(["doctor", "--socket"]).arg(site.daemon(Side::Left).socket());
    let output = site.lab.right().run(|| command.output()).expect("mpt runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("does the daemon run in another network namespace?"), "{text}");
}

/// What the paths carry is measured where that is asked for, and not claimed where it cannot be.
pub(super) fn rates() {
    let site = Site::start(TWO_LINKS, "framing = 'extended'");
    let (status, text) = doctor(&site, Side::Left, &["--rate"]);
    assert_eq!(status, Some(0), "{text}");
    for path in ["one", "two"] {
        let of = |line: &&str| line.starts_with(&format!("peer/{path}: "));
        let line = text.lines().find(of).expect("a line for each path");
        assert!(line.contains("Mbit/s to the peer"), "{text}");
        assert!(line.contains("; at least ") && line.ends_with("Mbit/s from the peer"), "{text}");
    }
    drop(site);
    let site = Site::start(TWO_LINKS, "framing = 'plain'");
    let (_, text) = doctor(&site, Side::Left, &["--rate"]);
    assert!(text.contains("rates are not measured: the peer reports none"), "{text}");
}
