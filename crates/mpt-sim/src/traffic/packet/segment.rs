//! Parts of a bulk transfer as TCP segments (RFC 9293): a tunnel treats acknowledgements as such.
//!
//! There is no handshake: the first transmission has data, and is marked as what begins a connection. What segments are
//! stands in an option for experiments (RFC 4727), so that an acknowledgement has no payload, as those of
//! TCP have none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::udp;

/// Kind, number, stamp.
pub(super) const TAG_LEN: usize = 17;

const PROTOCOL: u8 = 6;
const HEADER_LEN: usize = 20;

/// Options: nothing, selective acknowledgement (RFC 2018), and one for experiments (RFC 4727).
const NOTHING: u8 = 1;
const SACK: u8 = 5;
const EXPERIMENT: u8 = 253;

/// The option with the tag, and that with a range, each up to a multiple of four bytes.
const TAG_OPTION: usize = (2 + TAG_LEN).next_multiple_of(4);
const RANGE_OPTION: usize = 12;

/// How much more than the shortest packet of its flow a segment takes at the most, in bytes.
#[cfg(test)]
pub(super) const MORE: usize = HEADER_LEN + TAG_OPTION + RANGE_OPTION - udp::HEADER_LEN - TAG_LEN;

/// Sequence numbers count bytes: these of a piece.
const PIECE: u32 = 1400;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// What an acknowledgement reports of pieces that came early.
type Range = Option<[u32; 2]>;

/// What a segment says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    /// From where to where, and the port at both ends.
    pub(super) ends: (IpAddr, IpAddr),
    pub(super) port: u16,
    pub(super) tag: &'a [u8],
    pub(super) range: Range,
}

/// What its TCP header tells others, beside that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The number of the piece that it is, or of the one that is expected next.
    pub(super) number: u64,
    /// Whether it is a piece, and whether it is the first transmission of all or answers that.
    pub(super) is_data: bool,
    pub(super) is_first: bool,
}

/// The whole packet, `len` bytes long or as long as its headers, with filler behind them.
pub(super) fn emit(
    segment: &Segment<'_>,
    shown: Shown,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let Segment { ends: (source, destination), port, tag, range } = *segment;
    let ip_len = udp::ip_header_len(source);
    let range_len = range.map_or(0, |_| RANGE_OPTION);
    let header_len = HEADER_LEN + TAG_OPTION + range_len;
    let len = len.clamp(ip_len + header_len, usize::from(u16::MAX));
    let mut bytes = vec![0; len];
    let (ip, tcp) = bytes.split_at_mut(ip_len);
    let total = len as u16;
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => udp::emit_ipv4(ip, PROTOCOL, from, to, total),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            udp::emit_ipv6(ip, PROTOCOL, from, to, total - ip_len as u16);
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
            panic!("a flow stays within one IP version")
        }
    }
    tcp[0..2].copy_from_slice(&port.to_be_bytes());
    tcp[2..4].copy_from_slice(&port.to_be_bytes());
    let number = (shown.number as u32).wrapping_mul(PIECE).to_be_bytes();
    let at = if shown.is_data { 4 } else { 8 };
    tcp[at..at + 4].copy_from_slice(&number);
    tcp[12] = (header_len as u8 / 4) << 4;
    // The first transmission begins the connection, and its acknowledgement answers that.
    tcp[13] = if shown.is_first { SYN | ACK } else { ACK };
    tcp[14..16].fill(0xff);
    tcp[HEADER_LEN] = EXPERIMENT;
    tcp[HEADER_LEN + 1] = 2 + TAG_LEN as u8;
    tcp[HEADER_LEN + 2..HEADER_LEN + 2 + TAG_LEN].copy_from_slice(tag);
    tcp[HEADER_LEN + 2 + TAG_LEN..HEADER_LEN + TAG_OPTION].fill(NOTHING);
    if let Some([from, to]) = range {
        let option = &mut tcp[HEADER_LEN + TAG_OPTION..header_len];
        option[..4].copy_from_slice(&[NOTHING, NOTHING, SACK, 10]);
        option[4..8].copy_from_slice(&from.to_be_bytes());
        option[8..12].copy_from_slice(&to.to_be_bytes());
    }
    fill(&mut tcp[header_len..]);
    let sum = !udp::upper_sum(PROTOCOL, source, destination, tcp);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// What may be a segment: whether it is one shows when it is emitted again.
pub(super) fn parse(bytes: &[u8]) -> Option<Segment<'_>> {
    let v4 = |at: usize| Some(IpAddr::from(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?)));
    let v6 = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?)));
    let (source, destination, tcp) = match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == PROTOCOL => (v4(12)?, v4(16)?, bytes.get(20..)?),
        6 if *bytes.get(6)? == PROTOCOL => (v6(8)?, v6(24)?, bytes.get(40..)?),
        _ => return None,
    };
    let port = u16::from_be_bytes(*tcp.first_chunk()?);
    let has_range = usize::from(tcp.get(12)? >> 4) * 4 > HEADER_LEN + TAG_OPTION;
    let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let range_at = HEADER_LEN + TAG_OPTION + 4;
    let range = if has_range { Some([word(range_at)?, word(range_at + 4)?]) } else { None };
    let tag = tcp.get(HEADER_LEN + 2..HEADER_LEN + 2 + TAG_LEN)?;
    Some(Segment { ends: (source, destination), port, tag, range })
}
