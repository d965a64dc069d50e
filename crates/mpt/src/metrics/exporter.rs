//! The page on a loopback address, served over HTTP/1.1 under `/metrics`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpt_io::poll::{Event, Poll};
use socket2::Socket;

use super::Format;
use crate::http::{self, Fault, Method, Request, Response};
use crate::server::{Accepted, Limits, Listen, Server};

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
    /// The last page in each format, and when it was made.
    pages: [Option<(Instant, String)>; Format::ALL.len()],
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
        Ok(Self { server, pages: [const { None }; Format::ALL.len()] })
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
        page: &mut dyn FnMut(Format) -> String,
    ) {
        let Some(asked) = self.server.handle(event, poll, now) else { return };
        let response = self.answer(&asked.request, now, page);
        let reply = response.reply(asked.request.as_ref().ok());
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

    fn answer(
        &mut self,
        request: &Result<Request, Fault>,
        now: Instant,
        page: &mut dyn FnMut(Format) -> String,
    ) -> Response {
        let request = match request {
            Ok(request) => request,
            Err(fault) => return Response::fault(*fault),
        };
        match (request.path.as_str(), request.method) {
            ("/metrics", Method::Get | Method::Head) => {
                let format = Format::wanted(request.accept.as_deref());
                Response::found(format.kind(), self.page(format, now, page).to_owned())
                    .with("Vary", "Accept")
            }
            ("/metrics", _) => Response::wrong_method("GET, HEAD"),
            _ => Response::line("404 Not Found", "only /metrics exists"),
        }
    }

    fn page(
        &mut self,
        format: Format,
        now: Instant,
        make: &mut dyn FnMut(Format) -> String,
    ) -> &str {
        let kept = &mut self.pages[format as usize];
        let made = kept.take().filter(|(made, _)| now.saturating_duration_since(*made) < FRESH);
        &kept.insert(made.unwrap_or_else(|| (now, make(format)))).1
    }
}

#[derive(Debug)]
struct Listener(TcpListener);

impl Listen for Listener {
    type Decoder = http::Decoder<{ http::Decoder::NO_BODY }>;

    fn accept(&self) -> io::Result<Accepted> {
        let (stream, _) = self.0.accept()?;
        stream.set_nonblocking(true)?;
        Ok(Accepted::Allowed(Socket::from(OwnedFd::from(stream))))
    }

    fn busy(&self, message: &str) -> Vec<u8> {
        Response::busy(message).reply(None).bytes
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
