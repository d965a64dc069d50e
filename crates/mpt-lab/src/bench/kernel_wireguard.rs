//! The kernel's own WireGuard: what a tunnel costs that encrypts and has no program.
//!
//! Interfaces are made by route netlink; keys and peers are set by the generic netlink family `wireguard`
//! (`linux/wireguard.h`).

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use mpt_io::netlink::Netlink;
use mpt_io::netlink::generic::{Attributes, Family};
use nix::libc;

use super::hosts::find;
use super::wireguard::{PORT, Place};
use crate::cell::keys;
use crate::netns::Namespace;
use crate::topology::Side;

/// The interface, in either host.
const INTERFACE: &str = "wg0";
/// How long two ends may take to agree on keys: a handshake that is lost is repeated after 5 s.
const LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);

const FAMILY: &str = "wireguard";
const VERSION: u8 = 1;
const SET_DEVICE: u8 = 1;

/// Attributes of a device.
const DEVICE_NAME: u16 = 2;
const DEVICE_PRIVATE_KEY: u16 = 3;
const DEVICE_PORT: u16 = 6;
const DEVICE_PEERS: u16 = 8;

/// Attributes of a peer.
const PEER_PUBLIC_KEY: u16 = 1;
const PEER_ENDPOINT: u16 = 4;
const PEER_KEEPALIVE: u16 = 5;
const PEER_ALLOWED: u16 = 9;

/// Attributes of a network that a peer may use.
const ALLOWED_FAMILY: u16 = 1;
const ALLOWED_ADDRESS: u16 = 2;
const ALLOWED_LEN: u16 = 3;

/// Makes both ends in their namespaces and waits until they have a session. The MTU is the kernel's choice.
///
/// # Errors
///
/// The kernel's, an [`mpt_io::netlink::Error`], for example if it has no WireGuard; or the ends do not agree.
pub(super) fn start_both(ends: [(&Namespace, Place); 2]) -> Result<()> {
    let [left, right] = ends;
    // The left one begins the handshake, so the right one is there before it.
    for ((namespace, own), (_, peer)) in [(right, left), (left, right)] {
        namespace.run(|| start(own, peer))?;
    }
    left.0.run(await_session)
}

fn start(own: Place, peer: Place) -> Result<()> {
    let mut netlink = Netlink::open()?;
    netlink.add_wireguard(INTERFACE)?;
    let settings = settings(own, peer);
    Family::open(FAMILY)?.request(SET_DEVICE, VERSION, settings, "set the keys of WireGuard")?;
    let index = find(&mut netlink, INTERFACE)?.index;
    netlink.disable_address_generation(index)?;
    netlink.add_address(index, own.inner, 24)?;
    Ok(netlink.set_up(index, true)?)
}

/// The kernel counts the messages of handshakes among those of the interface. It has got a response when there is one.
fn await_session() -> Result<()> {
    let mut netlink = Netlink::open()?;
    let deadline = Instant::now() + LIMIT;
    while find(&mut netlink, INTERFACE)?.rx_packets == 0 {
        ensure!(
            Instant::now() < deadline,
            "two ends of the kernel's WireGuard do not agree on keys"
        );
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn settings(own: Place, peer: Place) -> Attributes {
    let allowed = Attributes::default()
        .with(ALLOWED_FAMILY, &family(peer.inner).to_ne_bytes())
        .with(ALLOWED_ADDRESS, &octets(peer.inner))
        .with(ALLOWED_LEN, &[if peer.inner.is_ipv4() { 32 } else { 128 }]);
    // A keepalive is what makes it begin a handshake before there is traffic.
    let keepalive = if own.side == Side::Left { 25_u16 } else { 0 };
    let peer_settings = Attributes::default()
        .with(PEER_PUBLIC_KEY, keys::public(peer.side).bytes())
        .with(PEER_ENDPOINT, &socket_address(SocketAddr::new(peer.outer, PORT)))
        .with(PEER_KEEPALIVE, &keepalive.to_ne_bytes())
        .with_nested(PEER_ALLOWED, &Attributes::default().with_nested(0, &allowed));
    Attributes::default()
        .with(DEVICE_NAME, format!("{INTERFACE}\0").as_bytes())
        .with(DEVICE_PRIVATE_KEY, &keys::bytes(own.side))
        .with(DEVICE_PORT, &PORT.to_ne_bytes())
        .with_nested(DEVICE_PEERS, &Attributes::default().with_nested(0, &peer_settings))
}

fn family(address: IpAddr) -> u16 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    family as u16
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A `sockaddr_in` or a `sockaddr_in6`.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let mut bytes = family(address.ip()).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            bytes.extend(address.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(address) => {
            bytes.extend(address.flowinfo().to_ne_bytes());
            bytes.extend(address.ip().octets());
            bytes.extend(address.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(side: Side, inner: &str, outer: &str) -> Place {
        Place { side, inner: inner.parse().unwrap(), outer: outer.parse().unwrap() }
    }

    #[test]
    fn a_device_gets_its_key_and_one_peer_as_the_kernel_wants_them() {
        let own = place(Side::Left, "10.8.0.1", "198.18.1.1");
        let settings = settings(own, place(Side::Right, "10.8.0.2", "198.18.1.2"));
        assert_eq!(settings.get_text(2).as_deref(), Some("wg0"));
        assert_eq!(settings.get(3), Some(&[1; 32][..]));
        assert_eq!(settings.get(6), Some(&51820_u16.to_ne_bytes()[..]));
        let peer = settings.nested(8).and_then(|list| list.nested(0)).unwrap();
        assert_eq!(peer.get(1), Some(&keys::public(Side::Right).bytes()[..]));
        let mut endpoint = vec![0xca, 0x6c, 198, 18, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        endpoint.splice(..0, 2_u16.to_ne_bytes());
        assert_eq!(peer.get(4), Some(&endpoint[..]));
        let allowed = peer.nested(9).and_then(|list| list.nested(0)).unwrap();
        assert_eq!((allowed.get(2), allowed.get(3)), (Some(&[10, 8, 0, 2][..]), Some(&[32][..])));
    }

    #[test]
    fn an_address_of_ipv6_has_the_length_of_the_kernels() {
        assert_eq!(socket_address("[2001:db8::1]:51820".parse().unwrap()).len(), 28);
    }
}
