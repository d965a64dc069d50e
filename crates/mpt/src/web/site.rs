//! The resources, served.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mpt_control::{PathStatus, Reply, Request as ControlRequest, Status};
use mpt_io::poll::{Event, Poll};
use serde_json::Value;
use socket2::Socket;

use super::{Backend, guard, page, snapshot};
use crate::config;
use crate::http::{self, Fault, Method, Request, Response};
use crate::server::{Accepted, Limits, Listen, Server, SocketFile};
use crate::watch::Model;

/// Most clients served at once: each browser needs one for the events and one for the rest.
pub(super) const MAX_CLIENTS: usize = 16;

/// Most of them that watch, so that there is always room for a request.
pub(super) const MAX_STREAMS: usize = 8;

const LIMITS: Limits = Limits {
    name: "web clients",
    clients: MAX_CLIENTS,
    first: Duration::from_secs(10),
    idle: Duration::from_secs(60),
    request: Duration::from_secs(10),
    reply: Duration::from_secs(10),
};

/// How often those who watch are told what there is.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// After so long without anybody who watches, the status before is too old to say how fast anything is.
const STALE: Duration = Duration::from_secs(5);

/// The setting that names a Unix socket.
const SETTING: &str = "`listen` in [web]";

/// The page at work.
#[derive(Debug)]
pub(super) struct Site {
    server: Server<Listener>,
    /// The latest status, and when it was asked for.
    model: Option<(Instant, Model)>,
    /// When those who watch are told again.
    due: Instant,
}

impl Site {
    /// Listens at `listen` and waits for clients on `poll`. The site uses `first_token` and, over time, all
    /// tokens above it.
    ///
    /// # Errors
    /// The address is no loopback address, because nobody else is to see what goes on here; or the
    /// kernel's error, such as an address in use.
    pub(super) fn open(listen: &config::Listen, poll: &Poll, first_token: u64) -> io::Result<Self> {
        let listener = Listener::open(listen)?;
        let server = Server::new(listener, LIMITS, poll, first_token, first_token + 1)?;
        Ok(Self { server, model: None, due: Instant::now() })
    }

    /// Where it listens, the port having been chosen by the kernel if 0 was asked for.
    #[cfg(test)]
    pub(super) fn local_addr(&self) -> std::net::SocketAddr {
        match self.server.listener() {
            Listener::Address(listener) => listener.local_addr().unwrap(),
            Listener::Socket(_) => panic!("it is a Unix socket"),
        }
    }

    /// Clients connected, and how many of them watch.
    #[cfg(test)]
    pub(super) fn clients(&self) -> (usize, usize) {
        (self.server.connected(), self.server.streaming())
    }

    /// Takes an event of `poll`; those of others are left alone.
    pub(super) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        backend: &mut dyn Backend,
    ) {
        let Some(asked) = self.server.handle(event, poll, now) else { return };
        let reply = match self.answer(&asked.request, now, backend) {
            Answer::Whole(response) => response.reply(asked.request.as_ref().ok()),
            Answer::Begun(response) => response.begin(),
        };
        self.server.reply(asked.client, reply, poll, now);
    }

    /// Says what there is to those who watch once it is time, and closes connections that exceed a time
    /// limit. To be called every second or so, and when [`Site::wait`] is over.
    pub(super) fn handle_timeout(&mut self, poll: &Poll, now: Instant, backend: &mut dyn Backend) {
        self.server.handle_timeout(poll, now);
        if self.server.streaming() == 0 {
            if self.model.as_ref().is_some_and(|(at, _)| now.duration_since(*at) >= STALE) {
                self.model = None;
            }
            return;
        }
        if now >= self.due {
            self.due = now + INTERVAL;
            let part = self.event(now, backend);
            self.server.push(part.as_bytes(), poll, now);
        }
    }

    /// How long nobody has to be told anything; none if nobody watches.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        (self.server.streaming() > 0).then(|| self.due.saturating_duration_since(now))
    }

    fn answer(
        &mut self,
        request: &Result<Request, Fault>,
        now: Instant,
        backend: &mut dyn Backend,
    ) -> Answer {
        let request = match request {
            Ok(request) => request,
            Err(fault) => return Answer::Whole(Response::fault(*fault)),
        };
        let own = guard::is_of_this_site(request);
        Answer::Whole(match (request.path.as_str(), request.method) {
            _ if !guard::is_for_this_host(request) => {
                self.refuse("host", "a request names another host than this one");
                let line = "the host is to be localhost or a loopback address";
                Response::line("421 Misdirected Request", line)
            }
            // Anybody may lead here: there is nothing in the page itself.
            ("/", Method::Get | Method::Head) => page::page().unwrap_or_else(|error| {
                let line = format!("there are no random numbers: {error}");
                Response::line("500 Internal Server Error", &line)
            }),
            _ if !own => {
                self.refuse("site", "a page of another site sends requests here");
                Response::line("403 Forbidden", "this is not for pages of other sites")
            }
            ("/events", Method::Get) if self.server.streaming() >= MAX_STREAMS => {
                self.refuse("watching", "too many pages are open");
                let line = format!("too many pages are open ({MAX_STREAMS}): close another one");
                Response::busy(&line)
            }
            ("/events", Method::Get) => {
                if self.server.streaming() == 0 {
                    self.due = now + INTERVAL;
                }
                let first = self.event(now, backend);
                return Answer::Begun(Response::found("text/event-stream", first));
            }
            ("/path", Method::Post) => self.change(request, backend),
            ("/", _) => Response::wrong_method("GET, HEAD"),
            ("/events", _) => Response::wrong_method("GET"),
            ("/path", _) => Response::wrong_method("POST"),
            _ => Response::line("404 Not Found", "there are /, /events and /path"),
        })
    }

    /// Changes a path for those who may.
    fn change(&mut self, request: &Request, backend: &mut dyn Backend) -> Response {
        let Some(token) = guard::token(request) else {
            return Response::line("401 Unauthorized", "changes need the token of `mpt web token`")
                .with("WWW-Authenticate", "Bearer");
        };
        if !backend.allows(token) {
            self.refuse("token", "a request has a wrong token");
            return Response::line("403 Forbidden", "the token is wrong: ask `mpt web token`");
        }
        let kind = request.content_type.as_deref().unwrap_or_default();
        if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
            return Response::line("415 Unsupported Media Type", "write application/json");
        }
        let Some(body) = &request.body else {
            return Response::line("413 Content Too Large", "a change has at most 4096 bytes");
        };
        let Some(change) = change(body) else {
            let line = "a change is an object with `connection`, `path` and `status` or `weight`";
            return Response::line("400 Bad Request", line);
        };
        match backend.change(change) {
            Reply::Done => Response::line("200 OK", ""),
            // What there is to say about it, such as that no path is in service any more.
            Reply::Changed { changes } => Response::line("200 OK", &changes.join("; ")),
            Reply::Error { message, .. } => Response::line("409 Conflict", &message),
            Reply::Config { .. }
            | Reply::Explanation { .. }
            | Reply::Peers { .. }
            | Reply::Status { .. }
            | Reply::Trace { .. }
            | Reply::Version { .. }
            | Reply::WebToken { .. } => {
                let line = "the daemon gives an unexpected reply";
                Response::line("500 Internal Server Error", line)
            }
        }
    }

    /// Counts what is refused, with a line in the log for the first, second, fourth and so on.
    fn refuse(&mut self, name: &'static str, what: &str) {
        let count = self.server.refuse(name);
        if count.is_power_of_two() {
            tracing::warn!(count, "web: {what}: refused");
        }
    }

    /// What there is, as an event of a stream (WHATWG HTML, server-sent events).
    fn event(&mut self, now: Instant, backend: &mut dyn Backend) -> String {
        let fresh = |at: &Instant| now.saturating_duration_since(*at) < INTERVAL / 2;
        if !self.model.as_ref().is_some_and(|(at, _)| fresh(at)) {
            let status: Status = backend.status();
            let model = match self.model.take() {
                Some((_, mut model)) => {
                    model.accept(status);
                    model
                }
                None => Model::new(status),
            };
            self.model = Some((now, model));
        }
        let explained = backend.explain();
        let state = self.model.as_ref().map(|(_, model)| snapshot::snapshot(model, &explained));
        format!("data: {}\n\n", state.unwrap_or(Value::Null))
    }
}

/// What is answered: all of it, or the beginning of a stream.
enum Answer {
    Whole(Response),
    Begun(Response),
}

/// The change that a body describes.
fn change(body: &[u8]) -> Option<ControlRequest> {
    let Value::Object(mut body) = serde_json::from_slice(body).ok()? else { return None };
    let mut text = |key| match body.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (connection, path) = (text("connection")?, text("path")?);
    let status = match text("status").as_deref() {
        Some("available") => Some(PathStatus::Available),
        Some("off") => Some(PathStatus::Off),
        Some(_) => return None,
        None => None,
    };
    let weight = match body.remove("weight") {
        Some(weight) => Some(u16::try_from(weight.as_u64()?).ok()?),
        None => None,
    };
    let says_something = status.is_some() != weight.is_some();
    (says_something && body.is_empty()).then_some(ControlRequest::Path {
        connection: Some(connection),
        path,
        status,
        weight,
        priority: None,
    })
}

/// A socket of either kind.
#[derive(Debug)]
enum Listener {
    Address(TcpListener),
    Socket(SocketFile),
}

impl Listener {
    fn open(listen: &config::Listen) -> io::Result<Self> {
        match listen {
            config::Listen::Address(address) if !address.ip().is_loopback() => {
                let message =
                    "the web page is served on loopback addresses only, such as 127.0.0.1";
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            config::Listen::Address(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Address(listener))
            }
            config::Listen::Socket(path) => {
                let file = SocketFile::bind(path, SETTING).map_err(io::Error::other)?;
                Ok(Self::Socket(file))
            }
        }
    }
}

impl Listen for Listener {
    type Decoder = http::Decoder<{ http::Decoder::WITH_BODY }>;

    fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Address(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Accepted::Allowed(Socket::from(OwnedFd::from(stream))))
            }
            Self::Socket(file) => {
                let (socket, stranger) = file.accept()?;
                let Some(who) = stranger else { return Ok(Accepted::Allowed(socket)) };
                let line = "only root and the daemon's own user may look";
                let reply = Response::line("403 Forbidden", line).reply(None).bytes;
                let reason = format!("{who} may not use the socket of the web page");
                Ok(Accepted::Refused { socket, reason, reply })
            }
        }
    }

    fn busy(&self, message: &str) -> Vec<u8> {
        Response::busy(message).reply(None).bytes
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Address(listener) => listener.as_fd(),
            Self::Socket(file) => file.as_fd(),
        }
    }
}
