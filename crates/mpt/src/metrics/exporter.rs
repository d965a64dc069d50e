//! The page on a loopback address, served over HTTP/1.1 under `/metrics`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpt_io::poll::{Event, Poll};
use socket2::Socket;

use super::http::{self, Answer};
use crate::server::{Accepted, Decode, Limits, Listen, Reply, Server};

/// Most clients served at once: one Prometheus or a few, a person, and some that hang.
pub(super) const MAX_CLIENTS: usize = 8;

const LIMITS: Limits = Limits {
    name: "metrics clients",
    clients: MAX_CLIENTS,
    first: Duration::from_secs(10),
    // Longer than most intervals.
    idle: Duration::from_secs(90),
    request: Duration::from_secs(10),
    reply: Duration::from_secs(30),
};

/// How long a page is handed out. To make one costs the threads that carry packets some time, and any
/// local user may ask.
const FRESH: Duration = Duration::from_millis(500);

/// The page of metrics at work.
#[derive(Debug)]
pub(crate) struct Exporter {
    server: Server<Listener>,
    /// The last page and when it was made.
    page: Option<(Instant, String)>,
}

impl Exporter {
    /// Listens on `listen` and waits for clients on `poll`. The exporter uses `first_token` and,
    /// over time, all tokens above it.
    ///
    /// # Errors
    /// The address is no loopback address, because nobody else is to see what goes on here; or the
    /// kernel's error, such as an address in use.
    pub(crate) fn open(listen: SocketAddr, poll: &Poll, first_token: u64) -> io::Result<Self> {
        if !listen.ip().is_loopback() {
            let message = "metrics are served on loopback addresses only, such as 127.0.0.1";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let server = Server::new(Listener(listener), LIMITS, poll, first_token, first_token + 1)?;
        Ok(Self { server, page: None })
    }

    /// Where it listens, the port having been chosen by the kernel if 0 was asked for.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(test)]
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.server.listener().0.local_addr()
    }

    /// Takes an event of `poll`; those of others are left alone. `page` makes the page.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        page: &mut dyn FnMut() -> String,
    ) {
        let Some(asked) = self.server.handle(event, poll, now) else { return };
        let request = asked.request;
        let page = if request.answer == Answer::Page { self.page(now, page) } else { "" };
        let reply = Reply { bytes: http::write(&request, page), last: !request.keep_alive };
        self.server.reply(asked.client, reply, poll, now);
    }

    /// Closes connections that exceed a time limit, and accepts clients again after a pause. To be called
    /// every second or so.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        self.server.handle_timeout(poll, now);
    }

    /// Clients connected, those that are being refused included.
    #[cfg(test)]
    pub(super) fn clients(&self) -> usize {
        self.server.connected()
    }

    fn page(&mut self, now: Instant, make: &mut dyn FnMut() -> String) -> &str {
        let made =
            self.page.take().filter(|(made, _)| now.saturating_duration_since(*made) < FRESH);
        &self.page.insert(made.unwrap_or_else(|| (now, make()))).1
    }
}

#[derive(Debug)]
struct Listener(TcpListener);

impl Listen for Listener {
    type Decoder = Decoder;

    fn accept(&self) -> io::Result<Accepted> {
        let (stream, _) = self.0.accept()?;
        stream.set_nonblocking(true)?;
        Ok(Accepted::Allowed(Socket::from(OwnedFd::from(stream))))
    }

    fn busy(&self, message: &str) -> Vec<u8> {
        http::busy(message)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Finds requests. A part of one stays in the input, which [`http::parse`] bounds.
#[derive(Debug, Default)]
struct Decoder;

impl Decode for Decoder {
    type Request = http::Request;

    fn decode(&mut self, input: &mut Vec<u8>) -> Option<http::Request> {
        let (length, request) = http::parse(input)?;
        input.drain(..length);
        Some(request)
    }

    fn is_partial(&self) -> bool {
        false
    }
}
