//! Inner destination to connection.

use std::cmp::Reverse;
use std::net::IpAddr;

use crate::id::ConnectionId;
use crate::prefix::Prefix;
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
        self.rebuild_lookup();
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        for known in &mut self.known {
            known.claims.retain(|claim| claim.connection != connection);
        }
        self.known.retain(|known| !known.claims.is_empty());
        self.rebuild_lookup();
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
                    // Cached only if no selector was asked: it looks at more of a packet than its destination.
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
    fn rebuild_lookup(&mut self) {
        self.last = None;
        self.lengths.clear();
        let lengths =
            self.known.iter().map(|known| (known.prefix.address().is_ipv4(), known.prefix.bits()));
        self.lengths.extend(lengths);
        // Most are equal to the one before, of which there may be tens of thousands.
        self.lengths.dedup();
        self.lengths.sort_by_key(|&(ipv4, bits)| (Reverse(bits), ipv4));
        self.lengths.dedup();
    }
}

fn rank(prefix: Prefix) -> (Reverse<u8>, IpAddr) {
    (Reverse(prefix.bits()), prefix.address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::PortRanges;
    use crate::wire::inner;

    fn prefix(text: &str) -> Prefix {
        let (address, bits) = text.split_once('/').expect("an address and a length");
        Prefix::new(address.parse().expect("an address"), bits.parse().expect("a length"))
            .expect("a prefix")
    }

    fn udp(ports: &[u16]) -> Selector {
        let ports = PortRanges::new(ports.iter().map(|&port| port..=port)).expect("a few ports");
        Selector { protocol: Some(Flow::UDP), ports }
    }

    /// Where a UDP packet to this address and port goes.
    fn find(routes: &mut Routes, destination: &str, port: u16) -> Option<u16> {
        let mut packet = Vec::new();
        match destination.parse().expect("an address") {
            IpAddr::V4(to) => etherparse::PacketBuilder::ipv4([10, 9, 0, 1], to.octets(), 64)
                .udp(40_000, port)
                .write(&mut packet, &[]),
            IpAddr::V6(to) => etherparse::PacketBuilder::ipv6([1; 16], to.octets(), 64)
                .udp(40_000, port)
                .write(&mut packet, &[]),
        }
        .expect("a vector takes everything");
        let inner = inner::parse(&packet).expect("a packet");
        routes.find(&packet, &inner).map(|connection| connection.0)
    }

    fn routes(claims: &[(&str, u16, Option<Selector>)]) -> Routes {
        let mut routes = Routes::default();
        for (around, connection, selector) in claims {
            routes.add(prefix(around), ConnectionId(*connection), selector.as_ref());
        }
        routes
    }

    #[test]
    fn the_longest_prefix_wins_whatever_the_order() {
        let mut claims = vec![
            ("0.0.0.0/0", 0, None),
            ("10.0.0.0/8", 1, None),
            ("10.9.0.0/16", 2, None),
            ("10.9.0.2/32", 3, None),
            ("::/0", 4, None),
            ("fd00::/8", 5, None),
        ];
        for _ in 0..claims.len() {
            claims.rotate_left(1);
            let mut routes = routes(&claims);
            let mut to = |destination| find(&mut routes, destination, 53);
            assert_eq!(
                (to("192.0.2.1"), to("10.1.0.1"), to("10.9.7.7")),
                (Some(0), Some(1), Some(2))
            );
            assert_eq!(
                (to("10.9.0.2"), to("2001:db8::1"), to("fd00::1")),
                (Some(3), Some(4), Some(5))
            );
        }
    }

    #[test]
    fn bits_behind_the_prefix_do_not_count_and_versions_are_kept_apart() {
        let mut routes = routes(&[("10.9.255.1/16", 1, None), ("a09::/16", 2, None)]);
        assert_eq!(find(&mut routes, "10.9.0.2", 53), Some(1));
        assert_eq!(find(&mut routes, "10.8.0.2", 53), None);
        assert_eq!(find(&mut routes, "a09::2", 53), Some(2));
    }

    #[test]
    fn a_match_precedes_the_rest_and_unmatched_packets_use_the_next_prefix() {
        let mut routes = routes(&[
            ("10.9.0.2/32", 0, None),
            ("10.9.0.2/32", 1, Some(udp(&[53, 54]))),
            ("10.9.0.2/32", 2, Some(udp(&[54, 55]))),
            ("10.9.0.3/32", 1, Some(udp(&[53, 54]))),
            ("10.9.0.0/24", 3, None),
        ]);
        // In turns, so that nothing found for one is taken for the other.
        for _ in 0..2 {
            for (port, connection) in [(1, 0), (53, 1), (54, 1), (55, 2), (56, 0)] {
                assert_eq!(find(&mut routes, "10.9.0.2", port), Some(connection), "port {port}");
            }
            assert_eq!(find(&mut routes, "10.9.0.3", 53), Some(1));
            assert_eq!(find(&mut routes, "10.9.0.3", 55), Some(3));
        }
    }

    #[test]
    fn a_connection_that_is_gone_leaves_the_others_what_they_claimed() {
        let all = [("10.9.0.2/32", 0, None), ("10.9.0.2/32", 1, None), ("10.9.0.0/24", 2, None)];
        let mut routes = routes(&all);
        assert_eq!(find(&mut routes, "10.9.0.2", 53), Some(0), "the first has it");
        for next in [Some(1), Some(2), None] {
            routes.remove(ConnectionId(next.map_or(2, |next| next - 1)));
            assert_eq!(find(&mut routes, "10.9.0.2", 53), next);
        }
        assert!(routes.known.is_empty() && routes.lengths.is_empty(), "nothing is left");
    }
}
