//! Requests in lines, carried out one at a time, and their replies.

use std::io;
use std::time::{Duration, Instant};

use mpt_control::codec::{self, CodecError, Lines, MAX_REQUEST};
use mpt_control::{ControlStatus, ErrorKind, Reply, Request};
use mpt_io::poll::{Event, Poll};
use tracing::debug;

use super::listener::Listener;
use crate::server::{self, Decode, Limits};

/// Most clients at once: the command line, a few monitors, and some that hang. Each may cost
/// [`MAX_REQUEST`] and, while it does not take it, the latest reply.
pub(super) const MAX_CLIENTS: usize = 16;

const LIMITS: Limits = Limits {
    name: "control clients",
    clients: MAX_CLIENTS,
    first: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    request: Duration::from_secs(10),
    reply: Duration::from_secs(10),
};

const LISTENER: u64 = 0;

/// The control socket at work.
#[derive(Debug)]
pub(crate) struct Server {
    server: server::Server<Listener>,
    requests: u64,
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
        let server = server::Server::new(listener, LIMITS, poll, LISTENER, Self::FIRST_CLIENT)?;
        Ok(Self { server, requests: 0 })
    }

    /// Takes an event of `poll`; those of others are left alone. `answer` carries out a request.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        answer: &mut dyn FnMut(Request, ControlStatus) -> Reply,
    ) {
        if let Some(asked) = self.server.handle(event, poll, now) {
            let reply = self.reply(asked.request, answer);
            self.server.reply(
                asked.client,
                server::Reply { bytes: reply, then: server::Then::Next },
                poll,
                now,
            );
        }
    }

    /// Closes connections that exceed a time limit, and accepts clients again after a pause.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        self.server.handle_timeout(poll, now);
    }

    /// The status of the control socket.
    pub(crate) fn status(&self) -> ControlStatus {
        let refused = self.server.refused();
        ControlStatus {
            socket: self.server.listener().path().display().to_string(),
            clients: self.server.served() as u64,
            requests: self.requests,
            refused: refused.iter().map(|(&name, &count)| (name.into(), count)).collect(),
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
                answer(request, self.status())
            }
            Err(error) => {
                self.server.refuse(match &error {
                    CodecError::TooLong { .. } => "too_long",
                    CodecError::Malformed(_) => "malformed",
                });
                Reply::error(ErrorKind::BadRequest, format!("not a request: {error}"))
            }
        };
        codec::encode_reply(&reply).unwrap_or_else(|error| {
            error_line(ErrorKind::Unavailable, &format!("the answer cannot be sent: {error}"))
        })
    }
}

/// An error reply as it is sent.
pub(super) fn error_line(kind: ErrorKind, message: &str) -> Vec<u8> {
    codec::encode_reply(&Reply::error(kind, message)).unwrap_or_default()
}

/// Finds lines, in bounded memory.
#[derive(Debug)]
pub(crate) struct Decoder(Lines);

impl Default for Decoder {
    fn default() -> Self {
        Self(Lines::new(MAX_REQUEST))
    }
}

impl Decode for Decoder {
    type Request = Result<Vec<u8>, CodecError>;

    fn decode(&mut self, input: &mut Vec<u8>) -> Option<Self::Request> {
        let mut rest = input.as_slice();
        let line = self.0.take(&mut rest);
        let taken = input.len() - rest.len();
        input.drain(..taken);
        line
    }

    fn is_partial(&self) -> bool {
        self.0.is_within_line()
    }
}
