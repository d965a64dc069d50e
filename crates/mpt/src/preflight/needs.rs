//! What settings want of a host.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mpt_io::netlink::IpVersion;

use crate::config::{Accept, Connection, Path, Prefix, Settings};

/// A UDP socket, as the daemon opens one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Socket {
    /// The address and port that it is bound to.
    pub(super) local: SocketAddr,
    /// The interface that it is bound to, if any.
    pub(super) interface: Option<String>,
}

/// The way that datagrams of a path are to take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leg {
    /// Through this interface only, if any.
    pub(super) interface: Option<String>,
    /// With this source address, if any.
    pub(super) local: Option<IpAddr>,
    /// To there.
    pub(super) remote: SocketAddr,
}

/// A user of an interface and an address of the host: a path, a connection whose paths no file lists, a template, or the commands that are
/// exchanged with an original MPT beside a path.
#[derive(Clone, Debug)]
pub(super) struct User<'s> {
    /// What it is called: `path fibre of server`, `template vehicle`, or `commands by path fibre of
    /// server`.
    pub(super) name: String,
    /// Its interface, if it names one.
    pub(super) interface: Option<&'s str>,
    /// Its local address, if it names one.
    pub(super) local: Option<IpAddr>,
    /// The peer's address and port, if known before the daemon runs.
    pub(super) remote: Option<SocketAddr>,
    /// The versions of IP that its datagrams may have.
    pub(super) versions: Vec<IpVersion>,
    /// The local UDP port.
    pub(super) port: u16,
    /// The key of the file that sets it.
    pub(super) port_key: &'static str,
    /// Whether its paths are found, so that its sockets depend on the interfaces of the host.
    pub(super) is_found: bool,
}

impl<'s> User<'s> {
    fn path(connection: &'s Connection, path: &'s Path) -> Self {
        let remote = path.remote.address();
        Self {
            name: format!("path {} of {}", path.name, connection.name),
            interface: path.interface.as_deref(),
            local: path.local,
            remote: remote.map(|ip| SocketAddr::new(ip, connection.remote_port)),
            // The IP version of a host name without a local address is not known yet.
            versions: remote.or(path.local).map(IpVersion::from).into_iter().collect(),
            port: connection.local_port,
            port_key: "local_port",
            is_found: false,
        }
    }

    fn commands(connection: &'s Connection, path: &'s Path) -> Option<Self> {
        let port = connection.commands.as_ref()?.port;
        let path = Self::path(connection, path);
        let name = format!("commands by {}", path.name);
        Some(Self { name, port, port_key: "command_port", ..path })
    }

    /// A connection whose paths no file lists. Those that are found need interfaces and sockets that only show
    /// while the daemon runs, and a route to the peer; where they are learned, the sockets are known.
    fn connection(connection: &'s Connection) -> Option<Self> {
        let user = Self {
            name: format!("connection {}", connection.name),
            interface: None,
            local: None,
            remote: None,
            versions: Vec::new(),
            port: connection.local_port,
            port_key: "local_port",
            is_found: false,
        };
        if let Some(remote) = &connection.remote {
            let remote = remote.address().map(|ip| SocketAddr::new(ip, connection.remote_port));
            Some(Self { remote, is_found: true, ..user })
        } else if connection.learns_paths() {
            Some(Self { versions: vec![IpVersion::V4, IpVersion::V6], ..user })
        } else {
            None
        }
    }

    fn template(accept: &'s Accept) -> Self {
        Self {
            name: format!("template {}", accept.name),
            interface: accept.interface.as_deref(),
            local: accept.local,
            remote: None,
            versions: match accept.local {
                Some(local) => vec![local.into()],
                None => vec![IpVersion::V4, IpVersion::V6],
            },
            port: accept.local_port,
            port_key: "local_port",
            is_found: false,
        }
    }

    /// The sockets that it needs.
    pub(super) fn sockets(&self) -> impl Iterator<Item = Socket> {
        self.versions.iter().map(|version| {
            let any: IpAddr = match version {
                IpVersion::V4 => Ipv4Addr::UNSPECIFIED.into(),
                IpVersion::V6 => Ipv6Addr::UNSPECIFIED.into(),
            };
            Socket {
                local: SocketAddr::new(self.local.unwrap_or(any), self.port),
                interface: self.interface.map(Into::into),
            }
        })
    }

    /// The way that its datagrams are to take, if it is known where to.
    pub(super) fn leg(&self) -> Option<Leg> {
        let interface = self.interface.map(Into::into);
        Some(Leg { interface, local: self.local, remote: self.remote? })
    }
}

/// Several names in one phrase, the first three in full.
pub(super) struct Names<'u, 's>(pub(super) &'u [&'u User<'s>]);

impl fmt::Display for Names<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<&str> = self.0.iter().take(3).map(|user| user.name.as_str()).collect();
        write!(f, "{}", shown.join(", "))?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// All paths, connections without listed paths, and templates.
pub(super) fn users(settings: &Settings) -> Vec<User<'_>> {
    let of_tunnel = settings.tunnels.iter().flat_map(|tunnel| {
        let paths = tunnel.connections.iter().flat_map(|connection| {
            connection.paths.iter().map(move |path| User::path(connection, path))
        });
        let unlisted = tunnel.connections.iter().filter_map(User::connection);
        paths.chain(unlisted).chain(tunnel.accepts.iter().map(User::template))
    });
    of_tunnel.collect()
}

/// All users of separate sockets: these, followed by the commands of paths.
pub(super) fn socket_users(settings: &Settings) -> Vec<User<'_>> {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let commands = connections.flat_map(|connection| {
        connection.paths.iter().filter_map(|path| User::commands(connection, path))
    });
    users(settings).into_iter().chain(commands).collect()
}

/// All sockets, each once.
pub(super) fn sockets(settings: &Settings) -> BTreeSet<Socket> {
    socket_users(settings).iter().flat_map(User::sockets).collect()
}

/// The inner networks of this version behind peers.
pub(super) fn networks(settings: &Settings, version: IpVersion) -> impl Iterator<Item = Prefix> {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    connections
        .flat_map(|connection| connection.networks.iter().copied())
        .filter(move |network| IpVersion::from(network.addr) == version)
}
