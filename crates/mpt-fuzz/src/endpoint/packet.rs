//! Inner packets that can be recognised.
//!
//! Behind the IP header stands a number and what follows from it. So a packet that was changed on its
//! way is not taken for another.

use std::net::IpAddr;

use mpt_proto::wire::checksum;

/// The destination ports that packets have.
pub(super) const PORTS: [u16; 4] = [53, 443, 5060, 40_000];

/// The ports in front of the number.
const HEAD: usize = 4;

/// Bytes behind the IP header at least: ports, the number and what follows from it.
const BODY: usize = HEAD + 16;

/// The tunnel address of a host.
pub(super) fn address(host: usize, v6: bool) -> IpAddr {
    let last = host as u8 + 1;
    match v6 {
        false => IpAddr::from([10, 9, 0, last]),
        true => IpAddr::from([0xfd00, 9, 0, 0, 0, 0, 0, u16::from(last)]),
    }
}

/// An address in a network behind a host.
pub(super) fn site(host: usize) -> IpAddr {
    IpAddr::from([10, 77, host as u8 + 1, 1])
}

/// A packet from a host to the other one. `shape` chooses its version, length, marks and destination port;
/// of IPv4 one in eight goes to the site behind the other host.
pub(super) fn numbered(from: usize, number: u64, shape: u8) -> Vec<u8> {
    let port = PORTS[usize::from(shape >> 3) % PORTS.len()];
    let mut body = Vec::with_capacity(BODY + 31);
    body.extend_from_slice(&50_000_u16.to_be_bytes());
    body.extend_from_slice(&port.to_be_bytes());
    body.extend_from_slice(&number.to_be_bytes());
    body.extend_from_slice(&proof(number).to_be_bytes());
    body.resize(BODY + usize::from(shape >> 3), shape);
    let tos = shape & 0x03;
    let mut packet = match shape & 0x04 != 0 {
        false => {
            let mut header = [0; 20];
            header[0] = 0x45;
            header[1] = tos;
            header[2..4].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
            header[8] = 64;
            header[9] = 17;
            write_addresses(&mut header[12..], from, false);
            if shape >> 5 == 7
                && let IpAddr::V4(site) = site(1 - from)
            {
                header[16..].copy_from_slice(&site.octets());
            }
            let sum = checksum::internet(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header.to_vec()
        }
        true => {
            let mut header = [0; 40];
            header[0] = 0x60;
            header[1] = tos << 4;
            header[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
            header[6] = 17;
            header[7] = 64;
            write_addresses(&mut header[8..], from, true);
            header.to_vec()
        }
    };
    packet.extend(body);
    packet
}

/// The number of a packet, if it is as it was made, marks apart.
pub(super) fn number(packet: &[u8]) -> Option<u64> {
    let header = if packet.first()? >> 4 == 4 { 20 } else { 40 };
    let body = packet.get(header + HEAD..)?;
    let number = u64::from_be_bytes(*body.first_chunk()?);
    let found = u64::from_be_bytes(*body.get(8..)?.first_chunk()?);
    (found == proof(number)).then_some(number)
}

fn write_addresses(place: &mut [u8], from: usize, v6: bool) {
    let octets = |host| match address(host, v6) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    place.copy_from_slice(&[octets(from), octets(1 - from)].concat());
}

/// The finalizer of MurmurHash3: two numbers that differ in a few bits have nothing in common in it.
fn proof(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}
