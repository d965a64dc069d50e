//! Sockets: which exclude each other, and how a received datagram is assigned to a path.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

use super::names::Claims;
use crate::config::Remote;
use crate::config::report::{Problem, Problems};

/// What assigns a received datagram to a path. The port and key are the connection's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::config) struct Reception {
    /// The socket it arrives on.
    pub(in crate::config) socket: Socket,
    /// Where it comes from.
    pub(in crate::config) remote: Origin,
    /// The port it comes from.
    pub(in crate::config) remote_port: u16,
    /// Its GRE key.
    pub(in crate::config) key: Option<u32>,
}

/// The source of a datagram, as far as known before names are resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::config) enum Origin {
    /// From there.
    Address(IpAddr),
    /// From anywhere; the peer with these tunnel addresses says that it is it.
    Peer(Vec<IpAddr>),
    /// From where this name leads; without regard to case (RFC 4343) and to the dot at the end.
    Name(String),
}

impl From<Remote> for Origin {
    fn from(remote: Remote) -> Self {
        match remote {
            Remote::Address(address) => Self::Address(address),
            Remote::Name(name) => {
                Self::Name(name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase())
            }
        }
    }
}

/// A UDP socket. Paths and templates with the same values share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::config) struct Socket {
    /// Its address; `None` = all of the host's.
    pub(in crate::config) local: Option<IpAddr>,
    /// Whether it is an IPv4 socket rather than an IPv6 one.
    pub(in crate::config) ipv4: bool,
    /// Its port.
    pub(in crate::config) local_port: u16,
    /// The interface it is bound to.
    pub(in crate::config) device: Device,
}

/// The interface of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::config) enum Device {
    /// It is bound to none.
    Any,
    /// This one.
    Named(String),
    /// One of those that are found by themselves.
    Uplinks,
}

impl From<Option<String>> for Device {
    fn from(interface: Option<String>) -> Self {
        interface.map_or(Self::Any, Self::Named)
    }
}

impl Socket {
    /// Whether the kernel refuses to open one while the other, which is not the same, is open. It
    /// does so where a datagram could belong to both (`udp_lib_lport_inuse` in `net/ipv4/udp.c`,
    /// without `SO_REUSEADDR`): on one port, unless they have different addresses or different
    /// interfaces. A socket without an address or interface has every one.
    fn excludes(&self, other: &Self) -> bool {
        let same_port = (self.ipv4, self.local_port) == (other.ipv4, other.local_port);
        same_port
            && !differ(&self.local, &other.local)
            && (self.device == Device::Any
                || other.device == Device::Any
                || self.device == other.device)
    }

    /// What it needs, as it appears within a sentence.
    fn needs(&self) -> String {
        let version = if self.ipv4 { "IPv4" } else { "IPv6" };
        let local = match self.local {
            Some(local) => local.to_string(),
            None => format!("every {version} address"),
        };
        let interface = match &self.device {
            Device::Named(interface) => format!("interface `{interface}`"),
            Device::Any => "every interface".into(),
            Device::Uplinks => "each uplink".into(),
        };
        format!("needs port {} of {local} on {interface}", self.local_port)
    }
}

/// Whether both are given and not the same.
fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// What uses a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Commands,
    Path,
    Template,
}

impl User {
    fn noun(self) -> &'static str {
        match self {
            Self::Commands => "command port",
            Self::Path => "path",
            Self::Template => "template",
        }
    }

    /// Both, counted.
    fn two(self, other: Self) -> &'static str {
        match (self, other) {
            (Self::Commands, Self::Commands) => "two command ports",
            (Self::Commands, Self::Path) | (Self::Path, Self::Commands) => {
                "a path and a command port"
            }
            (Self::Commands, Self::Template) | (Self::Template, Self::Commands) => {
                "a template and a command port"
            }
            (Self::Path, Self::Path) => "two paths",
            (Self::Template, Self::Template) => "two templates",
            (Self::Path, Self::Template) | (Self::Template, Self::Path) => "a path and a template",
        }
    }
}

/// The tunnel that opens a socket, and the first user it has.
#[derive(Clone, Debug)]
struct Opened {
    tunnel: usize,
    user: User,
    span: Range<usize>,
}

/// The sockets of the whole file and how paths are recognised on them.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    receptions: Claims<Reception>,
    opened: HashMap<Socket, Opened>,
    /// Those that no other of these excludes, in the order of the file.
    compatible: Vec<Socket>,
}

impl Sockets {
    /// Claims a socket for a user at `span` in a tunnel, and says whether all is well. The socket of
    /// another tunnel cannot be shared, because each tunnel opens its own.
    pub(super) fn claim(
        &mut self,
        socket: &Socket,
        tunnel: usize,
        user: User,
        span: &Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        let mut good = true;
        if !self.opened.contains_key(socket) {
            good = self.open(socket, tunnel, user, span, problems);
        }
        let first = &self.opened[socket];
        if first.tunnel != tunnel {
            problems.push(
                Problem::new("two tunnels use the same socket", span.clone())
                    .label(format!("this {}", user.noun()))
                    .other(
                        first.span.clone(),
                        "has the same local address, port and interface as this one",
                    )
                    .help(match user {
                        User::Commands => {
                            "give the connections of one tunnel another `command_port`"
                        }
                        User::Path | User::Template => {
                            "give the connections of one tunnel another `local_port`"
                        }
                    }),
            );
            return false;
        }
        if (first.user == User::Commands) != (user == User::Commands) {
            problems.push(
                Problem::new(
                    format!("{} on the same socket", first.user.two(user)),
                    span.clone(),
                )
                .label(socket.needs())
                .other(first.span.clone(), "so does this")
                .help("the original has a port for commands beside those for data: use another `command_port` or `local_port`"),
            );
            return false;
        }
        good
    }

    /// Claims what makes a path known on its socket, which has been claimed.
    pub(super) fn reception(
        &mut self,
        reception: Reception,
        span: &Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        let Some(first) = self.receptions.claim(reception, span) else { return true };
        problems.push(
            Problem::new("two paths cannot be distinguished on reception", span.clone())
                .label("this path")
                .other(first, "same interface, addresses, ports and key as this one")
                .help("let them differ in `local`, `interface` or `remote`, or their connections in a port or `key`"),
        );
        false
    }

    /// A further socket, which its user needs first.
    fn open(
        &mut self,
        socket: &Socket,
        tunnel: usize,
        user: User,
        span: &Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        let clash = self.compatible.iter().find(|other| other.excludes(socket));
        let good = clash.is_none();
        if let Some(other) = clash {
            let first = &self.opened[other];
            let share = match first.tunnel == tunnel {
                true if (first.user, user) == (User::Path, User::Path) => {
                    ", or both paths the same `local` and `interface`"
                }
                true => ", or both the same `local` and `interface`",
                false => "",
            };
            let each =
                if (first.user, user) == (User::Path, User::Path) { "each path" } else { "each" };
            problems.push(
                Problem::new(
                    format!("{} whose sockets exclude each other", first.user.two(user)),
                    span.clone(),
                )
                .label(socket.needs())
                .other(first.span.clone(), other.needs())
                .help(format!("give {each} a `local` of its own, or each an `interface` of its own{share}; or let their connections differ in `local_port`")),
            );
        } else {
            self.compatible.push(socket.clone());
        }
        self.opened.insert(socket.clone(), Opened { tunnel, user, span: span.clone() });
        good
    }
}
