//! Inner destination to connection.

use std::cmp::Reverse;
use std::net::IpAddr;

use crate::config::Prefix;
use crate::connection::ConnectionId;

/// The connection behind which each inner address is.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The connection of each peer's tunnel address, in the order of the addresses.
    peers: Vec<(IpAddr, ConnectionId)>,
    /// The networks behind the peers, longest prefix first.
    networks: Vec<(Prefix, ConnectionId)>,
    /// What was found last: packets of one flow come in runs.
    last: Option<(IpAddr, ConnectionId)>,
}

impl Routes {
    /// Adds a peer's tunnel address; false if it is there already.
    pub(crate) fn add_peer(&mut self, peer: IpAddr, connection: ConnectionId) -> bool {
        match self.peers.binary_search_by_key(&peer, |(peer, _)| *peer) {
            Ok(_) => false,
            Err(place) => {
                self.peers.insert(place, (peer, connection));
                true
            }
        }
    }

    /// Adds a network behind a peer. Of two of one length the first added wins.
    pub(crate) fn add_network(&mut self, network: Prefix, connection: ConnectionId) {
        self.networks.push((network, connection));
        self.networks.sort_by_key(|(network, _)| Reverse(network.bits()));
    }

    /// The connection behind which `destination` is.
    #[inline]
    pub(crate) fn find(&mut self, destination: IpAddr) -> Option<ConnectionId> {
        if let Some((last, connection)) = self.last
            && last == destination
        {
            return Some(connection);
        }
        let network = || self.networks.iter().find(|(network, _)| network.contains(destination));
        let connection = match self.peers.binary_search_by_key(&destination, |(peer, _)| *peer) {
            Ok(place) => self.peers[place].1,
            Err(_) => network()?.1,
        };
        self.last = Some((destination, connection));
        Some(connection)
    }
}
