//! Explicit congestion notification across the tunnel (RFC 6040).
//!
//! On the way in the whole type of service byte is copied to the outer header: the DSCP (RFC 2983
//! section 3) and the ECN field (normal mode, RFC 6040 section 4.1). On the way out the DSCP of the
//! inner packet stays, and a mark that a router put on the outer header goes over to it.

use crate::stats::Drop;
use crate::wire::gre::Protocol;
use crate::wire::inner::Inner;

/// The bits of the ECN field in a type of service byte (RFC 3168 section 5).
const FIELD: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// The type of service that a decapsulated packet gets, given that of its outer header.
///
/// # Errors
///
/// [`Drop::EcnIllegal`] for the one combination that has to be dropped: congestion was experienced,
/// but the inner packet's ends would not understand that.
pub fn decapsulate(inner: u8, outer: u8) -> Result<u8, Drop> {
    let field = match (inner & FIELD, outer & FIELD) {
        (NOT_ECT, CE) => return Err(Drop::EcnIllegal),
        (ECT_0, ECT_1) => ECT_1,
        (ECT_0 | ECT_1, CE) => CE,
        (inner, _) => inner,
    };
    Ok(inner & !FIELD | field)
}

/// Marks a packet whose ends understand that with congestion experienced (RFC 3168 section 5): its type of
/// service from then on. `None` if they do not; then it is to be dropped instead.
pub fn mark(packet: &mut [u8], inner: &Inner) -> Option<u8> {
    if inner.tos & FIELD == NOT_ECT {
        return None;
    }
    let tos = inner.tos | CE;
    set_type_of_service(packet, inner, tos);
    Some(tos)
}

/// Sets a packet's type of service, and updates the IPv4 header checksum by the difference (RFC
/// 1624), so that a corrupt header stays corrupt.
///
/// `inner` is what was read from the packet.
pub fn set_type_of_service(packet: &mut [u8], inner: &Inner, tos: u8) {
    match inner.protocol {
        Protocol::Ipv4 => {
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let mended = u32::from(!sum) + u32::from(!u16::from(packet[1])) + u32::from(tos);
            let folded = (mended & 0xffff) + (mended >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            packet[1] = tos;
        }
        Protocol::Ipv6 => {
            packet[0] = packet[0] & 0xf0 | tos >> 4;
            packet[1] = packet[1] & 0x0f | tos << 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{checksum, inner};
    use etherparse::PacketBuilder;

    #[test]
    fn the_table_of_rfc_6040() {
        for (inner, expected) in [
            (NOT_ECT, [Ok(NOT_ECT), Ok(NOT_ECT), Ok(NOT_ECT), Err(Drop::EcnIllegal)]),
            (ECT_0, [Ok(ECT_0), Ok(ECT_0), Ok(ECT_1), Ok(CE)]),
            (ECT_1, [Ok(ECT_1), Ok(ECT_1), Ok(ECT_1), Ok(CE)]),
            (CE, [Ok(CE), Ok(CE), Ok(CE), Ok(CE)]),
        ] {
            for (outer, expected) in [NOT_ECT, ECT_0, ECT_1, CE].into_iter().zip(expected) {
                let dscp = 0xb8;
                let found = decapsulate(dscp | inner, 0x20 | outer);
                assert_eq!(found, expected.map(|field| dscp | field), "{inner} in {outer}");
            }
        }
    }

    #[test]
    fn the_byte_is_exchanged_and_the_checksum_stays_right() {
        for tos in [0, 1, 3, 0xb8, 0xbb, 0xff] {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
            builder.udp(1, 2).write(&mut packet, &[7; 9]).unwrap();
            let parsed = inner::parse(&packet).unwrap();
            set_type_of_service(&mut packet, &parsed, tos);
            assert_eq!(inner::parse(&packet).unwrap(), Inner { tos, ..parsed });
            assert_eq!(checksum::internet(&packet[..20]), 0);

            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64);
            builder.udp(1, 2).write(&mut packet, &[7; 9]).unwrap();
            packet[1] |= 0x0c;
            let parsed = inner::parse(&packet).unwrap();
            set_type_of_service(&mut packet, &parsed, tos);
            assert_eq!(inner::parse(&packet).unwrap(), Inner { tos, ..parsed });
            assert_eq!(packet[1] & 0x0f, 0x0c, "the flow label is not touched");
        }
    }
}
