//! The weights that a peer announces for its paths (`docs/protocol.md` section 5.2.1).

use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, packet};
use mpt_proto::{Change, Endpoint, Instant, MAX_WEIGHT, PathConfig, PathId};

const INTERVAL: Duration = Duration::from_millis(500);

/// Where the weight stands in a keepalive without a key or checksum.
const WEIGHT: usize = 9;

/// A client with these weights, and a server with `weight` for each of its paths.
fn pair(client: &[u16], weight: u16, weight_from_peer: bool) -> Pair {
    let settings = Settings { weights: client.to_vec(), ..Settings::default() };
    let mut pair = Pair::new(&settings);
    let mut server = config(&settings, 2);
    for path in &mut server.connections[0].paths {
        (path.weight, path.weight_from_peer) = (weight, weight_from_peer);
    }
    let endpoint = Endpoint::new(&server, pair.now).expect("good settings");
    pair.right = Host { number: 2, endpoint, inbox: Inbox::default() };
    pair.exchange(|_, _| true);
    pair
}

/// How many of the next `count` packets each path of a host takes.
fn shares(host: &mut Host, paths: usize, count: u32) -> Vec<u32> {
    let mut shares = vec![0; paths];
    for number in 0..count {
        let sent = host.send(Instant::ZERO, &packet(host.number, number)).expect("a path");
        shares[sent.path.0 as usize] += 1;
    }
    shares
}

fn weights(host: &Host) -> Vec<u16> {
    let connection = host.endpoint.connection(CONNECTION);
    connection.paths().map(|path| connection.path(path).weight).collect()
}

fn set_weight(pair: &mut Pair, path: u8, weight: u16) {
    let settings = Settings { weights: vec![1; 2], ..Settings::default() };
    let path_config = config(&settings, 1).connections[0].paths[usize::from(path)].clone();
    let config = PathConfig { weight, ..path_config };
    let change = Change::SetPath { connection: CONNECTION, path: PathId(path), config };
    pair.left.change(pair.now, &change);
}

#[test]
fn what_a_client_receives_is_shared_out_by_the_weights_that_it_announces() {
    let mut pair = pair(&[40, 10], 1, true);
    assert_eq!(weights(&pair.right), [40, 10]);
    assert_eq!(shares(&mut pair.right, 2, 100), [80, 20]);
    assert_eq!(shares(&mut pair.left, 2, 100), [80, 20], "and what it sends as before");
}

#[test]
fn a_configured_weight_is_kept_whatever_the_peer_announces() {
    let mut pair = pair(&[40, 10], 3, false);
    pair.wait(3 * INTERVAL, |_, _| true);
    assert_eq!(weights(&pair.right), [3, 3]);
    assert_eq!(shares(&mut pair.right, 2, 100), [50, 50]);
}

#[test]
fn a_weight_that_is_changed_is_announced_at_once() {
    let mut pair = pair(&[40, 10], 1, true);
    set_weight(&mut pair, 1, 30);
    pair.exchange(|_, _| true);
    assert_eq!(weights(&pair.right), [40, 30]);
    assert_eq!(shares(&mut pair.right, 2, 70), [40, 30]);
}

#[test]
fn a_host_that_follows_announced_weights_announces_none() {
    let mut pair = pair(&[40, 10], 7, true);
    pair.now += INTERVAL;
    let announced = |host: &mut Host, now: Instant| -> Vec<u8> {
        host.keepalives(now).iter().map(|sent| sent.bytes[WEIGHT]).collect()
    };
    assert_eq!(announced(&mut pair.right, pair.now), [4, 4], "the IP version");
    assert_eq!(announced(&mut pair.left, pair.now), [0x34, 16 + 10]);
}

/// Keepalives of the left host with this byte in place of its weights reach the right one.
fn arrive_with(pair: &mut Pair, value: u8) {
    pair.now += INTERVAL;
    for Sent { path, mut bytes } in pair.left.keepalives(pair.now) {
        bytes[WEIGHT] = value;
        pair.right.receive(pair.now, &Sent { path, bytes });
    }
}

#[test]
fn values_out_of_range_leave_the_weight_that_is_configured() {
    for value in (0..=u8::MAX).filter(|value| !(17..=179).contains(value)) {
        let mut pair = pair(&[40, 10], 5, true);
        arrive_with(&mut pair, value);
        assert_eq!(weights(&pair.right), [5, 5], "{value}");
    }
    let mut pair = pair(&[40, 10], 5, true);
    arrive_with(&mut pair, 179);
    assert!(weights(&pair.right).iter().all(|weight| (9000..=MAX_WEIGHT).contains(weight)));
}

#[test]
fn frequent_announcements_are_applied_once_per_second() {
    let mut pair = pair(&[40, 10], 1, true);
    let (mut changes, mut before) = (0, weights(&pair.right));
    let Sent { path, bytes } = {
        pair.now += INTERVAL;
        pair.left.keepalives(pair.now).remove(0)
    };
    for round in 0..1000_u32 {
        pair.now += Duration::from_millis(1);
        let mut bytes = bytes.clone();
        bytes[WEIGHT] = 17 + (round % 2) as u8;
        // Its sending time: none is taken for one that was overtaken.
        let time = u32::from_be_bytes([bytes[48], bytes[49], bytes[50], bytes[51]]);
        bytes[48..52].copy_from_slice(&(time + round * 1000).to_be_bytes());
        pair.right.receive(pair.now, &Sent { path, bytes });
        let after = weights(&pair.right);
        changes += u32::from(before != after);
        before = after;
    }
    assert!((1..=9).contains(&changes), "{changes}");
    pair.wait(4 * INTERVAL, |_, _| true);
    assert_eq!(weights(&pair.right), [40, 10], "the genuine ones prevail");
}
