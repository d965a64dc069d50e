//! Clients that a template accepts by their keys: who they are, and those whose handshakes wait for a connection.
//!
//! A client without a connection costs an entry of one hash map, whatever it has been told to the daemon of it. Its first
//! authentic handshake initiation is a *client request*: the owner is told ([`ClientRequest`]), makes a connection with a
//! path to where it came from, and then it is answered. Nothing is kept of an initiation that is not of a known key, and not
//! of an invited one either.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::handshakes::MOST_COPIES;
use crate::framing::extended::identity::At;
use crate::framing::sealed::handshake::{Received, Timestamp};
use crate::id::{AcceptId, ClientId, SocketId};
use crate::keys::PublicKey;
use crate::keys::invitation::InvitationHash;
use crate::stats::Drop;
use crate::time::Instant;

/// How many handshakes may wait for their connections; further ones are dropped. Each takes about a kilobyte.
const MAX_WAITING: usize = 1024;

/// How long one waits. The client sends its next one earlier.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which refused invitations are reported.
const REFUSALS_EVERY: Duration = Duration::from_secs(10);

/// A client that a template accepts by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its number, which no other has.
    pub id: ClientId,
    /// The template.
    pub accept: AcceptId,
    /// By what it is known.
    pub known_by: KnownBy,
}

/// By what a client is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnownBy {
    /// Its static key.
    Key(PublicKey),
    /// An invitation. The first key that comes with its secret is the client's from then on.
    Invitation {
        /// The hash of its secret.
        hash: InvitationHash,
        /// When it expires, since 1970-01-01 00:00 UTC.
        expires: Duration,
    },
}

/// A client without a connection begins a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// The template.
    pub accept: AcceptId,
    /// The client.
    pub client: ClientId,
    /// Its static key.
    pub key: PublicKey,
    /// Whether it was known by its invitation, which is used up with that: the key is to be remembered in place of it.
    pub invited: bool,
    /// The socket at which the initiation arrived.
    pub socket: SocketId,
    /// Where it came from.
    pub remote: SocketAddr,
    /// The tunnel address that its sender has by its own settings.
    pub peer: IpAddr,
}

/// The clients, and what waits of their handshakes.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    by_key: HashMap<PublicKey, Client>,
    by_invitation: HashMap<InvitationHash, (ClientId, AcceptId, Duration)>,
    /// The handshakes of those that have no connection yet.
    waiting: HashMap<PublicKey, Waiting>,
    requests: VecDeque<ClientRequest>,
    /// When a refused invitation may be reported again, and where the one came from that is to be reported.
    quiet_until: Instant,
    refused: Option<SocketAddr>,
}

#[derive(Debug)]
struct Client {
    id: ClientId,
    accept: AcceptId,
    /// The timestamp of the last initiation that a connection of it has answered.
    newest: Option<Timestamp>,
}

#[derive(Debug)]
struct Waiting {
    received: Box<Received>,
    at: At,
    /// The own address that it was sent to, if known.
    addressed_to: Option<IpAddr>,
    /// Where copies of it came from, by other paths of the client.
    copies: Vec<(At, Option<IpAddr>)>,
    until: Instant,
}

/// A handshake whose connection is there.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) received: Box<Received>,
    pub(crate) at: At,
    pub(crate) addressed_to: Option<IpAddr>,
    pub(crate) copies: Vec<(At, Option<IpAddr>)>,
}

impl Waiting {
    /// Takes note of where an initiation came from, if it is this one by another path.
    fn copied(&mut self, received: &Received, at: At, addressed_to: Option<IpAddr>) -> bool {
        let is_new = self.at != at && self.copies.iter().all(|(other, _)| *other != at);
        let is_copy = self.received.timestamp == received.timestamp && is_new;
        if is_copy && self.copies.len() < MOST_COPIES {
            self.copies.push((at, addressed_to));
            return true;
        }
        false
    }
}

impl Clients {
    /// Adds clients. One whose key or invitation is there already takes the place of the one that had it.
    pub(crate) fn add(&mut self, clients: &[ClientConfig]) {
        for &ClientConfig { id, accept, known_by } in clients {
            match known_by {
                KnownBy::Key(key) => {
                    let newest = self.by_key.get(&key).and_then(|client| client.newest);
                    self.by_key.insert(key, Client { id, accept, newest });
                }
                KnownBy::Invitation { hash, expires } => {
                    self.by_invitation.insert(hash, (id, accept, expires));
                }
            }
        }
    }

    /// Removes the clients with these numbers.
    pub(crate) fn remove(&mut self, clients: &HashSet<ClientId>) {
        let Self { by_key, by_invitation, waiting, .. } = self;
        by_key.retain(|key, client| {
            let stays = !clients.contains(&client.id);
            if !stays {
                waiting.remove(key);
            }
            stays
        });
        by_invitation.retain(|_, (id, ..)| !clients.contains(id));
        self.requests.retain(|request| !clients.contains(&request.client));
    }

    /// The timestamp of the last initiation of the client with this key that was answered or waits.
    pub(crate) fn latest(&self, key: &PublicKey) -> Option<Timestamp> {
        let waiting = self.waiting.get(key).map(|waiting| waiting.received.timestamp);
        self.by_key.get(key)?.newest.max(waiting)
    }

    /// How many clients there are.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.by_invitation.len()
    }

    /// Takes in the authentic initiation of somebody without a connection, `wall_clock` after 1970, if it is a client.
    /// `accepts` says whether a template accepts it from where it came from.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    pub(crate) fn on_initiation(
        &mut self,
        now: Instant,
        wall_clock: Duration,
        (at, addressed_to): (At, Option<IpAddr>),
        received: Box<Received>,
        accepts: impl FnOnce(AcceptId, &Received) -> bool,
    ) -> Result<(), Drop> {
        let key = received.peer;
        let (client, accept) = match (self.by_key.get(&key), received.invitation) {
            (Some(client), _) => {
                if self.latest(&key).is_some_and(|newest| newest >= received.timestamp) {
                    let waiting = self.waiting.get_mut(&key).filter(|waiting| now < waiting.until);
                    let copied = waiting.is_some_and(|it| it.copied(&received, at, addressed_to));
                    return if copied { Ok(()) } else { Err(Drop::HandshakeReplay) };
                }
                (client.id, client.accept)
            }
            (None, None) => return Err(Drop::HandshakeUnknown),
            (None, Some(hash)) => match self.by_invitation.get(&hash) {
                Some(&(client, accept, expires)) if wall_clock < expires => (client, accept),
                _ => {
                    if now >= self.quiet_until {
                        self.quiet_until = now + REFUSALS_EVERY;
                        self.refused = Some(at.remote);
                    }
                    return Err(Drop::HandshakeInvitation);
                }
            },
        };
        if !accepts(accept, &received) {
            return Err(Drop::HandshakeRefused);
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.retain(|_, waiting| now < waiting.until);
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(Drop::HandshakeLoad);
        }
        let invited = !self.by_key.contains_key(&key);
        if let Some(hash) = received.invitation.filter(|_| invited) {
            // Used up from here on, whatever becomes of the connection.
            self.by_invitation.remove(&hash);
            self.by_key.insert(key, Client { id: client, accept, newest: None });
        }
        let (socket, remote, peer) = (at.socket, at.remote, received.hello.sender);
        let until = now + PATIENCE;
        let waiting = Waiting { received, at, addressed_to, copies: Vec::new(), until };
        let before = self.waiting.insert(key, waiting);
        // One that still waits has been told.
        if before.is_none_or(|before| before.until <= now) {
            let request = ClientRequest { accept, client, key, invited, socket, remote, peer };
            self.requests.push_back(request);
        }
        Ok(())
    }

    /// The handshake of the client with this key, if it waits.
    pub(crate) fn take_waiting(&mut self, now: Instant, key: &PublicKey) -> Option<Ready> {
        if self.waiting.is_empty() {
            return None;
        }
        let Waiting { received, at, addressed_to, copies, until } = self.waiting.remove(key)?;
        (now < until).then_some(Ready { received, at, addressed_to, copies })
    }

    /// Where the handshake of the client with this key came from, if it waits.
    pub(crate) fn waits_at(&self, key: &PublicKey) -> Option<At> {
        if self.waiting.is_empty() { None } else { Some(self.waiting.get(key)?.at) }
    }

    /// The timestamp of the last initiation of the client with this key, if it had a connection.
    pub(crate) fn newest(&self, key: &PublicKey) -> Option<Timestamp> {
        self.by_key.get(key)?.newest
    }

    /// A connection of the client with this key ends, that has answered an initiation with this timestamp.
    pub(crate) fn remember(&mut self, key: &PublicKey, newest: Option<Timestamp>) {
        if let Some(client) = self.by_key.get_mut(key) {
            client.newest = client.newest.max(newest);
        }
    }

    /// The next request for the owner.
    pub(crate) fn poll_request(&mut self) -> Option<ClientRequest> {
        self.requests.pop_front()
    }

    /// Where an invitation came from that was refused, if that is to be reported: every ten seconds at the most.
    pub(crate) fn poll_refused(&mut self) -> Option<SocketAddr> {
        self.refused.take()
    }
}
