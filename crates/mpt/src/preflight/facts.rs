//! What is the case on a host, in plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mpt_io::limits::SocketBuffers;
use mpt_io::netlink::{Address, IpVersion, Link, StrictChain};

use super::needs::{Leg, Socket, User};
use crate::config::Prefix;

/// What was found out about a host and bears on certain settings. The default is a host about which
/// nothing is known, and so nothing can be said against it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// Whether a daemon answers on the control socket of the settings. Then interfaces and ports
    /// are taken by whom they are meant for.
    pub(super) daemon: bool,
    /// What stands between this process and TUN devices.
    pub(super) tun: Option<NoTun>,
    /// Whether this process is known to lack `CAP_NET_ADMIN`.
    pub(super) powerless: bool,
    /// Whether the user to switch to is known to be missing.
    pub(super) user_missing: bool,
    /// Whether that user is known not to be let open TUN devices.
    pub(super) user_shut_out: bool,
    /// Whether the kernel has no IPv6.
    pub(super) no_ipv6: bool,
    /// All interfaces.
    pub(super) links: Option<Vec<Link>>,
    /// All addresses.
    pub(super) addresses: Option<Vec<Address>>,
    /// The sockets that cannot be opened, and why.
    pub(super) closed: BTreeMap<Socket, Closed>,
    /// The ways that no route leads.
    pub(super) unreachable: BTreeSet<Leg>,
    /// Through which interface a packet leaves that says nothing but where it goes.
    pub(super) ways: BTreeMap<IpAddr, u32>,
    /// How large unprivileged processes may make socket buffers.
    pub(super) buffers: Option<SocketBuffers>,
    /// Numbers below `/proc/sys`, by name with slashes, as far as they exist.
    pub(super) sysctls: BTreeMap<String, i64>,
    /// Networks behind peers that this host routes elsewhere, so that they cannot be routed into a tunnel.
    pub(super) taken: Vec<(Prefix, Taken)>,
    /// Host names of peers that have no address, and why.
    pub(super) unresolved: BTreeMap<String, String>,
    /// The largest inner packet of paths by their interfaces and routes, after the names of connection and path.
    pub(super) carries: BTreeMap<(String, String), u32>,
    /// The chains of the firewall that drop what no rule accepts.
    pub(super) strict_chains: Vec<StrictChain>,
    /// What is wrong with files, folders and addresses that the settings name.
    pub(super) faults: Vec<Fault>,
}

/// Something that the settings name, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What comes of it.
    pub(super) of: Of,
    /// What is wrong.
    pub(super) what: String,
    /// What to do; perhaps of several lines.
    pub(super) fix: String,
}

/// What a [`Fault`] concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// A client of the template with this name.
    Client(String),
    /// The connection with this name.
    Connection(String),
    /// How much of quotas is used.
    Quotas,
    /// Everything: `mpt run` refuses it.
    Start,
}

/// Where a network is routed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The name of the interface.
    pub(crate) interface: String,
    /// The router; `None` if the network is that of the interface.
    pub(crate) via: Option<IpAddr>,
}

/// Why no TUN device can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTun {
    /// The kernel has no TUN, or has not loaded it.
    Driver,
    /// The kernel supports it, but its node is missing in `/dev`.
    Node,
    /// This user may not open the node.
    Permission,
}

/// Why a socket cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Another socket has the port: that of this process, if it could be found out.
    Taken(Option<String>),
    /// The port is for the privileged.
    Privileged,
}

impl Facts {
    /// The interface of this name.
    pub(super) fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().flatten().find(|link| link.name == name)
    }

    /// The name of the interface with this number.
    pub(super) fn name(&self, index: u32) -> Option<&str> {
        let link = self.links.iter().flatten().find(|link| link.index == index)?;
        Some(&link.name)
    }

    /// This address, wherever it is.
    pub(super) fn address(&self, address: IpAddr) -> Option<&Address> {
        self.addresses.iter().flatten().find(|other| other.address == address)
    }

    /// The interface that datagrams of `user` are to arrive through: the one it names, or the one
    /// that has its address. `None` if it names neither.
    pub(super) fn interface_of<'a>(&'a self, user: &User<'a>) -> Option<&'a str> {
        user.interface.or_else(|| self.name(self.address(user.local?)?.index))
    }

    /// The number below `/proc/sys`.
    pub(super) fn sysctl(&self, name: &str) -> Option<i64> {
        self.sysctls.get(name).copied()
    }
}

/// The name of a setting of an interface. `all` and `default` take the place of a name.
pub(super) fn of_interface(version: IpVersion, interface: &str, setting: &str) -> String {
    let version = match version {
        IpVersion::V4 => "ipv4",
        IpVersion::V6 => "ipv6",
    };
    format!("net/{version}/conf/{interface}/{setting}")
}
