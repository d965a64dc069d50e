//! Traffic over bare links: what is measured is what the link's profile says.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use mpt_lab::emulator::Direction;
use mpt_lab::lab::{Host, Lab};
use mpt_lab::traffic::tcp::Transport;
use mpt_lab::traffic::{media, ping, quic, tcp, udp};

use crate::world::{Test, lab};

pub(crate) const TESTS: &[Test] = &[
    ("a_tcp_flow_gets_what_the_link_has_and_no_more", link_rate),
    ("a_tcp_flow_bound_to_a_link_uses_no_other", bound),
    ("retransmits_are_what_the_link_lost", retransmits),
    ("a_tcp_flow_over_a_link_that_dies_ends_on_time_with_its_silence", death),
    ("a_tcp_flow_lives_through_a_cut", cut),
    ("a_quic_flow_gets_what_the_link_has_and_loses_what_it_loses", quic_rate),
    ("a_quic_flow_over_a_link_that_dies_ends_on_time_with_its_silence", quic_death),
    ("udp_losses_and_copies_are_those_of_the_link", losses),
    ("media_lose_what_the_link_loses_and_a_call_is_worth_less", call_and_film),
    ("udp_reordering_is_seen_with_its_extent", reordering),
    ("a_ping_takes_the_delay_of_both_ways_ipv4", || round_trip(4)),
    ("a_ping_takes_the_delay_of_both_ways_ipv6", || round_trip(6)),
    ("pings_into_a_black_hole_are_lost_and_the_run_ends", black_hole),
];

fn link_rate() {
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 20\ndelay_ms = 1");
    let report = flow(&lab, 0, Duration::from_secs(3)).finish();
    assert_eq!(report.failure, None);
    let goodput = report.series.goodput(Duration::from_secs(1)) / 1e6;
    // 1448 bytes of payload in 1500; half of it would be a fault, a stall costs less.
    assert!(goodput > 10.0 && goodput <= 20.0 * 1448.0 / 1500.0 * 1.05, "{goodput} Mbit/s");
}

fn bound() {
    for link in 0..2 {
        let lab = lab("addressing = 'one-server'\n\
             [[link]]\nname = 'one'\nrate_mbps = 20\n[[link]]\nname = 'two'\nrate_mbps = 20");
        let report = flow(&lab, link, Duration::from_millis(500)).finish();
        assert!(report.series.goodput(Duration::ZERO) > 1e6, "link {link} carried nothing");
        assert_eq!(lab.link(1 - link).report().forward.stats.offered.packets, 0);
    }
}

fn retransmits() {
    let clean = lab("[[link]]\nname = 'wire'\nrate_mbps = 5\nqueue_bytes = 50000000");
    assert_eq!(flow(&clean, 0, Duration::from_secs(1)).finish().retransmits, Some(0));
    let lossy = lab("[[link]]\nname = 'wire'\nrate_mbps = 20\nforward = { loss = 0.02 }");
    let report = flow(&lossy, 0, Duration::from_secs(2)).finish();
    assert!(report.retransmits > Some(0));
}

fn death() {
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 20\ndelay_ms = 1");
    let length = Duration::from_secs(3);
    let start = Instant::now();
    let running = flow(&lab, 0, length);
    await_bytes(&running, 100_000);
    lab.link(0).set_blackout(Direction::Both, true);
    let cut = start.elapsed();
    let report = running.finish();
    // Without a bound on its waits it would sit in a write for the quarter of an hour TCP tries.
    assert!(start.elapsed() < length + Duration::from_secs(10), "it did not end by itself");
    let silence = report.series.longest_gap(Duration::ZERO, length);
    assert!(silence + cut + Duration::from_millis(500) >= length, "{silence:?} after {cut:?}");
}

fn cut() {
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 20\ndelay_ms = 1");
    let length = Duration::from_secs(5);
    let running = flow(&lab, 0, length);
    await_bytes(&running, 100_000);
    lab.link(0).set_blackout(Direction::Both, true);
    std::thread::sleep(Duration::from_millis(700));
    lab.link(0).set_blackout(Direction::Both, false);
    let report = running.finish();
    assert_eq!(report.failure, None);
    let silence = report.series.longest_gap(Duration::ZERO, length);
    assert!(silence >= Duration::from_millis(600), "{silence:?}");
    assert!(
        report.series.rate(length - Duration::from_secs(1), length) > 1e6,
        "it never came back"
    );
}

fn quic_rate() {
    let lab =
        lab("[[link]]\nname = 'wire'\nrate_mbps = 20\ndelay_ms = 5\nforward = { loss = 0.001 }");
    let report = quic_flow(&lab, Duration::from_secs(3)).finish();
    assert_eq!(report.failure, None);
    let goodput = report.series.goodput(Duration::from_secs(1)) / 1e6;
    assert!(goodput > 5.0 && goodput <= 20.0 * 1.05, "{goodput} Mbit/s");
    assert!(report.rtt >= Duration::from_millis(10), "{:?}", report.rtt);
    let dropped = lab.link(0).report().forward.stats.dropped().packets;
    assert!(dropped > 0 && report.lost_packets > 0, "{dropped} {}", report.lost_packets);
}

fn quic_death() {
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 20\ndelay_ms = 1");
    let length = Duration::from_secs(3);
    let start = Instant::now();
    let running = quic_flow(&lab, length);
    crate::world::eventually("the flow is under way", || running.received() >= 100_000);
    lab.link(0).set_blackout(Direction::Both, true);
    let cut = start.elapsed();
    let report = running.finish();
    assert_eq!(report.failure, None);
    assert!(start.elapsed() < length + Duration::from_secs(10), "it did not end by itself");
    let silence = report.series.longest_gap(Duration::ZERO, length);
    assert!(silence + cut + Duration::from_millis(500) >= length, "{silence:?} after {cut:?}");
}

fn losses() {
    let lab = lab("[[link]]\nname = 'wire'\nforward = { loss = 0.1, duplicate = 0.1 }");
    let order = stream(&lab, 1_600_000, Duration::from_millis(1000)).order;
    let stats = lab.link(0).report().forward.stats;
    assert_eq!(order.sent, 1000);
    assert_eq!(order.received + order.lost, order.sent);
    assert_eq!(order.duplicated, stats.duplicated.packets);
    assert_eq!(order.lost, stats.dropped().packets);
    assert!((50..200).contains(&order.lost), "{}", order.lost);
}

fn call_and_film() {
    let score = |forward: &str| {
        let lab =
            lab(&format!("[[link]]\nname = 'wire'\nforward = {{ delay_ms = 40, {forward} }}"));
        let (left, right): (&Host, &Host) = (lab.left(), lab.right());
        let ends = || {
            let sink = right.run(|| udp::Sink::bind(right.address(0))).unwrap();
            let remote = sink.address();
            media::Ends { sink, source: left.run(|| udp::Source::connect(remote)).unwrap() }
        };
        let options = media::Options { length: Duration::from_secs(3), seed: 1 };
        let media = media::Media::start(ends(), ends(), None, options).unwrap();
        let report = media.finish().unwrap();
        let lost = [report.voice, report.video].map(|s| s.lost_share * s.packets as f64);
        let dropped = lab.link(0).report().forward.stats.dropped().packets as f64;
        assert!((lost[0] + lost[1] - dropped).abs() < 0.5, "{lost:?} of {dropped}");
        assert!(report.voice.delay_ms.unwrap().min >= 40.0);
        // Packing, the way, and waiting for playout.
        assert!(report.hearing.call.delay >= Duration::from_millis(20 + 40 + 60));
        report.hearing.mos
    };
    let (clean, lossy) = (score("loss = 0.0"), score("loss = 0.2"));
    assert!(clean > lossy && lossy < 4.0, "{clean} {lossy}");
}

fn reordering() {
    let lab = lab("[[link]]\nname = 'wire'\nforward = { delay_ms = 20, reorder = 0.05 }");
    let report = stream(&lab, 1_600_000, Duration::from_millis(1000));
    let order = report.order;
    assert_eq!(order.lost, 0);
    // One packet a millisecond: a packet that skips the delay overtakes the twenty or so before it.
    assert!(order.reordered > 100, "{order:?}");
    assert!(order.reordering_extent >= 1, "{order:?}");
    let delay = report.delay_ms.unwrap();
    assert!(delay.min < 20.0 && delay.median >= 20.0, "{delay:?}");
}

fn round_trip(version: u8) {
    let lab = lab(&format!(
        "[[link]]\nname = 'wire'\nversion = {version}\ndelay_ms = 20\nbackward = {{ delay_ms = 10 }}"
    ));
    let report = pings(&lab, 20);
    assert_eq!((report.sent, report.lost, report.duplicated), (20, 0, 0));
    let rtt = report.rtt_ms.unwrap();
    assert!(rtt.min >= 30.0 && rtt.min < 60.0, "{rtt:?}");
    assert!(report.jitter_ms.is_some());
}

fn black_hole() {
    let lab = lab("[[link]]\nname = 'wire'");
    lab.link(0).set_blackout(Direction::Backward, true);
    let report = pings(&lab, 5);
    assert_eq!((report.sent, report.lost, report.rtt_ms), (5, 5, None));
}

/// A TCP flow from left to right over one link.
fn flow(lab: &Lab, link: usize, length: Duration) -> tcp::Flow {
    let device = Some(lab.link(link).name());
    let address = lab.right().address(link);
    let sink = lab.right().run(|| tcp::Sink::listen(Transport::Tcp, address, device)).unwrap();
    let remote = sink.address();
    let source = lab
        .left()
        .run(|| tcp::Source::connect(Transport::Tcp, remote, device, tcp::CUBIC))
        .unwrap();
    tcp::Flow::start(sink, source, length).unwrap()
}

/// A QUIC flow from left to right over the first link.
fn quic_flow(lab: &Lab, length: Duration) -> quic::Flow {
    let device = Some(lab.link(0).name());
    let address = lab.right().address(0);
    let sink = lab.right().run(|| quic::Sink::listen(address, device)).unwrap();
    let remote = sink.address();
    let congestion = quic::Congestion::default();
    let source = lab.left().run(|| quic::Source::connect(remote, device, congestion)).unwrap();
    quic::Flow::start(sink, source, length).unwrap()
}

/// UDP packets of 200 bytes from left to right over the first link.
fn stream(lab: &Lab, rate: u64, length: Duration) -> udp::Report {
    let (left, right): (&Host, &Host) = (lab.left(), lab.right());
    let sink = right.run(|| udp::Sink::bind(right.address(0))).unwrap();
    let remote = sink.address();
    let source = left.run(|| udp::Source::connect(remote)).unwrap();
    let options = udp::Options::at_rate(rate, 200, length);
    udp::Stream::start(sink, source, options).unwrap().finish().unwrap()
}

/// Pings from left to right over the first link.
fn pings(lab: &Lab, count: u32) -> ping::Report {
    let remote: IpAddr = lab.right().address(0);
    let source = lab.left().run(|| ping::Source::connect(remote)).unwrap();
    let options = ping::Options { count, interval: Duration::from_millis(10) };
    ping::Ping::start(source, options).unwrap().finish().unwrap()
}

fn await_bytes(flow: &tcp::Flow, bytes: u64) {
    crate::world::eventually("the flow is under way", || flow.received() >= bytes);
}
