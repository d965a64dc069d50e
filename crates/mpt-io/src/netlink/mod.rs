//! Interfaces, addresses, routes and routing rules, by the kernel's route netlink (`rtnetlink(7)`),
//! a look at its firewall, and [`generic`] netlink for the rest.
//!
//! One request, one answer, in the calling thread: configuration is rare and short, and the kernel
//! answers within the system call. A [`Monitor`] reports changes by others. A [`Netlink`] belongs
//! to the network namespace in which it was opened, wherever its thread goes afterwards; so do a
//! [`Monitor`] and a [`generic::Family`].

mod address;
mod conversation;
mod error;
mod firewall;
pub mod generic;
mod hardware;
mod link;
mod monitor;
mod route;
mod rule;
mod tbf;
mod vxlan;
mod wireguard;

pub use address::Address;
pub use error::Error;
pub use firewall::{Firewall, Hook, StrictChain};
pub use link::Link;
pub use monitor::{Change, Monitor};
pub use route::{Leaving, Route, RouteMtu, Way};
pub use rule::{IpVersion, Rule, Selector};
pub use tbf::TokenBucket;
pub use vxlan::Vxlan;

use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use conversation::Conversation;

/// A conversation with the kernel about one network namespace.
#[derive(Debug)]
pub struct Netlink {
    conversation: Conversation,
}

impl Netlink {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what the kernel said.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { conversation: Conversation::open(NETLINK_ROUTE)? })
    }

    /// Makes one request, with `flags` (`NLM_F_*`) beside those of every request, and returns the messages
    /// that answer it. `action` completes the sentence "cannot ..." of an error.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        action: &str,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        self.conversation.request(message, flags, action)
    }

    /// Asks for everything of a kind; see [`Conversation::list`].
    fn list(
        &mut self,
        message: &RouteNetlinkMessage,
        action: &str,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        self.conversation.list(message, action)
    }
}

fn family(ip: std::net::IpAddr) -> AddressFamily {
    match ip {
        std::net::IpAddr::V4(_) => AddressFamily::Inet,
        std::net::IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
