//! The frames of the original MPT: captured bytes, read and written byte for byte, and nothing else is
//! taken for them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mpt_proto::wire::gre::{self, Header, Protocol};
use mpt_proto::wire::keepalive::Keepalive;
use mpt_proto::{Drop, Seq};

/// An inner packet of 48 bytes, as a ping through the original is.
fn ping() -> Vec<u8> {
    let mut packet = vec![0x5a; 48];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 48]);
    packet
}

/// The data header as captured from the original: with the sequence number 4, and as it is without.
const SEQUENCED: [u8; 8] = [0x10, 0, 0x08, 0, 0, 0, 0, 4];
const UNSEQUENCED: [u8; 4] = [0, 0, 0x08, 0];

/// The keepalive as captured from the original, with its GRE header.
const KEEPALIVE: &str = "00000800 a1000000 00040000 00000000000000000000ffff0a000003 \
                         00000000000000000000ffff0a000002";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "{hex}");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The bits whose change makes no difference; of the others each makes a refusal or another message.
/// Every shorter message is refused.
fn ignored_bits<T: PartialEq + std::fmt::Debug, E>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> BTreeSet<usize> {
    let Ok(original) = parse(bytes) else { panic!("it can be read") };
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "cut off behind {end} bytes");
    }
    let is_ignored = |&bit: &usize| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        parse(&changed).is_ok_and(|found| found == original)
    };
    (0..bytes.len() * 8).filter(is_ignored).collect()
}

/// These bits of these bytes, the least significant being 0.
fn bits(places: &[(std::ops::Range<usize>, std::ops::Range<usize>)]) -> BTreeSet<usize> {
    let bits = |(bytes, bits): &(std::ops::Range<usize>, std::ops::Range<usize>)| {
        let bits = bits.clone();
        bytes.clone().flat_map(move |byte| bits.clone().map(move |bit| byte * 8 + bit))
    };
    places.iter().flat_map(bits).collect()
}

#[test]
fn data_headers_are_those_of_the_original() {
    for (frame, sequence) in [(&SEQUENCED[..], Some(Seq::new(4))), (&UNSEQUENCED, None)] {
        let header = Header { protocol: Protocol::Ipv4, checksum: false, key: None, sequence };
        let datagram = [frame, &ping()].concat();
        let parsed = gre::parse(&datagram).expect("a good header");
        assert_eq!((parsed.header, parsed.payload), (header, &ping()[..]));
        let mut written = vec![0xee; header.size()];
        written.extend(ping());
        header.emit(&mut written);
        assert_eq!(written, datagram);

        for end in 0..frame.len() {
            assert_eq!(gre::parse(&datagram[..end]).err(), Some(Drop::GreTruncated), "{end}");
        }
        let is_ignored = |&bit: &usize| {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            gre::parse(&changed).is_ok_and(|found| found.header == header)
        };
        // The flags that RFC 2784, section 2.3, has a receiver ignore.
        let ignored: BTreeSet<usize> = (0..frame.len() * 8).filter(is_ignored).collect();
        assert_eq!(ignored, bits(&[(0..1, 0..2), (1..2, 3..8)]));
    }
}

#[test]
fn the_keepalive_is_that_of_the_original() {
    let datagram = bytes(KEEPALIVE);
    assert_eq!(datagram.len(), 44);
    let parse = |datagram: &[u8]| {
        let datagram = gre::parse(datagram)?;
        Ok::<_, Drop>((datagram.header, Keepalive::parse(datagram.payload)?))
    };
    let (header, keepalive) = parse(&datagram).expect("a keepalive");
    assert_eq!((keepalive.sender, keepalive.receiver), (address("10.0.0.3"), address("10.0.0.2")));
    let mut written = vec![0xee; header.size()];
    written.extend(keepalive.emit(&mut [0xee; mpt_proto::wire::keepalive::LEN]));
    header.emit(&mut written);
    assert_eq!(written, datagram);

    // Flags as above; the count, which means nothing without a length; the version, which the addresses
    // show, where it does not become an announced weight; and numbers of paths that are too large.
    let ignored = bits(&[(0..1, 0..2), (1..2, 3..8), (8..9, 0..8), (9..10, 0..4), (10..12, 7..8)]);
    assert_eq!(ignored_bits(&datagram, parse), ignored);
}
