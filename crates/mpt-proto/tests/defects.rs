//! The defects of the original MPT that a core can have, and the proof that this one does not.
//!
//! Defects of its configuration, command line, control protocol and sockets are covered where we
//! have those: in the tests of `mpt` and `mpt-io`.

use std::time::Duration;

use crate::pair::{CONNECTION, Host, Pair, Sent, Settings, config, packet, packet_v6};
use mpt_proto::{Drop, Endpoint, Instant, PathId, PathState, Prefix, ReorderConfig};

const SECOND: Duration = Duration::from_secs(1);

fn only(path: u8) -> impl FnMut(u8, PathId) -> bool {
    move |_, other| other.0 == path
}

mod sending {
    use super::*;

    /// The original masks the configured network with its own mask, so that every IPv6 packet
    /// matches as soon as one IPv6 network exists.
    #[test]
    fn an_ipv6_network_takes_only_what_is_inside() {
        let mut config = config(&Settings::default(), 1);
        let network = Prefix::new("fd77::".parse().unwrap(), 32).unwrap();
        config.connections[0].networks.push(network);
        let mut endpoint = Endpoint::new(&config, Instant::ZERO).unwrap();
        let mut inner = packet_v6(1);
        inner[24..28].copy_from_slice(&[0xfd, 0x78, 0, 0]);
        assert!(endpoint.handle_inner(Instant::ZERO, &inner).is_none());
        assert_eq!(endpoint.drops().count(Drop::NoRoute), 1);
        inner[24..28].copy_from_slice(&[0xfd, 0x77, 0, 0]);
        assert!(endpoint.handle_inner(Instant::ZERO, &inner).is_none());
        assert_eq!(endpoint.drops().count(Drop::NoRoute), 1, "routed, although no path is up");
    }

    /// The longest prefix decides, not the order in the list.
    #[test]
    fn the_longest_network_wins() {
        let mut config =
            config(&Settings { keepalive: None, dead_time: None, ..Settings::default() }, 1);
        let mut second = config.connections[0].clone();
        second.peer = vec![[10, 9, 0, 3].into()];
        second.key = Some(3);
        let prefix = |text: &str, bits| Prefix::new(text.parse().unwrap(), bits).unwrap();
        config.connections[0].networks.push(prefix("192.168.0.0", 16));
        second.networks.push(prefix("192.168.7.0", 24));
        config.connections.push(second);
        let mut endpoint = Endpoint::new(&config, Instant::ZERO).unwrap();
        let mut connection_to = |third: u8| {
            let mut inner = packet(1, 0);
            inner[16..20].copy_from_slice(&[192, 168, third, 1]);
            endpoint.handle_inner(Instant::ZERO, &inner).map(|transmit| transmit.connection.0)
        };
        assert_eq!(connection_to(8), Some(0));
        assert_eq!(connection_to(7), Some(1));
    }

    /// The original prints a message, sleeps 10 ms with a lock held, and uses up no number.
    #[test]
    fn a_packet_without_a_path_is_counted_and_consumes_no_number() {
        let mut pair = Pair::new(&Settings::default());
        for number in 0..1000 {
            assert!(pair.left.send(pair.now, &packet(1, number)).is_none());
        }
        assert_eq!(pair.left.dropped(Drop::NoPath), 1000);
        pair.exchange(|_, _| true);
        let first = pair.left.send(pair.now, &packet(1, 0)).unwrap();
        assert_eq!(first.bytes[4..8], [0, 0, 0, 0], "the first number");
    }

    /// Dead entries of the original's vector are skipped one by one; ours keeps the shares.
    #[test]
    fn the_shares_of_living_paths_survive_the_death_of_another() {
        let mut pair = Pair::up(&Settings { weights: vec![1, 5000, 2], ..Settings::default() });
        pair.wait(3 * SECOND, |_, path| path.0 != 1);
        let paths: Vec<_> =
            (0..6).map(|n| pair.left.send(pair.now, &packet(1, n)).unwrap().path.0).collect();
        assert_eq!(paths, [2, 0, 2, 2, 0, 2]);
    }
}

mod reordering {
    use super::*;

    fn numbers(pair: &mut Pair, count: u32) -> Vec<Sent> {
        (0..count)
            .map(|number| pair.left.send(pair.now, &packet(1, number)).expect("a path is up"))
            .collect()
    }

    /// One datagram with a far number stops the original permanently.
    #[test]
    fn one_forged_number_does_not_stop_the_tunnel() {
        for far in [3000_u32, 20_000, 1 << 30, 1 << 31, u32::MAX - 100] {
            let mut pair = Pair::up(&Settings { weights: vec![1], ..Settings::default() });
            let sent = numbers(&mut pair, 200);
            for (number, sent) in sent.iter().enumerate() {
                if number == 50 {
                    let mut forged = sent.clone();
                    forged.bytes[4..8].copy_from_slice(&far.to_be_bytes());
                    pair.right.receive(pair.now, &forged);
                }
                pair.right.receive(pair.now, sent);
            }
            let mut received = pair.right.numbers();
            assert_eq!(received[received.len() - 100..], (100..200).collect::<Vec<_>>()[..]);
            received.sort_unstable();
            received.dedup();
            assert_eq!(received, (0..200).collect::<Vec<_>>(), "{far}: nothing was lost");
        }
    }

    /// A duplicate of a held packet flushes the original's ring.
    #[test]
    fn a_duplicate_releases_nothing() {
        let mut pair = Pair::up(&Settings::default());
        let sent = numbers(&mut pair, 8);
        pair.right.receive(pair.now, &sent[0]);
        pair.right.receive(pair.now, &sent[2]);
        pair.right.receive(pair.now, &sent[4]);
        pair.right.receive(pair.now, &sent[4]);
        assert_eq!(pair.right.numbers(), [0]);
        assert_eq!(pair.right.dropped(Drop::Duplicate), 1);
    }

    /// Every loss stalls the original for the whole buffer delay.
    #[test]
    fn a_provable_loss_does_not_wait() {
        let mut pair = Pair::up(&Settings::default());
        let sent = numbers(&mut pair, 6);
        for sent in sent.iter().filter(|sent| sent.bytes[7] != 1) {
            pair.right.receive(pair.now, sent);
        }
        assert_eq!(pair.right.numbers(), [0, 2, 3, 4, 5], "no time has passed");
    }

    /// What is held behind a later gap stays when an earlier one is given up: it has its own time.
    #[test]
    fn each_gap_has_its_own_time() {
        let reorder = ReorderConfig {
            early_release: false,
            max_delay: Duration::from_millis(300),
            ..ReorderConfig::default()
        };
        let mut pair = Pair::up(&Settings { reorder, ..Settings::default() });
        let sent = numbers(&mut pair, 8);
        pair.right.receive(pair.now, &sent[0]);
        pair.right.receive(pair.now, &sent[2]);
        pair.wait(Duration::from_millis(200), |_, _| true);
        pair.right.receive(pair.now, &sent[4]);
        pair.wait(Duration::from_millis(100), |_, _| true);
        assert_eq!(pair.right.numbers(), [0, 2]);
        pair.wait(Duration::from_millis(200), |_, _| true);
        assert_eq!(pair.right.numbers(), [4]);
    }

    /// Around the wrap the original takes small numbers for a restart and drops the others.
    #[test]
    fn numbers_wrap_without_a_trace() {
        let mut pair = Pair::up(&Settings::default());
        let at = |number: u32| {
            let mut sent = Sent { path: PathId((number % 2) as u8), bytes: vec![0x10, 0, 8, 0] };
            sent.bytes.extend(number.to_be_bytes());
            sent.bytes.extend(packet(1, number));
            sent
        };
        let start = u32::MAX - 60;
        for pair_of_numbers in 0..60_u32 {
            let first = start.wrapping_add(2 * pair_of_numbers);
            // Swapped, so that the buffer has work to do on both sides of the wrap.
            pair.right.receive(pair.now, &at(first));
            pair.right.receive(pair.now, &at(first.wrapping_add(2)));
            pair.right.receive(pair.now, &at(first.wrapping_add(1)));
        }
        let expected: Vec<_> = (0..121).map(|number| start.wrapping_add(number)).collect();
        assert_eq!(pair.right.numbers(), expected);
        assert_eq!(pair.right.endpoint.connection(CONNECTION).stats().reorder.restarts, 0);
    }

    /// A sender whose first 51 packets are lost is never heard again by the original.
    #[test]
    fn a_restart_is_detected_with_any_first_packet() {
        let mut pair = Pair::up(&Settings::default());
        for sent in numbers(&mut pair, 9000) {
            pair.right.receive(pair.now, &sent);
        }
        pair.right.numbers();
        pair.left = Host::new(&Settings::default(), 1, pair.now);
        // Not even the announcement arrives; the path stays up by the data.
        let later = {
            pair.left.endpoint = Endpoint::new(
                &config(&Settings { keepalive: None, dead_time: None, ..Settings::default() }, 1),
                pair.now,
            )
            .unwrap();
            numbers(&mut pair, 400).split_off(100)
        };
        later.iter().for_each(|sent| pair.right.receive(pair.now, sent));
        let received = pair.right.numbers();
        assert!(received.len() > 250, "{} of 300", received.len());
        assert_eq!(received[received.len() - 250..], (150..400).collect::<Vec<_>>()[..]);
    }

    /// A freshly started receiver of the original waits for numbers that were sent long ago.
    #[test]
    fn a_restarted_receiver_takes_the_first_number_it_gets() {
        let mut pair = Pair::up(&Settings::default());
        let sent = numbers(&mut pair, 700);
        pair.right = Host::new(&Settings::default(), 2, pair.now);
        sent[600..].iter().for_each(|sent| pair.right.receive(pair.now, sent));
        assert_eq!(pair.right.numbers(), (600..700).collect::<Vec<_>>());
    }
}

mod paths {
    use super::*;

    /// The original writes through a null pointer if a packet comes before its paths are ready.
    #[test]
    fn a_packet_before_any_path_is_up_is_a_counter() {
        let mut left = Host::new(&Settings::default(), 1, Instant::ZERO);
        assert!(left.send(Instant::ZERO, &packet(1, 0)).is_none());
        assert_eq!(left.dropped(Drop::NoPath), 1);
    }

    /// The original takes a place in the sending vector for a path's number, and so disables the
    /// healthy path of two with weights 1 and 2.
    #[test]
    fn the_path_that_died_is_the_path_that_is_left() {
        for (weights, dead) in [([1, 2], 1), ([2, 1], 0), ([1, 9], 1), ([7, 3], 1)] {
            let mut pair = Pair::up(&Settings { weights: weights.to_vec(), ..Settings::default() });
            pair.wait(3 * SECOND, only(1 - dead));
            assert_eq!(pair.left.state(1 - dead), PathState::Up);
            assert!(matches!(pair.left.state(dead), PathState::Down(_)));
            for number in 0..30 {
                assert_eq!(pair.left.send(pair.now, &packet(1, number)).unwrap().path.0, 1 - dead);
            }
        }
    }

    /// With all paths down the original looks for one among its unused slots and talks to itself.
    #[test]
    fn with_all_paths_down_nothing_is_sent_but_keepalives() {
        let mut pair = Pair::up(&Settings::default());
        pair.wait(3 * SECOND, |_, _| false);
        assert!(pair.left.send(pair.now, &packet(1, 0)).is_none());
        assert_eq!(pair.left.dropped(Drop::NoPath), 1);
        pair.now += SECOND;
        let keepalives = pair.left.keepalives(pair.now);
        assert_eq!(keepalives.len(), 2);
        assert!(keepalives.iter().all(|sent| sent.bytes.len() == 60));
        pair.wait(SECOND, |_, _| true);
        assert_eq!((pair.left.state(0), pair.right.state(1)), (PathState::Up, PathState::Up));
    }

    /// Dead timers that fire at both ends at once collide in the original's handshake.
    #[test]
    fn dead_times_that_end_together_do_not_collide() {
        let mut pair = Pair::up(&Settings::default());
        pair.now += 2 * SECOND;
        for host in [&mut pair.left, &mut pair.right] {
            host.endpoint.handle_timeout(pair.now, &mut host.inbox);
            assert!(matches!(host.state(0), PathState::Down(_)));
        }
        pair.exchange(|_, _| true);
        assert_eq!((pair.left.state(0), pair.right.state(0)), (PathState::Up, PathState::Up));
    }

    /// The original finds no own address for an IPv6 connection.
    #[test]
    fn a_tunnel_with_ipv6_addresses_only_works() {
        let v6_only = |own| {
            let mut config = config(&Settings::default(), own);
            config.addresses.retain(|own| own.address().is_ipv6());
            config.connections[0].peer.retain(|address| address.is_ipv6());
            config
        };
        let mut pair = Pair::new(&Settings::default());
        pair.left.endpoint = Endpoint::new(&v6_only(1), pair.now).unwrap();
        pair.right.endpoint = Endpoint::new(&v6_only(2), pair.now).unwrap();
        pair.exchange(|_, _| true);
        let sent = pair.left.send(pair.now, &packet_v6(1)).unwrap();
        pair.right.receive(pair.now, &sent);
        assert_eq!(pair.right.inbox.delivered, [packet_v6(1)]);
    }
}

mod security {
    use super::*;

    /// The original looks only at the outer source address; anything can be injected.
    #[test]
    fn an_inner_source_that_is_not_the_peers_is_dropped() {
        let mut pair = Pair::up(&Settings::default());
        let mut spoofed = packet(1, 0);
        spoofed[12..16].copy_from_slice(&[192, 168, 1, 1]);
        let sent = pair.left.send(pair.now, &spoofed).unwrap();
        pair.right.receive(pair.now, &sent);
        assert!(pair.right.inbox.delivered.is_empty());
        assert_eq!(pair.right.dropped(Drop::InnerSource), 1);
    }

    /// A packet to its own sender would go back and forth for as long as its TTL lasts, if the host
    /// that it came from took it.
    #[test]
    fn a_packet_that_the_peer_sends_back_ends_at_its_sender() {
        let mut pair = Pair::up(&Settings::default());
        let mut sent = pair.left.send(pair.now, &packet(1, 0)).unwrap();
        sent.bytes[8 + 16..8 + 20].copy_from_slice(&[10, 9, 0, 1]);
        pair.right.receive(pair.now, &sent);
        let delivered = pair.right.inbox.delivered.remove(0);
        assert_eq!(delivered[12..16], delivered[16..20], "from the left host to the left host");
        let reflected = pair.right.send(pair.now, &delivered).expect("it is routed back");
        pair.left.receive(pair.now, &reflected);
        assert!(pair.left.inbox.delivered.is_empty());
        assert_eq!(pair.left.dropped(Drop::InnerSource), 1);
    }

    /// The original stores any value that it is given for a path's status.
    #[test]
    fn status_bits_without_a_meaning_change_nothing() {
        let mut pair = Pair::up(&Settings::default());
        for _ in 0..10 {
            pair.now += SECOND / 2;
            for mut keepalive in pair.left.keepalives(pair.now) {
                assert_eq!(keepalive.bytes[5], 0);
                keepalive.bytes[5] = 0xfc;
                pair.right.receive(pair.now, &keepalive);
            }
            pair.right.endpoint.handle_timeout(pair.now, &mut pair.right.inbox);
            for path in 0..2 {
                assert_eq!(pair.right.state(path), PathState::Up, "they count as heard, no more");
            }
            pair.right.keepalives(pair.now).iter().for_each(|sent| {
                pair.left.receive(pair.now, sent);
            });
        }
    }

    /// A keepalive holds a path of the original up whatever tunnel it speaks of.
    #[test]
    fn a_keepalive_from_elsewhere_or_of_another_tunnel_keeps_no_path_up() {
        let mut pair = Pair::up(&Settings::default());
        pair.wait(3 * SECOND, only(0));
        assert!(matches!(pair.right.state(1), PathState::Down(_)));
        pair.now += SECOND;
        let due = pair.left.keepalives(pair.now);
        let genuine = due.iter().find(|sent| sent.path.0 == 1).unwrap();
        pair.right.receive_from(pair.now, genuine, "10.1.0.99:4754".parse().unwrap());
        assert_eq!(pair.right.dropped(Drop::UnknownSource), 1);
        let mut other_tunnel = genuine.clone();
        other_tunnel.bytes[43] ^= 1;
        pair.right.receive(pair.now, &other_tunnel);
        let mut other_sender = genuine.clone();
        other_sender.bytes[27] ^= 4;
        pair.right.receive(pair.now, &other_sender);
        assert_eq!(pair.right.dropped(Drop::ControlAddress), 2);
        assert!(matches!(pair.right.state(1), PathState::Down(_)));
    }

    /// Path status changes and connection creation are obeyed by the original from anywhere.
    #[test]
    fn commands_on_the_data_port_change_nothing() {
        let mut pair = Pair::up(&Settings::default());
        for command in [0xa2_u8, 0xa3, 0xa4, 0xa5, 0xff] {
            for len in [1, 40, 44, 80, 1200] {
                let mut bytes = vec![0, 0, 8, 0];
                bytes.resize(4 + len, 0x83);
                bytes[4] = command;
                pair.right.receive(pair.now, &Sent { path: PathId(0), bytes });
            }
        }
        assert_eq!(pair.right.dropped(Drop::ControlUnknown), 25);
        assert_eq!(pair.right.state(0), PathState::Up);
        assert_eq!(pair.right.endpoint.connections().count(), 1);
    }

    /// The original leaks two bytes of its stack in each command and reads past short ones.
    #[test]
    fn a_keepalive_has_no_byte_without_a_meaning() {
        let mut left = Host::new(&Settings::default(), 1, Instant::ZERO);
        let keepalive = left.keepalives(Instant::ZERO).remove(0);
        // It wants weight 1, by its path number 0, and no other is lost.
        let mut expected = vec![0, 0, 8, 0, 0xa1, 1, 0, 0, 0, 17, 1, 0];
        for host in [1, 2] {
            expected.extend([0; 10]);
            expected.extend([0xff, 0xff, 10, 9, 0, host]);
        }
        // Nothing sent, at time 0, nothing to echo.
        expected.extend([0; 12]);
        expected.extend([0xff; 4]);
        assert_eq!(keepalive.bytes, expected);
    }

    /// Creating connections from the network without end exhausts the original.
    #[test]
    fn unknown_sources_only_increment_a_counter() {
        let mut pair = Pair::up(&Settings::default());
        let sent = pair.left.send(pair.now, &packet(1, 0)).unwrap();
        for stranger in 0..10_000_u32 {
            let remote = (std::net::Ipv4Addr::from_bits(0x0b00_0000 + stranger), 4754).into();
            pair.right.receive_from(pair.now, &sent, remote);
        }
        assert_eq!(pair.right.dropped(Drop::UnknownSource), 10_000);
        assert_eq!(pair.right.endpoint.connections().count(), 1);
        assert!(pair.right.inbox.delivered.is_empty());
        assert_eq!(pair.right.endpoint.poll_event().into_iter().count(), 1, "its own coming up");
    }

    /// A datagram without the connection's key, or with an unexpected one, does not belong to it.
    #[test]
    fn the_key_must_be_the_agreed_one() {
        let with_key = Settings { key: Some(7), ..Settings::default() };
        for (sender, receiver) in [(None, Some(7)), (Some(7), None), (Some(8), Some(7))] {
            let settings =
                |key| Settings { key, keepalive: None, dead_time: None, ..with_key.clone() };
            let mut left = Host::new(&settings(sender), 1, Instant::ZERO);
            let mut right = Host::new(&settings(receiver), 2, Instant::ZERO);
            let sent = left.send(Instant::ZERO, &packet(1, 0)).unwrap();
            right.receive(Instant::ZERO, &sent);
            assert_eq!(right.dropped(Drop::GreKey), 1);
            assert!(right.inbox.delivered.is_empty());
        }
    }
}
