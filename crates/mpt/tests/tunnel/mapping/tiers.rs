//! Priority tiers: standby paths carry no data.

use std::time::Duration;

use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_proto::wire::keepalive;

use super::{SKEWED, all_flawless, packets, sent_during, stream, with};
use crate::site::Site;

/// Bytes of a keepalive with its GRE, UDP and IPv4 headers.
const KEEPALIVE: u64 = keepalive::LEN as u64 + 4 + 8 + 20;

/// The path `two` is on standby.
fn second_stands_by(topology: &str, connection: &str) -> Site {
    Site::start_with(topology, connection, |_, config| with(&config, "two", "priority = 1"))
}

#[expect(clippy::print_stderr, reason = "figures for who runs it")]
pub(super) fn standby() {
    let site = second_stands_by(SKEWED, "");
    for side in [Side::Left, Side::Right] {
        let (best, other) = (site.path(side, 0), site.path(side, 1));
        assert_eq!((best.priority, best.standby), (0, false));
        assert_eq!((other.priority, other.standby, &*other.state), (1, true, "up"));
    }
    let both_ways = || {
        let sides = [(Side::Left, 4), (Side::Right, 6)];
        all_flawless(
            sides.map(|(side, version)| stream(&site, side, version, 7000, packets(300, 1))),
        );
    };
    let idle_before = on_the_wire(&site);
    for side in [Side::Left, Side::Right] {
        assert_eq!(sent_during(&site, side, 0, both_ways), [300, 0], "{side:?}");
    }
    let idle = on_the_wire(&site);
    let (datagrams, bytes) = (idle.0 - idle_before.0, idle.1 - idle_before.1);
    assert!(datagrams > 0, "it is alive");
    assert_eq!(bytes, datagrams * KEEPALIVE, "and carries nothing else");

    let load = stream(&site, Side::Left, 4, 7001, packets(2500, 1));
    crate::site::eventually("it runs", || load.received() > 0);
    site.lab.link(0).set_blackout(Direction::Both, true);
    site.await_state(0, "down");
    assert!(!site.path(Side::Left, 1).standby, "it is the best there is");
    crate::site::eventually("it has taken over", || site.path(Side::Left, 1).sent.packets > 300);
    site.lab.link(0).set_blackout(Direction::Both, false);
    site.await_state(0, "up");
    let report = load.finish().expect("a report");
    let gap = report.series.longest_gap(Duration::ZERO, report.series.length());
    eprintln!("silence until the standby path carried: {gap:?}, {:?}", report.order);
    // The dead time of 0.5 s, and what a machine that stalls adds to it.
    assert!(gap < Duration::from_millis(1000), "{gap:?}");
    assert!(report.order.lost < 800, "{:?}", report.order);
    assert_eq!(report.order.duplicated, 0);
    for side in [Side::Left, Side::Right] {
        assert_eq!(sent_during(&site, side, 0, both_ways), [300, 0], "{side:?}: it gives back");
        assert!(site.path(side, 1).standby);
    }
}

/// Datagrams that went over the second link either way, and their bytes with UDP and IP headers.
fn on_the_wire(site: &Site) -> (u64, u64) {
    let report = site.lab.link(1).report();
    let counts = [report.forward.stats.offered, report.backward.stats.offered];
    (counts.iter().map(|count| count.packets).sum(), counts.iter().map(|count| count.bytes).sum())
}

/// Losses of the active path are detected at once, since nothing can arrive on the standby path.
#[expect(clippy::print_stderr, reason = "figures for who runs it")]
pub(super) fn idle() {
    const LOSSY: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\nloss = 0.02\n\
                         [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 4\n";
    let site = second_stands_by(LOSSY, "reorder = { max_delay = 5 }");
    // As long as it takes the receiver to see that the second path is not used.
    let warm_up = stream(&site, Side::Left, 4, 7000, packets(500, 1));
    drop(warm_up.finish().expect("a report"));
    let report = stream(&site, Side::Left, 4, 7001, packets(1000, 1)).finish().expect("a report");
    let delay = report.delay_ms.expect("arrivals").max;
    eprintln!("{} of 1000 lost, longest delay {delay:.0} ms", report.order.lost);
    assert!(report.order.lost > 3, "{:?}", report.order);
    assert_eq!((report.order.reordered, report.order.duplicated), (0, 0), "{:?}", report.order);
    assert!(delay < 1000.0, "a packet was held for {delay} ms behind one that was lost");
    assert_eq!(site.path(Side::Right, 1).state, "up");
}
