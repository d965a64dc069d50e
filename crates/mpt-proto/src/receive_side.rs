//! The receive half of every connection, and which of them a datagram is for.

use crate::connection::ConnectionId;
use crate::event::Event;
use crate::note::{News, Note};
use crate::origin::{Candidate, Origin, Origins, choose};
use crate::path::{PathId, PathStatus};
use crate::receive::{Arrival, ReceiveHalf};
use crate::sink::{Held, Sink};
use crate::stats::{Drop, Drops};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::wire::gre;

/// The side of an [`Endpoint`](crate::Endpoint) that receives.
///
/// It shares nothing with the [`TransmitSide`](crate::TransmitSide) and may live on another thread.
/// What that must know is fetched with [`poll_note`](Self::poll_note).
#[derive(Debug)]
pub struct ReceiveSide {
    connections: Vec<ReceiveHalf>,
    origins: Origins,
    news: News,
    drops: Drops,
}

/// Datagrams of one origin, for which its paths have been looked up once.
#[derive(Debug)]
pub struct Arrivals<'a> {
    connections: &'a mut [ReceiveHalf],
    candidates: &'a [Candidate],
    news: &'a mut News,
    drops: &'a mut Drops,
    origin: Origin,
    /// The key of the last datagram, and what it meant.
    chosen: Option<(Option<u32>, Result<Candidate, Drop>)>,
}

impl ReceiveSide {
    pub(crate) fn new(mut connections: Vec<ReceiveHalf>, origins: Origins) -> Self {
        let mut news = News::default();
        connections.iter_mut().for_each(|connection| connection.tell(&mut Nowhere, &mut news));
        Self { connections, origins, news, drops: Drops::default() }
    }

    /// Looks up the paths by which datagrams of `origin` come, to be handed over with
    /// [`Arrivals::handle_datagram`].
    pub fn arrivals(&mut self, origin: Origin) -> Arrivals<'_> {
        Arrivals {
            connections: &mut self.connections,
            candidates: self.origins.candidates(origin),
            news: &mut self.news,
            drops: &mut self.drops,
            origin,
            chosen: None,
        }
    }

    /// Does what is due at `now`; held packets whose time is over go to `sink`.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        for connection in &mut self.connections {
            connection.handle_timeout(now, sink, &mut self.news);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.connections.iter().map(ReceiveHalf::deadline).fold(None, Deadline::earlier)
    }

    /// What [`TransmitSide::handle_note`](crate::TransmitSide::handle_note) is to be given next. To
    /// be asked until `None`, after every other call. Whoever comes late gets the last word on each
    /// path and not every word: no more than [`Note::KINDS`] for each ever wait.
    pub fn poll_note(&mut self) -> Option<(ConnectionId, Note)> {
        self.news.poll_note()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.news.poll_event()
    }

    /// Switches a path off or makes it available again, after the transmit side was told.
    ///
    /// # Panics
    ///
    /// If there is no such connection or path.
    pub fn set_path_status(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        status: PathStatus,
        sink: &mut impl Sink,
    ) {
        self.connections[connection.index()].set_status(path, status, sink, &mut self.news);
    }

    /// Says whether a path can carry inner packets of 1280 bytes, the least an IPv6 link may offer.
    ///
    /// # Panics
    ///
    /// If there is no such connection or path.
    pub fn set_path_fits(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        fits: bool,
        sink: &mut impl Sink,
    ) {
        self.connections[connection.index()].set_fits(path, fits, sink, &mut self.news);
    }

    /// Switches all paths off, after the transmit side was told.
    pub fn close(&mut self, sink: &mut impl Sink) {
        for connection in &mut self.connections {
            connection.close(sink, &mut self.news);
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

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    pub(crate) fn connections(&self) -> &[ReceiveHalf] {
        &self.connections
    }
}

impl Arrivals<'_> {
    /// Takes a datagram from the network. Inner packets whose turn it is go to `sink`.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8], sink: &mut impl Sink) {
        let parsed = match gre::parse(datagram) {
            Ok(parsed) => parsed,
            Err(reason) => return self.drops.add(reason),
        };
        match self.choose(parsed.header.key) {
            Err(reason) => self.drops.add(reason),
            Ok(Candidate { connection, path, .. }) => {
                let arrival = Arrival { path, tos: self.origin.tos, len: datagram.len() };
                let connection = &mut self.connections[connection.index()];
                connection.receive(now, arrival, &parsed, sink, self.news);
            }
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

/// The sink of connections that have not received anything.
struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: &[u8]) {}

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}
