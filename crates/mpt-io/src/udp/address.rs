//! Socket addresses as the kernel lays them out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of a `sockaddr_in`.
const V4: usize = 16;
/// Bytes of a `sockaddr_in6`.
const V6: usize = 28;

/// Room for a `sockaddr_in` or a `sockaddr_in6`, with their alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4))]
pub(super) struct RawAddress([u8; V6]);

impl RawAddress {
    pub(super) const EMPTY: Self = Self([0; V6]);
    pub(super) const CAPACITY: u32 = V6 as u32;

    /// The kernel's form of `address`, and how many bytes of it count.
    pub(super) fn new(address: SocketAddr) -> (Self, u32) {
        let mut raw = [0; V6];
        raw[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address {
            SocketAddr::V4(address) => {
                raw[4..8].copy_from_slice(&address.ip().octets());
                (libc::AF_INET, V4)
            }
            SocketAddr::V6(address) => {
                raw[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
                raw[8..24].copy_from_slice(&address.ip().octets());
                raw[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
                (libc::AF_INET6, V6)
            }
        };
        raw[..2].copy_from_slice(&(family as libc::sa_family_t).to_ne_bytes());
        (Self(raw), len as u32)
    }

    /// The address in it, if the kernel wrote `len` bytes of a family known here.
    pub(super) fn get(&self, len: u32) -> Option<SocketAddr> {
        let family = libc::c_int::from(u16::from_ne_bytes(part(&self.0, 0)));
        let port = u16::from_be_bytes(part(&self.0, 2));
        match (family, len as usize) {
            (libc::AF_INET, V4..) => {
                let ip = Ipv4Addr::from(part::<4>(&self.0, 4));
                Some(SocketAddrV4::new(ip, port).into())
            }
            (libc::AF_INET6, V6..) => {
                let ip = Ipv6Addr::from(part::<16>(&self.0, 8));
                let flow = u32::from_be_bytes(part(&self.0, 4));
                let scope = u32::from_ne_bytes(part(&self.0, 24));
                Some(SocketAddrV6::new(ip, port, flow, scope).into())
            }
            _ => None,
        }
    }

    /// The address at the start of `bytes`, as the kernel wrote it, if it is of a family known here.
    pub(super) fn read(bytes: &[u8]) -> Option<SocketAddr> {
        let mut raw = [0; V6];
        let len = bytes.len().min(V6);
        raw[..len].copy_from_slice(&bytes[..len]);
        Self(raw).get(len as u32)
    }

    pub(super) fn as_ptr(&self) -> *const libc::c_void {
        self.0.as_ptr().cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// `address` if it says anything, `None` for the unspecified one.
pub(super) fn specified(address: IpAddr) -> Option<IpAddr> {
    (!address.is_unspecified()).then_some(address)
}

fn part<const N: usize>(bytes: &[u8; V6], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_round_trip() {
        for text in ["192.0.2.1:4754", "0.0.0.0:0", "[2001:db8::7]:65535", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let (raw, len) = RawAddress::new(address);
            assert_eq!(raw.get(len), Some(address), "{text}");
        }
    }

    #[test]
    fn it_equals_the_output_of_another_implementation() {
        for text in ["192.0.2.1:4754", "[2001:db8::7%9]:4754"] {
            let address: SocketAddr = text.parse().unwrap();
            let (raw, len) = RawAddress::new(address);
            let oracle = socket2::SockAddr::from(address);
            assert_eq!(len, oracle.len());
            // SAFETY: socket2 vouches for this many initialised bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(oracle.as_ptr().cast::<u8>(), oracle.len() as usize)
            };
            assert_eq!(&raw.0[..len as usize], bytes, "{text}");
        }
    }

    #[test]
    fn a_short_or_foreign_address_is_none() {
        let (raw, len) = RawAddress::new("[2001:db8::7]:1".parse().unwrap());
        assert_eq!(raw.get(len - 1), None);
        assert_eq!(RawAddress::EMPTY.get(28), None);
        let (raw, _) = RawAddress::new("192.0.2.1:1".parse().unwrap());
        assert_eq!(raw.get(0), None);
    }
}
