//! The paths of the kernel's own Multipath TCP (RFC 8684): which addresses it may use, and how many.
//!
//! The kernel's path manager is the generic netlink family `mptcp_pm`
//! (Documentation/netlink/specs/mptcp_pm.yaml); what is set holds for all MPTCP connections of the
//! network namespace that begin afterwards.

use std::net::IpAddr;

use netlink_sys::protocols::NETLINK_GENERIC;

use super::Error;
use super::conversation::Conversation;
use super::generic::{self, Attributes, Message};

const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;

/// Commands, from `linux/mptcp_pm.h`.
const ADD_ADDRESS: u8 = 1;
const FLUSH_ADDRESSES: u8 = 4;
const SET_LIMITS: u8 = 5;
const GET_LIMITS: u8 = 6;

/// Attributes of a command.
const ADDRESS: u16 = 1;
const ACCEPTED_ADDRESSES: u16 = 2;
const SUBFLOWS: u16 = 3;

/// Attributes of an address.
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_V4: u16 = 3;
const ADDRESS_V6: u16 = 4;
const ADDRESS_FLAGS: u16 = 6;

/// What an address is for, as bits of its flags.
const SIGNAL: u32 = 1;
const SUBFLOW: u32 = 1 << 1;

/// What the kernel does with an address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The address is announced to the peer, which may open a further subflow to it (ADD_ADDR, RFC 8684
    /// section 3.4.1).
    Announced,
    /// This host opens further subflows from the address, to the peer's first one.
    Origin,
}

/// How far a connection may grow beyond its first subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Further subflows per connection, 0 to 8.
    pub subflows: u32,
    /// Addresses announced by the peer to which this host opens a subflow, 0 to 8.
    pub accepted_addresses: u32,
}

/// A conversation with the path manager of one network namespace.
#[derive(Debug)]
pub struct Mptcp {
    conversation: Conversation,
    family: u16,
}

impl Mptcp {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] where the kernel has no MPTCP.
    pub fn open() -> Result<Self, Error> {
        let mut conversation = Conversation::open(NETLINK_GENERIC)?;
        let family = generic::family(&mut conversation, FAMILY)?;
        Ok(Self { conversation, family })
    }

    /// Lets connections use one more address of this host.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if it is used already.
    pub fn add_endpoint(&mut self, address: IpAddr, endpoint: Endpoint) -> Result<(), Error> {
        let flags = match endpoint {
            Endpoint::Announced => SIGNAL,
            Endpoint::Origin => SUBFLOW,
        };
        let (family, kind, bytes) = match address {
            IpAddr::V4(address) => (libc::AF_INET, ADDRESS_V4, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, ADDRESS_V6, address.octets().to_vec()),
        };
        let description = Attributes::default()
            .with(ADDRESS_FAMILY, &(family as u16).to_ne_bytes())
            .with(kind, &bytes)
            .with(ADDRESS_FLAGS, &flags.to_ne_bytes());
        let attributes = Attributes::default().with_nested(ADDRESS, &description);
        let action = format!("let MPTCP use the address {address}");
        self.request(ADD_ADDRESS, attributes, &action).map(drop)
    }

    /// Takes back all of [`add_endpoint`](Self::add_endpoint).
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn remove_endpoints(&mut self) -> Result<(), Error> {
        let action = "take all addresses from MPTCP";
        self.request(FLUSH_ADDRESSES, Attributes::default(), action).map(drop)
    }

    /// Sets how far connections may grow.
    ///
    /// # Errors
    ///
    /// See [`Error`]; more than 8 of either is refused.
    pub fn set_limits(&mut self, limits: Limits) -> Result<(), Error> {
        let attributes = Attributes::default()
            .with(ACCEPTED_ADDRESSES, &limits.accepted_addresses.to_ne_bytes())
            .with(SUBFLOWS, &limits.subflows.to_ne_bytes());
        self.request(SET_LIMITS, attributes, "set the limits of MPTCP").map(drop)
    }

    /// How far connections may grow.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn limits(&mut self) -> Result<Limits, Error> {
        let action = "read the limits of MPTCP";
        let answers = self.request(GET_LIMITS, Attributes::default(), action)?;
        let found = answers.iter().find_map(|answer| {
            Some(Limits {
                subflows: answer.attributes.get_u32(SUBFLOWS)?,
                accepted_addresses: answer.attributes.get_u32(ACCEPTED_ADDRESSES)?,
            })
        });
        found.ok_or_else(|| Error::unreadable(action, &"the answer names no limits"))
    }

    fn request(
        &mut self,
        command: u8,
        attributes: Attributes,
        action: &str,
    ) -> Result<Vec<Message>, Error> {
        let message = Message { family: self.family, command, version: VERSION, attributes };
        self.conversation.request(message, 0, action)
    }
}
