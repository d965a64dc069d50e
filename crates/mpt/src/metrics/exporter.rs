//! All clients together: who is let in, who waits, who has waited too long.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use mpt_io::poll::{Event, Interest, Poll};
use tracing::warn;

use super::client::Client;

/// Most clients served at once: one Prometheus or a few, a person, and some that hang.
pub(super) const MAX_CLIENTS: usize = 8;

/// Most clients that are being told to come another time; more of them are told nothing.
pub(super) const MAX_REFUSED: usize = 8;

/// Who has not been heard for so long makes room where there is none, the idlest first. It is time enough
/// to ask for somebody who has just come, however many come after.
const MANNERS: Duration = Duration::from_secs(1);

/// Clients taken in per wake-up.
const MAX_ARRIVALS: usize = 16;

/// How long nobody is taken in after that has failed, mostly for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// The page of metrics on a loopback address, served over HTTP/1.1 under `/metrics`.
#[derive(Debug)]
pub(crate) struct Exporter {
    listener: TcpListener,
    first_token: u64,
    /// By token. A token is never used again, so an event cannot reach the wrong client.
    clients: BTreeMap<u64, Guest>,
    next_token: u64,
    /// Nobody is taken in until then.
    paused: Option<Instant>,
    failures: u64,
    /// The last page and when it was made.
    page: Option<(Instant, String)>,
}

/// How long a page is handed out. To make one costs the threads that carry packets some time, and any
/// local user may ask.
const FRESH: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Guest {
    client: Client,
    refused: bool,
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
        poll.add(&listener, first_token, Interest::READABLE)?;
        Ok(Self {
            listener,
            first_token,
            clients: BTreeMap::new(),
            next_token: first_token + 1,
            paused: None,
            failures: 0,
            page: None,
        })
    }

    /// Where it listens, the port having been chosen by the kernel if 0 was asked for.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(test)]
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Takes an event of `poll`; those of others are left alone. `page` makes the page.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        page: &mut dyn FnMut() -> String,
    ) {
        if event.token == self.first_token {
            self.take_in(poll, now);
        } else if let Some(mut guest) = self.clients.remove(&event.token) {
            let before = guest.client.interest();
            let known = &mut self.page;
            let mut page = || match known {
                Some((made, text)) if now.saturating_duration_since(*made) < FRESH => text.clone(),
                _ => {
                    let text = page();
                    *known = Some((now, text.clone()));
                    text
                }
            };
            let stays = guest.client.advance(now, &mut page);
            let after = guest.client.interest();
            if stays && (before == after || poll.modify(&guest.client, event.token, after).is_ok())
            {
                self.clients.insert(event.token, guest);
            }
        }
    }

    /// Sends away who takes too long, and takes clients in again after a pause. To be called every
    /// second or so.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        self.clients.retain(|_, guest| guest.client.deadline() > now);
        if self.paused.is_some_and(|until| now >= until)
            && poll.add(&self.listener, self.first_token, Interest::READABLE).is_ok()
        {
            self.paused = None;
        }
    }

    fn take_in(&mut self, poll: &Poll, now: Instant) {
        for _ in 0..MAX_ARRIVALS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.failures += 1;
                    if self.failures.is_power_of_two() {
                        warn!(%error, "clients of the metrics page wait until this passes");
                    }
                    // The event would come again at once.
                    if poll.remove(&self.listener).is_ok() {
                        self.paused = Some(now + PAUSE);
                    }
                    return;
                }
            };
            let refused = self.clients.values().filter(|guest| guest.refused).count();
            let served = self.clients.len() - refused;
            if stream.set_nonblocking(true).is_err() || refused >= MAX_REFUSED {
                continue;
            }
            let refused = served >= MAX_CLIENTS && !self.make_room(now);
            let client =
                if refused { Client::refused(stream, now) } else { Client::new(stream, now) };
            let token = self.next_token;
            self.next_token += 1;
            if poll.add(&client, token, client.interest()).is_ok() {
                self.clients.insert(token, Guest { client, refused });
            }
        }
    }

    /// Sends the idlest client away without a word, as a server may (RFC 9112 section 9.5), if one has been
    /// idle for long enough.
    fn make_room(&mut self, now: Instant) -> bool {
        let idle = self.clients.iter().filter(|(_, guest)| !guest.refused);
        let idle = idle.filter_map(|(token, guest)| Some((guest.client.waited_for()?, *token)));
        let idlest = idle.min().filter(|(since, _)| now >= *since + MANNERS);
        idlest.is_some_and(|(_, token)| self.clients.remove(&token).is_some())
    }

    /// Clients connected, those that are being refused included.
    #[cfg(test)]
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }
}
