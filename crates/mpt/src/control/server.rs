//! All clients together: in, answered, out.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mpt_control::codec::{self, CodecError};
use mpt_control::{ControlStatus, ErrorKind, Reply, Request};
use mpt_io::poll::{Event, Interest, Poll};
use tracing::{debug, warn};

use super::client::{Client, Turn};
use super::listener::{Arrival, Listener};

/// Most clients at once: the command line, a few monitors, and some that hang. Each may cost
/// [`codec::MAX_REQUEST`] and, while it does not take it, the latest reply.
pub(super) const MAX_CLIENTS: usize = 16;

/// Clients taken in per wake-up.
const MAX_ARRIVALS: usize = 2 * MAX_CLIENTS;

/// How long nobody is taken in after that has failed, mostly for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

const LISTENER: u64 = 0;

/// The control socket at work.
#[derive(Debug)]
pub(crate) struct Server {
    listener: Listener,
    /// By token. A token is never used again, so an event cannot reach the wrong client.
    clients: BTreeMap<u64, Client>,
    next_token: u64,
    /// Nobody is taken in until then.
    paused: Option<Instant>,
    requests: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl Server {
    /// The tokens from here up to [`Server::FIRST_CLIENT`] are free for others on the same `Poll`.
    pub(crate) const FIRST_FREE_TOKEN: u64 = LISTENER + 1;

    const FIRST_CLIENT: u64 = 1 << 16;

    /// Waits for clients on `poll`.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(listener: Listener, poll: &Poll) -> io::Result<Self> {
        poll.add(&listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            listener,
            clients: BTreeMap::new(),
            next_token: Self::FIRST_CLIENT,
            paused: None,
            requests: 0,
            refused: BTreeMap::new(),
        })
    }

    /// Takes an event of `poll`; those of others are left alone. `answer` carries out a request.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        answer: &mut dyn FnMut(Request, ControlStatus) -> Reply,
    ) {
        if event.token == LISTENER {
            self.take_in(poll, now);
        } else if let Some(mut client) = self.clients.remove(&event.token) {
            // One request per wake-up, so that everybody has a turn.
            let stays = match client.advance() {
                Turn::Line(line) => {
                    let reply = self.reply(line, answer);
                    client.reply(reply)
                }
                Turn::Wait => true,
                Turn::Over => false,
            };
            let interest = client.interest(now);
            if stays && poll.modify(&client, event.token, interest).is_ok() {
                self.clients.insert(event.token, client);
            }
        }
    }

    /// Sends away who takes too long, and takes clients in again after a pause.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        let before = self.clients.len();
        self.clients.retain(|_, client| client.deadline() > now);
        for _ in self.clients.len()..before {
            self.refuse("timeout");
        }
        if self.paused.is_some_and(|until| now >= until)
            && poll.add(&self.listener, LISTENER, Interest::READABLE).is_ok()
        {
            self.paused = None;
        }
    }

    /// What the socket knows about itself.
    pub(crate) fn status(&self) -> ControlStatus {
        ControlStatus {
            socket: self.listener.path().display().to_string(),
            clients: self.clients.len() as u64,
            requests: self.requests,
            refused: self.refused.iter().map(|(&name, &count)| (name.into(), count)).collect(),
        }
    }

    fn take_in(&mut self, poll: &Poll, now: Instant) {
        for _ in 0..MAX_ARRIVALS {
            match self.listener.accept() {
                Ok(None) => return,
                Ok(Some(Arrival::Refused(stream, user))) => {
                    let count = self.refuse("not_allowed");
                    // Not a line for each: the log is not theirs to fill.
                    if count.is_power_of_two() {
                        warn!(user, count, "a client of the control socket was refused");
                    }
                    let message = "only root and the daemon's own user may ask: use sudo";
                    turn_away(&stream, ErrorKind::NotAllowed, message);
                }
                Ok(Some(Arrival::Allowed(stream))) if self.clients.len() >= MAX_CLIENTS => {
                    self.refuse("busy");
                    let message =
                        format!("{MAX_CLIENTS} clients are being served: try again later");
                    turn_away(&stream, ErrorKind::Busy, &message);
                }
                Ok(Some(Arrival::Allowed(stream))) => {
                    let client = Client::new(stream, now);
                    let token = self.next_token;
                    self.next_token += 1;
                    if poll.add(&client, token, Interest::READABLE).is_ok() {
                        self.clients.insert(token, client);
                    }
                }
                Err(error) => {
                    if self.refuse("accept").is_power_of_two() {
                        warn!(%error, "clients of the control socket wait until this passes");
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

    fn reply(
        &mut self,
        line: Result<Vec<u8>, CodecError>,
        answer: &mut dyn FnMut(Request, ControlStatus) -> Reply,
    ) -> Vec<u8> {
        let reply = match line.and_then(|line| codec::decode_request(&line)) {
            Ok(request) => {
                debug!(?request, "control");
                self.requests += 1;
                let mut control = self.status();
                // The client who asks is out of the list while being served.
                control.clients += 1;
                answer(request, control)
            }
            Err(error) => {
                let name = match &error {
                    CodecError::TooLong { .. } => "too_long",
                    CodecError::Malformed(_) => "malformed",
                };
                self.refuse(name);
                Reply::error(ErrorKind::BadRequest, format!("not a request: {error}"))
            }
        };
        codec::encode_reply(&reply)
            .or_else(|error| {
                let message = format!("the answer cannot be sent: {error}");
                codec::encode_reply(&Reply::error(ErrorKind::Unavailable, message))
            })
            .unwrap_or_default()
    }

    fn refuse(&mut self, name: &'static str) -> u64 {
        let count = self.refused.entry(name).or_default();
        *count += 1;
        *count
    }
}

/// Tells a client why, as far as that goes without waiting. The kernel hangs up when the stream is
/// dropped.
fn turn_away(mut stream: &UnixStream, kind: ErrorKind, message: &str) {
    if let Ok(line) = codec::encode_reply(&Reply::error(kind, message)) {
        let _ = stream.write(&line);
    }
}
