//! The receive half of every connection, and which of them a datagram is for.

use std::net::IpAddr;

use crate::change::Change;
use crate::config::ConnectionConfig;
use crate::deadlines::Deadlines;
use crate::demux::accept::{AcceptConfig, Accepting, ConnectRequest};
use crate::demux::address::{Candidate, Origin, Origins, choose};
use crate::demux::candidate::PathRequest;
use crate::event::Event;
use crate::framing::datagram::{Framed, Opened};
use crate::id::AcceptId;
use crate::id::ConnectionId;
use crate::id::PathId;
use crate::messages::{Message, Messages};
use crate::prefix::Prefix;
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

/// The side of an [`Endpoint`](crate::Endpoint) that receives.
///
/// It shares nothing with the [`TransmitSide`](crate::TransmitSide) and may run on another thread.
/// Information for that side is returned by [`poll_message`](Self::poll_message).
#[derive(Debug)]
pub struct ReceiveSide {
    /// This end's tunnel addresses, by which keepalives are known.
    local: Vec<IpAddr>,
    pub(super) connections: Slots<ReceiveHalf>,
    origins: Origins,
    sessions: Sessions,
    /// How many connections were added.
    added: u64,
    accepting: Accepting,
    deadlines: Deadlines,
    messages: Messages,
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
    pub(super) drops: &'a mut Drops,
    pub(super) origin: Origin,
    /// The own address that they were sent to, if known.
    pub(super) addressed_to: Option<IpAddr>,
    /// The index and path id of the last datagram of extended framing, and what they meant.
    pub(super) bound: Option<(u32, u8, ConnectionId, PathId)>,
    /// The key of the last datagram, and what it meant.
    chosen: Option<(Option<u32>, Result<Candidate, Drop>)>,
    /// The connection that received last, whose deadline may have moved.
    touched: Option<ConnectionId>,
}

impl ReceiveSide {
    /// A side without connections, whose tunnel addresses these are.
    pub(crate) fn new(local: &[Prefix], secret: Secret) -> Self {
        Self {
            local: local.iter().map(Prefix::address).collect(),
            connections: Slots::default(),
            origins: Origins::default(),
            sessions: Sessions::new(secret),
            added: 0,
            accepting: Accepting::default(),
            deadlines: Deadlines::default(),
            messages: Messages::default(),
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
            drops: &mut self.drops,
            origin,
            addressed_to: None,
            bound: None,
            chosen: None,
            touched: None,
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

    /// Sets the templates by which peers are accepted. Connections that were accepted before stay.
    pub fn set_accepts(&mut self, accepts: &[AcceptConfig]) {
        self.accepting.set(accepts);
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &ReceiveHalf)> {
        self.connections.iter().map(|(index, half)| (ConnectionId(index as u16), half))
    }

    /// Applies a change to receiving, after the transmit side. Packets held for a connection that
    /// ends go to `sink`.
    pub fn change(&mut self, now: Instant, change: &Change, sink: &mut impl Sink) {
        let id = change.connection();
        if matches!(change, Change::AddConnection { .. }) {
            self.added += 1;
        }
        let Some(connection) = self.connections.get_mut(id.index()) else {
            if let Change::AddConnection { config, accepted_by, .. } = change {
                self.add(now, id, config, *accepted_by, sink);
            }
            return;
        };
        let messages = &mut self.messages;
        match change {
            // The number is in use.
            Change::AddConnection { .. } => {}
            Change::RemoveConnection { .. } => {
                connection.end(sink);
                if let Some(session) = connection.session() {
                    self.sessions.remove(session);
                }
                for peer in connection.peer() {
                    if let Some(ids) = self.sessions.greetable.get_mut(peer) {
                        ids.retain(|other| *other != id);
                        if ids.is_empty() {
                            self.sessions.greetable.remove(peer);
                        }
                    }
                }
                messages.forget(id);
                self.accepting.remove(id, connection.peer(), connection.accepted_by());
                self.connections.take(id.index());
                self.origins.remove(|owner, _| owner == id);
            }
            Change::SetConnection { config, .. } => connection.set(now, config, sink),
            Change::AddPath { path, config, .. } => {
                if connection.add_path(*path, config) {
                    // One of that number may have been left, and still be where it was.
                    self.origins.remove(|owner, other| owner == id && other == *path);
                    self.origins.claim(connection.origin(), *path, (config.socket, config.remote));
                    self.accepting.claimed(config.socket, config.remote);
                }
            }
            Change::RemovePath { path, .. } => connection.remove_path(now, *path, sink, messages),
            Change::SetPath { path, config, .. } => {
                if connection.set_path(now, *path, config, sink, messages) {
                    self.origins.remove(|owner, other| owner == id && other == *path);
                    self.origins.claim(connection.origin(), *path, (config.socket, config.remote));
                }
            }
            Change::SetStatus { path, status, .. } => {
                connection.set_status(now, *path, *status, sink, messages);
            }
            Change::SetFits { path, fits, .. } => {
                connection.set_fits(now, *path, *fits, sink, messages)
            }
            Change::SetPeerDown { path, down, .. } => {
                connection.set_peer_down(now, *path, *down, sink, messages);
            }
            Change::SetPresent { path, present, .. } => {
                connection.set_present(now, *path, *present, sink, messages);
            }
        }
        if let Some(connection) = self.connections.get_mut(id.index()) {
            connection.tell(now, sink, &mut self.messages);
        }
        refresh_deadline(&mut self.deadlines, &self.connections, id);
    }

    fn add(
        &mut self,
        now: Instant,
        id: ConnectionId,
        config: &ConnectionConfig,
        by: Option<AcceptId>,
        sink: &mut impl Sink,
    ) {
        let same = |peer: &IpAddr| self.local.iter().any(|own| own.is_ipv4() == peer.is_ipv4());
        // The same condition as at the transmit side.
        if !config.peer.iter().any(same) {
            return;
        }
        let derived = (&self.sessions.secret, self.added);
        let mut connection = ReceiveHalf::new(id, config, by, &self.local, derived);
        if let Some(session) = connection.session() {
            self.sessions.add(id, session);
            for peer in &config.peer {
                self.sessions.greetable.entry(*peer).or_default().push(id);
            }
        }
        for (path, settings) in (0..).map(PathId).zip(&config.paths) {
            self.origins.claim(connection.origin(), path, (settings.socket, settings.remote));
        }
        self.accepting.add(id, &config.peer, by);
        connection.tell(now, sink, &mut self.messages);
        self.connections.put(id.index(), connection);
        refresh_deadline(&mut self.deadlines, &self.connections, id);
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
                return None;
            }
        };
        match self.choose(parsed.header.key) {
            Err(reason) => {
                self.refuse(now, &parsed, reason);
                None
            }
            Ok(Candidate { connection, path, .. }) => {
                let gre::Header { protocol, sequence, .. } = parsed.header;
                let start = datagram.len() - parsed.payload.len();
                let framed = Framed::Plain(protocol);
                Some(Opened { connection, path, sequence, framed, start })
            }
        }
    }

    /// Takes an opened datagram. Inner packets that are next in order go to `sink`.
    ///
    /// # Panics
    ///
    /// If `datagram` is not the one that was opened.
    #[inline]
    pub fn receive(&mut self, now: Instant, opened: Opened, datagram: &[u8], sink: &mut impl Sink) {
        let Opened { connection, path, start, .. } = opened;
        let arrival = Arrival { path, tos: self.origin.tos, len: datagram.len() };
        if self.touched != Some(connection) {
            self.refresh_deadline();
            self.touched = Some(connection);
        }
        let half = &mut self.connections[connection.index()];
        half.receive(now, arrival, &opened, &datagram[start..], sink, self.messages);
    }

    /// Opens and takes a datagram.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8], sink: &mut impl Sink) {
        if let Some(opened) = self.open(now, datagram) {
            self.receive(now, opened, datagram, sink);
        }
    }

    /// No path has this datagram. It may be a connect request.
    #[cold]
    fn refuse(&mut self, now: Instant, datagram: &gre::Datagram<'_>, reason: Drop) {
        if self.accepting.is_closed() {
            return self.drops.add(reason);
        }
        let connections = &*self.connections;
        let paths = |id: ConnectionId| {
            connections.get(id.index()).map_or(0, |connection| connection.paths().count())
        };
        match self.accepting.on_datagram(now, self.origin, datagram, self.local, paths) {
            Ok(true) => {}
            Ok(false) => self.drops.add(reason),
            Err(refusal) => self.drops.add(refusal),
        }
    }

    fn refresh_deadline(&mut self) {
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
fn refresh_deadline(deadlines: &mut Deadlines, connections: &Slots<ReceiveHalf>, id: ConnectionId) {
    let deadline = connections.get(id.index()).and_then(ReceiveHalf::deadline);
    deadlines.set(id.index(), deadline.map(|deadline| deadline.at));
}
