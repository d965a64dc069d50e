//! Looking at a host. Nothing is changed: what is opened to see whether it can be is closed at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use mpt_control::Client;
use mpt_io::netlink::{Firewall, IpVersion, Link, Netlink};
use mpt_io::{capability, limits, sysctl, udp};
use nix::unistd;

use super::facts::{Closed, Facts, NoTun, Taken, of_interface};
use super::needs::{self, Leg, Socket, User};
use super::{holder, named};
use crate::config::{Prefix, Settings};
use crate::mark::MARK;

/// How long a daemon may take to answer the door. One that hangs is there all the same, and its
/// ports look taken then, which they are.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where TUN devices are opened, and where the kernel shows that it has them.
const TUN_NODE: &str = "/dev/net/tun";
const TUN_DRIVER: &str = "/sys/class/misc/tun";

impl Facts {
    /// Finds out what bears on `settings`, on the host and in the network namespace of the calling
    /// thread.
    pub(super) fn gather(settings: &Settings) -> Self {
        let users = needs::users(settings);
        let daemon = Client::connect_timeout(&settings.control.socket, PATIENCE).is_ok();
        let mut netlink = Netlink::open().ok();
        let user = settings.daemon.user.as_deref().map(unistd::User::from_name);
        let facts = Self {
            daemon,
            tun: tun(),
            powerless: matches!(capability::net_admin(), Ok(false)),
            user_missing: matches!(user, Some(Ok(None))),
            user_shut_out: matches!(&user, Some(Ok(Some(user))) if is_shut_out(user)),
            no_ipv6: !Path::new("/proc/sys/net/ipv6").exists(),
            links: netlink.as_mut().and_then(|netlink| netlink.links().ok()),
            addresses: netlink.as_mut().and_then(|netlink| netlink.addresses().ok()),
            closed: BTreeMap::new(),
            unreachable: users.iter().filter_map(User::leg).filter(is_unreachable).collect(),
            ways: netlink.as_mut().map(|netlink| ways(&users, netlink)).unwrap_or_default(),
            buffers: limits::socket_buffers().ok(),
            sysctls: BTreeMap::new(),
            taken: netlink.as_mut().map(|netlink| taken(settings, netlink)).unwrap_or_default(),
            unresolved: unresolved(settings),
            carries: carries(settings),
            strict_chains: Firewall::open()
                .and_then(|mut firewall| firewall.strict_chains())
                .unwrap_or_default(),
            faults: named::faults(settings, daemon),
        };
        let closed = match daemon {
            true => BTreeMap::new(),
            false => closed(settings, facts.links.as_deref().unwrap_or_default()),
        };
        Self { sysctls: sysctls(&users, &facts), closed, ..facts }
    }
}

/// What stands between this process and TUN devices.
fn tun() -> Option<NoTun> {
    let opened = File::options().read(true).write(true).open(TUN_NODE);
    let error = opened.err()?;
    let forbidden = error.kind() == io::ErrorKind::PermissionDenied;
    Some(match forbidden {
        true => NoTun::Permission,
        false if Path::new(TUN_DRIVER).exists() => NoTun::Node,
        false => NoTun::Driver,
    })
}

/// Whether a user, with no groups but its own, may not open TUN devices, by owner, group and others.
fn is_shut_out(user: &unistd::User) -> bool {
    fs::metadata(TUN_NODE).is_ok_and(|node| {
        let shift = match (node.uid() == user.uid.as_raw(), node.gid() == user.gid.as_raw()) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
        };
        !user.uid.is_root() && node.mode() >> shift & 0o6 != 0o6
    })
}

/// The sockets that cannot be opened for a reason that lies in the port.
fn closed(settings: &Settings, links: &[Link]) -> BTreeMap<Socket, Closed> {
    let reason = |socket: &Socket| {
        let local = socket.local;
        let options = udp::Options { device: socket.interface.clone(), ..udp::Options::new(local) };
        match udp::Socket::open(&options).err()? {
            udp::OpenError::AddressInUse { .. } => Some(Closed::Taken(holder::of(local))),
            udp::OpenError::Permission { .. } if local.port() < 1024 => Some(Closed::Privileged),
            // Interfaces and addresses are looked at by themselves, and so is the capability.
            udp::OpenError::Name(_)
            | udp::OpenError::MixedFamilies { .. }
            | udp::OpenError::AddressNotHere { .. }
            | udp::OpenError::NoSuchDevice { .. }
            | udp::OpenError::Permission { .. }
            | udp::OpenError::Unreachable { .. }
            | udp::OpenError::Other { .. } => None,
        }
    };
    let sockets = needs::sockets(settings).into_iter().chain(of_uplinks(settings, links));
    sockets.filter_map(|socket| reason(&socket).map(|reason| (socket, reason))).collect()
}

/// The sockets of paths that would be found: by each interface from which a route leads to the peer.
fn of_uplinks<'s>(settings: &'s Settings, links: &'s [Link]) -> impl Iterator<Item = Socket> + 's {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let is_tunnel = |name: &str| settings.tunnels.iter().any(|tunnel| tunnel.name == name);
    connections.flat_map(move |connection| {
        let remote = connection.remote.as_ref().and_then(|remote| remote.address());
        let remote = remote.map(|ip| SocketAddr::new(ip, connection.remote_port));
        links.iter().filter_map(move |link| {
            let (name, remote) = (&link.name, remote?);
            let leg = Leg { interface: Some(name.clone()), local: None, remote };
            let leads = link.up && name != "lo" && !is_tunnel(name) && connection.may_use(name);
            let any: IpAddr = match remote {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let local = SocketAddr::new(any, connection.local_port);
            (leads && !is_unreachable(&leg))
                .then(|| Socket { local, interface: Some(name.clone()) })
        })
    })
}

/// Whether the kernel says that no route leads there.
fn is_unreachable(leg: &Leg) -> bool {
    let mtu = |mark| udp::route_mtu(leg.local, leg.interface.as_deref(), mark, leg.remote);
    // As the daemon asks, where this user may: beside a tunnel that runs it makes a difference.
    let result = match mtu(Some(MARK)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => mtu(None),
        result => result,
    };
    result.is_err_and(|error| {
        matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
    })
}

fn ways(users: &[User<'_>], netlink: &mut Netlink) -> BTreeMap<IpAddr, u32> {
    let remotes: BTreeSet<IpAddr> =
        users.iter().filter_map(|user| Some(user.remote?.ip())).collect();
    remotes
        .into_iter()
        .filter_map(|remote| Some((remote, netlink.way_to(remote).ok()??.index)))
        .collect()
}

/// The networks of these settings that this host routes elsewhere than into one of its tunnels.
pub(super) fn taken(settings: &Settings, netlink: &mut Netlink) -> Vec<(Prefix, Taken)> {
    let links = netlink.links().unwrap_or_default();
    let is_tunnel = |name: &str| settings.tunnels.iter().any(|tunnel| tunnel.name == name);
    let networks = settings.tunnels.iter().flat_map(crate::tunnel::routed_networks);
    let mut found = Vec::new();
    for network in networks.filter(|network| !network.is_default()) {
        let Ok(Some(way)) = netlink.conflict_of((network.addr, network.len)) else { continue };
        let link = links.iter().find(|link| link.index == way.index);
        let interface = link.map_or_else(|| way.index.to_string(), |link| link.name.clone());
        if !is_tunnel(&interface) {
            found.push((network, Taken { interface, via: way.via }));
        }
    }
    found
}

/// The host names of peers that cannot be resolved at present.
fn unresolved(settings: &Settings) -> BTreeMap<String, String> {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let names: BTreeSet<&str> = connections
        .flat_map(|connection| {
            let paths = connection.paths.iter().filter_map(|path| path.remote.name());
            paths.chain(connection.remote.as_ref().and_then(|remote| remote.name()))
        })
        .collect();
    let resolve = |name: &str| {
        let error = (name, 0).to_socket_addrs().err()?;
        Some((name.to_owned(), error.to_string()))
    };
    names.into_iter().filter_map(resolve).collect()
}

/// How long inner packets may be by the interfaces and routes of paths with known addresses.
fn carries(settings: &Settings) -> BTreeMap<(String, String), u32> {
    let mut carries = BTreeMap::new();
    for connection in settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections) {
        for path in &connection.paths {
            if let Some(mtu) = crate::tunnel::allowed_mtu(connection, path) {
                carries.insert((connection.name.clone(), path.name.clone()), mtu);
            }
        }
    }
    carries
}

fn sysctls(users: &[User<'_>], facts: &Facts) -> BTreeMap<String, i64> {
    let interfaces: BTreeSet<&str> =
        users.iter().filter_map(|user| facts.interface_of(user)).collect();
    let mut names = vec!["net/ipv4/ip_forward".to_owned()];
    names.push(of_interface(IpVersion::V6, "all", "forwarding"));
    for interface in ["all", "default"].into_iter().chain(interfaces) {
        names.push(of_interface(IpVersion::V4, interface, "rp_filter"));
        names.push(of_interface(IpVersion::V6, interface, "disable_ipv6"));
    }
    names.into_iter().filter_map(|name| Some((name.clone(), sysctl::number(&name).ok()?))).collect()
}
