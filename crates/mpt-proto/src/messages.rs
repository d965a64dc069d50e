//! The messages from the receive side to the transmit side: nine kinds, each with its own bound.
//!
//! - A [`PathUpdate`] says how a path *is*. The last one of a kind and path replaces those before it.
//! - [`Feedback`] says what arrived, and goes back to the peer. What waits for a path is merged into one.
//! - Reports of a session go to the peer, or come from it; the last one of a path counts.
//! - A [`Reply`] asks the transmit side to send something at once. There is at most one per path.
//! - A [`SessionUpdate`] says how the session of a connection is. The last one replaces those before it; so do a
//!   [`Sealing`], which says what to seal with, and an initiation of a handshake.
//! - An [`OriginReply`] goes to an origin, which may have no path. What does not fit is dropped: who asked asks again.
//!
//! So what may wait for one path is [`Message::PER_PATH`], however late the transmit side asks. A packet is never
//! in a message.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use crate::event::{Event, Events};
use crate::framing::extended::reply::OriginReply;
use crate::framing::extended::session::SessionUpdate;
use crate::framing::sealed::tx::Sealing;
use crate::id::{ConnectionId, MAX_PATHS, PathId};
use crate::path::PathState;
use crate::path::estimator::Heard;
use crate::path::feedback::Header;
use crate::wire::extended::feedback::Block;
use crate::wire::keepalive::Arrivals;

/// A message of the receive side to the transmit side about one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What arrived on a path.
    Feedback(Feedback),
    /// Something to send at once.
    Reply(Reply),
    /// How a path is.
    Update(PathUpdate),
    /// How the session is.
    Session(SessionUpdate),
    /// What arrived on a path of a session, to be reported to the peer.
    Report(Box<Block>),
    /// What the peer reports of a path on which this end sends.
    PeerReport(Header, Box<Block>),
    /// A message to an origin. It is about no connection that the transmit side knows.
    Origin(OriginReply),
    /// With what datagrams are sealed from now on.
    Sealing(Box<Sealing>),
    /// A handshake initiation, to be sent on every path.
    Initiation(Box<[u8]>),
}

/// The state of a path, as far as the transmit side needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUpdate {
    /// Whether this end hears the path.
    Hearing {
        /// The path.
        path: PathId,
        /// Whether it is heard.
        hearing: bool,
    },
    /// What the peer last reported about datagrams of this end.
    Report {
        /// The path.
        path: PathId,
        /// What had reached the peer, if it reports that.
        arrivals: Option<Arrivals>,
        /// The weight that the peer wants for the path, if it announces one.
        weight: Option<NonZeroU16>,
        /// How long datagrams take to the peer and back: the latest or the smoothed round trip, whichever is
        /// longer.
        round_trip: Option<Duration>,
    },
    /// The state of the path.
    State {
        /// The path.
        path: PathId,
        /// Its state.
        state: PathState,
    },
    /// How often the peer sends path statuses.
    Interval {
        /// The path.
        path: PathId,
        /// The time between two; `None` if it does not say.
        interval: Option<Duration>,
    },
    /// Whether what the peer sends by the path arrives, as far as its feedback shows.
    WayBack {
        /// The path.
        path: PathId,
        /// Whether nothing arrives.
        is_silent: bool,
    },
    /// Something should have come by the path, and has not: what this host sends by it may not arrive either.
    Quiet {
        /// The path.
        path: PathId,
    },
    /// A path challenge of some length has arrived at the peer.
    Carried {
        /// The path.
        path: PathId,
        /// The number in the challenge.
        number: u64,
        /// The length of the datagram, in bytes of UDP payload.
        len: u16,
    },
}

/// What arrived on a path, to be reported to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The path.
    pub path: PathId,
    /// The longest datagram since the last feedback, in bytes of UDP payload; 0 if no longer one than before.
    pub longest: u16,
    /// The latest keepalive, if one came since the last feedback.
    pub keepalive: Option<KeepaliveFeedback>,
}

/// What is known of the peer's keepalives on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveFeedback {
    /// How many came since the start, modulo 256.
    pub count: u8,
    /// When the peer sent the latest one, if it reports it, and when it arrived.
    pub heard: Option<Heard>,
}

/// Something for the transmit side to send at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A keepalive: what it says has changed.
    Keepalive {
        /// The path.
        path: PathId,
    },
}

impl PathUpdate {
    /// The path it is about.
    pub(crate) fn path(&self) -> PathId {
        match *self {
            Self::Hearing { path, .. }
            | Self::Report { path, .. }
            | Self::State { path, .. }
            | Self::Interval { path, .. }
            | Self::WayBack { path, .. }
            | Self::Quiet { path }
            | Self::Carried { path, .. } => path,
        }
    }

    /// Whether only one of the two has to wait.
    fn is_like(&self, earlier: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(earlier)
            && self.path() == earlier.path()
    }

    /// Whether it makes `earlier` obsolete, which is like it. Answers to a long and to a short challenge may come together;
    /// the long one tells more.
    fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Carried { len, .. }, Self::Carried { len: earlier, .. }) => len >= earlier,
            _ => true,
        }
    }
}

impl Message {
    /// The most messages that wait for one path: seven updates, one feedback, two reports, one reply.
    pub const PER_PATH: usize = 11;
}

/// The most messages to origins that wait.
pub(crate) const ORIGIN_REPLIES: usize = 64;

/// What stands for the connection of a message to an origin.
const NO_CONNECTION: ConnectionId = ConnectionId(u16::MAX);

/// Messages and events that wait to be fetched. Messages are kept by connection, so that one of thousands of
/// connections is found at once.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    connections: Vec<Waiting>,
    /// The connections that have messages, each once, in the order in which they got their first.
    ready: VecDeque<ConnectionId>,
    to_origins: VecDeque<OriginReply>,
    /// At most one for each connection.
    sealings: VecDeque<(ConnectionId, Box<Sealing>)>,
    events: Events,
}

/// The messages of one connection.
#[derive(Debug, Default)]
struct Waiting {
    feedback: VecDeque<Feedback>,
    updates: VecDeque<PathUpdate>,
    /// The paths with a reply, one bit each.
    replies: u64,
    session: Option<SessionUpdate>,
    initiation: Option<Box<[u8]>>,
    /// At most one of each for each path.
    reports: VecDeque<Box<Block>>,
    peer_reports: VecDeque<(Header, Box<Block>)>,
}

impl Messages {
    pub(crate) fn update(&mut self, connection: ConnectionId, update: PathUpdate) {
        let updates = &mut self.of(connection).updates;
        match updates.iter_mut().find(|earlier| update.is_like(earlier)) {
            Some(earlier) if update.replaces(earlier) => *earlier = update,
            Some(_) => {}
            None => updates.push_back(update),
        }
    }

    pub(crate) fn feedback(&mut self, connection: ConnectionId, feedback: Feedback) {
        let waiting = &mut self.of(connection).feedback;
        match waiting.iter_mut().find(|earlier| earlier.path == feedback.path) {
            Some(earlier) => {
                earlier.longest = earlier.longest.max(feedback.longest);
                earlier.keepalive = feedback.keepalive.or(earlier.keepalive);
            }
            None => waiting.push_back(feedback),
        }
    }

    pub(crate) fn reply(&mut self, connection: ConnectionId, Reply::Keepalive { path }: Reply) {
        self.of(connection).replies |= 1 << path.0;
    }

    /// An epoch begins. The one that begins last counts, and the session that begins with it or one before.
    pub(crate) fn sealing(&mut self, connection: ConnectionId, mut sealing: Box<Sealing>) {
        let earlier = self.sealings.iter().position(|(other, _)| *other == connection);
        if let Some(earlier) = earlier.and_then(|place| self.sealings.remove(place)) {
            sealing.begins = sealing.begins.or(earlier.1.begins);
        }
        if sealing.begins.is_some() && self.connections.len() > connection.index() {
            self.forget_session(connection);
        }
        self.sealings.push_back((connection, sealing));
    }

    /// What waits to be said of a session is obsolete.
    fn forget_session(&mut self, connection: ConnectionId) {
        let waiting = &mut self.connections[connection.index()];
        waiting.session = None;
        if waiting.is_empty() {
            self.ready.retain(|other| *other != connection);
        }
    }

    /// The last initiation of a connection takes the place of an earlier one.
    pub(crate) fn initiation(&mut self, connection: ConnectionId, initiation: Box<[u8]>) {
        self.of(connection).initiation = Some(initiation);
    }

    pub(crate) fn session(&mut self, connection: ConnectionId, update: SessionUpdate) {
        if matches!(update, SessionUpdate::Wanted(_)) {
            self.sealings.retain(|(other, _)| *other != connection);
        }
        let waiting = &mut self.of(connection).session;
        // These two say nothing about a session that is only beginning.
        if waiting.is_none() || !matches!(update, SessionUpdate::Doubted | SessionUpdate::Holds) {
            *waiting = Some(update);
        }
    }

    /// A later report of a path makes an earlier one obsolete: its counters include it.
    pub(crate) fn report(&mut self, connection: ConnectionId, block: Box<Block>) {
        let reports = &mut self.of(connection).reports;
        match reports.iter_mut().find(|earlier| earlier.path == block.path) {
            Some(earlier) => *earlier = block,
            None => reports.push_back(block),
        }
    }

    /// The same of a report of the peer.
    pub(crate) fn peer_report(
        &mut self,
        connection: ConnectionId,
        header: Header,
        block: Box<Block>,
    ) {
        let reports = &mut self.of(connection).peer_reports;
        let has_room = reports.len() < MAX_PATHS;
        match reports.iter_mut().find(|(_, earlier)| earlier.path == block.path) {
            Some(earlier) => *earlier = (header, block),
            None if has_room => reports.push_back((header, block)),
            // The peer reports paths that this end does not have.
            None => {}
        }
    }

    pub(crate) fn reply_to_origin(&mut self, reply: OriginReply) {
        if self.to_origins.len() < ORIGIN_REPLIES {
            self.to_origins.push_back(reply);
        }
    }

    /// The messages of a connection, to which one is about to be added.
    fn of(&mut self, connection: ConnectionId) -> &mut Waiting {
        if self.connections.len() <= connection.index() {
            self.connections.resize_with(connection.index() + 1, Waiting::default);
        }
        let waiting = &mut self.connections[connection.index()];
        if waiting.is_empty() {
            self.ready.push_back(connection);
        }
        waiting
    }

    /// A connection was removed, and with it its pending messages.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(waiting) = self.connections.get_mut(connection.index()) {
            *waiting = Waiting::default();
            self.ready.retain(|other| *other != connection);
        }
        self.sealings.retain(|(other, _)| *other != connection);
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn poll_message(&mut self) -> Option<(ConnectionId, Message)> {
        // What is sent to an origin may have to be sealed.
        if let Some((connection, sealing)) = self.sealings.pop_front() {
            return Some((connection, Message::Sealing(sealing)));
        }
        if let Some(reply) = self.to_origins.pop_front() {
            return Some((NO_CONNECTION, Message::Origin(reply)));
        }
        let connection = *self.ready.front()?;
        let waiting = &mut self.connections[connection.index()];
        let message = waiting.pop();
        if waiting.is_empty() {
            self.ready.pop_front();
        }
        Some((connection, message?))
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.feedback.is_empty()
            && self.updates.is_empty()
            && self.replies == 0
            && self.session.is_none()
            && self.initiation.is_none()
            && self.reports.is_empty()
            && self.peer_reports.is_empty()
    }

    /// The session before all that is said in it. Feedback next, because the effect of an update may depend on it; replies last, because they
    /// report both to the peer.
    fn pop(&mut self) -> Option<Message> {
        if let Some(session) = self.session.take() {
            return Some(Message::Session(session));
        }
        if let Some(initiation) = self.initiation.take() {
            return Some(Message::Initiation(initiation));
        }
        if let Some((header, block)) = self.peer_reports.pop_front() {
            return Some(Message::PeerReport(header, block));
        }
        if let Some(block) = self.reports.pop_front() {
            return Some(Message::Report(block));
        }
        if let Some(feedback) = self.feedback.pop_front() {
            return Some(Message::Feedback(feedback));
        }
        if let Some(update) = self.updates.pop_front() {
            return Some(Message::Update(update));
        }
        let path = u8::try_from(self.replies.trailing_zeros()).ok().filter(|&path| path < 64)?;
        self.replies &= self.replies - 1;
        Some(Message::Reply(Reply::Keepalive { path: PathId(path) }))
    }
}

#[cfg(test)]
mod tests;
