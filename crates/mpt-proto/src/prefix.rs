//! Ranges of IP addresses.

use std::fmt;
use std::net::IpAddr;

/// A range of IP addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The range of addresses whose first `bits` bits are those of `address`; `None` if an address
    /// of that version has fewer bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        if u32::from(bits) > width(address) {
            return None;
        }
        Some(Self { address, bits })
    }

    /// The range that holds only `address`.
    pub fn host(address: IpAddr) -> Self {
        Self { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The address it was made from; bits that are not fixed may be set.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The same range, with no other bits set in its address than the fixed ones.
    pub fn masked(self) -> Self {
        let free = width(self.address) - u32::from(self.bits);
        let fixed = u128::MAX.checked_shl(free).unwrap_or(0) & value(self.address);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4((fixed as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(fixed.into()),
        };
        Self { address, ..self }
    }

    /// How many bits are fixed.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// The address for all hosts of an IPv4 network (RFC 919 section 7); none for IPv6, nor for the networks
    /// of two addresses of RFC 3021 and those of one.
    pub(crate) fn broadcast(&self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(address) if self.bits < 31 => {
                Some(IpAddr::V4((address.to_bits() | u32::MAX >> self.bits).into()))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// Whether `address` is inside; never true across IP versions.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && {
            let differing = (value(self.address) ^ value(address)).leading_zeros();
            differing >= 128 - width(address) + u32::from(self.bits)
        }
    }
}

/// The address it was made from, and how many bits are fixed: `10.0.0.1/24`.
impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn value(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The address that identifies this end to a peer.
pub(crate) fn own_address(local: &[Prefix], peer: IpAddr) -> Option<IpAddr> {
    let same_version = || local.iter().filter(|own| own.address().is_ipv4() == peer.is_ipv4());
    let own = same_version().find(|own| own.contains(peer)).or_else(|| same_version().next())?;
    Some(own.address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_shares_their_bits_and_nothing_of_the_other_version() {
        let prefix = |text: &str, len| Prefix::new(text.parse().unwrap(), len).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(prefix("10.1.0.9", 16).to_string(), "10.1.0.9/16");
        assert!(prefix("10.1.0.0", 16).contains(address("10.1.255.255")));
        assert!(!prefix("10.1.0.0", 16).contains(address("10.2.0.0")));
        assert!(prefix("0.0.0.0", 0).contains(address("255.1.2.3")));
        assert!(!prefix("0.0.0.0", 0).contains(address("::1")));
        assert!(!prefix("::", 0).contains(address("10.0.0.1")));
        assert!(prefix("fd00::", 8).contains(address("fdff::1")));
        assert!(!prefix("fd00::", 8).contains(address("fe00::1")));
        assert!(Prefix::host(address("fd00::1")).contains(address("fd00::1")));
        assert!(!Prefix::host(address("fd00::1")).contains(address("fd00::2")));
        assert_eq!(Prefix::new(address("10.0.0.0"), 33), None);
    }

    #[test]
    fn ipv4_networks_of_more_than_two_addresses_have_a_broadcast_address() {
        let broadcast = |text: &str, bits| {
            let prefix = Prefix::new(text.parse().unwrap(), bits).unwrap();
            prefix.broadcast().map(|address| address.to_string())
        };
        assert_eq!(broadcast("10.9.0.1", 24).as_deref(), Some("10.9.0.255"));
        assert_eq!(broadcast("10.9.0.5", 30).as_deref(), Some("10.9.0.7"));
        assert_eq!(broadcast("10.9.0.5", 0).as_deref(), Some("255.255.255.255"));
        for (text, bits) in [("10.9.0.5", 31), ("10.9.0.5", 32), ("fd00:9::1", 64)] {
            assert_eq!(broadcast(text, bits), None, "{text}/{bits}");
        }
    }
}
