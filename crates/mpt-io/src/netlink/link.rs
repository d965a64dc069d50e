//! Interfaces: finding, setting, making and removing them.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkFlags, LinkInfo, LinkMessage,
};

use super::{Error, Netlink};
use crate::interface;

/// An interface as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Number of the interface in its network namespace.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
    /// Longest packet that it carries, in bytes.
    pub mtu: u32,
    /// Packets that wait for it before the kernel drops (`txqueuelen`).
    pub queue_len: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether the cable is plugged in.
    pub carrier: bool,
    /// Whether packets pass: the kernel notices a moment later than `up` and `carrier` say.
    pub running: bool,
    /// Whether it is a TUN or TAP device.
    pub is_tun: bool,
    /// Packets received through it, ever.
    pub rx_packets: u64,
    /// Packets sent through it, ever.
    pub tx_packets: u64,
    /// Bytes received through it, ever, link-layer headers included.
    pub rx_bytes: u64,
    /// Bytes sent through it, ever, link-layer headers included.
    pub tx_bytes: u64,
    /// Outgoing packets dropped, for instance by a TUN interface whose reader is too slow.
    pub tx_dropped: u64,
}

impl Netlink {
    /// The interface `name`, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn link(&mut self, name: &str) -> Result<Option<Link>, Error> {
        interface::check_name(name)?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let action = format!("look up interface '{name}'");
        match self.request(RouteNetlinkMessage::GetLink(message), 0, &action) {
            Ok(answers) => Ok(answers.into_iter().find_map(|answer| {
                if let RouteNetlinkMessage::NewLink(message) = answer {
                    return Some(Link::from(message));
                }
                None
            })),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface with this number, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn link_of(&mut self, index: u32) -> Result<Option<Link>, Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let action = format!("look up interface {index}");
        match self.request(RouteNetlinkMessage::GetLink(message), 0, &action) {
            Ok(answers) => Ok(answers.into_iter().find_map(|answer| {
                let RouteNetlinkMessage::NewLink(message) = answer else { return None };
                Some(Link::from(message))
            })),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All interfaces, in no particular order.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        let everything = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.list(&everything, "list the interfaces")?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| {
                let RouteNetlinkMessage::NewLink(message) = answer else { return None };
                Some(Link::from(message))
            })
            .collect())
    }

    /// Switches the interface `index` on or off.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn set_up(&mut self, index: u32, up: bool) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.change_mask = LinkFlags::Up;
        if up {
            message.header.flags = LinkFlags::Up;
        }
        let action = format!("switch interface {index} {}", if up { "on" } else { "off" });
        self.set_link(message, &action)
    }

    /// Sets the longest packet that the interface `index` carries, in bytes.
    ///
    /// # Errors
    ///
    /// See [`Error`]; the kernel's message contains the interface's limits.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), Error> {
        let attribute = LinkAttribute::Mtu(mtu);
        self.set_attribute(index, attribute, &format!("set the MTU of interface {index} to {mtu}"))
    }

    /// Sets how many packets wait for the interface `index` before the kernel drops.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn set_queue_len(&mut self, index: u32, packets: u32) -> Result<(), Error> {
        let attribute = LinkAttribute::TxQueueLen(packets);
        let action = format!("set the queue length of interface {index} to {packets}");
        self.set_attribute(index, attribute, &action)
    }

    /// Prevents the kernel from assigning an IPv6 link-local address to the interface `index`, and
    /// so from sending router solicitations there. Call it before the interface is switched on. An
    /// interface without IPv6 has no such address, so there is nothing to do: in a kernel without
    /// IPv6 (`ipv6.disable=1`), and at an MTU below 1280 bytes. If the MTU is raised later, IPv6
    /// starts with the kernel's defaults.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn disable_address_generation(&mut self, index: u32) -> Result<(), Error> {
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let attribute = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])]);
        let action = format!("disable IPv6 address generation on interface {index}");
        match self.set_attribute(index, attribute, &action) {
            Err(error) if error.is_without_ipv6_settings() => Ok(()),
            result => result,
        }
    }

    /// Makes a pair of virtual interfaces joined by a cable, both switched off. The far one is made
    /// in the network namespace `peer_netns`, or in this one if that is `None`.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if either name is taken.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_netns: Option<BorrowedFd<'_>>,
    ) -> Result<(), Error> {
        interface::check_name(name)?;
        interface::check_name(peer)?;
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        if let Some(netns) = peer_netns {
            far.attributes.push(LinkAttribute::NetNsFd(netns.as_raw_fd()));
        }
        let mut near = LinkMessage::default();
        near.attributes.push(LinkAttribute::IfName(name.to_owned()));
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        let action = format!("make the interface pair '{name}' and '{peer}'");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewLink(near), flags, &action).map(drop)
    }

    /// Removes the interface `index`, and the other end of its cable.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn remove_link(&mut self, index: u32) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let action = format!("remove interface {index}");
        self.request(RouteNetlinkMessage::DelLink(message), 0, &action).map(drop)
    }

    fn set_attribute(
        &mut self,
        index: u32,
        attribute: LinkAttribute,
        action: &str,
    ) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(attribute);
        self.set_link(message, action)
    }

    pub(super) fn set_link(&mut self, message: LinkMessage, action: &str) -> Result<(), Error> {
        self.request(RouteNetlinkMessage::SetLink(message), 0, action).map(drop)
    }
}

impl From<LinkMessage> for Link {
    fn from(message: LinkMessage) -> Self {
        let flags = message.header.flags;
        let mut link = Self {
            index: message.header.index,
            up: flags.contains(LinkFlags::Up),
            carrier: flags.contains(LinkFlags::LowerUp),
            running: flags.contains(LinkFlags::Running),
            ..Self::default()
        };
        for attribute in message.attributes {
            if let LinkAttribute::IfName(name) = attribute {
                link.name = name;
            } else if let LinkAttribute::Mtu(mtu) = attribute {
                link.mtu = mtu;
            } else if let LinkAttribute::TxQueueLen(packets) = attribute {
                link.queue_len = packets;
            } else if let LinkAttribute::LinkInfo(info) = &attribute {
                link.is_tun = info.contains(&LinkInfo::Kind(InfoKind::Tun));
            } else if let LinkAttribute::Stats64(stats) = attribute {
                link.rx_packets = stats.rx_packets;
                link.tx_packets = stats.tx_packets;
                link.rx_bytes = stats.rx_bytes;
                link.tx_bytes = stats.tx_bytes;
                link.tx_dropped = stats.tx_dropped;
            }
        }
        link
    }
}
