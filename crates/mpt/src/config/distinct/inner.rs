//! Inner addresses: to which host each tunnel address belongs, and behind which peer each network
//! lies.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

use toml::Spanned;

use crate::config::report::{Problem, Problems};
use crate::config::{Match, Prefix};

/// The inner addresses of the whole file.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Every tunnel address with its first place, and the first connection to the peer that has it;
    /// `None` = an own address.
    addresses: HashMap<IpAddr, (Range<usize>, Option<usize>)>,
    /// The connections that have a peer, by their number.
    peers: HashMap<usize, Peer>,
    networks: Vec<Network>,
    /// The first of the networks by their prefix.
    by_prefix: HashMap<Prefix, usize>,
}

/// The peer of a connection.
#[derive(Debug)]
struct Peer {
    tunnel: usize,
    addresses: Vec<IpAddr>,
    span: Range<usize>,
    /// All connections to it if this is the first: what each carries, and where that stands.
    connections: Vec<(Option<Match>, Range<usize>)>,
    /// The first connection to it.
    first: usize,
}

/// A network behind a peer.
#[derive(Debug)]
struct Network {
    prefix: Prefix,
    span: Range<usize>,
    connection: usize,
    /// The first connection to the peer.
    peer: usize,
}

impl Inner {
    /// An own tunnel address.
    pub(super) fn own(&mut self, addr: IpAddr, span: Range<usize>, problems: &mut Problems) {
        if let Some((first, _)) = self.addresses.get(&addr) {
            problems.push(duplicate(addr, span, first.clone()));
        } else {
            self.addresses.insert(addr, (span, None));
        }
    }

    /// The tunnel addresses of the peer of a connection. `selector` is missing if it is faulty, and
    /// `match_span` where it stands.
    pub(super) fn peer(
        &mut self,
        (tunnel, connection): (usize, usize),
        addresses: &[Spanned<IpAddr>],
        selector: &Option<Option<Match>>,
        match_span: Range<usize>,
        problems: &mut Problems,
    ) {
        let list: Vec<IpAddr> = addresses.iter().map(|address| *address.get_ref()).collect();
        let mut first_connection = connection;
        for address in addresses {
            let (addr, span) = (*address.get_ref(), address.span());
            let Some((first, owner)) = self.addresses.get(&addr) else {
                self.addresses.insert(addr, (span, Some(connection)));
                continue;
            };
            let earlier = owner.filter(|&owner| owner != connection);
            let Some(earlier) = earlier.and_then(|owner| self.peers.get(&owner)) else {
                problems.push(duplicate(addr, span, first.clone()));
                continue;
            };
            let alone = |selector: Option<&Option<Match>>| selector.is_some_and(Option::is_none);
            let none_matches = alone(selector.as_ref())
                && earlier.connections.len() == 1
                && alone(earlier.connections.first().map(|(selector, _)| selector));
            if earlier.tunnel != tunnel {
                let problem = duplicate(addr, span, first.clone());
                problems.push(problem.help("a tunnel address belongs to this host or to one peer, and all connections to a peer to one tunnel"));
            } else if none_matches {
                let problem = duplicate(addr, span, first.clone());
                problems.push(problem.help(
                    "a tunnel address belongs to this host or to one peer, \
                    and is listed once; or give all connections to the peer except one a `match`",
                ));
            } else if earlier.addresses != list {
                problems.push(
                    Problem::new("two connections to one peer with different `peer` lists", span)
                        .label("this address is in both lists")
                        .other(earlier.span.clone(), "the first list")
                        .help(
                            "several connections to one peer must have the same `peer` list; give \
                            another peer its own addresses",
                        ),
                );
                return;
            } else {
                first_connection = earlier.first;
            }
        }
        let span = addresses.first().map_or(0..0, Spanned::span);
        if let Some(earlier) = self.peers.get_mut(&first_connection)
            && let Some(selector) = selector
        {
            earlier.join(selector.clone(), match_span.clone(), problems);
        }
        let connections =
            selector.iter().map(|selector| (selector.clone(), match_span.clone())).collect();
        let addresses = list;
        let peer = Peer { tunnel, addresses, span, connections, first: first_connection };
        self.peers.insert(connection, peer);
    }

    /// A network behind the peer of a connection.
    pub(super) fn network(
        &mut self,
        connection: usize,
        prefix: Prefix,
        span: Range<usize>,
        problems: &mut Problems,
    ) {
        let peer = self.peers.get(&connection).map_or(connection, |peer| peer.first);
        // Within one connection only the very same network twice is wrong, and between connections
        // to one peer, to all of which it belongs, nothing is. A default route takes what is behind
        // no other peer.
        let clash = self.networks.iter().find(|other| {
            if other.connection == connection {
                other.prefix == prefix
            } else {
                other.peer != peer
                    && other.prefix.overlaps(prefix)
                    && other.prefix.is_default() == prefix.is_default()
            }
        });
        if let Some(other) = clash {
            let problem = if other.connection == connection {
                Problem::new(format!("duplicate network `{prefix}`"), span.clone())
                    .label("listed again here")
                    .help("list each network once")
            } else {
                Problem::new(
                    format!("network `{prefix}` overlaps `{}` of another connection", other.prefix),
                    span.clone(),
                )
                .label("overlaps")
                .help("an inner address can lie behind one peer only: split or remove one of them")
            };
            problems.push(problem.other(other.span.clone(), "listed first here"));
        }
        self.by_prefix.entry(prefix).or_insert(self.networks.len());
        self.networks.push(Network { prefix, span, connection, peer });
    }

    /// The longest network, other than a default route, that holds an address, and its place.
    pub(super) fn network_of(&self, addr: IpAddr) -> Option<(Prefix, Range<usize>)> {
        let lengths = (1..=Prefix::max_len(addr)).rev();
        let found = lengths.filter_map(|len| self.by_prefix.get(&Prefix { addr, len }.network()));
        found
            .map(|&place| &self.networks[place])
            .map(|found| (found.prefix, found.span.clone()))
            .next()
    }
}

impl Peer {
    /// A further connection to the peer, which carries other packets than those before.
    fn join(&mut self, selector: Option<Match>, span: Range<usize>, problems: &mut Problems) {
        let earlier = self.connections.iter().find(|(earlier, _)| match (earlier, &selector) {
            (None, None) => true,
            (Some(earlier), Some(selector)) => earlier.covers(selector),
            (None, Some(_)) | (Some(_), None) => false,
        });
        if let Some((_, first)) = earlier {
            let problem = match &selector {
                None => Problem::new("two connections to one peer without `match`", span.clone())
                    .label("also carries the remaining packets")
                    .help("give all connections to a peer except one a `match`"),
                Some(_) => Problem::new("a connection that never carries anything", span.clone())
                    .label("all that this matches")
                    .help("packets take the first connection to the peer that matches: put the narrower `match` first, or let them differ"),
            };
            let other = match &selector {
                None => "the first one without `match`",
                Some(_) => "is matched here already",
            };
            problems.push(problem.other(first.clone(), other));
        }
        self.connections.push((selector, span));
    }
}

fn duplicate(addr: IpAddr, span: Range<usize>, first: Range<usize>) -> Problem {
    Problem::new(format!("duplicate tunnel address `{addr}`"), span)
        .label("used again here")
        .other(first, "used first here")
        .help("a tunnel address belongs to this host or to one peer, and is listed once")
}
