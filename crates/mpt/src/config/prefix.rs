//! Addresses with the length of their subnet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and how many of its leading bits name its network: `10.9.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Prefix {
    /// The address; bits beyond `len` may be set.
    pub(crate) addr: IpAddr,
    /// How many leading bits name the network: 0 to 32 or 128.
    pub(crate) len: u8,
}

impl Prefix {
    /// How many bits an address of the version of `addr` has.
    pub(crate) fn max_len(addr: IpAddr) -> u8 {
        if addr.is_ipv4() { 32 } else { 128 }
    }

    /// Whether it is one address alone.
    pub(crate) fn is_host(self) -> bool {
        self.len == Self::max_len(self.addr)
    }

    /// Whether it is every address of its version: a default route.
    pub(crate) fn is_default(self) -> bool {
        self.len == 0
    }

    /// The prefix with all bits beyond its length cleared.
    pub(crate) fn network(self) -> Self {
        let addr = match self.addr {
            IpAddr::V4(addr) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
                Ipv4Addr::from_bits(addr.to_bits() & mask).into()
            }
            IpAddr::V6(addr) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
                Ipv6Addr::from_bits(addr.to_bits() & mask).into()
            }
        };
        Self { addr, len: self.len }
    }

    /// Whether some address is in both.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let len = self.len.min(other.len);
        self.addr.is_ipv4() == other.addr.is_ipv4()
            && Self { len, ..self }.network() == Self { len, ..other }.network()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_every_length() {
        assert_eq!(prefix("10.1.2.3", 16).network(), prefix("10.1.0.0", 16));
        assert_eq!(prefix("10.1.2.3", 0).network(), prefix("0.0.0.0", 0));
        assert_eq!(prefix("10.1.2.3", 32).network(), prefix("10.1.2.3", 32));
        assert_eq!(prefix("fd00:1::7", 32).network(), prefix("fd00:1::", 32));
        assert_eq!(prefix("fd00:1::7", 0).network(), prefix("::", 0));
        assert_eq!(prefix("fd00:1::7", 128).network(), prefix("fd00:1::7", 128));
    }

    #[test]
    fn prefixes_overlap_when_one_holds_the_other() {
        let overlap = |a: Prefix, b: Prefix| {
            assert_eq!(a.overlaps(b), b.overlaps(a));
            a.overlaps(b)
        };
        assert!(overlap(prefix("10.0.0.0", 8), prefix("10.200.0.0", 16)));
        assert!(overlap(prefix("0.0.0.0", 0), prefix("192.0.2.0", 24)));
        assert!(overlap(prefix("fd00::", 8), prefix("fd00::", 8)));
        assert!(!overlap(prefix("10.0.0.0", 9), prefix("10.128.0.0", 9)));
        assert!(!overlap(prefix("0.0.0.0", 0), prefix("::", 0)));
    }

    fn prefix(addr: &str, len: u8) -> Prefix {
        Prefix { addr: addr.parse().unwrap(), len }
    }
}
