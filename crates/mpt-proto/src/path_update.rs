//! What the receive side has to tell: path updates to the transmit side, events to whoever reads them.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use crate::event::{Event, Events};
use crate::id::ConnectionId;
use crate::id::PathId;
use crate::path::PathState;
use crate::path::estimator::Heard;
use crate::wire::keepalive::Arrivals;

/// What the transmit side must know of what the receive side has seen.
///
/// A path update says how a path *is*, not how it changed, so that a later one of the same kind and path
/// makes an earlier one superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUpdate {
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
        /// The weight that the peer wants for the path, if it announces one.
        weight: Option<NonZeroU16>,
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

impl PathUpdate {
    /// How many path updates may wait for one path.
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

/// PathUpdates and events that wait to be fetched.
///
/// PathUpdates are kept by connection, so that what one of thousands says finds its place at once.
#[derive(Debug, Default)]
pub(crate) struct PathUpdates {
    /// The path updates of each connection, oldest first. At most one of each kind for each path, however long
    /// nobody fetches them: [`PathUpdate::KINDS`] per path.
    path_updates: Vec<VecDeque<PathUpdate>>,
    /// The connections that have path updates, each once, in the order in which they had their first.
    waiting: VecDeque<ConnectionId>,
    events: Events,
}

impl PathUpdates {
    pub(crate) fn update(&mut self, connection: ConnectionId, update: PathUpdate) {
        if self.path_updates.len() <= connection.index() {
            self.path_updates.resize_with(connection.index() + 1, VecDeque::new);
        }
        let path_updates = &mut self.path_updates[connection.index()];
        if path_updates.is_empty() {
            self.waiting.push_back(connection);
        }
        match path_updates.iter_mut().find(|earlier| update.replaces(earlier)) {
            Some(earlier) => *earlier = update.after(*earlier),
            None => path_updates.push_back(update),
        }
    }

    /// Nobody needs the path updates about a connection any more.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if let Some(path_updates) = self.path_updates.get_mut(connection.index()) {
            *path_updates = VecDeque::new();
            self.waiting.retain(|other| *other != connection);
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn poll_path_update(&mut self) -> Option<(ConnectionId, PathUpdate)> {
        let connection = *self.waiting.front()?;
        let path_updates = &mut self.path_updates[connection.index()];
        let update = path_updates.pop_front();
        if path_updates.is_empty() {
            self.waiting.pop_front();
        }
        Some((connection, update?))
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
        let (mut updates, connection) = (PathUpdates::default(), ConnectionId(0));
        let hearing = |path, hearing| PathUpdate::Hearing { path: PathId(path), hearing };
        let state = |path, state| PathUpdate::State { path: PathId(path), state };
        for round in 0..1000 {
            for path in 0..3 {
                updates.update(connection, hearing(path, round % 2 == 0));
                updates.update(connection, state(path, PathState::Up));
            }
        }
        updates.update(connection, state(1, PathState::Probing));
        updates.update(ConnectionId(1), state(1, PathState::Off));
        let arrived = |len| PathUpdate::Arrived { path: PathId(9), len };
        [5, 1472, 44].into_iter().for_each(|len| updates.update(connection, arrived(len)));
        let path_updates: Vec<_> = std::iter::from_fn(|| updates.poll_path_update()).collect();
        assert_eq!(
            path_updates.len(),
            8,
            "two per path, one of another connection and of another kind"
        );
        assert_eq!(
            path_updates[..2],
            [hearing(0, false), state(0, PathState::Up)].map(|n| (connection, n))
        );
        assert_eq!(path_updates[3], (connection, state(1, PathState::Probing)));
        assert_eq!(path_updates[6], (connection, arrived(1472)));
        assert_eq!(path_updates[7], (ConnectionId(1), state(1, PathState::Off)));
        assert_eq!(updates.poll_path_update(), None);
    }

    #[test]
    fn what_is_forgotten_is_not_fetched_and_others_are() {
        let mut updates = PathUpdates::default();
        let hearing = PathUpdate::Hearing { path: PathId(0), hearing: true };
        [3, 1, 2].into_iter().for_each(|number| updates.update(ConnectionId(number), hearing));
        updates.forget(ConnectionId(1));
        updates.forget(ConnectionId(9));
        updates
            .update(ConnectionId(3), PathUpdate::State { path: PathId(0), state: PathState::Up });
        let order: Vec<_> =
            std::iter::from_fn(|| updates.poll_path_update()).map(|(id, _)| id.0).collect();
        assert_eq!(order, [3, 3, 2]);
        updates.update(ConnectionId(1), hearing);
        assert_eq!(updates.poll_path_update(), Some((ConnectionId(1), hearing)));
    }
}
