//! What a link does to packets: delay, rate, queue, loss, black-outs, addresses.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mpt_lab::emulator::Direction;
use mpt_sim::link::DropReason;
use mpt_sim::profile::Profile;
use socket2::{Domain, SockRef, Socket, Type};

use crate::world::{PATIENCE, Test, eventually, lab, pair, receive, send};

pub(crate) const TESTS: &[Test] = &[
    ("a_packet_takes_at_least_the_delay_each_way_ipv4", || delay(4)),
    ("a_packet_takes_at_least_the_delay_each_way_ipv6", || delay(6)),
    ("a_link_carries_no_more_than_its_rate_and_all_of_it", rate),
    ("what_the_queue_does_not_hold_is_dropped_and_counted", queue),
    ("the_same_seed_loses_the_same_packets", loss),
    ("a_blackout_cuts_the_direction_it_names", blackout),
    ("a_profile_can_be_replaced_on_the_way", replace),
    ("the_route_over_a_link_has_its_mtu", mtu),
    ("one_server_address_is_reached_over_every_link_ipv4", || one_server(4)),
    ("one_server_address_is_reached_over_every_link_ipv6", || one_server(6)),
    ("only_the_isolated_link_carries_packets", isolate),
];

fn delay(version: u8) {
    let lab = lab(&format!(
        "[[link]]\nname = 'wire'\nversion = {version}\ndelay_ms = 30\nbackward = {{ delay_ms = 5 }}"
    ));
    let (left, right) = pair(&lab, 0);
    let round = |number| {
        let start = Instant::now();
        send(&left, number);
        assert_eq!(receive(&right), number);
        let there = start.elapsed();
        assert!(there >= Duration::from_millis(30), "there after {there:?}");
        let turn = Instant::now();
        send(&right, number);
        assert_eq!(receive(&left), number);
        let back = turn.elapsed();
        assert!(back >= Duration::from_millis(5), "back after {back:?}");
        there
    };
    let best = (0..20).map(round).min().unwrap();
    // The quickest of twenty is hit by a stall only if all are.
    assert!(best < Duration::from_millis(60), "never there before {best:?}");
    let report = lab.link(0).report();
    for direction in [&report.forward, &report.backward] {
        assert_eq!(direction.stats.offered.packets, 20, "packets nobody sent");
        assert_eq!(direction.lateness.packets, 20);
        assert!(direction.lateness.p50 <= direction.lateness.max);
        assert!(direction.stats.is_balanced());
        assert_eq!((direction.unread, direction.unwritten, direction.refused), (0, 0, 0));
    }
}

/// Bytes of payload that make IPv4 packets of 1250 bytes: 1 ms each at 10 Mbit/s.
const PAYLOAD: usize = 1250 - 28;

fn rate() {
    const PACKETS: u32 = 1000;
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 10\nqueue_bytes = 5000000");
    let (left, right) = pair(&lab, 0);
    let mut payload = [0; PAYLOAD];
    let start = Instant::now();
    for number in 0..PACKETS {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        left.send(&payload).unwrap();
    }
    for number in 0..PACKETS {
        assert_eq!(receive(&right), number);
        // Never early: the last bit of packet n leaves after n + 1 ms.
        let least = Duration::from_millis(u64::from(number) + 1);
        let now = start.elapsed();
        assert!(now >= least, "packet {number} after {now:?}");
    }
    // Twice the time is far more than stalls cost, and far less than half the rate would take.
    let all = start.elapsed();
    assert!(all < Duration::from_millis(2 * u64::from(PACKETS)), "all after {all:?}");
}

fn queue() {
    const PACKETS: u64 = 500;
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 1\nqueue_bytes = 12500");
    let (left, _right) = pair(&lab, 0);
    let start = Instant::now();
    for _ in 0..PACKETS {
        left.send(&[0; PAYLOAD]).unwrap();
    }
    let stats = || lab.link(0).report().forward.stats;
    eventually("all packets have entered the link", || stats().offered.packets == PACKETS);
    let sent = start.elapsed();
    eventually("the link is empty", || stats().in_flight.packets == 0);
    let stats = stats();
    // Ten packets fit, the one on the wire included, and one leaves every 10 ms meanwhile.
    let most = 10 + sent.as_millis() as u64 / 10 + 1;
    assert!((10..=most).contains(&stats.delivered.packets), "{stats:?} of {most}");
    assert_eq!(stats.drops(DropReason::Queue).packets, PACKETS - stats.delivered.packets);
    assert!(stats.is_balanced());
}

fn loss() {
    // All of them fit into a socket's default buffer.
    const PACKETS: u32 = 200;
    let arrivals = |seed: u64| {
        let text = format!("seed = {seed}\n[[link]]\nname = 'wire'\nforward = {{ loss = 0.3 }}");
        let lab = lab(&text);
        let (left, right) = pair(&lab, 0);
        let mut arrived = BTreeSet::new();
        for number in 0..PACKETS {
            send(&left, number);
        }
        eventually("all packets have left the link", || {
            let stats = lab.link(0).report().forward.stats;
            stats.offered.packets == u64::from(PACKETS) && stats.in_flight.packets == 0
        });
        let stats = lab.link(0).report().forward.stats;
        for _ in 0..stats.delivered.packets {
            assert!(arrived.insert(receive(&right)), "a packet came twice");
        }
        let lost = stats.drops(DropReason::Loss).packets;
        assert_eq!(lost + arrived.len() as u64, u64::from(PACKETS));
        arrived
    };
    let first = arrivals(1);
    assert_eq!(first, arrivals(1));
    assert_ne!(first, arrivals(2));
    // Six standard deviations of a binomial with n = 200 and p = 0.7 are 39.
    assert!((101..=179).contains(&first.len()), "{} of {PACKETS}", first.len());
}

fn blackout() {
    let lab = lab("[[link]]\nname = 'wire'\ndelay_ms = 1");
    let (left, right) = pair(&lab, 0);
    for (direction, there, back) in [
        (Direction::Forward, false, true),
        (Direction::Backward, true, false),
        (Direction::Both, false, false),
    ] {
        let before = lab.link(0).report();
        lab.link(0).set_blackout(direction, true);
        send(&left, 1);
        send(&right, 1);
        eventually("both packets have come to the link", || {
            let now = lab.link(0).report();
            now.forward.stats.offered.packets > before.forward.stats.offered.packets
                && now.backward.stats.offered.packets > before.backward.stats.offered.packets
        });
        lab.link(0).set_blackout(direction, false);
        send(&left, 2);
        send(&right, 2);
        // A link in order: whatever passed before arrives before.
        for (socket, passed) in [(&right, there), (&left, back)] {
            if passed {
                assert_eq!(receive(socket), 1, "{direction:?}");
            }
            assert_eq!(receive(socket), 2, "{direction:?}");
        }
    }
    let drops = |stats: mpt_sim::link::Stats| stats.drops(DropReason::Blackout).packets;
    let report = lab.link(0).report();
    assert_eq!((drops(report.forward.stats), drops(report.backward.stats)), (2, 2));
}

fn replace() {
    let lab = lab("[[link]]\nname = 'wire'");
    let (left, right) = pair(&lab, 0);
    let slow = Profile { delay: Duration::from_millis(40), ..Profile::default() };
    lab.link(0).set_profile(Direction::Forward, slow);
    let start = Instant::now();
    send(&left, 1);
    assert_eq!(receive(&right), 1);
    assert!(start.elapsed() >= Duration::from_millis(40));
    lab.link(0).restart_record();
    assert_eq!(lab.link(0).report().forward.lateness.packets, 0);
    assert_eq!(lab.link(0).report().forward.stats.delivered.packets, 1);
}

fn mtu() {
    let lab = lab("[[link]]\nname = 'wire'\nmtu = 1300");
    let (left, right) = pair(&lab, 0);
    let route =
        lab.left().run(|| mpt_io::udp::route_mtu(None, None, None, right.local_addr().unwrap()));
    assert_eq!(route.unwrap(), 1300);
    left.send(&[0; 1272]).unwrap();
    let mut buffer = [0; 2048];
    assert_eq!(right.recv(&mut buffer).unwrap(), 1272);
}

fn one_server(version: u8) {
    let lab = lab(&format!(
        "addressing = 'one-server'\n[[link]]\nname = 'a'\nversion = {version}\n\
         [[link]]\nname = 'b'\nversion = {version}\n[[link]]\nname = 'c'\nversion = {version}"
    ));
    let server = crate::world::socket(lab.right(), 0);
    let address = server.local_addr().unwrap();
    assert_eq!(lab.right().address(0), lab.right().address(2));
    for (number, name) in (0..).zip(["a", "b", "c"]) {
        let local = SocketAddr::new(lab.left().address(number), 0);
        let client: io::Result<std::net::UdpSocket> = lab.left().run(|| {
            let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
            socket.bind_device(Some(name.as_bytes()))?;
            socket.bind(&local.into())?;
            Ok(socket.into())
        });
        let client = client.unwrap();
        SockRef::from(&client).set_read_timeout(Some(PATIENCE)).unwrap();
        client.connect(address).unwrap();
        send(&client, 7);
        let mut buffer = [0; 16];
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        server.send_to(&8_u32.to_be_bytes(), from).unwrap();
        assert_eq!(receive(&client), 8);
        for (index, report) in lab.reports().iter().enumerate() {
            let expected = u64::from(index <= number);
            assert_eq!(report.forward.stats.delivered.packets, expected, "{name}: {}", report.link);
            assert_eq!(report.backward.stats.delivered.packets, expected, "{name}");
        }
    }
}

fn isolate() {
    let lab = lab("[[link]]\nname = 'a'\n[[link]]\nname = 'b'");
    let pairs = [pair(&lab, 0), pair(&lab, 1)];
    for (round, only) in (1..).zip([Some(0), Some(1), None]) {
        lab.isolate(only);
        for (left, _) in &pairs {
            send(left, only.map_or(9, |link| link as u32));
        }
        eventually("both packets have come to a link", || {
            lab.reports().iter().all(|report| report.forward.stats.offered.packets == round)
        });
        for (link, (_, right)) in pairs.iter().enumerate() {
            if only.is_none_or(|only| only == link) {
                assert_eq!(receive(right), only.map_or(9, |link| link as u32));
            }
        }
    }
    let cut = |link: usize| lab.link(link).report().forward.stats.drops(DropReason::Blackout);
    assert_eq!((cut(0).packets, cut(1).packets), (1, 1));
}
