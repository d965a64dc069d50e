//! Whatever arrives: no panic, no growth of memory, no wrong delivery, and a name for every drop.

use std::time::Duration;

use crate::pair::{self, CONNECTION, Pair, Sent, Settings, config, packet, packet_v6};
use mpt_proto::{Change, Drop, PathId, PathState, PathStatus, wire};
use proptest::prelude::*;

/// Datagrams as an endpoint meets them, to be mutated: data of both versions, with and without
/// options, and a keepalive.
fn captures() -> Vec<Vec<u8>> {
    let mut captures = Vec::new();
    for (key, checksum) in [(None, false), (Some(7), true)] {
        let mut pair = Pair::up(&Settings { key, checksum, ..Settings::default() });
        for number in 0..3 {
            captures
                .push(pair.left.send(pair.now, &packet(1, number)).expect("a path is up").bytes);
            captures.push(pair.left.send(pair.now, &packet_v6(1)).expect("a path is up").bytes);
        }
        pair.now += Duration::from_secs(1);
        captures.extend(pair.left.keepalives(pair.now).into_iter().map(|sent| sent.bytes));
    }
    captures
}

/// Nothing is believed before it is validated: not even that a path carries long datagrams.
#[test]
fn a_malformed_packet_is_not_reported_as_arrived() {
    for (valid, longest) in [(false, 0), (true, 1208)] {
        let mut pair = Pair::up(&Settings::default());
        let mut inner = packet(1, 0);
        inner.resize(1200, 0);
        inner[2..4].copy_from_slice(&1200_u16.to_be_bytes());
        let mut sent = pair.left.send(pair.now, &inner).expect("a path is up");
        if !valid {
            // An IP version that does not exist.
            sent.bytes[8] = 0x15;
        }
        pair.right.receive(pair.now, &sent);
        assert_eq!(pair.right.dropped(Drop::InnerMalformed), u64::from(!valid));
        pair.now += Duration::from_secs(1);
        let keepalives = pair.right.keepalives(pair.now);
        let keepalive = keepalives.iter().find(|keepalive| keepalive.path == sent.path);
        let keepalive = keepalive.expect("one is due");
        let payload = wire::gre::parse(&keepalive.bytes).expect("a datagram").payload;
        let keepalive = wire::keepalive::Keepalive::parse(payload).expect("a keepalive");
        let reported = keepalive.arrivals.map_or(0, |arrivals| arrivals.longest.get());
        assert_eq!(reported.max(60), longest.max(60), "valid: {valid}");
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip { byte: usize, bits: u8 },
    Cut { len: usize },
    Extend { bytes: Vec<u8> },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (0..64_usize, 1..=255_u8).prop_map(|(byte, bits)| Mutation::Flip { byte, bits }),
        1 => (0..64_usize).prop_map(|len| Mutation::Cut { len }),
        1 => prop::collection::vec(any::<u8>(), 1..40)
            .prop_map(|bytes| Mutation::Extend { bytes }),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    match mutation {
        Mutation::Flip { byte, bits } => {
            if let Some(place) = bytes.get_mut(*byte) {
                *place ^= bits;
            }
        }
        Mutation::Cut { len } => bytes.truncate(*len),
        Mutation::Extend { bytes: more } => bytes.extend_from_slice(more),
    }
}

/// Every datagram was a keepalive, was delivered, is held, or has a name.
fn assert_balanced(pair: &Pair, received: u64) {
    let endpoint = &pair.right.endpoint;
    let connection = endpoint.connection(CONNECTION);
    let stats = connection.stats();
    let keepalives: u64 =
        connection.paths().map(|path| connection.path(path).stats.keepalives_received).sum();
    let reorder = stats.reorder;
    let delivered = reorder.in_order + reorder.reordered + reorder.late + reorder.unsequenced;
    assert_eq!(delivered, stats.delivered.packets);
    assert_eq!(delivered, pair.right.inbox.delivered.len() as u64);
    let dropped = endpoint.drops().total() + stats.drops.total();
    assert_eq!(keepalives + delivered + reorder.held + dropped, received);
}

/// Only whole packets of the peer may come out, whatever went in.
fn assert_genuine(pair: &Pair) {
    for packet in &pair.right.inbox.delivered {
        let inner = wire::inner::parse(packet).expect("a whole packet");
        assert_eq!(inner.len, packet.len());
        assert!([pair::inner_address(1), pair::inner_address_v6(1)].contains(&inner.source));
    }
}

proptest! {
    #[test]
    fn random_bytes(datagrams in prop::collection::vec(
        (prop::collection::vec(any::<u8>(), 0..200), 0..3_u8), 0..60,
    )) {
        let mut pair = Pair::new(&Settings::default());
        for (bytes, path) in &datagrams {
            let sent = Sent { path: PathId(*path), bytes: bytes.clone() };
            pair.right.receive(pair.now, &sent);
            pair.left.endpoint.handle_inner(pair.now, bytes);
        }
        assert_balanced(&pair, datagrams.len() as u64);
        assert_genuine(&pair);
    }

    #[test]
    fn mutated_captures_among_genuine_ones(
        key in prop_oneof![Just(None), Just(Some(7))],
        arrivals in prop::collection::vec(
            (0..16_usize, prop::collection::vec(mutation(), 0..3), 0..2_u8, 0..200_u64), 1..200,
        ),
    ) {
        let captures = captures();
        let checksum = key.is_some();
        let mut pair = Pair::new(&Settings { key, checksum, ..Settings::default() });
        for (which, mutations, path, wait) in &arrivals {
            let mut bytes = captures[which % captures.len()].clone();
            mutations.iter().for_each(|mutation| mutate(&mut bytes, mutation));
            pair.right.receive(pair.now, &Sent { path: PathId(*path), bytes });
            pair.now += Duration::from_millis(*wait);
            pair.right.endpoint.handle_timeout(pair.now, &mut pair.right.inbox);
            pair.right.keepalives(pair.now);
            while pair.right.endpoint.poll_event().is_some() {}
        }
        assert_balanced(&pair, arrivals.len() as u64);
        assert_genuine(&pair);
    }

    #[test]
    fn the_parsers_take_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(datagram) = wire::gre::parse(&bytes) {
            prop_assert!(datagram.header.size() + datagram.payload.len() == bytes.len());
        }
        if let Some(inner) = wire::inner::parse(&bytes) {
            prop_assert!(inner.len <= bytes.len());
        }
        if let Ok(keepalive) = wire::keepalive::Keepalive::parse(&bytes) {
            let again = wire::keepalive::Keepalive::parse(keepalive.emit(&mut [0; wire::keepalive::LEN]));
            prop_assert_eq!(again, Ok(keepalive));
        }
    }

    /// What an independent decoder reads from our headers, and what we read from its.
    #[test]
    fn inner_headers_agree_with_an_independent_decoder(
        bytes in prop::collection::vec(any::<u8>(), 20..120),
        version in prop_oneof![Just(4_u8), Just(6_u8)],
    ) {
        let mut bytes = bytes;
        bytes[0] = version << 4 | bytes[0] & 0x0f;
        let theirs = etherparse::LaxSlicedPacket::from_ip(&bytes);
        if let Some(ours) = wire::inner::parse(&bytes) {
            let net = theirs.expect("a packet that we take must be one").net.expect("an IP header");
            let (source, destination) = match net {
                etherparse::LaxNetSlice::Ipv4(slice) => {
                    let header = slice.header();
                    (header.source_addr().into(), header.destination_addr().into())
                }
                etherparse::LaxNetSlice::Ipv6(slice) => {
                    let header = slice.header();
                    (header.source_addr().into(), header.destination_addr().into())
                }
                etherparse::LaxNetSlice::Arp(_) => unreachable!("from_ip reads no ARP"),
            };
            prop_assert_eq!((ours.source, ours.destination), (source, destination));
        }
    }
}

/// Bytes of a keepalive behind the original's frame.
const TRAILER: usize = wire::keepalive::LEN - wire::keepalive::BARE_LEN;

/// Drops are silent: garbage cannot make a host send.
#[test]
fn garbage_is_not_answered() {
    let mut pair = Pair::up(&Settings::default());
    let stranger = "10.0.0.99:4754".parse().expect("an address");
    let before = pair.right.dropped_in_all();
    let due = pair.right.endpoint.poll_timeout().expect("keepalives are due some time").at;
    let mut count = 0;
    for capture in captures() {
        // A keepalive that lost exactly its trailer is the original's.
        let cut = (0..capture.len()).filter(|len| capture.len() - len != TRAILER);
        let mut garbage: Vec<_> = cut.map(|end| capture[..end].to_vec()).collect();
        garbage.extend((0..3).map(|bit| {
            let mut flagged = capture.clone();
            flagged[1] ^= 1 << bit;
            flagged
        }));
        for bytes in garbage {
            let sent = Sent { path: PathId(0), bytes };
            pair.right.receive(pair.now, &sent);
            pair.right.receive_from(pair.now, &sent, stranger);
            count += 2;
            assert_eq!(pair.right.keepalives(pair.now).len(), 0, "{:02x?}", sent.bytes);
        }
        pair.now += Duration::from_millis(1);
    }
    assert_eq!(pair.right.dropped_in_all() - before, count);
    assert_eq!(pair.right.endpoint.poll_timeout().expect("as before").at, due);
    assert_eq!(pair.right.keepalives(due).len(), 2, "the regular ones");
}

/// Time does not pass between a million datagrams, and nothing piles up.
#[test]
fn a_flood_leaves_no_trace_but_counters() {
    let mut pair = Pair::up(&Settings::default());
    let genuine = pair.left.send(pair.now, &packet(1, 0)).unwrap();
    for number in 0..200_000_u32 {
        let mut forged = genuine.clone();
        let far = number.wrapping_mul(0x9e37_79b9);
        forged.bytes[4..8].copy_from_slice(&far.to_be_bytes());
        forged.path = PathId((number % 2) as u8);
        pair.right.receive(pair.now, &forged);
        assert!(pair.right.endpoint.connection(CONNECTION).stats().reorder.held < 4096);
    }
    let events = std::iter::from_fn(|| pair.right.endpoint.poll_event()).count();
    assert!(events <= 256, "events are bounded: {events}");
}

/// An attacker who forges the peer's keepalives can have a standby path activated time and again. The
/// keepalives that tell the peer of it are not for an attacker to ask for.
#[test]
fn forged_keepalives_are_not_answered_by_one_volley_each() {
    let mut pair = Pair::up(&Settings::default());
    let mut standby = config(&Settings::default(), 1).connections.remove(0).paths.remove(1);
    standby.priority = 1;
    let change = Change::SetPath { connection: CONNECTION, path: PathId(1), config: standby };
    pair.left.change(pair.now, &change);
    pair.exchange(|_, _| true);
    // What the peer says of its first path every now and then, and when it switches that off.
    pair.now += Duration::from_secs(1);
    let mut word = |status| {
        let change = Change::SetStatus { connection: CONNECTION, path: PathId(0), status };
        pair.right.change(pair.now, &change);
        pair.right.keepalives(pair.now).into_iter().find(|sent| sent.path.0 == 0).expect("its word")
    };
    let [on, off] = [PathStatus::Available, PathStatus::Off].map(&mut word);
    pair.now += Duration::from_secs(10);
    // The time of one flood: 8 volleys at once, and one more every 100 ms.
    let (mut volleys, mut calls) = (0, 0);
    for milli in 0..1000 {
        let now = pair.now + Duration::from_millis(milli);
        for word in [&off, &on] {
            pair.left.receive(now, word);
            calls += u64::from(!matches!(pair.left.state(0), PathState::Up));
            let sent = pair.left.keepalives(now);
            volleys += sent.iter().filter(|sent| sent.path.0 == 1).count();
        }
    }
    assert_eq!(calls, 1000, "every word had its effect");
    assert!((8..=20).contains(&volleys), "{volleys} volleys");
}
