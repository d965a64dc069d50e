//! The test vectors of `docs/protocol.md`, read from the document itself: what it says is what the
//! code does, byte for byte.

use std::num::NonZeroU16;
use std::time::Duration;

use crate::document::{blocks, bytes, datagram, rows, text};
use crate::pair::{self, Host, Inbox, Sent, Settings, config, outer_address, packet};
use mpt_proto::wire::gre::{self, Header, Protocol};
use mpt_proto::wire::inner;
use mpt_proto::wire::keepalive::{self, Activation, Arrivals, Echo, Keepalive, Report, Trailer};
use mpt_proto::{Drop, Endpoint, Instant, Origin, PathId, Seq, SocketId};

fn ipv4(checksum: bool, key: Option<u32>, sequence: Option<u32>) -> Header {
    Header { protocol: Protocol::Ipv4, checksum, key, sequence: sequence.map(Seq::new) }
}

fn ipv6(key: u32) -> Header {
    Header { protocol: Protocol::Ipv6, checksum: false, key: Some(key), sequence: None }
}

/// Asserts that a datagram has this header and that both are written as they were read.
fn assert_round_trip(number: u8, header: Header) -> Vec<u8> {
    let datagram = datagram(number);
    let parsed = gre::parse(&datagram).expect("a good header");
    assert_eq!(parsed.header, header, "14.{number}");
    let mut written = vec![0xee; header.size()];
    written.extend_from_slice(parsed.payload);
    header.emit(&mut written);
    assert_eq!(written, datagram, "14.{number}");
    parsed.payload.to_vec()
}

#[test]
fn data_is_read_and_written_as_printed() {
    for (number, header, source, destination) in [
        (1, ipv4(false, None, None), "10.9.0.1", "10.9.0.2"),
        (2, ipv4(false, None, Some(4)), "10.9.0.1", "10.9.0.2"),
        (3, ipv4(true, Some(7), Some(u32::MAX)), "10.9.0.1", "10.9.0.2"),
        (4, ipv6(0xdead_beef), "fd00:9::1", "fd00:9::2"),
    ] {
        let payload = assert_round_trip(number, header);
        let inner = inner::parse(&payload).expect("a whole packet");
        assert_eq!((inner.protocol, inner.len), (header.protocol, payload.len()));
        assert_eq!(inner.source.to_string(), source, "14.{number}");
        assert_eq!(inner.destination.to_string(), destination, "14.{number}");
    }
}

#[test]
fn keepalives_are_read_and_written_as_printed() {
    let report = |deaf, off| Report { deaf, off };
    let silent = Trailer { sent: 0, time: 5_000_000, echo: None };
    let echo = Some(Echo { time: 4_294_967_286, held: 250_000 });
    let telling = Trailer { sent: 100_000, time: 123_456, echo };
    let plain = ipv4(false, None, None);
    let (v4, v6) = (["10.9.0.1", "10.9.0.2"], ["fd00:9::1", "fd00:9::2"]);
    for (number, header, report, longest, wanted, addresses, trailer) in [
        (5, plain, report(false, false), 0, None, ["10.0.0.3", "10.0.0.2"], None),
        (6, plain, report(true, false), 0, None, v4, None),
        (7, ipv6(7), report(false, true), 0, None, v6, Some(silent)),
        (8, ipv4(true, Some(7), None), report(false, false), 1472, None, v4, Some(telling)),
        (9, plain, report(false, false), 0, Some((40, 1)), v4, Some(silent)),
    ] {
        let payload = assert_round_trip(number, header);
        let [sender, receiver] = addresses.map(|address| address.parse().unwrap());
        let longest = NonZeroU16::new(longest);
        let arrivals = longest.map(|longest| Arrivals { longest, keepalives: 7 });
        let (path, lost) = (wanted.map(|(_, path)| path), None);
        let weight = wanted.and_then(|(weight, _)| NonZeroU16::new(weight));
        let activation = Activation::default();
        let keepalive = Keepalive {
            report,
            activation,
            arrivals,
            weight,
            path,
            lost,
            sender,
            receiver,
            trailer,
        };
        assert_eq!(Keepalive::parse(&payload), Ok(keepalive), "14.{number}");
        assert_eq!(keepalive.emit(&mut [0xee; keepalive::LEN]), payload, "14.{number}");
    }
}

#[test]
fn every_printed_datagram_is_tested() {
    assert_eq!(blocks(1..=12), 9, "a block was added to or taken from 14.1 to 14.12");
}

/// A host that is to drop a datagram, and the datagram.
struct Case {
    key: Option<u32>,
    peer: u8,
    datagram: Vec<u8>,
}

impl Case {
    fn plain(datagram: Vec<u8>) -> Self {
        Self { key: None, peer: 1, datagram }
    }

    fn with_key(key: Option<u32>, datagram: Vec<u8>) -> Self {
        Self { key, ..Self::plain(datagram) }
    }

    /// The only drop that the datagram comes to at 10.9.0.2, whose peer is 10.9.0.`peer`.
    fn drop(&self) -> Drop {
        let mut config = config(&Settings { key: self.key, ..Settings::default() }, 2);
        config.connections[0].peer[0] = [10, 9, 0, self.peer].into();
        let mut endpoint = Endpoint::new(&config, Instant::ZERO).expect("good settings");
        let mut inbox = Inbox::default();
        let origin = Origin { socket: SocketId(0), remote: outer_address(1, 0), tos: 0 };
        endpoint.handle_datagram(Instant::ZERO, origin, &mut self.datagram.clone(), &mut inbox);
        assert!(inbox.delivered.is_empty(), "{:02x?}", self.datagram);
        let of_connection = endpoint.connection(pair::CONNECTION).stats().drops;
        let drops: Vec<_> = endpoint.drops().iter().chain(of_connection.iter()).collect();
        let [(reason, 1)] = drops[..] else {
            panic!("{:02x?} comes to {drops:?}", self.datagram);
        };
        reason
    }
}

/// The datagrams that the first cell of a row of 14.10 describes.
fn cases(cell: &str) -> Vec<Case> {
    let shortened = |number| {
        let mut short = datagram(number);
        short.pop();
        short
    };
    match cell {
        "14.3 with any one bit behind the flags changed" => {
            let bits = 16..datagram(3).len() * 8;
            let changed = |bit: usize| {
                let mut changed = datagram(3);
                changed[bit / 8] ^= 0x80 >> (bit % 8);
                Case::with_key(Some(7), changed)
            };
            bits.map(changed).collect()
        }
        "14.1 where key 7 is configured; 14.3 where none is" => {
            vec![Case::with_key(Some(7), datagram(1)), Case::plain(datagram(3))]
        }
        "`00000800 a2` and 39 bytes" => {
            vec![Case::plain([bytes("00000800 a2"), vec![0; 39]].concat())]
        }
        "14.5 without its last byte; 14.5 and one byte more; 14.7 without its last byte, where key 7 is configured" =>
        {
            let longer = [datagram(5), vec![0]].concat();
            vec![
                Case::plain(shortened(5)),
                Case::plain(longer),
                Case::with_key(Some(7), shortened(7)),
            ]
        }
        "14.6 sent by a peer whose tunnel address is 10.9.0.3" => {
            vec![Case { peer: 3, ..Case::plain(datagram(6)) }]
        }
        "14.1 without its last byte" => vec![Case::plain(shortened(1))],
        "14.1 with type 86dd" => {
            let mut other = datagram(1);
            other[2..4].copy_from_slice(&[0x86, 0xdd]);
            vec![Case::plain(other)]
        }
        literal => literal.split(", ").map(|one| Case::plain(literal_datagram(one))).collect(),
    }
}

/// A datagram that a cell prints; "…" stands for the rest of 14.1.
fn literal_datagram(cell: &str) -> Vec<u8> {
    if cell == "(empty)" {
        return Vec::new();
    }
    let hex = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
    let hex = hex.unwrap_or_else(|| panic!("14.10 has a row that is not tried: {cell}"));
    match hex.strip_suffix('…') {
        Some(begun) => {
            let begun = bytes(begun);
            let rest = datagram(1).split_off(begun.len());
            [begun, rest].concat()
        }
        None => bytes(hex),
    }
}

#[test]
fn vectors_to_be_dropped_are_dropped_by_name() {
    let rows = rows(10);
    assert_eq!(rows.len(), 13, "rows of the table");
    for (cell, verdict) in rows {
        let name = verdict.split('`').nth(1).expect("a name");
        for case in cases(cell) {
            let reason = case.drop().name();
            // The one exception that the table makes.
            let type_hit = verdict.contains("if the type is hit") && reason == "gre_protocol";
            assert!(reason == name || type_hit, "{cell}\n{:02x?}: {reason}", case.datagram);
        }
    }
}

#[test]
fn vectors_to_be_accepted_are_delivered() {
    assert!(text(11).starts_with("Accepted: `03f80800` in place of the first word of 14.1"));
    let inner = datagram(1).split_off(4);
    let other_word = [bytes("03f80800"), inner.clone()].concat();
    let longer = [datagram(1), vec![0; 9]].concat();
    for bytes in [datagram(1), other_word, longer] {
        let mut right = Host::new(&Settings::default(), 2, Instant::ZERO);
        right.receive(Instant::ZERO, &Sent { path: PathId(0), bytes });
        assert_eq!(right.inbox.delivered, [&inner[..]]);
    }
}

#[test]
fn weighted_paths_take_packets_as_printed() {
    let text = text(12).split_once("two cycles:").expect("vectors").1;
    let numbers = |list: &str| -> Vec<u16> {
        let digits = list.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        digits.map(|digits| digits.parse().unwrap()).collect()
    };
    let clauses: Vec<_> = text.trim_end().trim_end_matches('.').split(';').collect();
    let printed: Vec<_> = clauses
        .iter()
        .filter_map(|clause| clause.split_once('→'))
        .map(|(weights, paths)| (numbers(weights), numbers(paths)))
        .collect();
    assert_eq!(printed.len(), 3, "{clauses:?}");
    let same = clauses[3].split_once(" as ").expect("weights that act as others do");
    let (_, paths) = printed.iter().find(|(weights, _)| *weights == numbers(same.1)).unwrap();
    let all = printed.iter().cloned().chain([(numbers(same.0), paths.clone())]);
    for (weights, paths) in all {
        let always_up = Settings { keepalive: None, dead_time: None, ..Settings::default() };
        let settings = Settings { weights: weights.clone(), ..always_up };
        let mut left = Host::new(&settings, 1, Instant::ZERO + Duration::from_secs(1));
        let taken = (0..paths.len() as u32)
            .map(|n| left.send(Instant::ZERO, &packet(1, n)).unwrap().path.0);
        let taken: Vec<_> = taken.map(u16::from).collect();
        assert_eq!(taken, paths, "weights {weights:?}");
    }
}
