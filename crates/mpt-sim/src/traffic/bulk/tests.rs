//! The transfer over plain links, without any tunnel: does it behave as TCP would?

use super::*;
use crate::link::Link;
use crate::loss::Loss;
use crate::profile::Profile;

const LEN: usize = 1400;

fn flow() -> Flow {
    Flow {
        source: "10.0.0.1".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
        port: 5001,
    }
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn wire(mbps: u64, delay_ms: u64) -> Profile {
    Profile {
        rate: Some(mbps * 1_000_000),
        delay: Duration::from_millis(delay_ms),
        ..Profile::default()
    }
}

/// Runs a transfer of ten seconds; returns both ends and what had arrived after two seconds.
fn transfer(forward: Profile, back: Profile) -> (Sender, Receiver, u64) {
    let mut links = [Link::new(forward, 1), Link::new(back, 2)];
    let mut sender = Sender::new(flow(), LEN, seconds(0), seconds(10));
    let mut receiver = Receiver::new(flow());
    let mut early_bytes = 0;
    loop {
        let wakes = [sender.next_due(), links[0].next_due(), links[1].next_due()];
        let Some(now) = wakes.into_iter().flatten().min().filter(|&at| at < seconds(10)) else {
            return (sender, receiver, early_bytes);
        };
        while let Some((_, bytes)) = links[0].receive(now) {
            let packet = Packet::parse(&bytes).unwrap();
            let answer = receiver.on_packet(&packet, bytes.len()).unwrap();
            links[1].send(now, answer);
        }
        while let Some((_, bytes)) = links[1].receive(now) {
            sender.on_packet(now, &Packet::parse(&bytes).unwrap());
        }
        while let Some(packet) = sender.poll(now) {
            links[0].send(now, packet);
        }
        if now < seconds(2) {
            early_bytes = receiver.stats().bytes;
        }
    }
}

/// The bit rate at which bytes arrived in the last eight of ten seconds.
fn goodput((_, receiver, early): &(Sender, Receiver, u64)) -> f64 {
    (receiver.stats().bytes - early) as f64 * 8.0 / 8.0
}

#[test]
fn a_clean_link_is_filled() {
    for (mbps, delay) in [(5, 10), (40, 10), (10, 50)] {
        let run = transfer(wire(mbps, delay), wire(mbps, delay));
        let share = goodput(&run) / (mbps as f64 * 1e6);
        // A packet more or less falls into the eight seconds.
        assert!((0.97..1.001).contains(&share), "{mbps} Mbit/s, {delay} ms: {share}");
        assert_eq!(run.0.stats().timeouts, 0, "the queue's losses are repaired without timeouts");
    }
}

#[test]
fn random_loss_costs_what_the_response_function_says() {
    let lossy = Profile { loss: Loss::Random(0.01), ..wire(100, 20) };
    let run = transfer(lossy, wire(100, 20));
    // 40 ms and 1 %: Reno reaches 1.22 / sqrt(p) = 12 packets per round trip, 3.4 Mbit/s. CUBIC is
    // in its Reno-friendly region, and nothing here should be off by more than a factor of two.
    let expected = 1.22 / 0.1 * LEN as f64 * 8.0 / 0.040;
    let ratio = goodput(&run) / expected;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    let stats = run.0.stats();
    assert!(stats.congestion_events > 20);
    assert!(stats.retransmissions >= stats.congestion_events);
}

#[test]
fn reordering_beyond_the_threshold_is_taken_for_loss() {
    // The delay of a few packets differs by more than three packets' time.
    let jittery = Profile { jitter: Duration::from_millis(3), ..wire(40, 10) };
    let run = transfer(jittery, wire(40, 10));
    assert!(run.0.stats().congestion_events > 20);
    assert_eq!(run.1.stats().duplicates, run.0.stats().retransmissions, "all were needless");
    assert!(goodput(&run) < 20e6, "{}", goodput(&run));
}

#[test]
fn a_black_out_ends_in_a_timeout_and_the_transfer_continues() {
    let window = (Duration::from_secs(3), Duration::from_secs(5));
    let cut = Profile { blackouts: vec![window], ..wire(10, 10) };
    let run = transfer(cut, wire(10, 10));
    let timeouts = run.0.stats().timeouts;
    // 200, 400, 800, 1600 ms: doubling bridges two seconds in about four steps.
    assert!((3..=5).contains(&timeouts), "{timeouts}");
    assert!(goodput(&run) > 5e6, "{}", goodput(&run));
}

#[test]
fn foreign_acknowledgements_change_nothing() {
    let mut sender = Sender::new(flow(), LEN, seconds(0), seconds(1));
    while sender.poll(seconds(0)).is_some() {}
    let absurd = |number, kind| Packet {
        flow: flow().reversed(),
        kind,
        number,
        stamp: u64::MAX,
        range: None,
    };
    sender.on_packet(seconds(0), &absurd(u64::MAX, Kind::Acknowledgement));
    sender.on_packet(seconds(0), &absurd(1, Kind::Datagram));
    assert_eq!(sender.in_flight.len(), 10);
    assert!(sender.poll(seconds(0)).is_none());
}
