//! Interfaces of the kernel's WireGuard.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};

use super::{Error, Netlink};
use crate::interface;

impl Netlink {
    /// Makes an interface of the kernel's WireGuard, switched off, without keys and peers: those are the business of the
    /// generic netlink family `wireguard`. It goes with its namespace, or by [`remove_link`](Self::remove_link). Its UDP
    /// socket is in the namespace in which it is made.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if the name is taken. Without `CONFIG_WIREGUARD` the kernel says `EOPNOTSUPP`.
    pub fn add_wireguard(&mut self, name: &str) -> Result<(), Error> {
        interface::check_name(name)?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let kind = LinkInfo::Kind(InfoKind::Wireguard);
        message.attributes.push(LinkAttribute::LinkInfo(vec![kind]));
        let action = format!("make the WireGuard interface '{name}'");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewLink(message), flags, &action).map(drop)
    }
}
