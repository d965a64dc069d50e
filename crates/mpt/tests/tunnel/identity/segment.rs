//! A packet as a wire would carry it: cut to size, its checksums filled in.
//!
//! Written from the RFCs for these tests, to have an opinion that is not the product's.

use mpt_proto::wire::checksum::internet;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// The flags that only the last segment keeps, and that which only the first does (RFC 3168 section
/// 6.1.2).
const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The packets that a capture stands for: itself, unless it is TCP or UDP with more than `size` bytes of
/// payload.
pub(super) fn segments(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
    let Some(transport) = Transport::find(packet) else { return vec![packet.to_vec()] };
    let (headers, payload) = packet.split_at(transport.payload);
    if payload.len() <= size {
        let mut packet = packet.to_vec();
        if transport.is_open(&packet) {
            transport.fill_in(&mut packet);
        }
        return vec![packet];
    }
    let pieces = payload.chunks(size);
    let last = pieces.len() - 1;
    let segment = |(number, piece): (usize, &[u8])| {
        let mut packet = [headers, piece].concat();
        transport.set_lengths(&mut packet, number);
        if transport.protocol == TCP {
            let at = transport.start;
            let sequence = u32::from_be_bytes(packet[at + 4..at + 8].try_into().expect("four"));
            let sequence = sequence.wrapping_add((number * size) as u32);
            packet[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            packet[at + 13] &= if number == last { 0xff } else { !FIN_AND_PSH };
            packet[at + 13] &= if number == 0 { 0xff } else { !CWR };
        }
        transport.fill_in(&mut packet);
        packet
    };
    pieces.enumerate().map(segment).collect()
}

/// Where the TCP or UDP of a whole packet lies.
struct Transport {
    protocol: u8,
    start: usize,
    payload: usize,
    /// The place of its checksum.
    checksum: usize,
}

impl Transport {
    /// `None` if there is none that a host could have left unfinished.
    fn find(packet: &[u8]) -> Option<Self> {
        let (protocol, start) = match packet[0] >> 4 {
            4 if packet[6] & 0x3f == 0 && packet[7] == 0 => {
                (packet[9], usize::from(packet[0] & 15) * 4)
            }
            6 => (packet[6], 40),
            _ => return None,
        };
        let (len, checksum) = match protocol {
            TCP => (usize::from(packet.get(start + 12)? >> 4) * 4, 16),
            UDP => (8, 6),
            _ => return None,
        };
        let payload = start + len;
        (payload <= packet.len()).then_some(Self {
            protocol,
            start,
            payload,
            checksum: start + checksum,
        })
    }

    /// The sum over addresses, length and protocol, with which a checksum begins (RFC 9293 section
    /// 3.1, RFC 8200 section 8.1).
    fn pseudo_header(&self, packet: &[u8]) -> Vec<u8> {
        let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
        let len = (packet.len() - self.start) as u32;
        [&packet[addresses], &len.to_be_bytes(), &[0, 0, 0, self.protocol]].concat()
    }

    /// Whether the checksum is still to be filled in: it holds the sum over the pseudo-header alone.
    fn is_open(&self, packet: &[u8]) -> bool {
        let begun = !internet(&self.pseudo_header(packet));
        packet[self.checksum..self.checksum + 2] == begun.to_be_bytes()
    }

    fn fill_in(&self, packet: &mut [u8]) {
        packet[self.checksum..self.checksum + 2].fill(0);
        let all = [&self.pseudo_header(packet)[..], &packet[self.start..]].concat();
        let checksum = match (internet(&all), self.protocol) {
            (0, UDP) => 0xffff,
            (checksum, _) => checksum,
        };
        packet[self.checksum..self.checksum + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The lengths of segment `number`, and what makes IPv4 headers differ.
    fn set_lengths(&self, packet: &mut [u8], number: usize) {
        let len = packet.len();
        if packet[0] >> 4 == 4 {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            let identification = u16::from_be_bytes([packet[4], packet[5]]);
            let identification = identification.wrapping_add(number as u16);
            packet[4..6].copy_from_slice(&identification.to_be_bytes());
            packet[10..12].fill(0);
            let checksum = internet(&packet[..self.start]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        }
        if self.protocol == UDP {
            let len = (len - self.start) as u16;
            packet[self.start + 4..self.start + 6].copy_from_slice(&len.to_be_bytes());
        }
    }
}
