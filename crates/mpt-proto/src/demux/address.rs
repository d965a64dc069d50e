//! Origin of a datagram to connection and path.

use std::net::{IpAddr, SocketAddr};

use crate::id::ConnectionId;
use crate::id::PathId;
use crate::id::SocketId;
use crate::stats::Drop;

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The socket it arrived at.
    pub socket: SocketId,
    /// The address and port of its sender; IPv4 addresses never in their mapped form.
    pub remote: SocketAddr,
    /// The type of service or traffic class with which it arrived.
    pub tos: u8,
}

/// The paths by which datagrams come.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// In the order of socket and address.
    known: Vec<Known>,
    /// The place of what was found last.
    last: usize,
}

/// The paths by which a remote address can reach a socket: usually one, never none.
#[derive(Debug)]
struct Known {
    at: (SocketId, IpAddr),
    candidates: Vec<Candidate>,
}

/// One of the paths that an origin can mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) port: u16,
    pub(crate) key: Option<u32>,
    /// Whether only datagrams from this port are its: the port was learned, not configured.
    pub(crate) exact: bool,
    pub(crate) connection: ConnectionId,
    pub(crate) path: PathId,
}

impl Origins {
    /// Adds a path; false if it could not be distinguished from an existing one.
    pub(crate) fn add(&mut self, socket: SocketId, remote: IpAddr, candidate: Candidate) -> bool {
        let at = (socket, remote);
        let place = match self.known.binary_search_by_key(&at, |known| known.at) {
            Ok(place) => place,
            Err(place) => {
                self.known.insert(place, Known { at, candidates: Vec::new() });
                place
            }
        };
        let candidates = &mut self.known[place].candidates;
        let same = |other: &Candidate| other.port == candidate.port && other.key == candidate.key;
        if candidates.iter().any(same) {
            return false;
        }
        candidates.push(candidate);
        true
    }

    /// Assigns the datagrams that arrive at a path's socket from its remote address to it. Of two
    /// indistinguishable paths the first gets them, unless it is of the same connection: then it is
    /// no longer used, and the other replaces it.
    pub(crate) fn claim(
        &mut self,
        (connection, key, exact): (ConnectionId, Option<u32>, bool),
        path: PathId,
        (socket, remote): (SocketId, SocketAddr),
    ) {
        let port = remote.port();
        let candidate = Candidate { port, key, exact, connection, path };
        if !self.add(socket, remote.ip(), candidate) {
            let at = (socket, remote.ip());
            let known = self.known.iter_mut().filter(|known| known.at == at);
            let same = |other: &&mut Candidate| {
                (other.connection, other.port, other.key) == (connection, port, key)
            };
            for left in known.flat_map(|known| &mut known.candidates).filter(same) {
                *left = candidate;
            }
        }
    }

    /// Forgets every path of which `is_gone`.
    pub(crate) fn remove(&mut self, is_gone: impl Fn(ConnectionId, PathId) -> bool) {
        for known in &mut self.known {
            known.candidates.retain(|candidate| !is_gone(candidate.connection, candidate.path));
        }
        self.known.retain(|known| !known.candidates.is_empty());
        self.last = 0;
    }

    /// The paths that `origin` can mean; none if it is unknown.
    pub(crate) fn candidates(&mut self, origin: Origin) -> &[Candidate] {
        let at = (origin.socket, origin.remote.ip());
        if self.known.get(self.last).is_none_or(|last| last.at != at) {
            match self.known.binary_search_by_key(&at, |known| known.at) {
                Ok(place) => self.last = place,
                Err(_) => return &[],
            }
        }
        &self.known[self.last].candidates
    }
}

/// The path a datagram with this key came by. The remote port only chooses between several: RFC
/// 8086 lets a sender vary it, and the original MPT does not look at it.
pub(crate) fn choose(
    candidates: &[Candidate],
    key: Option<u32>,
    port: u16,
) -> Result<Candidate, Drop> {
    if candidates.is_empty() {
        return Err(Drop::UnknownSource);
    }
    let mut fitting = candidates.iter().filter(|candidate| candidate.key == key);
    let first = fitting.next().ok_or(Drop::GreKey)?;
    let Some(second) = fitting.next() else {
        return if first.exact && first.port != port {
            Err(Drop::UnknownSource)
        } else {
            Ok(*first)
        };
    };
    let all = || [first, second].into_iter().chain(fitting.clone());
    if let Some(candidate) = all().find(|candidate| candidate.port == port) {
        return Ok(*candidate);
    }
    // Those whose ports were learned are not meant.
    let mut others = all().filter(|candidate| !candidate.exact);
    match (others.next(), others.next()) {
        (Some(only), None) => Ok(*only),
        _ => Err(Drop::UnknownSource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(socket: u16, remote: ([u8; 4], u16)) -> (SocketId, SocketAddr) {
        (SocketId(socket), SocketAddr::from(remote))
    }

    fn claim(
        origins: &mut Origins,
        (connection, path): (u16, u8),
        key: Option<u32>,
        place: &(SocketId, SocketAddr),
    ) {
        origins.claim((ConnectionId(connection), key, false), PathId(path), *place);
    }

    /// The connection and path of a datagram, if any.
    fn whose(
        origins: &mut Origins,
        key: Option<u32>,
        &(socket, remote): &(SocketId, SocketAddr),
    ) -> Result<(u16, u8), Drop> {
        let origin = Origin { socket, remote, tos: 0 };
        let found = choose(origins.candidates(origin), key, remote.port())?;
        Ok((found.connection.0, found.path.0))
    }

    const A: [u8; 4] = [192, 0, 2, 1];
    const B: [u8; 4] = [192, 0, 2, 2];

    #[test]
    fn socket_address_and_key_identify_a_path_then_the_port() {
        let mut origins = Origins::default();
        let at = [config(0, (A, 1)), config(1, (A, 1)), config(0, (B, 1)), config(0, (A, 2))];
        for (path, config) in at.iter().enumerate() {
            claim(&mut origins, (0, path as u8), None, config);
        }
        claim(&mut origins, (1, 0), Some(7), &at[0]);
        for (path, config) in at.iter().enumerate() {
            assert_eq!(whose(&mut origins, None, config), Ok((0, path as u8)));
        }
        assert_eq!(whose(&mut origins, Some(7), &at[0]), Ok((1, 0)));
        // Where one is left the port does not matter, where there are two it must be theirs.
        assert_eq!(whose(&mut origins, None, &config(0, (B, 9))), Ok((0, 2)));
        assert_eq!(whose(&mut origins, None, &config(0, (A, 9))), Err(Drop::UnknownSource));
        assert_eq!(whose(&mut origins, Some(8), &at[2]), Err(Drop::GreKey));
        assert_eq!(whose(&mut origins, None, &config(2, (A, 1))), Err(Drop::UnknownSource));
    }

    #[test]
    fn a_path_takes_the_place_of_one_of_its_connection_and_of_no_other() {
        let (mut origins, place) = (Origins::default(), config(0, (A, 1)));
        claim(&mut origins, (0, 0), None, &place);
        claim(&mut origins, (1, 0), None, &place);
        assert_eq!(whose(&mut origins, None, &place), Ok((0, 0)), "the first has it");
        claim(&mut origins, (0, 1), None, &place);
        assert_eq!(whose(&mut origins, None, &place), Ok((0, 1)));
        // The one that was left is forgotten, and the other stays.
        origins.remove(|connection, path| (connection.0, path.0) == (0, 0));
        assert_eq!(whose(&mut origins, None, &place), Ok((0, 1)));
    }

    #[test]
    fn a_removed_entry_is_not_found_even_if_it_was_found_last() {
        let mut origins = Origins::default();
        let at = [config(0, (A, 1)), config(0, (B, 1)), config(1, (A, 1))];
        for (path, config) in at.iter().enumerate() {
            claim(&mut origins, (0, path as u8), None, config);
        }
        assert_eq!(whose(&mut origins, None, &at[1]), Ok((0, 1)));
        origins.remove(|_, path| path.0 == 1);
        assert_eq!(whose(&mut origins, None, &at[1]), Err(Drop::UnknownSource));
        assert_eq!(whose(&mut origins, None, &at[2]), Ok((0, 2)));
        origins.remove(|connection, _| connection.0 == 0);
        assert!(origins.known.is_empty(), "nothing is left");
    }
}
