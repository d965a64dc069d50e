//! What is small and critical takes two paths: the loss of one copy costs nothing.

use std::net::IpAddr;
use std::time::Duration;

use crate::links::{at, plan, stream_between, wire};
use mpt_proto::{CopyStats, Instant, RepairStats};
use mpt_sim::world::Direction;
use mpt_sim::world::pair::Pair;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Flags of TCP.
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A packet from left to right: of TCP with these flags and no data, or of UDP.
fn packet(ipv6: bool, protocol: u8, flags: u8, port: u16, number: u16) -> Vec<u8> {
    let flow = Pair::flow(ipv6, port);
    let payload = if protocol == TCP { 20 } else { 60 };
    let mut packet = match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0x45, 0, 0, 20 + payload, 0, 0, 0, 0, 64, protocol, 0, 0];
            header.extend(source.octets().into_iter().chain(destination.octets()));
            header
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, payload, protocol, 64];
            header.extend(source.octets().into_iter().chain(destination.octets()));
            header
        }
        _ => panic!("addresses of two versions"),
    };
    packet.extend(number.to_be_bytes().into_iter().chain(port.to_be_bytes()));
    let mut rest = vec![0; usize::from(payload) - 4];
    if protocol == TCP {
        (rest[8], rest[9]) = (5 << 4, flags);
    }
    packet.extend(rest);
    packet
}

/// Two links, 10 and 13 ms long, in a session.
fn pair(repair: bool) -> Pair {
    let mut plan = plan(&[wire(50, 10), wire(50, 13)]);
    plan.connection.repair = repair;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    pair
}

fn duplicated(pair: &Pair) -> CopyStats {
    let RepairStats { duplicated, .. } = pair.connection(pair.left).repair_stats();
    duplicated
}

/// How long a packet takes that is sent at this time while the nth link swallows all; `None` if it does not arrive in 200 ms.
/// It arrives once at the most.
fn takes(pair: &mut Pair, sent: Instant, packet: &[u8], dead: usize) -> Option<Duration> {
    pair.world.run_until(sent);
    pair.world.cut(pair.wires[dead], Direction::There, true);
    pair.world.send_inner(pair.left, packet);
    pair.world.run_for(Duration::from_millis(1));
    pair.world.cut(pair.wires[dead], Direction::There, false);
    let arrivals = |pair: &Pair| {
        pair.world.unclaimed(pair.right).iter().filter(|arrived| *arrived == packet).count()
    };
    let mut took = None;
    for _ in 0..200 {
        if took.is_none() && arrivals(pair) > 0 {
            took = Some(pair.world.now().since(sent));
        }
        pair.world.run_for(Duration::from_millis(1));
    }
    assert!(arrivals(pair) <= 1);
    took
}

/// How long each of these packets takes whichever link swallows it, at the most.
fn longest(repair: bool, packets: &[Vec<u8>]) -> Vec<Option<Duration>> {
    let mut pair = pair(repair);
    let mut sent = 2000;
    let mut longest = Vec::new();
    for packet in packets {
        let took = [0, 1].map(|dead| {
            sent += 500;
            // Each is another one.
            let mut packet = packet.clone();
            let at_port =
                packet.len() - if packet[0] >> 4 == 4 && packet[9] == UDP { 60 } else { 20 };
            packet[at_port..at_port + 2].copy_from_slice(&(sent as u16).to_be_bytes());
            takes(&mut pair, at(sent), &packet, dead)
        });
        let [Some(one), Some(other)] = took else {
            longest.push(None);
            continue;
        };
        longest.push(Some(one.max(other)));
    }
    longest
}

#[test]
fn one_lost_copy_of_what_is_critical_costs_nothing() {
    let critical = [
        packet(false, TCP, SYN, 443, 1),
        packet(true, TCP, SYN, 443, 2),
        packet(false, TCP, SYN | ACK, 443, 3),
        packet(false, TCP, FIN | ACK, 443, 4),
        packet(false, TCP, ACK, 443, 5),
        packet(false, UDP, 0, 53, 6),
    ];
    // The slower link, and what it takes to look every millisecond.
    let usual = Some(Duration::from_millis(15));
    for (number, took) in longest(true, &critical).into_iter().enumerate() {
        assert!(took.is_some() && took <= usual, "packet {number}: {took:?}");
    }
    let other = longest(true, &[packet(false, UDP, 0, 5060, 7)]);
    assert!(other[0] > Some(Duration::from_millis(30)), "it has to be sent again: {other:?}");
    assert_eq!(longest(false, &critical[..1]), [None], "nothing is sent again");
}

#[test]
fn it_is_known_what_copies_were_for() {
    let mut pair = pair(true);
    let syn = |number| packet(false, TCP, SYN, 443, number);
    for (number, dead) in [(1, 0), (2, 1)] {
        takes(&mut pair, at(2000 + 500 * u64::from(number)), &syn(number), dead);
    }
    for number in 3..6 {
        pair.world.run_until(at(2500 + 500 * u64::from(number)));
        pair.world.send_inner(pair.left, &syn(number));
    }
    pair.world.run_until(at(8000));
    let stats = pair.connection(pair.left).repair_stats();
    let CopyStats { tried, saved, in_vain, refused, .. } = stats.duplicated;
    assert_eq!([tried, saved, in_vain, refused], [5, 2, 3, 0], "{stats:?}");
    assert_eq!((stats.lost, stats.repaired.tried), (2, 0), "the other copy arrived");
    assert_eq!(pair.world.unclaimed(pair.right).len(), 5);
}

#[test]
fn a_packet_whose_copies_are_both_lost_is_sent_again() {
    let mut pair = pair(true);
    let syn = packet(false, TCP, SYN, 443, 1);
    pair.world.run_until(at(3000));
    pair.wires.iter().for_each(|wire| pair.world.cut(*wire, Direction::There, true));
    pair.world.send_inner(pair.left, &syn);
    pair.world.run_for(Duration::from_millis(1));
    pair.wires.iter().for_each(|wire| pair.world.cut(*wire, Direction::There, false));
    pair.world.run_for(Duration::from_millis(150));
    assert_eq!(pair.world.unclaimed(pair.right), [syn]);
    assert!(pair.connection(pair.left).repair_stats().repaired.tried >= 1);
}

/// Its sender takes what that took for the least round trip. BBR would keep too little in flight for what follows.
#[test]
fn what_begins_a_connection_takes_as_long_as_what_follows() {
    let mut pair =
        Pair::new(1, &plan(&[wire(5, 5), wire(50, 30)])).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    let early = pair.connection(pair.left).queue_standing().expect("it is paced").equal_delay;
    assert!(early > Duration::from_millis(20), "{early:?}");
    for (number, (protocol, flags)) in [(TCP, SYN), (UDP, 0)].into_iter().enumerate() {
        let sent = at(2500 + 500 * number as u64);
        let took = takes(&mut pair, sent, &packet(false, protocol, flags, 53, 9), 1);
        let took = took.expect("the copy on the fast link arrives");
        assert_eq!(took >= early, protocol == TCP, "{took:?} of {early:?}");
    }
    assert_eq!(duplicated(&pair).tried, 2);
}

#[test]
fn the_copy_of_what_begins_a_connection_takes_as_long() {
    // The beginning takes the first two. The third carries most.
    let plan = plan(&[wire(5, 5), wire(5, 8), wire(50, 30)]);
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    let early = pair.connection(pair.left).queue_standing().expect("it is paced").equal_delay;
    assert!(early > Duration::from_millis(20), "{early:?}");
    for (number, flags) in [SYN, FIN | ACK].into_iter().enumerate() {
        let sent = at(2500 + 500 * number as u64);
        let took = takes(&mut pair, sent, &packet(false, TCP, flags, 443, 9), 0);
        assert!(took.is_some_and(|took| took >= early), "{took:?} of {early:?}");
    }
    assert_eq!(duplicated(&pair).tried, 2);
}

#[test]
fn copies_take_no_more_than_their_share() {
    let mut pair = pair(true);
    let stream = stream_between(&mut pair, 5000, 7001, [2000, 12_000]);
    for number in 0..40_000 {
        pair.world.run_until(at(2000) + Duration::from_micros(250 * number));
        let name = packet(false, UDP, 0, 53, number as u16);
        pair.world.send_inner(pair.left, &name);
    }
    pair.world.run_until(at(13_000));
    let stats = duplicated(&pair);
    let sent = pair.world.stream(stream).0.sent() * 1452 + 40_000 * 132;
    let most = sent as f64 * 0.03 + 2.0 * 131_072.0;
    assert!(stats.bytes as f64 <= most, "{stats:?}, {sent} bytes");
    assert!(stats.refused > 30_000 && stats.tried > 1000, "{stats:?}");
    let delivered = pair.connection(pair.right).stats().delivered.packets;
    assert_eq!(delivered, 40_000 + pair.world.stream(stream).0.sent());
}
