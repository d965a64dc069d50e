//! What the main thread is told of its own accord by a tunnel.

use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};

use mpt_io::poll::Waker;
use mpt_proto::{ConnectionId, DownCause, Event, Knock, PathId, PathState};

/// Most notices that wait for the main thread. What does not fit is told again by the next event of
/// its kind, or found when the main thread looks for itself.
const CAPACITY: usize = 1024;

/// Something that the main thread may want to act upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The peer is not heard on a path any more, or again.
    Heard {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Whether it is.
        heard: bool,
    },
    /// A peer that nobody configured wants to be let in.
    Knock {
        /// Who, and by which template.
        knock: Knock,
        /// The address of this host to which it spoke.
        local: Option<IpAddr>,
    },
}

/// Where notices are given.
#[derive(Clone, Debug)]
pub(super) struct Notices {
    queue: SyncSender<Notice>,
    waker: Waker,
}

impl Notices {
    /// A queue to the thread that waits with the waker's poll.
    pub(super) fn new(waker: Waker) -> (Self, Receiver<Notice>) {
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
                | DownCause::PeerOff,
            ) => false,
            PathState::Down(DownCause::Absent)
            | PathState::Off
            | PathState::Probing
            | PathState::UnusableMtu => return,
        };
        self.give(Notice::Heard { connection, path, heard });
    }

    /// Gives a notice.
    pub(super) fn give(&self, notice: Notice) {
        // A main thread that is gone or stands still needs no notice.
        if self.queue.try_send(notice).is_ok() {
            self.waker.wake();
        }
    }
}
