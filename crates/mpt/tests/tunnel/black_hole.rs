//! Paths whose MTU decreases while they are in use: with and without a router's ICMP message.

use std::time::{Duration, Instant};

use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_lab::traffic::{tcp, udp};
use mpt_sim::profile::Profile;

use crate::router::Routed;
use crate::site::{PATIENT, SHORT, Site, TWO_LINKS, assert_flawless, eventually, inner};
use crate::suite::{Test, figure};

pub(crate) const TESTS: &[Test] = &[
    ("a_router_tells_that_a_path_narrows_and_tcp_goes_on", || reported(4)),
    ("a_router_tells_it_over_ipv6", || reported(6)),
    ("a_path_that_narrows_without_a_word_is_found_out_and_tcp_goes_on", silent),
    ("a_path_that_swallows_every_large_packet_is_left", swallowed),
    ("a_path_that_narrows_in_a_session_is_repaired_at_once", in_session),
    ("a_session_finds_what_a_narrow_path_carries_from_below", from_below),
];

/// Longer than any of these tests takes; a flow that is dropped ends.
const LONG: Duration = Duration::from_secs(60);

/// Bytes by which a flow counts as running.
const PROGRESS: u64 = 1 << 20;

fn reported(version: u8) {
    let routed = Routed::start(version);
    let overhead = if version == 4 { 36 } else { 56 };
    assert_eq!(routed.status(Side::Left).tunnels[0].mtu, 1500 - overhead);
    let flow = routed.flow();
    goes_on(&flow);
    routed.narrow(1400);
    eventually("the path's MTU is the router's", || {
        let tunnel = routed.status(Side::Left).tunnels.remove(0);
        let paths: Vec<_> = tunnel.connections[0].paths.iter().map(|path| path.mtu).collect();
        tunnel.mtu == 1400 - overhead && paths == [1400 - overhead, 1500 - overhead]
    });
    goes_on(&flow);
    let path = routed.status(Side::Left).tunnels.remove(0).connections.remove(0).paths.remove(0);
    assert_eq!(path.state, "up");
}

fn silent() {
    let site = Site::start(TWO_LINKS, "");
    let flow = flow(&site);
    goes_on(&flow);
    swallow(&site, Some(1400));
    eventually("the narrow path is found out", || site.path(Side::Left, 0).mtu == 1280);
    eventually("the tunnel's MTU follows", || site.status(Side::Left).tunnels[0].mtu == 1280);
    goes_on(&flow);
    drop(flow);
    let paths = site.connection(Side::Left).paths;
    assert_eq!((paths[0].state.as_str(), paths[1].mtu), ("up", 1464), "{paths:?}");
    let large = udp::Options { size: 1280 - 48, ..SHORT };
    [4, 6].map(|version| site.stream(version, large)).into_iter().for_each(assert_flawless);
    assert_eq!(site.status(Side::Right).tunnels[0].mtu, 1464, "nothing is narrow on its way");
    let events = site.status(Side::Left).tunnels.remove(0).events;
    let told =
        events.iter().filter(|event| event.text.contains("loses datagrams of more than 1288"));
    assert_eq!(told.count(), 1, "{events:?}");
}

fn swallowed() {
    let site = Site::start(TWO_LINKS, "");
    let flow = flow(&site);
    goes_on(&flow);
    swallow(&site, Some(1000));
    // A TCP alone finds it out, too, but what it loses makes it so slow that it takes its time.
    let options = udp::Options {
        interval: Duration::from_millis(20),
        size: 1200,
        length: Duration::from_secs(8),
    };
    let stream = site.stream(4, options);
    eventually("a path that carries no IPv6 is left", || {
        site.path(Side::Left, 0).state == "unusable: mtu"
    });
    eventually("the other path decides alone", || site.status(Side::Left).tunnels[0].mtu == 1464);
    goes_on(&flow);
    assert_eq!(site.path(Side::Right, 0).state, "up", "the other direction is as it was");
    drop(flow);
    assert!(stream.finish().expect("a report").order.lost > 0);
    site.assert_flawless(4);
    // As seen before it was probed, this took ten minutes.
    swallow(&site, None);
    eventually("it is tried again", || site.path(Side::Left, 0).state == "up");
    eventually("and for all that it carries", || site.path(Side::Left, 0).mtu == 1464);
}

/// What a link with an MTU of 1400 bytes leaves to inner packets of a session: 52 bytes are headers, and the last
/// step of the search is 8.
const NARROW: std::ops::RangeInclusive<u64> = 1400 - 52 - 8..=1400 - 52;

/// Two daemons in a session with the default order.
fn session(links: &str) -> Site {
    Site::start_with(links, "framing = 'extended'", |_, config| config.replace(PATIENT, ""))
}

fn in_session() {
    const CHANGE: Duration = Duration::from_millis(1500);
    let site = session(TWO_LINKS);
    eventually("both paths carry what the interfaces allow", || {
        site.connection(Side::Left).paths.iter().all(|path| path.mtu == 1500 - 52)
    });
    let flow = flow_of(&site, CHANGE * 3);
    goes_on(&flow);
    let began = Instant::now();
    swallow(&site, Some(1400));
    eventually("the narrow path is found out", || NARROW.contains(&site.path(Side::Left, 0).mtu));
    let took = began.elapsed();
    eventually("the tunnel's MTU follows", || {
        NARROW.contains(&site.status(Side::Left).tunnels[0].mtu)
    });
    goes_on(&flow);
    let events = site.status(Side::Left).tunnels.remove(0).events;
    let report = flow.finish();
    let gap = report.series.longest_gap(Duration::from_millis(300), CHANGE * 3);
    figure(&format!(
        "a link that narrows to 1400 bytes under TCP: longest gap {gap:.1?}, MTU found after {took:.1?}"
    ));
    let told = events.iter().filter(|event| event.text.contains("longer ones no longer arrive"));
    assert_eq!(told.count(), 1, "{events:?}");
    assert_eq!(site.path(Side::Left, 0).state, "up");
    let right = site.status(Side::Right).tunnels.remove(0);
    assert_eq!(
        right.mtu,
        1500 - 52,
        "nothing is narrow on its way: {:?} {:?}",
        right.events,
        right.connections
    );
}

fn from_below() {
    let narrow = TWO_LINKS.replacen("delay_ms", "largest_bytes = 1400\ndelay_ms", 1);
    let site = session(&narrow);
    for side in [Side::Left, Side::Right] {
        eventually("what the narrow path carries is found", || {
            NARROW.contains(&site.status(side).tunnels[0].mtu)
        });
        assert_eq!(site.path(side, 1).mtu, 1500 - 52);
    }
    let large = udp::Options { size: 1340 - 48, ..SHORT };
    [4, 6].map(|version| site.stream(version, large)).into_iter().for_each(assert_flawless);
}

/// Has the first link swallow what is longer, from left to right.
fn swallow(site: &Site, largest: Option<u64>) {
    let profile = site.lab.topology().links[0].forward.clone();
    site.lab.link(0).set_profile(Direction::Forward, Profile { largest, ..profile });
}

pub(crate) fn flow(site: &Site) -> tcp::Flow {
    flow_of(site, LONG)
}

/// A TCP flow from left to right, of this length.
fn flow_of(site: &Site, length: Duration) -> tcp::Flow {
    let sink = site
        .lab
        .right()
        .run(|| tcp::Sink::listen(tcp::Transport::Tcp, inner(Side::Right, 4), None));
    let sink = sink.expect("a sink");
    let remote = sink.address();
    let source =
        site.lab.left().run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"));
    tcp::Flow::start(sink, source.expect("a source"), length).expect("a flow")
}

/// Waits until a flow has got further.
pub(crate) fn goes_on(flow: &tcp::Flow) {
    let before = flow.received();
    eventually("the flow goes on", || flow.received() > before + PROGRESS);
}
