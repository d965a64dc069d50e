//! One command port: finds the connection of each message and passes it on.

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

/// Most answers, and most events, in the queues. When a queue is full its oldest entry is dropped.
const MAX_WAITING: usize = 256;

/// The commands of one connection. IPv4 addresses are never in their mapped form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionCommands {
    /// The own tunnel address.
    pub local: IpAddr,
    /// The peer's tunnel address, of the same IP version. No two connections share both.
    pub remote: IpAddr,
    /// How they are authenticated.
    pub auth: Auth,
    /// The addresses that they may come from: the peer's end of each path. Empty permits all, as the
    /// original does.
    pub sources: Vec<IpAddr>,
}

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The source of the message that it answers.
    Source(SocketAddr),
    /// The command port of a connection's peer, at the remote address of a path that is up. The caller may
    /// choose another path for each message.
    Peer {
        /// The connection.
        connection: ConnectionId,
        /// What it reports. If that is a path that is down, choose another path.
        about: PathReport,
    },
}

/// A message to send from the command port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its destination.
    pub to: Destination,
    /// The payload of the datagram, of at most [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes.
    pub message: Vec<u8>,
}

/// The commands on one command port, of all connections that share it.
#[derive(Debug, Default)]
pub struct Commands {
    connections: BTreeMap<ConnectionId, Station>,
    /// By local and remote tunnel address.
    by_addresses: HashMap<(IpAddr, IpAddr), ConnectionId>,
    /// The connections with a report to send.
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
    /// Adds a connection, or changes its settings. Exchanges go on, unless its tunnel addresses or its
    /// authentication changed.
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

    /// Removes a connection, with its reports that are not sent yet.
    pub fn remove_connection(&mut self, id: ConnectionId) {
        let Some(Station { settings, .. }) = self.connections.remove(&id) else { return };
        let addresses = (settings.local, settings.remote);
        // Another connection may have taken them over.
        if self.by_addresses.get(&addresses) == Some(&id) {
            self.by_addresses.remove(&addresses);
        }
        self.telling.remove(&id);
    }

    /// Sets how peers may create connections, `None` if not at all. Exchanges go on if nothing changed.
    pub fn set_create(&mut self, settings: Option<CreateCommands>) {
        self.creator.set(settings);
    }

    /// Reports to the peer of a connection that a path is down or up again. Reports are sent one after the
    /// other; a new one replaces one of the same path that still waits. [`Event::Told`] says how it ended.
    pub fn tell(&mut self, now: Instant, id: ConnectionId, report: PathReport) {
        let Some(station) = self.connections.get_mut(&id) else { return };
        if let Some((report, outcome)) = station.initiator.tell(now, report) {
            push(&mut self.events, Event::Told { connection: id, report, outcome });
        }
        self.telling.insert(id);
    }

    /// Handles a message from the command port. `chance` gives an unpredictable number, and is called where a
    /// cookie is needed. Returns why it was refused, if it was; that is counted.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &[u8],
        chance: impl FnOnce() -> u32,
    ) -> Option<Refusal> {
        let refusal = self.handle(now, from, message, chance).err();
        if let Some(refusal) = refusal {
            self.refusals.add(refusal);
        }
        refusal
    }

    /// Ends exchanges that the peer does not answer.
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

    /// Answers a request for a connection: with the connection as this end has created it, or with the reason
    /// why not. The description is sent in full; the original cuts off the last 36 bytes of its own. Returns
    /// whether the request still waited for an answer.
    pub fn answer_create(&mut self, id: CreateId, made: Result<&Description, Code>) -> bool {
        let Some((to, message)) = self.creator.answer(id, made) else { return false };
        push(&mut self.answers, Transmit { to: Destination::Source(to), message });
        true
    }

    /// The next message to send at `now`.
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

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The counters of refused messages.
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
