//! The kernel's VXLAN tunnel (RFC 7348) between two hosts.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage,
};

use super::{Error, Netlink};
use crate::interface;

/// The UDP port that RFC 7348 section 5 assigns.
const PORT: u16 = 4789;

/// One end of a tunnel to one remote host. The interface carries Ethernet frames; everything sent
/// through it goes to `remote`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// The VXLAN network identifier, below 2^24; the same at both ends.
    pub id: u32,
    /// This host's address outside the tunnel.
    pub local: IpAddr,
    /// The other host's address outside the tunnel, of the same IP version.
    pub remote: IpAddr,
    /// Index of the interface that leads to it. The MTU of the tunnel follows from that
    /// interface's: 50 bytes less over IPv4, 70 over IPv6.
    pub over: u32,
}

impl Netlink {
    /// Makes one end of a VXLAN tunnel, switched off. It goes with its namespace, or by
    /// [`remove_link`](Self::remove_link).
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if the name is taken. Without `CONFIG_VXLAN` the kernel
    /// says `EOPNOTSUPP`.
    pub fn add_vxlan(&mut self, name: &str, end: &Vxlan) -> Result<(), Error> {
        interface::check_name(name)?;
        let mut data = vec![
            InfoVxlan::Id(end.id),
            InfoVxlan::Link(end.over),
            InfoVxlan::Port(PORT),
            // There is one other end, so there are no places of addresses to learn.
            InfoVxlan::Learning(false),
        ];
        data.push(match end.local {
            IpAddr::V4(local) => InfoVxlan::Local(local),
            IpAddr::V6(local) => InfoVxlan::Local6(local),
        });
        data.push(match end.remote {
            IpAddr::V4(remote) => InfoVxlan::Group(remote),
            IpAddr::V6(remote) => InfoVxlan::Group6(remote),
        });
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Vxlan),
            LinkInfo::Data(InfoData::Vxlan(data)),
        ]));
        let action = format!("make the VXLAN tunnel '{name}' to {}", end.remote);
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewLink(message), flags, &action).map(drop)
    }
}
