//! The paths of the kernel's own Multipath TCP (RFC 8684): which addresses it may use, and how many.
//!
//! The kernel's path manager is the generic netlink family `mptcp_pm`
//! (Documentation/netlink/specs/mptcp_pm.yaml); what is set holds for all MPTCP connections of the
//! network namespace that begin afterwards.

use std::net::IpAddr;

use mpt_io::netlink::Error;
use mpt_io::netlink::generic::{Attributes, Family};
use nix::libc;

const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;

/// Commands, from `linux/mptcp_pm.h`.
const ADD_ADDRESS: u8 = 1;
const SET_LIMITS: u8 = 5;

/// Attributes of a command.
const ADDRESS: u16 = 1;
const ACCEPTED_ADDRESSES: u16 = 2;
const SUBFLOWS: u16 = 3;

/// Attributes of an address.
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_V4: u16 = 3;
const ADDRESS_V6: u16 = 4;
const ADDRESS_FLAGS: u16 = 6;

/// The bit of an address's flags by which it is announced.
const SIGNAL: u32 = 1;

/// How far a connection may grow beyond its first subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Further subflows per connection, 0 to 8.
    pub(super) subflows: u32,
    /// Addresses announced by the peer to which this host opens a subflow, 0 to 8.
    pub(super) accepted_addresses: u32,
}

/// A conversation with the path manager of one network namespace.
#[derive(Debug)]
pub(super) struct PathManager(Family);

impl PathManager {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] where the kernel has no MPTCP.
    pub(super) fn open() -> Result<Self, Error> {
        Family::open(FAMILY).map(Self)
    }

    /// Announces one more address of this host to the peers of connections, which may open a further
    /// subflow to it (ADD_ADDR, RFC 8684 section 3.4.1).
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if it is announced already.
    pub(super) fn announce(&mut self, address: IpAddr) -> Result<(), Error> {
        let action = format!("have MPTCP announce the address {address}");
        self.0.request(ADD_ADDRESS, VERSION, announcement(address), &action).map(drop)
    }

    /// Sets how far connections may grow.
    ///
    /// # Errors
    ///
    /// See [`Error`]; more than 8 of either is refused.
    pub(super) fn set_limits(&mut self, limits: Limits) -> Result<(), Error> {
        let attributes = Attributes::default()
            .with(ACCEPTED_ADDRESSES, &limits.accepted_addresses.to_ne_bytes())
            .with(SUBFLOWS, &limits.subflows.to_ne_bytes());
        self.0.request(SET_LIMITS, VERSION, attributes, "set the limits of MPTCP").map(drop)
    }
}

fn announcement(address: IpAddr) -> Attributes {
    let (family, kind, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, ADDRESS_V4, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, ADDRESS_V6, address.octets().to_vec()),
    };
    let description = Attributes::default()
        .with(ADDRESS_FAMILY, &(family as u16).to_ne_bytes())
        .with(kind, &bytes)
        .with(ADDRESS_FLAGS, &SIGNAL.to_ne_bytes());
    Attributes::default().with_nested(ADDRESS, &description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_announced_in_the_form_of_its_version() {
        for (address, family, kind) in [("192.0.2.1", 2_u16, 3), ("2001:db8::1", 10, 4)] {
            let address: IpAddr = address.parse().unwrap();
            let bytes = match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            let description = announcement(address).nested(1).unwrap();
            assert_eq!(description.get(1), Some(&family.to_ne_bytes()[..]));
            assert_eq!(description.get(kind), Some(&bytes[..]));
            // MPTCP_PM_ADDR_FLAG_SIGNAL.
            assert_eq!(description.get_u32(6), Some(1));
        }
    }
}
