//! Paths chosen by earliest arrival, with nothing typed in.

use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{Site, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("rates_are_measured_and_what_does_not_fit_waits", measured),
    ("a_light_stream_takes_the_fastest_path", light),
];

/// 20 Mbit/s and 10 Mbit/s, the second one slower by 20 ms.
const LINKS: &str = "[[link]]\nname = 'fast'\nrate_mbps = 20\ndelay_ms = 5\n\
                     [[link]]\nname = 'slow'\nrate_mbps = 10\ndelay_ms = 25\n";

const EARLIEST: &str = "framing = 'extended'\nscheduler = 'earliest'\n";

fn session() -> Site {
    let site = Site::start(LINKS, EARLIEST);
    eventually("a session begins", || site.connection(Side::Left).framing == "extended");
    site
}

fn measured() {
    let site = session();
    let options = udp::Options::at_rate(60_000_000, 1200, Duration::from_secs(4));
    let stream = site.stream(4, options);
    // Both are found out while the stream lasts. A machine that stands still measures less, never much more.
    let carries = |path| site.path(Side::Left, path).to_peer.and_then(|way| way.capacity);
    eventually("the rates are measured", || {
        let near = |path, real: u64| {
            carries(path).is_some_and(|rate| (real * 7 / 10..real * 13 / 10).contains(&rate))
        };
        near(0, 20_000_000) && near(1, 10_000_000)
    });
    let report = stream.finish().expect("a report");
    let left = site.connection(Side::Left);
    let dropped = left.drops["queue_delay"] + left.drops.get("queue_full").copied().unwrap_or(0);
    assert!(dropped > 1000, "half of the stream does not fit: {:?}", left.drops);
    for path in 0..2 {
        let sent = site.path(Side::Left, path).sent.packets;
        assert!(sent > 500, "path {path} carries its share: {sent}");
    }
    assert!(!report.arrivals.is_empty());
}

fn light() {
    let site = session();
    let before = [0, 1].map(|path| site.path(Side::Left, path).sent.packets);
    let options = udp::Options::at_rate(2_000_000, 1000, Duration::from_secs(1));
    site.stream(4, options).finish().expect("a report");
    let after = [0, 1].map(|path| site.path(Side::Left, path).sent.packets);
    let [fast, slow] = [0, 1].map(|path| after[path] - before[path]);
    assert!(fast > 4 * slow, "{fast} by the fast path, {slow} by the slow one");
}
