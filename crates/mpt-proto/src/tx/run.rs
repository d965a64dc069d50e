//! Packets that take one path in a row, because they leave as one.
//!
//! What it costs the kernel to send and to receive a super-datagram hardly depends on how many datagrams that has: 3 µs
//! at the sender and 0.7 µs at the receiver, as much as six packets. Where packets take their paths one by one, a
//! super-packet of 64 KB that an application wrote becomes two halves, and each path gets what does not fill its
//! super-datagrams. So while much is sent in a session the paths take turns in *runs*: as many packets as leave in one
//! super-datagram. The shares of the paths stay the same: one that has had a run waits for as many of its turns.
//!
//! A run is of one wake-up, because what was staged is sent at its end. The peer puts it in order as it does what comes by
//! paths of different delays. On a slow path it would take long, and so would what waits for it; so runs begin where each
//! path carries [`FAST`].

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;

/// The most bytes of UDP payload in packets that take one path in a row, because they leave as one super-datagram: a
/// little less than that may have.
pub const MAX_RUN: usize = 65_000;

/// The most packets: as many as older kernels take in a super-datagram.
const MOST: u32 = 64;

/// In bytes per second: a run takes a quarter of a millisecond at most.
pub(super) const FAST: u64 = 250_000_000;

/// What is sent is measured over this time.
const WINDOW: Duration = Duration::from_millis(4);

/// The run, and how much is sent.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Whether there are runs at present.
    is_fast: bool,
    /// The path of the last run, the wake-up in which it began, and how many packets it has beyond the first.
    path: Option<PathId>,
    now: Instant,
    more: u32,
    /// How long its datagrams are, and how many bytes more it may take.
    len: usize,
    left: usize,
    /// What was sent since then, and when that is looked at.
    bytes: u64,
    since: Instant,
    look_at: Instant,
}

impl Run {
    /// The path of the run, if a datagram of `len` bytes is one of it.
    #[inline(always)]
    pub(super) fn path_for(&self, now: Instant, len: usize) -> Option<PathId> {
        let is_next = len <= self.left && len <= self.len && now == self.now;
        self.path.filter(|_| is_next && self.more + 1 < MOST)
    }

    /// A datagram of `len` bytes goes with the run. One that is shorter than the others is the last of a super-datagram.
    #[inline(always)]
    pub(super) fn add(&mut self, len: usize) {
        self.more += 1;
        self.left = if len < self.len { 0 } else { self.left.saturating_sub(len) };
    }

    /// A run begins with a datagram of `len` bytes, if there are any at present.
    #[inline(always)]
    pub(super) fn begin(&mut self, now: Instant, path: PathId, len: usize) {
        if !self.is_fast {
            return;
        }
        (self.path, self.now, self.more) = (Some(path), now, 0);
        (self.len, self.left) = (len, MAX_RUN.saturating_sub(len));
    }

    /// There is none any more. Returns its path, and how many packets that has had beyond the first.
    pub(super) fn end(&mut self) -> Option<(PathId, u32)> {
        let path = self.path.take()?;
        (self.more > 0).then_some((path, self.more))
    }

    /// Whether there are runs at present.
    #[inline(always)]
    pub(super) fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// A datagram of `len` bytes is sent. Returns whether it is time to ask for the [rate](Self::rate).
    #[inline(always)]
    pub(super) fn count(&mut self, now: Instant, len: usize) -> bool {
        self.bytes += len as u64;
        now >= self.look_at
    }

    /// Sets whether there are runs. A present one has [ended](Self::end) if there are none.
    pub(super) fn set_fast(&mut self, is_fast: bool) {
        self.is_fast = is_fast;
    }

    /// So many bytes per second were sent since this was asked last.
    pub(super) fn rate(&mut self, now: Instant) -> u64 {
        let micros = now.since(self.since).as_micros().max(1) as u64;
        let bytes = std::mem::take(&mut self.bytes);
        (self.since, self.look_at) = (now, now + WINDOW);
        bytes.saturating_mul(1_000_000) / micros
    }
}
