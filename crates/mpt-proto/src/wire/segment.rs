//! What the acknowledgement of a TCP segment says (RFC 9293 section 3.1).

use crate::wire::inner::Inner;
use crate::wire::upper::{self, Upper};

const HEADER_LEN: usize = 20;

/// TCP options: end, padding, and selective acknowledgement (RFC 2018).
const END: u8 = 0;
const PADDING: u8 = 1;
const SACK: u8 = 5;

/// Flags of the TCP header.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// What a segment is, for those who look at acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// It begins a connection.
    Syn,
    /// It ends one.
    End,
    /// It acknowledges everything before this number, and is nothing else.
    Ack(u32),
    /// The same, and reports that something after it arrived (RFC 2018).
    Report,
    /// The same, and says that packets were marked (RFC 3168).
    Marked,
    /// Anything else.
    Other,
}

/// Whether `packet`, of which `inner` was read, is TCP.
pub(crate) fn is_tcp(packet: &[u8], inner: &Inner) -> bool {
    upper::find(packet, inner).is_some_and(|upper| upper.protocol == upper::TCP)
}

/// What the segment of TCP in `packet` is, of which `inner` was read; `None` if there is none.
pub(crate) fn parse(packet: &[u8], inner: &Inner) -> Option<Segment> {
    let upper = upper::find(packet, inner)?;
    let is_tcp = upper.protocol == upper::TCP && !upper.later_fragment;
    is_tcp.then(|| read(packet, inner, upper)).flatten()
}

/// What the segment in `packet` is, of which `inner` was read and whose TCP header was found; `None` if that is not whole.
pub(crate) fn read(packet: &[u8], inner: &Inner, upper: Upper) -> Option<Segment> {
    let segment = packet.get(upper.at..inner.len)?;
    let header = segment.first_chunk::<HEADER_LEN>()?;
    let options_end = usize::from(header[12] >> 4) * 4;
    let options = segment.get(HEADER_LEN..options_end)?;
    let flags = header[13];
    Some(if flags & SYN != 0 {
        Segment::Syn
    } else if flags & (FIN | RST) != 0 {
        Segment::End
    } else if flags & ACK == 0 || segment.len() > options_end {
        Segment::Other
    } else if flags & ECE != 0 {
        Segment::Marked
    } else if has_sack(options) {
        Segment::Report
    } else {
        Segment::Ack(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
    })
}

fn has_sack(mut options: &[u8]) -> bool {
    while let Some((&kind, rest)) = options.split_first() {
        options = match (kind, rest.first()) {
            (END, _) => return false,
            (SACK, _) => return true,
            (PADDING, _) => rest,
            (_, Some(&len)) => match options.get(usize::from(len).max(2)..) {
                Some(next) => next,
                None => return false,
            },
            (_, None) => return false,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::inner;
    use crate::wire::upper::{self, TCP};

    /// An IPv4 packet with a TCP header, these flags and options, and as many bytes of data.
    fn packet(flags: u8, options: &[u8], data: usize) -> Vec<u8> {
        let header = HEADER_LEN + options.len();
        let len = 20 + header + data;
        let mut packet = vec![0; len];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[9] = TCP;
        packet[28..32].copy_from_slice(&7_u32.to_be_bytes());
        packet[32] = (header as u8 / 4) << 4;
        packet[33] = flags;
        packet[40..40 + options.len()].copy_from_slice(options);
        packet
    }

    fn parsed(packet: &[u8]) -> Option<Segment> {
        let inner = inner::parse(packet)?;
        let upper = upper::find(packet, &inner)?;
        let is_whole = upper.protocol == TCP && !upper.later_fragment;
        read(packet, &inner, upper).filter(|_| is_whole)
    }

    #[test]
    fn segments_are_told_apart() {
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        for (flags, options, data, segment) in [
            (ACK, &[][..], 0, Segment::Ack(7)),
            (ACK, &timestamps, 0, Segment::Ack(7)),
            (ACK | 8, &timestamps, 100, Segment::Other),
            (ACK, &sack, 0, Segment::Report),
            (ACK | ECE, &timestamps, 0, Segment::Marked),
            (SYN, &[2, 4, 5, 180], 0, Segment::Syn),
            (SYN | ACK, &[2, 4, 5, 180], 0, Segment::Syn),
            (ACK | FIN, &[], 0, Segment::End),
            (RST, &[], 0, Segment::End),
            (0, &[], 0, Segment::Other),
            (ACK, &[8, 0, 0, 0], 0, Segment::Ack(7)),
            (ACK, &[8, 200, 0, 0], 0, Segment::Ack(7)),
        ] {
            assert_eq!(
                parsed(&packet(flags, options, data)),
                Some(segment),
                "{flags:x} {options:?}"
            );
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_packet() {
        let whole = packet(ACK, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], 0);
        for len in 20..whole.len() {
            let mut cut = whole[..len].to_vec();
            cut[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            assert_eq!(parsed(&cut), None, "{len}");
        }
        let mut udp = whole;
        udp[9] = 17;
        assert_eq!(parsed(&udp), None);
    }
}
