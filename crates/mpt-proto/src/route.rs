//! Inner destination to connection.

use std::cmp::Reverse;
use std::net::IpAddr;

use crate::config::Prefix;
use crate::connection::ConnectionId;
use crate::selector::Selector;
use crate::wire::flow::Flow;
use crate::wire::inner::Inner;

/// The connections behind which each inner address is.
///
/// A peer's own address is a prefix like any other, and the longest: so it comes before the networks.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Longest prefix first, then by IP version and address.
    known: Vec<Known>,
    /// The place in `known` where each length of each version begins.
    lengths: Vec<(bool, u8)>,
    /// What was found last: packets of one flow come in runs. Only what needs no look at the packet.
    last: Option<(IpAddr, ConnectionId)>,
}

/// The connections that lead to a prefix: usually one, never none.
#[derive(Debug)]
struct Known {
    prefix: Prefix,
    /// Those that want only some of the packets first, then the one that takes the rest.
    claims: Vec<Claim>,
}

#[derive(Debug)]
struct Claim {
    connection: ConnectionId,
    selector: Option<Selector>,
}

impl Routes {
    /// Adds what is behind the peer of a connection. Of several connections that want the same packets
    /// the first added wins.
    pub(crate) fn add(
        &mut self,
        prefix: Prefix,
        connection: ConnectionId,
        selector: Option<&Selector>,
    ) {
        let prefix = prefix.masked();
        let place = match self.place(prefix) {
            Ok(place) => place,
            Err(place) => {
                self.known.insert(place, Known { prefix, claims: Vec::new() });
                place
            }
        };
        let claims = &mut self.known[place].claims;
        // Stable: what was first among its like stays first.
        claims.push(Claim { connection, selector: selector.cloned() });
        claims.sort_by_key(|claim| claim.selector.is_none());
        self.settle();
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        for known in &mut self.known {
            known.claims.retain(|claim| claim.connection != connection);
        }
        self.known.retain(|known| !known.claims.is_empty());
        self.settle();
    }

    /// The connection behind which an inner packet's destination is.
    #[inline(always)]
    pub(crate) fn find(&mut self, packet: &[u8], inner: &Inner) -> Option<ConnectionId> {
        match self.last {
            Some((last, connection)) if last == inner.destination => Some(connection),
            _ => self.search(packet, inner),
        }
    }

    fn search(&mut self, packet: &[u8], inner: &Inner) -> Option<ConnectionId> {
        let destination = inner.destination;
        let mut flow = None;
        for &(ipv4, bits) in &self.lengths {
            if ipv4 != destination.is_ipv4() {
                continue;
            }
            let prefix = Prefix::new(destination, bits)?.masked();
            let Ok(place) = self.place(prefix) else { continue };
            for claim in &self.known[place].claims {
                let Some(selector) = &claim.selector else {
                    // Whoever asks for this destination again needs the same look at the packet.
                    if flow.is_none() {
                        self.last = Some((destination, claim.connection));
                    }
                    return Some(claim.connection);
                };
                let flow = flow.get_or_insert_with(|| Flow::parse(packet, inner));
                if selector.matches(flow) {
                    return Some(claim.connection);
                }
            }
        }
        None
    }

    fn place(&self, prefix: Prefix) -> Result<usize, usize> {
        self.known.binary_search_by_key(&rank(prefix), |known| rank(known.prefix))
    }

    /// Brings what follows from `known` up to date.
    fn settle(&mut self) {
        self.last = None;
        self.lengths.clear();
        let lengths =
            self.known.iter().map(|known| (known.prefix.address().is_ipv4(), known.prefix.bits()));
        self.lengths.extend(lengths);
        self.lengths.sort_by_key(|&(ipv4, bits)| (Reverse(bits), ipv4));
        self.lengths.dedup();
    }
}

fn rank(prefix: Prefix) -> (Reverse<u8>, IpAddr) {
    (Reverse(prefix.bits()), prefix.address())
}
