//! All that is said on one command port: whose a message is, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use mpt_proto::{ConnectionId, Instant};

use crate::auth::Auth;
use crate::creator::{CreateCommands, Creator};
use crate::description::Description;
use crate::event::{CreateId, Event};
use crate::initiator::Initiator;
use crate::message::Message;
use crate::refusal::{Refusal, Refusals};
use crate::responder::Responder;
use crate::step::{Code, Command, PathReport};

/// The most answers, and the most events, that wait for a caller who does not come; then the oldest goes.
const MAX_WAITING: usize = 256;

/// How commands concern one connection. IPv4 addresses never stand in their mapped form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionCommands {
    /// The own tunnel address.
    pub local: IpAddr,
    /// The peer's tunnel address, of the same IP version. No two connections share both.
    pub remote: IpAddr,
    /// How they are authenticated.
    pub auth: Auth,
    /// The addresses that they come from: those of the peer's ends of all paths. Empty is anywhere, as in
    /// the original.
    pub sources: Vec<IpAddr>,
}

/// Where a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To whom it answers.
    Source(SocketAddr),
    /// To the command port of a connection's peer, at the remote address of a path that is up. Which one may
    /// be chosen anew for each message.
    Peer {
        /// The connection.
        connection: ConnectionId,
        /// What it is about. If that is a path that is down, then another one is better.
        about: PathReport,
    },
}

/// A message to send from the command port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: Destination,
    /// The payload of the datagram, of at most [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes.
    pub message: Vec<u8>,
}

/// What is said on one command port, for all the connections that share it.
#[derive(Debug, Default)]
pub struct Commands {
    connections: BTreeMap<ConnectionId, Station>,
    /// By own tunnel address and peer's.
    by_addresses: HashMap<(IpAddr, IpAddr), ConnectionId>,
    /// The connections that have something to tell.
    telling: BTreeSet<ConnectionId>,
    creator: Creator,
    answers: VecDeque<Transmit>,
    events: VecDeque<Event>,
    refusals: Refusals,
}

/// A connection.
#[derive(Debug)]
struct Station {
    settings: ConnectionCommands,
    responder: Responder,
    initiator: Initiator,
}

impl Commands {
    /// Commands concern a connection from now on, or in another way than before. What is being said on it
    /// goes on, unless its tunnel addresses or its authentication are others.
    pub fn set_connection(&mut self, id: ConnectionId, settings: ConnectionCommands) {
        let lasts = |station: &Station| {
            let old = &station.settings;
            (old.local, old.remote, &old.auth) == (settings.local, settings.remote, &settings.auth)
        };
        if let Some(station) = self.connections.get_mut(&id).filter(|station| lasts(station)) {
            station.settings = settings;
            return;
        }
        self.remove_connection(id);
        self.by_addresses.insert((settings.local, settings.remote), id);
        let (responder, initiator) = (Responder::default(), Initiator::default());
        self.connections.insert(id, Station { settings, responder, initiator });
    }

    /// Commands do not concern a connection any more. What was to be told on it is not.
    pub fn remove_connection(&mut self, id: ConnectionId) {
        let Some(Station { settings, .. }) = self.connections.remove(&id) else { return };
        let addresses = (settings.local, settings.remote);
        // Another connection may have them by this time.
        if self.by_addresses.get(&addresses) == Some(&id) {
            self.by_addresses.remove(&addresses);
        }
        self.telling.remove(&id);
    }

    /// Peers may have connections created from now on, or in another way, or not. Who waits for an answer goes
    /// on doing so if nothing changes.
    pub fn set_create(&mut self, settings: Option<CreateCommands>) {
        self.creator.set(settings);
    }

    /// Tells the peer of a connection that a path is down or up again, as soon as it has been told what was to
    /// be told before. What waits to be told of the same path is not told any more. How it ends is an
    /// [`Event::Told`].
    pub fn tell(&mut self, now: Instant, id: ConnectionId, report: PathReport) {
        let Some(station) = self.connections.get_mut(&id) else { return };
        if let Some((report, outcome)) = station.initiator.tell(now, report) {
            push(&mut self.events, Event::Told { connection: id, report, outcome });
        }
        self.telling.insert(id);
    }

    /// Takes a message that came to the command port. `chance` gives a number that nobody can foresee,
    /// and is asked for one where a cookie is needed.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &[u8],
        chance: impl FnOnce() -> u32,
    ) {
        if let Err(refusal) = self.handle(now, from, message, chance) {
            self.refusals.add(refusal);
        }
    }

    /// Gives up what the peer does not answer.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Self { connections, telling, events, .. } = self;
        telling.retain(|&connection| {
            let Some(station) = connections.get_mut(&connection) else { return false };
            if let Some((report, outcome)) = station.initiator.handle_timeout(now) {
                push(events, Event::Told { connection, report, outcome });
            }
            !station.initiator.is_idle()
        });
    }

    /// Answers whether a connection is created: with the connection as it has been made at this end, or with
    /// why it has not. It is sent in full; the original cuts off the last 36 bytes of its own. Returns whether
    /// somebody still waits for that.
    pub fn answer_create(&mut self, id: CreateId, made: Result<&Description, Code>) -> bool {
        let Some((to, message)) = self.creator.answer(id, made) else { return false };
        push(&mut self.answers, Transmit { to: Destination::Source(to), message });
        true
    }

    /// What is to be sent at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let Self { connections, telling, .. } = self;
        telling.iter().find_map(|&connection| {
            let Station { settings, initiator, .. } = connections.get_mut(&connection)?;
            let (cookie, step, about) = initiator.poll_transmit(now)?;
            let (initiator, responder) = (settings.local, settings.remote);
            let auth = settings.auth.kind();
            let message = Message { auth, cookie, initiator, responder, step }.emit(&settings.auth);
            Some(Transmit { to: Destination::Peer { connection, about }, message })
        })
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_transmit`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |id| self.connections.get(id)?.initiator.poll_timeout();
        self.telling.iter().filter_map(due).min()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What was refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
        chance: impl FnOnce() -> u32,
    ) -> Result<(), Refusal> {
        let message = Message::parse(bytes)?;
        let is_request = message.step.round().is_request();
        let (local, remote) = if is_request {
            (message.responder, message.initiator)
        } else {
            (message.initiator, message.responder)
        };
        let id = self.by_addresses.get(&(local, remote)).copied();
        if message.step.command() == Command::Create {
            if !is_request {
                return Err(Refusal::Order);
            }
            let known = id.and_then(|id| Some(&self.connections.get(&id)?.settings.auth));
            let answer = self.creator.handle(now, from, (&message, bytes), known, chance)?;
            if let Some(message) = answer.message {
                push(&mut self.answers, Transmit { to: Destination::Source(from), message });
            }
            if let Some(create) = answer.create {
                push(&mut self.events, Event::Create(create));
            }
            return answer.refusal.map_or(Ok(()), Err);
        }
        let connection = id.ok_or(Refusal::Connection)?;
        let station = self.connections.get_mut(&connection).ok_or(Refusal::Connection)?;
        let ConnectionCommands { auth, sources, .. } = &station.settings;
        if !sources.is_empty() && !sources.contains(&from.ip().to_canonical()) {
            return Err(Refusal::Source);
        }
        let verified = auth.verify(bytes);
        if !is_request {
            if verified.is_err() {
                station.initiator.on_forgery();
            }
            verified?;
            let told = station.initiator.handle(now, message.cookie, &message.step)?;
            if let Some((report, outcome)) = told {
                push(&mut self.events, Event::Told { connection, report, outcome });
            }
            if station.initiator.is_idle() {
                self.telling.remove(&connection);
            }
            return Ok(());
        }
        verified?;
        let answer = station.responder.handle(now, from, &message, bytes, chance)?;
        let reply = Message { cookie: answer.cookie, step: answer.step, ..message }.emit(auth);
        push(&mut self.answers, Transmit { to: Destination::Source(from), message: reply });
        if let Some(PathReport { initiator, responder, down }) = answer.report {
            let (local, remote) = (responder, initiator);
            push(&mut self.events, Event::Path { connection, local, remote, down });
        }
        Ok(())
    }
}

fn push<T>(queue: &mut VecDeque<T>, thing: T) {
    if queue.len() == MAX_WAITING {
        queue.pop_front();
    }
    queue.push_back(thing);
}
