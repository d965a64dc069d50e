//! What must differ between tunnels, connections and paths.
//!
//! Whoever reads a value claims it here with its place; the second to claim the same is a problem
//! that shows both places.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::ops::Range;

use super::Prefix;
use super::report::{Problem, Problems};

/// Values that may occur once, and where they did.
#[derive(Debug)]
pub(super) struct Claims<K>(HashMap<K, Range<usize>>);

impl<K> Default for Claims<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Claims<K> {
    /// Where `key` was claimed before, if it was; otherwise it is claimed now.
    fn claim(&mut self, key: K, span: &Range<usize>) -> Option<Range<usize>> {
        use std::collections::hash_map::Entry;
        match self.0.entry(key) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(entry) => {
                entry.insert(span.clone());
                None
            }
        }
    }
}

/// The names of the tunnels, of the connections, or of the paths of one connection.
pub(super) type Names = Claims<String>;

/// Claims the name of a `what`, such as "path", of which there is one within an `owner`.
pub(super) fn claim_name(
    names: &mut Names,
    what: &str,
    owner: &str,
    name: &str,
    span: Range<usize>,
    problems: &mut Problems,
) {
    if let Some(first) = names.claim(name.to_owned(), &span) {
        problems.push(
            Problem::new(format!("duplicate {what} name `{name}`"), span)
                .label("used again here")
                .other(first, "used first here")
                .help(format!("give each {what} of {owner} a name of its own")),
        );
    }
}

/// By what a received datagram is told to belong to a path. The port and key are the connection's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reception {
    /// The socket it arrives on.
    pub(super) socket: Socket,
    /// Where it comes from.
    pub(super) remote: IpAddr,
    /// The port it comes from.
    pub(super) remote_port: u16,
    /// Its GRE key.
    pub(super) key: Option<u32>,
}

/// A UDP socket. Paths with the same values share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Socket {
    /// Its address; `None` = all of the host's.
    pub(super) local: Option<IpAddr>,
    /// Whether it is an IPv4 socket rather than an IPv6 one.
    pub(super) ipv4: bool,
    /// Its port.
    pub(super) local_port: u16,
    /// The interface it is bound to.
    pub(super) interface: Option<String>,
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
            && !differ(&self.interface, &other.interface)
    }

    /// What it needs, as it appears within a sentence.
    fn needs(&self) -> String {
        let version = if self.ipv4 { "IPv4" } else { "IPv6" };
        let local = match self.local {
            Some(local) => local.to_string(),
            None => format!("every {version} address"),
        };
        let interface = match &self.interface {
            Some(interface) => format!("interface `{interface}`"),
            None => "every interface".into(),
        };
        format!("needs port {} of {local} on {interface}", self.local_port)
    }
}

/// Whether both are given and not the same.
fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// What must differ within the whole file.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    tunnels: Names,
    connections: Names,
    /// Own and peers' tunnel addresses.
    inner: Claims<IpAddr>,
    networks: Vec<(Prefix, Range<usize>, usize)>,
    receptions: Claims<Reception>,
    /// The sockets, each with the tunnel that opens it and its first path.
    sockets: HashMap<Socket, (usize, Range<usize>)>,
    /// Those of them that no other of these excludes, in the order of the file.
    compatible: Vec<Socket>,
    interfaces: Vec<(String, Range<usize>)>,
    tunnel_count: usize,
    connection_count: usize,
}

impl Distinct {
    /// What is claimed from here on belongs to a further tunnel.
    pub(super) fn next_tunnel(&mut self) {
        self.tunnel_count += 1;
    }

    /// What is claimed from here on belongs to a further connection.
    pub(super) fn next_connection(&mut self) {
        self.connection_count += 1;
    }

    /// The name of a tunnel.
    pub(super) fn tunnel(&mut self, name: &str, span: Range<usize>, problems: &mut Problems) {
        claim_name(&mut self.tunnels, "tunnel", "the file", name, span, problems);
    }

    /// The name of a connection. It names the connection without its tunnel on the command line.
    pub(super) fn connection(&mut self, name: &str, span: Range<usize>, problems: &mut Problems) {
        claim_name(&mut self.connections, "connection", "the file", name, span, problems);
    }

    /// An own or a peer's tunnel address.
    pub(super) fn inner(&mut self, addr: IpAddr, span: Range<usize>, problems: &mut Problems) {
        if let Some(first) = self.inner.claim(addr, &span) {
            problems.push(
                Problem::new(format!("duplicate tunnel address `{addr}`"), span)
                    .label("used again here")
                    .other(first, "used first here")
                    .help("a tunnel address belongs to this host or to one peer, and stands once"),
            );
        }
    }

    /// A network behind the peer of the connection.
    pub(super) fn network(&mut self, network: Prefix, span: Range<usize>, problems: &mut Problems) {
        let here = self.connection_count;
        // Within one connection only the very same network twice is wrong.
        let clash = self.networks.iter().find(|(other, _, connection)| {
            if *connection == here { *other == network } else { other.overlaps(network) }
        });
        if let Some((other, first, connection)) = clash {
            let problem = if *connection == here {
                Problem::new(format!("duplicate network `{network}`"), span.clone())
                    .label("listed again here")
                    .help("list each network once")
            } else {
                Problem::new(
                    format!("network `{network}` overlaps `{other}` of another connection"),
                    span.clone(),
                )
                .label("overlaps")
                .help("an inner address can lie behind one peer only: split or remove one of them")
            };
            problems.push(problem.other(first.clone(), "listed first here"));
        }
        self.networks.push((network, span, here));
    }

    /// How a path is recognised when a datagram arrives. The socket of another tunnel cannot be
    /// shared, because each tunnel opens its own.
    pub(super) fn reception(
        &mut self,
        reception: Reception,
        span: Range<usize>,
        problems: &mut Problems,
    ) {
        let here = self.tunnel_count;
        if !self.sockets.contains_key(&reception.socket) {
            self.socket(&reception.socket, &span, problems);
        }
        let (owner, first) = self.sockets[&reception.socket].clone();
        if owner != here {
            problems.push(
                Problem::new("two tunnels use the same socket", span)
                    .label("this path")
                    .other(first, "has the same local address, port and interface as this one")
                    .help("give the connections of one tunnel another `local_port`"),
            );
        } else if let Some(first) = self.receptions.claim(reception, &span) {
            problems.push(
                Problem::new("two paths cannot be told apart on reception", span)
                    .label("this path")
                    .other(first, "same interface, addresses, ports and key as this one")
                    .help("let them differ in `local`, `interface` or `remote`, or their connections in a port or `key`"),
            );
        }
    }

    /// A further socket, which the path at `span` needs first.
    fn socket(&mut self, socket: &Socket, span: &Range<usize>, problems: &mut Problems) {
        let here = self.tunnel_count;
        if let Some(other) = self.compatible.iter().find(|other| other.excludes(socket)) {
            let (owner, first) = &self.sockets[other];
            let share = if *owner == here {
                ", or both paths the same `local` and `interface`"
            } else {
                ""
            };
            problems.push(
                Problem::new("two paths whose sockets exclude each other", span.clone())
                    .label(socket.needs())
                    .other(first.clone(), other.needs())
                    .help(format!("give each path a `local` of its own, or each an `interface` of its own{share}; or let their connections differ in `local_port`")),
            );
        } else {
            self.compatible.push(socket.clone());
        }
        self.sockets.insert(socket.clone(), (here, span.clone()));
    }

    /// The interface that a path is bound to.
    pub(super) fn interface(&mut self, name: &str, span: Range<usize>) {
        self.interfaces.push((name.to_owned(), span));
    }

    /// Checks what can be told only when all tunnels are known.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (name, span) in self.interfaces {
            if let Some(tunnel) = self.tunnels.0.get(&name) {
                problems.push(
                    Problem::new(format!("a path goes through the tunnel `{name}`"), span)
                        .label("the device of a tunnel")
                        .other(tunnel.clone(), "this one")
                        .help("bind the path to the interface that leads to the network"),
                );
            }
        }
    }
}
