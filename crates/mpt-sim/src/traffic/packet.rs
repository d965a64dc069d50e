//! Inner packets that are distinguishable and can be verified.
//!
//! Each is a real IP packet with right checksums: a UDP datagram, or a TCP segment if it is part of a bulk transfer. Its
//! payload, or an option of its TCP header, says what it is and which; the rest is filler that follows from the number,
//! so that one changed, missing or foreign byte anywhere is found out.

mod segment;

use std::net::{IpAddr, SocketAddr};

use crate::udp;
use segment::{Segment, Shown, TAG_LEN};

/// Source and destination of packets, and the identifier of flows between the same hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The inner address of the sender.
    pub source: IpAddr,
    /// The inner address of the receiver, of the same IP version.
    pub destination: IpAddr,
    /// The UDP or TCP port at both ends.
    pub port: u16,
}

impl Flow {
    /// The flow the other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, port: self.port }
    }

    /// The shortest packet of this flow in bytes; a part of a bulk transfer
    /// takes up to 44 more.
    pub fn least_len(&self) -> usize {
        udp::ip_header_len(self.source) + udp::HEADER_LEN + TAG_LEN
    }
}

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// One of a stream of which nothing is acknowledged.
    Datagram,
    /// A piece of a bulk transfer.
    Segment,
    /// All pieces below the number have arrived.
    Acknowledgement,
}

/// The content of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its flow.
    pub flow: Flow,
    /// Its kind.
    pub kind: Kind,
    /// Its number in the flow.
    pub number: u64,
    /// A second number, of which the kind says what it means.
    pub stamp: u64,
    /// Of an acknowledgement: pieces from the first number to before the second have arrived too (RFC 2018).
    pub range: Option<[u32; 2]>,
}

impl Packet {
    /// The whole packet, `len` bytes long but at least what its headers take and at most 65 535.
    ///
    /// # Panics
    ///
    /// If source and destination are of different IP versions.
    pub fn emit(&self, len: usize) -> Vec<u8> {
        let mut tag = [0; TAG_LEN];
        tag[0] = self.kind as u8;
        tag[1..9].copy_from_slice(&self.number.to_be_bytes());
        tag[9..17].copy_from_slice(&self.stamp.to_be_bytes());
        if self.kind != Kind::Datagram {
            let Flow { source, destination, port } = self.flow;
            let ends = (source, destination);
            let segment = Segment { ends, port, tag: &tag, range: self.range };
            let (number, is_first) = (self.number, self.stamp == 0);
            let shown = Shown { number, is_data: self.kind == Kind::Segment, is_first };
            return segment::emit(&segment, shown, len, |rest| fill(number, rest));
        }
        let len = len.clamp(self.flow.least_len(), usize::from(u16::MAX));
        let mut payload = vec![0; len - self.flow.least_len() + TAG_LEN];
        payload[..TAG_LEN].copy_from_slice(&tag);
        fill(self.number, &mut payload[TAG_LEN..]);
        let end = |address| SocketAddr::new(address, self.flow.port);
        udp::emit(end(self.flow.source), end(self.flow.destination), &payload, true)
            .expect("a flow stays within one IP version")
    }

    /// Reads a packet; `None` unless every byte of it is as [`Packet::emit`] makes it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (flow, tag, range) = match segment::parse(bytes) {
            Some(Segment { ends: (source, destination), port, tag, range }) => {
                (Flow { source, destination, port }, tag, range)
            }
            None => {
                let (source, destination, payload) = udp::parse(bytes)?;
                let (source, destination, port) = (source.ip(), destination.ip(), source.port());
                (Flow { source, destination, port }, payload, None)
            }
        };
        let kinds = [Kind::Datagram, Kind::Segment, Kind::Acknowledgement];
        let kind = *kinds.get(usize::from(*tag.first()?))?;
        let number = u64::from_be_bytes(*tag.get(1..)?.first_chunk()?);
        let stamp = u64::from_be_bytes(*tag.get(9..)?.first_chunk()?);
        let packet = Self { flow, kind, number, stamp, range };
        (packet.emit(bytes.len()) == bytes).then_some(packet)
    }
}

/// Filler that differs between numbers: the SplitMix64 sequence that begins at `number`.
fn fill(number: u64, bytes: &mut [u8]) {
    let mut state = number;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = (word ^ (word >> 31)).to_be_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_emitted_segments_are_parsed(
            ipv4: bool,
            number: u64,
            stamp: u64,
            len in 0_usize..1500,
            range: Option<[u32; 2]>,
            at: prop::sample::Index,
            flip in 1_u8..,
            garbage in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let (source, destination) =
                if ipv4 { ("10.9.0.1", "10.9.0.2") } else { ("fd00:9::1", "fd00:9::2") };
            let flow = Flow {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
                port: 7000,
            };
            let packet = Packet { flow, kind: Kind::Segment, number, stamp, range };
            let bytes = packet.emit(len);
            let more = if range.is_some() { segment::MORE } else { segment::MORE - 12 };
            prop_assert_eq!(bytes.len(), len.max(flow.least_len() + more));
            prop_assert_eq!(Packet::parse(&bytes), Some(packet));
            let mut altered = bytes.clone();
            let at = at.index(altered.len());
            altered[at] ^= flip;
            prop_assert_eq!(Packet::parse(&altered), None);
            prop_assert_eq!(Packet::parse(&bytes[..at]), None);
            prop_assert_eq!(Packet::parse(&garbage), None);
        }
    }
}
