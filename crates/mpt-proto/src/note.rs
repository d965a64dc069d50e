//! What the receive side has to tell: notes to the transmit side, events to whoever reads them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::connection::ConnectionId;
use crate::event::{Event, Events};
use crate::measure::Heard;
use crate::path::{PathId, PathState};
use crate::wire::keepalive::Arrivals;

/// What the transmit side must know of what the receive side has seen.
///
/// A note says how a path *is*, not how it changed, so that a later one of the same kind and path
/// makes an earlier one superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A datagram arrived on a path: the longest of a keepalive interval so far. If it waits, the
    /// longest that came meanwhile stands for all.
    Arrived {
        /// The path.
        path: PathId,
        /// Its length in bytes of UDP payload.
        len: u16,
    },
    /// A path is heard again, or no longer.
    Hearing {
        /// The path.
        path: PathId,
        /// Whether it is heard.
        hearing: bool,
    },
    /// Keepalives came over a path.
    Keepalive {
        /// The path.
        path: PathId,
        /// How many came since the start, modulo 256.
        count: u8,
        /// What had reached the peer when it sent the last one, if it tells.
        arrivals: Option<Arrivals>,
        /// When the peer sent the last one, if it tells.
        heard: Option<Heard>,
        /// How long datagrams take to the peer and back, the last one or smoothed, whichever is more.
        round_trip: Option<Duration>,
    },
    /// A path has another state.
    State {
        /// The path.
        path: PathId,
        /// What it is.
        state: PathState,
    },
}

impl Note {
    /// How many notes may wait for one path.
    pub const KINDS: usize = 4;

    /// The path it is about.
    pub(crate) fn path(&self) -> PathId {
        match *self {
            Self::Arrived { path, .. }
            | Self::Hearing { path, .. }
            | Self::Keepalive { path, .. }
            | Self::State { path, .. } => path,
        }
    }

    /// Whether nobody needs `earlier` who has this one.
    fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Arrived { path, .. }, Self::Arrived { path: other, .. })
            | (Self::Hearing { path, .. }, Self::Hearing { path: other, .. })
            | (Self::Keepalive { path, .. }, Self::Keepalive { path: other, .. })
            | (Self::State { path, .. }, Self::State { path: other, .. }) => path == other,
            _ => false,
        }
    }

    /// This one with what it has to keep of the one that it replaces.
    fn after(self, earlier: Self) -> Self {
        match (self, earlier) {
            (Self::Arrived { path, len }, Self::Arrived { len: before, .. }) => {
                Self::Arrived { path, len: len.max(before) }
            }
            _ => self,
        }
    }
}

/// Notes and events that wait to be fetched.
///
/// Notes are kept by connection, so that what one of thousands says finds its place at once.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The notes of each connection, oldest first. At most one of each kind for each path, however long
    /// nobody fetches them: [`Note::KINDS`] per path.
    notes: Vec<VecDeque<Note>>,
    /// The connections that have notes, each once, in the order in which they had their first.
    waiting: VecDeque<ConnectionId>,
    events: Events,
}

impl News {
    pub(crate) fn note(&mut self, connection: ConnectionId, note: Note) {
        if self.notes.len() <= connection.index() {
            self.notes.resize_with(connection.index() + 1, VecDeque::new);
        }
        let notes = &mut self.notes[connection.index()];
        if notes.is_empty() {
            self.waiting.push_back(connection);
        }
        match notes.iter_mut().find(|earlier| note.replaces(earlier)) {
            Some(earlier) => *earlier = note.after(*earlier),
            None => notes.push_back(note),
        }
    }

    /// Nobody needs the notes about a connection any more.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(notes) = self.notes.get_mut(connection.index()) {
            *notes = VecDeque::new();
            self.waiting.retain(|other| *other != connection);
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn poll_note(&mut self) -> Option<(ConnectionId, Note)> {
        let connection = *self.waiting.front()?;
        let notes = &mut self.notes[connection.index()];
        let note = notes.pop_front();
        if notes.is_empty() {
            self.waiting.pop_front();
        }
        Some((connection, note?))
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_nobody_fetches_are_replaced_by_later_ones() {
        let (mut news, connection) = (News::default(), ConnectionId(0));
        let hearing = |path, hearing| Note::Hearing { path: PathId(path), hearing };
        let state = |path, state| Note::State { path: PathId(path), state };
        for round in 0..1000 {
            for path in 0..3 {
                news.note(connection, hearing(path, round % 2 == 0));
                news.note(connection, state(path, PathState::Up));
            }
        }
        news.note(connection, state(1, PathState::Probing));
        news.note(ConnectionId(1), state(1, PathState::Off));
        let arrived = |len| Note::Arrived { path: PathId(9), len };
        [5, 1472, 44].into_iter().for_each(|len| news.note(connection, arrived(len)));
        let notes: Vec<_> = std::iter::from_fn(|| news.poll_note()).collect();
        assert_eq!(notes.len(), 8, "two per path, one of another connection and of another kind");
        assert_eq!(
            notes[..2],
            [hearing(0, false), state(0, PathState::Up)].map(|n| (connection, n))
        );
        assert_eq!(notes[3], (connection, state(1, PathState::Probing)));
        assert_eq!(notes[6], (connection, arrived(1472)));
        assert_eq!(notes[7], (ConnectionId(1), state(1, PathState::Off)));
        assert_eq!(news.poll_note(), None);
    }

    #[test]
    fn what_is_forgotten_is_not_fetched_and_others_are() {
        let mut news = News::default();
        let hearing = Note::Hearing { path: PathId(0), hearing: true };
        [3, 1, 2].into_iter().for_each(|number| news.note(ConnectionId(number), hearing));
        news.forget(ConnectionId(1));
        news.forget(ConnectionId(9));
        news.note(ConnectionId(3), Note::State { path: PathId(0), state: PathState::Up });
        let order: Vec<_> = std::iter::from_fn(|| news.poll_note()).map(|(id, _)| id.0).collect();
        assert_eq!(order, [3, 3, 2]);
        news.note(ConnectionId(1), hearing);
        assert_eq!(news.poll_note(), Some((ConnectionId(1), hearing)));
    }
}
