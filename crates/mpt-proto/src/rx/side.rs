//! The receive half of every connection, and which of them a datagram is for.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::deadlines::Deadlines;
use crate::demux::accept::{AcceptConfig, Accepting, ConnectRequest};
use crate::demux::address::{Candidate, Origin, Origins, choose};
use crate::demux::candidate::PathRequest;
use crate::event::Event;
use crate::framing::datagram::{Framed, Opened};
use crate::id::PathId;
use crate::id::{ClientId, ConnectionId};
use crate::keys::HostKeys;
use crate::messages::{Message, Messages};
use crate::mismatch::{FramingFound, Mismatch, Mismatches};
use crate::prefix::Prefix;
use crate::rx::clients::{ClientConfig, ClientRequest};
use crate::rx::connection::{Arrival, ReceiveHalf};
use crate::rx::sessions::Sessions;
use crate::secret::Secret;
use crate::sink::Sink;
use crate::slots::Slots;
use crate::stats::{Drop, Drops};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::wire::extended::is_extended;
use crate::wire::gre;

/// What datagrams wait at this host is not what their path takes: a busy processor would look like a path that is full. If
/// they wait longer, the host does not keep up, and they may as well be sent more slowly.
const UNSEEN: Duration = Duration::from_millis(20);

/// The side of an [`Endpoint`](crate::Endpoint) that receives.
///
/// It shares nothing with the [`TransmitSide`](crate::TransmitSide) and may run on another thread.
/// Information for that side is returned by [`poll_message`](Self::poll_message).
#[derive(Debug)]
pub struct ReceiveSide {
    /// This end's tunnel addresses, by which keepalives are known.
    pub(super) local: Vec<IpAddr>,
    pub(super) connections: Slots<ReceiveHalf>,
    pub(super) origins: Origins,
    pub(super) sessions: Sessions,
    /// How many connections were added.
    pub(super) added: u64,
    pub(super) accepting: Accepting,
    pub(super) deadlines: Deadlines,
    pub(super) messages: Messages,
    mismatches: Mismatches,
    drops: Drops,
}

/// Datagrams of one origin, for which its paths have been looked up once.
#[derive(Debug)]
pub struct Arrivals<'a> {
    pub(super) connections: &'a mut Slots<ReceiveHalf>,
    pub(super) candidates: &'a [Candidate],
    pub(super) sessions: &'a mut Sessions,
    pub(super) accepting: &'a mut Accepting,
    pub(super) local: &'a [IpAddr],
    deadlines: &'a mut Deadlines,
    pub(super) messages: &'a mut Messages,
    pub(super) mismatches: &'a mut Mismatches,
    pub(super) drops: &'a mut Drops,
    pub(super) origin: Origin,
    /// The own address that they were sent to, if known.
    pub(super) addressed_to: Option<IpAddr>,
    /// When they arrived at this host, if that was not when they are handed over.
    arrived: Option<Instant>,
    /// The index and path id of the last datagram of extended framing, and what they meant.
    pub(super) bound: Option<(u32, u8, ConnectionId, PathId)>,
    /// The key of the last datagram, and what it meant.
    chosen: Option<(Option<u32>, Result<Candidate, Drop>)>,
    /// The connection that received last, whose deadline may have moved.
    pub(super) touched: Option<ConnectionId>,
    /// The index of the last sealed datagram, and whose it is.
    pub(super) opened: Option<(u32, ConnectionId)>,
}

impl ReceiveSide {
    /// A side without connections, whose tunnel addresses these are.
    pub(crate) fn new(local: &[Prefix], secret: Secret, keys: Option<&HostKeys>) -> Self {
        Self {
            local: local.iter().map(Prefix::address).collect(),
            connections: Slots::default(),
            origins: Origins::default(),
            sessions: Sessions::new(secret, keys),
            added: 0,
            accepting: Accepting::default(),
            deadlines: Deadlines::default(),
            messages: Messages::default(),
            mismatches: Mismatches::default(),
            drops: Drops::default(),
        }
    }

    /// Looks up the paths by which datagrams of `origin` come, to be handed over with
    /// [`Arrivals::handle_datagram`].
    pub fn arrivals(&mut self, origin: Origin) -> Arrivals<'_> {
        Arrivals {
            connections: &mut self.connections,
            candidates: self.origins.candidates(origin),
            sessions: &mut self.sessions,
            accepting: &mut self.accepting,
            local: &self.local,
            deadlines: &mut self.deadlines,
            messages: &mut self.messages,
            mismatches: &mut self.mismatches,
            drops: &mut self.drops,
            origin,
            addressed_to: None,
            arrived: None,
            bound: None,
            chosen: None,
            touched: None,
            opened: None,
        }
    }

    /// Does what is due at `now`; held packets whose time is over go to `sink`.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        while let Some((index, _)) = self.deadlines.first().filter(|&(_, at)| at <= now) {
            let (connection, id) = (&mut self.connections[index], ConnectionId(index as u16));
            connection.handle_timeout(now, sink, &mut self.messages);
            if connection.session_end().is_some_and(|at| at <= now) {
                let secret = &self.sessions.secret;
                let renewed = connection.forget_session(secret, &mut self.messages);
                self.sessions.renew(id, renewed);
            }
            self.sessions.drive(now, id, connection, &mut self.messages);
            for path in connection.take_gone(now) {
                self.origins.remove(|owner, other| owner == id && other == path);
            }
            refresh_deadline(&mut self.deadlines, &self.connections, id);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (index, _) = self.deadlines.first()?;
        self.connections[index].deadline()
    }

    /// What [`TransmitSide::handle_message`](crate::TransmitSide::handle_message) is to be given next. To
    /// be asked until `None`, after every other call. A late caller gets the last update of each kind for each
    /// path and not every update: no more than [`Message::PER_PATH`] for each ever wait.
    pub fn poll_message(&mut self) -> Option<(ConnectionId, Message)> {
        self.messages.poll_message()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.messages.poll_event()
    }

    /// The next connect request, oldest first. To be polled after datagrams arrived, if there are templates.
    pub fn poll_connect_request(&mut self) -> Option<ConnectRequest> {
        self.accepting.poll_connect_request()
    }

    /// The next origin that has proved to be the peer's, oldest first. To be polled after datagrams arrived, if
    /// there are connections with extended framing.
    pub fn poll_path_request(&mut self) -> Option<PathRequest> {
        self.sessions.path_requests.pop_front()
    }

    /// What arrived and does not fit what this host is configured for, oldest first. To be polled after datagrams
    /// arrived.
    pub fn poll_mismatch(&mut self) -> Option<Mismatch> {
        self.mismatches.poll()
    }

    /// The next client without a connection that begins a handshake, oldest first. To be polled after datagrams arrived,
    /// if there are clients. It is answered when it has a connection with a path to where it is.
    pub fn poll_client_request(&mut self) -> Option<ClientRequest> {
        self.sessions.clients.poll_request()
    }

    /// Where somebody is who had the secret of an invitation that is used up, has expired or was never given; at most one
    /// in ten seconds, while each is counted. To be polled like [`poll_client_request`](Self::poll_client_request).
    pub fn poll_refused_invitation(&mut self) -> Option<SocketAddr> {
        self.sessions.clients.poll_refused()
    }

    /// The time since 1970-01-01 00:00 UTC is now this: invitations expire by it. Without it the clock counts on from where it
    /// was when the core's was zero.
    pub fn set_wall_clock(&mut self, now: Instant, since_1970: Duration) {
        self.sessions.wall_clock = Some((now, since_1970));
    }

    /// This host has other keys from now on. Sessions go on; to renew them, and to begin others, their peers need its new
    /// public key.
    pub fn set_keys(&mut self, keys: &HostKeys) {
        self.sessions.set_host(keys);
        for (_, half) in self.connections.iter_mut() {
            if let Some(handshakes) = &mut half.handshakes {
                self.sessions.give_up(handshakes);
            }
        }
    }

    /// Adds clients that are accepted by their keys. One that has the key or the invitation of another one takes its place.
    pub fn add_clients(&mut self, clients: &[ClientConfig]) {
        self.sessions.clients.add(clients);
    }

    /// Removes clients. Their connections stay.
    pub fn remove_clients(&mut self, clients: &HashSet<ClientId>) {
        self.sessions.clients.remove(clients);
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.sessions.clients.len()
    }

    /// Sets the templates by which peers are accepted. Connections that were accepted before stay.
    pub fn set_accepts(&mut self, accepts: &[AcceptConfig]) {
        self.accepting.set(accepts);
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &ReceiveHalf)> {
        self.connections.iter().map(|(index, half)| (ConnectionId(index as u16), half))
    }

    /// Switches all paths off, after the transmit side.
    pub fn close(&mut self, now: Instant, sink: &mut impl Sink) {
        for (index, connection) in self.connections.iter_mut() {
            connection.close(now, sink, &mut self.messages);
            self.deadlines.set(index, connection.deadline().map(|deadline| deadline.at));
        }
    }

    /// The receive half of a connection.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn connection(&self, id: ConnectionId) -> &ReceiveHalf {
        &self.connections[id.index()]
    }

    /// The receive half of a connection, if there is one of that number.
    pub fn find(&self, id: ConnectionId) -> Option<&ReceiveHalf> {
        self.connections.get(id.index())
    }

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }
}

impl Arrivals<'_> {
    /// The same, sent to this address of the host: what is sent back before there is a path comes from there.
    #[must_use]
    pub fn addressed_to(mut self, local: Option<IpAddr>) -> Self {
        self.addressed_to = local;
        self
    }

    /// The same, having waited at this host until they were read: up to 20 ms of that are not the delay of their path.
    #[must_use]
    pub fn waited(mut self, read: Instant, waited: Duration) -> Self {
        self.arrived = Some(read.before(waited.min(UNSEEN)));
        self
    }

    /// Reads the header of a datagram and finds its connection and path; where it is encrypted, it is decrypted in
    /// place. `None` if it was dropped; then it is counted. Nothing it says is believed yet:
    /// [`receive`](Self::receive) comes next.
    #[inline]
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Option<Opened> {
        if is_extended(datagram) {
            return self.open_extended(now, datagram);
        }
        let parsed = match gre::parse(datagram) {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.drops.add(reason);
                self.note_foreign(now, reason);
                return None;
            }
        };
        match self.choose(parsed.header.key) {
            Err(reason) => {
                self.refuse(now, &parsed, reason);
                None
            }
            Ok(Candidate { connection, .. }) if self.is_sealed(connection) => {
                self.drops.add(Drop::Framing);
                self.note_framing(now, FramingFound::Plain);
                None
            }
            Ok(Candidate { connection, path, .. }) => {
                let gre::Header { protocol, sequence, .. } = parsed.header;
                let start = datagram.len() - parsed.payload.len();
                let framed = Framed::Plain(protocol);
                Some(Opened { connection, path, sequence, framed, start, trailer: 0 })
            }
        }
    }

    /// Takes an opened datagram. Inner packets that are next in order go to `sink`.
    ///
    /// # Panics
    ///
    /// If `datagram` is not the one that was opened.
    #[inline]
    pub fn receive(
        &mut self,
        now: Instant,
        opened: &Opened,
        datagram: &[u8],
        sink: &mut impl Sink,
    ) {
        let Opened { connection, path, start, trailer, .. } = *opened;
        let Origin { remote, tos, .. } = self.origin;
        let at = self.arrived.unwrap_or(now);
        let arrival = Arrival { path, at, tos, port: remote.port(), len: datagram.len() };
        if self.touched != Some(connection) {
            self.refresh_deadline();
            self.touched = Some(connection);
        }
        let half = &mut self.connections[connection.index()];
        let payload = &datagram[start..datagram.len() - trailer];
        let outcome = half.receive(now, arrival, opened, payload, sink, self.messages);
        if let Err(reason) = outcome {
            self.note_rejected(now, opened, payload, reason);
        }
    }

    /// Opens and takes a datagram.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8], sink: &mut impl Sink) {
        if let Some(opened) = &self.open(now, datagram) {
            self.receive(now, opened, datagram, sink);
        }
    }

    /// No path has this datagram. It may be a connect request.
    #[cold]
    fn refuse(&mut self, now: Instant, datagram: &gre::Datagram<'_>, reason: Drop) {
        if self.accepting.is_closed() {
            self.note_refused(now, datagram, reason);
            return self.drops.add(reason);
        }
        let connections = &*self.connections;
        let paths = |id: ConnectionId| {
            connections.get(id.index()).map_or(0, |connection| connection.paths().count())
        };
        match self.accepting.on_datagram(now, self.origin, datagram, self.local, paths) {
            Ok(true) => {}
            Ok(false) => {
                self.drops.add(reason);
                self.note_refused(now, datagram, reason);
            }
            Err(refusal) => self.drops.add(refusal),
        }
    }

    pub(super) fn refresh_deadline(&mut self) {
        if let Some(id) = self.touched {
            refresh_deadline(self.deadlines, self.connections, id);
        }
    }

    fn choose(&mut self, key: Option<u32>) -> Result<Candidate, Drop> {
        match self.chosen {
            Some((last, chosen)) if last == key => chosen,
            _ => {
                let chosen = choose(self.candidates, key, self.origin.remote.port());
                self.chosen = Some((key, chosen));
                chosen
            }
        }
    }
}

impl std::ops::Drop for Arrivals<'_> {
    fn drop(&mut self) {
        self.refresh_deadline();
    }
}

/// Brings the deadline of a connection up to date.
pub(super) fn refresh_deadline(
    deadlines: &mut Deadlines,
    connections: &Slots<ReceiveHalf>,
    id: ConnectionId,
) {
    let deadline = connections.get(id.index()).and_then(ReceiveHalf::deadline);
    deadlines.set(id.index(), deadline.map(|deadline| deadline.at));
}
