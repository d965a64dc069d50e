//! The events of a tunnel for the main thread.

use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};

use mpt_io::poll::Waker;
use mpt_proto::{
    ClientRequest, ConnectRequest, ConnectionId, DownCause, Event, PathId, PathRequest, PathState,
};

/// Most main_events that wait for the main thread. A lost event is repeated by the next one of its
/// kind, or found when the main thread polls.
const CAPACITY: usize = 1024;

/// Something that the main thread may want to act upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MainEvent {
    /// The peer is not heard on a path any more, or again.
    Heard {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Whether it is.
        heard: bool,
    },
    /// Somebody has deleted the tunnel's interface.
    InterfaceGone {
        /// Its number.
        index: u32,
    },
    /// A connect request of a peer that is not configured.
    ConnectRequest {
        /// Who, and by which template.
        request: ConnectRequest,
        /// The address of this host to which it spoke.
        local: Option<IpAddr>,
    },
    /// A client that is known by its key begins a handshake.
    ClientRequest {
        /// Who, and by which template.
        request: ClientRequest,
        /// The address of this host to which it spoke.
        local: Option<IpAddr>,
    },
    /// The peer of a connection is at an origin that no path of it has.
    PathRequest {
        /// Where, on which connection.
        request: PathRequest,
        /// The address of this host to which it spoke.
        local: Option<IpAddr>,
    },
}

/// Where main_events are given.
#[derive(Clone, Debug)]
pub(super) struct MainEvents {
    queue: SyncSender<MainEvent>,
    waker: Waker,
}

impl MainEvents {
    /// A queue to the thread that waits with the waker's poll.
    pub(super) fn new(waker: Waker) -> (Self, Receiver<MainEvent>) {
        let (queue, receiver) = mpsc::sync_channel(CAPACITY);
        (Self { queue, waker }, receiver)
    }

    /// Tells of an event, if it is one to act upon.
    pub(super) fn event(&self, event: Event) {
        let Event::Path { connection, path, to, .. } = event else { return };
        let heard = match to {
            PathState::Up => true,
            // A peer that has gone may come back elsewhere.
            PathState::Down(
                DownCause::Silent
                | DownCause::PeerDeaf
                | DownCause::PeerDown
                | DownCause::PeerLost
                | DownCause::PeerOff
                | DownCause::PeerStopped,
            ) => false,
            PathState::Down(DownCause::Absent)
            | PathState::Off
            | PathState::Probing
            | PathState::UnusableMtu => return,
        };
        self.give(MainEvent::Heard { connection, path, heard });
    }

    /// Gives an event, if there is room for it. Returns whether there was.
    pub(super) fn give(&self, main_event: MainEvent) -> bool {
        // A main thread that is gone or stands still needs none.
        let given = self.queue.try_send(main_event).is_ok();
        if given {
            self.waker.wake();
        }
        given
    }
}
