//! A bounded server on a stream socket: the control socket, the page of metrics and the web page are each one.
//!
//! No client can delay another or make the daemon grow: there is a limit to their number, to what is kept
//! for each ([`client`]), and to every wait; and each wake-up handles one request of a client. When all
//! places are taken, the client that has been idle longest makes room. The server waits on its owner's
//! [`Poll`] and never blocks; what is asked and answered is its owner's too.

mod client;
mod lock;
mod unix;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mpt_io::poll::{Event, Interest, Poll};
use socket2::Socket;
use tracing::warn;

use client::{Client, Turn};
pub(crate) use client::{Decode, Reply, Then};
pub(crate) use lock::Lock;
pub(crate) use unix::{BindError, SocketFile};

/// Most refused clients that are still connected to read why; more of them are closed at once.
pub(crate) const MAX_REFUSED: usize = 8;

/// How long a client must have been idle to make room for another: time enough to send a request for a
/// client that has just connected, however many connect after it.
const GRACE: Duration = Duration::from_secs(1);

/// Clients accepted per wake-up.
const MAX_ACCEPTS: usize = 32;

/// The pause after accept has failed, mostly for lack of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// A socket that clients connect to.
pub(crate) trait Listen: AsFd {
    /// Finds requests in what a client sends.
    type Decoder: Decode + Default;

    /// The next client; its socket does not block.
    ///
    /// # Errors
    /// The kernel's error: `EAGAIN` if there is none, `EMFILE` if too many files are open.
    fn accept(&self) -> io::Result<Accepted>;

    /// The reply to a client beyond the limit.
    fn busy(&self, message: &str) -> Vec<u8>;
}

/// A client that has connected.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// It may ask.
    Allowed(Socket),
    /// It may not.
    Refused {
        /// The client's connection.
        socket: Socket,
        /// Who may not, for the log.
        reason: String,
        /// The reply.
        reply: Vec<u8>,
    },
}

/// How many clients are served, and for how long each may do what.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// What the clients are called in messages.
    pub(crate) name: &'static str,
    /// Most clients served at once.
    pub(crate) clients: usize,
    /// How long a client that has connected may send nothing.
    pub(crate) first: Duration,
    /// How long a client that was answered may send nothing.
    pub(crate) idle: Duration,
    /// How long a request may take from its first byte to its last.
    pub(crate) request: Duration,
    /// How long the client may take to read a reply.
    pub(crate) reply: Duration,
}

/// A listening socket and its clients.
#[derive(Debug)]
pub(crate) struct Server<L: Listen> {
    listener: L,
    limits: Limits,
    token: u64,
    /// By token. A token is never used again, so an event cannot reach the wrong client.
    clients: BTreeMap<u64, Client<L::Decoder>>,
    next_token: u64,
    /// No client is accepted until then.
    paused: Option<Instant>,
    refused: BTreeMap<&'static str, u64>,
}

/// A request, and which client it is from.
pub(crate) struct Asked<L: Listen> {
    pub(crate) client: u64,
    pub(crate) request: <L::Decoder as Decode>::Request,
}

impl<L: Listen> Server<L> {
    /// Waits on `poll` for clients, with `token` for the listener and the tokens from `first_client` on,
    /// over time all of them, for the clients.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(
        listener: L,
        limits: Limits,
        poll: &Poll,
        token: u64,
        first_client: u64,
    ) -> io::Result<Self> {
        poll.add(&listener, token, Interest::READABLE)?;
        Ok(Self {
            listener,
            limits,
            token,
            clients: BTreeMap::new(),
            next_token: first_client,
            paused: None,
            refused: BTreeMap::new(),
        })
    }

    /// Takes an event of `poll`; those of others are left alone. If there is a request now, its client
    /// waits for [`Server::reply`].
    pub(crate) fn handle(&mut self, event: Event, poll: &Poll, now: Instant) -> Option<Asked<L>> {
        if event.token == self.token {
            self.accept(poll, now);
            return None;
        }
        let client = self.clients.get_mut(&event.token)?;
        let before = client.interest();
        let result = match client.advance(now, &self.limits) {
            Ok(Turn::Request(request)) => return Some(Asked { client: event.token, request }),
            Ok(Turn::Wait) => Ok(()),
            Ok(Turn::End) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        };
        self.rearm(event.token, before, result, poll);
        None
    }

    /// Replies to the request that [`Server::handle`] has returned.
    pub(crate) fn reply(&mut self, client: u64, reply: Reply, poll: &Poll, now: Instant) {
        let Some(found) = self.clients.get_mut(&client) else { return };
        let before = found.interest();
        let result = found.reply(reply, now, &self.limits);
        self.rearm(client, before, result, poll);
    }

    /// Continues the reply of every client that is sent one in parts ([`Then::More`]). A client that has not
    /// taken the part before misses this one, and one that takes none is closed by its time limit.
    pub(crate) fn push(&mut self, part: &[u8], poll: &Poll, now: Instant) {
        let streaming = self.clients.iter().filter(|(_, client)| client.is_streaming());
        let tokens: Vec<u64> = streaming.map(|(token, _)| *token).collect();
        for token in tokens {
            let Some(client) = self.clients.get_mut(&token) else { continue };
            let before = client.interest();
            let result = client.push(part, now, &self.limits).map(drop);
            self.rearm(token, before, result, poll);
        }
    }

    /// Clients that are sent a reply in parts.
    pub(crate) fn streaming(&self) -> usize {
        self.clients.values().filter(|client| client.is_streaming()).count()
    }

    /// Closes connections that exceed a time limit, and accepts clients again after a pause. To be called
    /// every second or so.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        let mut late = 0;
        self.clients.retain(|_, client| {
            let stays = client.deadline() > now;
            late += u64::from(!stays && !client.is_closing());
            stays
        });
        if late > 0 {
            *self.refused.entry("timeout").or_default() += late;
        }
        if self.paused.is_some_and(|until| now >= until)
            && poll.add(&self.listener, self.token, Interest::READABLE).is_ok()
        {
            self.paused = None;
        }
    }

    /// Counts what is refused, by name, and returns how often that was.
    pub(crate) fn refuse(&mut self, name: &'static str) -> u64 {
        let count = self.refused.entry(name).or_default();
        *count += 1;
        *count
    }

    /// How often what was refused.
    pub(crate) fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }

    /// Where the clients come from.
    pub(crate) fn listener(&self) -> &L {
        &self.listener
    }

    /// Clients being served.
    pub(crate) fn served(&self) -> usize {
        self.clients.values().filter(|client| !client.refused).count()
    }

    /// Clients connected, including those that are being refused.
    #[cfg(test)]
    pub(crate) fn connected(&self) -> usize {
        self.clients.len()
    }

    /// Waits for what the client is to do next, or forgets it.
    fn rearm(&mut self, token: u64, before: Interest, result: io::Result<()>, poll: &Poll) {
        let Some(client) = self.clients.get(&token) else { return };
        let interest = client.interest();
        let stays =
            result.is_ok() && (interest == before || poll.modify(client, token, interest).is_ok());
        if !stays {
            self.clients.remove(&token);
        }
    }

    fn accept(&mut self, poll: &Poll, now: Instant) {
        for _ in 0..MAX_ACCEPTS {
            match self.listener.accept() {
                Ok(Accepted::Allowed(socket)) => self.admit(socket, poll, now),
                Ok(Accepted::Refused { socket, reason, reply }) => {
                    let count = self.refuse("not_allowed");
                    // Not a line for each: the log is not theirs to fill.
                    if count.is_power_of_two() {
                        warn!(count, "{reason}");
                    }
                    self.turn_away(socket, reply, poll, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    if self.refuse("accept").is_power_of_two() {
                        warn!(%error, "cannot accept {}: trying again", self.limits.name);
                    }
                    // The event would come again at once.
                    if poll.remove(&self.listener).is_ok() {
                        self.paused = Some(now + PAUSE);
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: Socket, poll: &Poll, now: Instant) {
        let Limits { name, clients, .. } = self.limits;
        if self.served() >= clients && !self.make_room(now) {
            if self.refuse("busy").is_power_of_two() {
                warn!("too many {name} ({clients}): a new one is refused");
            }
            let reply =
                self.listener.busy(&format!("too many {name} ({clients}): try again later"));
            self.turn_away(socket, reply, poll, now);
            return;
        }
        let client = Client::new(socket, L::Decoder::default(), now, &self.limits);
        self.insert(client, poll);
    }

    /// Sends a client the reason of its refusal. Beyond [`MAX_REFUSED`] it is lost if the client
    /// has sent something before.
    fn turn_away(&mut self, socket: Socket, bytes: Vec<u8>, poll: &Poll, now: Instant) {
        let mut client = Client::new(socket, L::Decoder::default(), now, &self.limits);
        client.refused = true;
        let told = client.reply(Reply { bytes, then: Then::Close }, now, &self.limits);
        if told.is_ok() && self.clients.len() - self.served() < MAX_REFUSED {
            self.insert(client, poll);
        }
    }

    fn insert(&mut self, client: Client<L::Decoder>, poll: &Poll) {
        let token = self.next_token;
        self.next_token += 1;
        if poll.add(&client, token, client.interest()).is_ok() {
            self.clients.insert(token, client);
        }
    }

    /// Closes the connection that has been idle longest, as a server may at any time (RFC 9112 section
    /// 9.5), if one has been for long enough. One whose request has arrived and was not read yet is not
    /// idle.
    fn make_room(&mut self, now: Instant) -> bool {
        let clients = self.clients.iter().filter(|(_, client)| !client.refused);
        let idle = clients.filter_map(|(token, client)| Some((client.idle_since()?, *token)));
        let mut idle: Vec<_> = idle.filter(|(since, _)| now >= *since + GRACE).collect();
        idle.sort_unstable();
        let Some(&(since, token)) =
            idle.iter().find(|(_, token)| !self.clients[token].has_unread())
        else {
            return false;
        };
        self.clients.remove(&token);
        if self.refuse("idle").is_power_of_two() {
            let Limits { name, clients, .. } = self.limits;
            let seconds = now.duration_since(since).as_secs();
            warn!("too many {name} ({clients}): closed the one idle longest, for {seconds} s");
        }
        true
    }
}
