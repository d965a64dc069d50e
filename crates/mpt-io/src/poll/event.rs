//! What is waited for, and what came.

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Something can be read, or the other end closed.
    pub readable: bool,
    /// Something can be written.
    pub writable: bool,
}

impl Interest {
    /// Reading only.
    pub const READABLE: Self = Self { readable: true, writable: false };
    /// Writing only.
    pub const WRITABLE: Self = Self { readable: false, writable: true };
    /// Both.
    pub const BOTH: Self = Self { readable: true, writable: true };

    pub(super) fn bits(self) -> u32 {
        let mut bits = 0;
        if self.readable {
            bits |= libc::EPOLLIN | libc::EPOLLRDHUP;
        }
        if self.writable {
            bits |= libc::EPOLLOUT;
        }
        bits as u32
    }
}

/// One descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number that was given with the descriptor.
    pub token: u64,
    /// Reading will not block: there is data, an error or the end.
    pub readable: bool,
    /// Writing will not block.
    pub writable: bool,
    /// The other end is gone, or the descriptor has an error to report.
    pub closed: bool,
}

/// Room for the result of a wait.
pub struct Events {
    pub(super) room: Box<[libc::epoll_event]>,
    pub(super) count: usize,
}

impl Events {
    /// Room for `capacity` events per wait, at least one. What does not fit comes with the next wait.
    pub fn with_capacity(capacity: usize) -> Self {
        let empty = libc::epoll_event { events: 0, u64: 0 };
        Self { room: vec![empty; capacity.max(1)].into_boxed_slice(), count: 0 }
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.room[..self.count].iter().map(|event| {
            let (bits, token) = (event.events.cast_signed(), event.u64);
            let closed = bits & (libc::EPOLLHUP | libc::EPOLLRDHUP | libc::EPOLLERR) != 0;
            Event {
                token,
                readable: bits & libc::EPOLLIN != 0 || closed,
                writable: bits & libc::EPOLLOUT != 0 || bits & libc::EPOLLERR != 0,
                closed,
            }
        })
    }

    /// Number of events of the last wait.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the last wait ended without an event.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
