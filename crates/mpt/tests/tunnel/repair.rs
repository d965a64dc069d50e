//! What paths lose is sent again, and a path that swallows everything is left, over real sockets.

use std::time::Duration;

use mpt_control::{ConnectionState, RepairStatus};
use mpt_lab::emulator::{Direction, DirectionReport};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;
use mpt_sim::link::DropReason;

use crate::site::{Machine, PATIENT, QUICK, Site, eventually};
use crate::suite::{Test, figure};

pub(crate) const TESTS: &[Test] = &[
    ("what_a_path_loses_is_sent_again", lossy),
    ("nothing_is_lost_in_a_black_hole_forward", || black_hole(Direction::Forward)),
    ("nothing_is_lost_in_a_black_hole_both_ways", || black_hole(Direction::Both)),
];

const SESSION: &str = "framing = 'extended'\nscheduler = 'earliest'\n";

/// The one that is used loses one packet in twenty.
const LOSSY: &str = "[[link]]\nname = 'one'\ndelay_ms = 5\nloss = 0.05\n\
                     [[link]]\nname = 'two'\ndelay_ms = 12\nloss = 0.01\n";

const CLEAN: &str = "[[link]]\nname = 'one'\ndelay_ms = 5\n[[link]]\nname = 'two'\ndelay_ms = 12\n";

/// Two daemons in a session that repair what is lost, with the default timers.
fn session(links: &str) -> Site {
    let site = Site::start_with(links, SESSION, |_, config| {
        config.replace(QUICK, "").replace(PATIENT, "")
    });
    for side in [Side::Left, Side::Right] {
        eventually("losses are repaired", || repair(&site, side).active);
    }
    site
}

fn repair(site: &Site, side: Side) -> RepairStatus {
    site.connection(side).repair.expect("a session")
}

/// How many packets the links have lost by chance from left to right.
fn lost_by_links(site: &Site) -> u64 {
    let lost = |way: DirectionReport| way.stats.drops(DropReason::Loss).packets;
    [0, 1].map(|link| lost(site.lab.link(link).report().forward)).iter().sum()
}

/// What of a stream is missing, without what this machine did not read in time.
fn missing(site: &Site, machine: &Machine, order: &mpt_lab::traffic::order::Summary) -> u64 {
    (order.sent - order.received).saturating_sub(machine.unread(site))
}

fn lossy() {
    let site = session(LOSSY);
    let (machine, before) = (Machine::watch(&site), lost_by_links(&site));
    let options = udp::Options::at_rate(5_000_000, 500, Duration::from_secs(3));
    let order = site.stream(4, options).finish().expect("a report").order;
    let lost = lost_by_links(&site) - before;
    let missing = missing(&site, &machine, &order);
    let stalled = machine.stalled(&site);
    let ConnectionState { repair, .. } = site.connection(Side::Left);
    let repair = repair.expect("a session");
    let right = site.connection(Side::Right).reorder;
    figure(&format!("{lost} of {} lost by the links, {missing} missing: {repair:?}", order.sent));
    assert!(order.sent > 3000 && lost > 80, "{lost} of {}", order.sent);
    // A repair that comes too late is one that a machine that stands still has delayed.
    let most = if stalled { lost / 4 } else { lost / 50 };
    assert!(missing <= most, "{missing} of {lost} lost were not repaired: {repair:?}");
    assert_eq!(order.duplicated, 0);
    assert!(repair.lost * 2 > lost && repair.repaired.tried * 2 > lost, "{repair:?}");
    assert!(repair.repaired.saved * 2 > repair.repaired.tried, "{repair:?}");
    assert!(right.counters["repaired"] * 2 > lost, "{right:?}");
    assert!(right.hold_times.iter().sum::<u64>() > 0 && right.hold_seconds > 0.0, "{right:?}");
    assert!(right.residual_loss.is_some_and(|loss| loss < 0.02), "{right:?}");
}

fn black_hole(direction: Direction) {
    let site = session(CLEAN);
    let machine = Machine::watch(&site);
    let options = udp::Options::at_rate(20_000_000, 1200, Duration::from_secs(3));
    let stream = site.stream(4, options);
    eventually("the stream runs", || stream.received() > 1000);
    // Copies tell what the other one could carry.
    let first = |path| {
        let path = site.path(Side::Left, path);
        path.sent.packets - path.resent
    };
    let before = [first(0), first(1)];
    eventually("it goes on", || stream.received() > 2000);
    let loaded = usize::from(first(0) - before[0] < first(1) - before[1]);
    site.lab.link(loaded).set_blackout(direction, true);
    let report = stream.finish().expect("a report");
    let missing = missing(&site, &machine, &report.order);
    let stalled = machine.stalled(&site);
    let repair = repair(&site, Side::Left);
    let gap = report.series.longest_gap(Duration::ZERO, Duration::from_secs(3));
    figure(&format!("{missing} missing, longest gap {gap:.1?}: {repair:?}"));
    // Long before the path counts as down. What a machine that stands still delays may be too late.
    assert!(repair.leaves >= 1 && repair.moved.tried > 0, "{repair:?}");
    assert!(gap < Duration::from_secs(1), "{gap:?}");
    let most = if stalled { report.order.sent / 50 } else { 0 };
    assert!(missing <= most, "{missing} of {} are missing: {repair:?}", report.order.sent);
    assert_eq!(report.order.duplicated, 0);
    site.lab.link(loaded).set_blackout(direction, false);
    site.await_all_up();
}
