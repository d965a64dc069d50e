//! Ends that fit, of which nothing is said.

use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use super::ends::{doctor, problems, site};
use crate::site::{Site, TWO_LINKS, eventually};

pub(super) fn all_well(connection: &str) {
    let site = site(TWO_LINKS, connection, |_, config| config);
    site.await_all_up();
    assert_health(&site);
}

/// Asserts that neither end names a cause, in the time in which every cause would be named.
pub(crate) fn assert_health(site: &Site) {
    let begin = site.status(Side::Right).uptime_seconds;
    eventually("five seconds have passed", || {
        for side in [Side::Left, Side::Right] {
            assert_eq!(problems(site, side), []);
        }
        site.status(Side::Right).uptime_seconds > begin + 5.0
    });
    site.assert_flawless(4);
    for side in [Side::Left, Side::Right] {
        let drops = site.connection(side).drops;
        assert!(!drops.contains_key("framing"), "a start is no drop: {drops:?}");
        let log = site.daemon(side).log();
        assert!(!log.contains("WARN"), "{log}");
        let (status, text) = doctor(site, side, &[]);
        assert_eq!(status, Some(0), "{text}");
        assert!(text.ends_with("all is well: 1 connection\n"), "{text}");
        let answered = "answers through the tunnel, also to packets of";
        assert_eq!(text.matches(answered).count(), 2, "by IPv4 and IPv6: {text}");
    }
}

/// A session begins by sending copies of packets by paths that nothing else takes. No path loses any.
pub(super) fn copies() {
    let site = site(TWO_LINKS, "framing = 'extended'", |_, config| config);
    site.await_all_up();
    let options = udp::Options::at_rate(4_000_000, 1200, Duration::from_secs(1));
    site.stream(4, options).finish().expect("a report");
    let paths = || [0, 1].map(|path| site.path(Side::Right, path));
    eventually("both paths have carried packets, and a keepalive after them has come", || {
        paths().iter().all(|path| path.received.packets > 0 && path.loss.is_some())
    });
    let copies = site.connection(Side::Left).repair.map(|repair| repair.copy_bytes);
    assert!(copies > Some(0), "{copies:?}");
    for path in paths() {
        assert_eq!((path.lost, path.loss), (Some(0), Some(0.0)), "{}", path.name);
    }
    let (status, text) = doctor(&site, Side::Right, &[]);
    assert_eq!(status, Some(0), "{text}");
}
