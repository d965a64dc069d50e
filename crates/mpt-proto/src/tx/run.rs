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

use crate::id::PathId;
use crate::time::Instant;

/// The most bytes of UDP payload in packets that take one path in a row, because they leave as one super-datagram: a
/// little less than that may have.
pub const MAX_RUN: usize = 65_000;

/// The most packets: as many as older kernels take in a super-datagram.
const MOST: usize = 64;

/// In bytes per second: a run takes a quarter of a millisecond at most.
pub(super) const FAST: u64 = 250_000_000;

/// The run, and how much is sent.
#[derive(Debug)]
pub(super) struct Run {
    /// Whether there are runs at present.
    is_fast: bool,
    /// The path of the last run, and the wake-up in which it began.
    path: PathId,
    now: Instant,
    /// How long its packets are; 0 if there is none.
    len: u32,
    /// How many packets it may have, and how many more.
    most: u16,
    left: u16,
    /// When it was asked last how much is sent, and how much had been.
    since: Instant,
    sent: u64,
}

impl Default for Run {
    fn default() -> Self {
        let [now, since] = [Instant::ZERO; 2];
        let (path, len, most, left) = (PathId(0), 0, 1, 0);
        Self { is_fast: false, path, now, len, most, left, since, sent: 0 }
    }
}

impl Run {
    /// The path of the run, if a packet of `len` bytes is the next one of it.
    #[inline(always)]
    pub(super) fn path_for(&self, now: Instant, len: usize) -> Option<PathId> {
        (len <= self.len as usize && self.left > 0 && now == self.now).then_some(self.path)
    }

    /// A packet of `len` bytes goes with the run. One that is shorter than the others is the last of a super-datagram.
    #[inline(always)]
    pub(super) fn add(&mut self, len: usize) {
        self.left -= 1;
        if len != self.len as usize {
            (self.most, self.left) = (self.most - self.left, 0);
        }
    }

    /// A run begins with a packet of `len` bytes, to which the framing adds some, if there are any runs at present.
    #[inline(always)]
    pub(super) fn begin(&mut self, now: Instant, path: PathId, len: usize, overhead: usize) {
        if self.is_fast {
            let most = (MAX_RUN / (len + overhead).max(1)).clamp(1, MOST) as u16;
            (self.path, self.now, self.len) = (path, now, len as u32);
            (self.most, self.left) = (most, most - 1);
        }
    }

    /// There is none any more. Returns its path, and how many packets that has had beyond the first.
    pub(super) fn end(&mut self) -> Option<(PathId, u32)> {
        let more = self.most - 1 - self.left;
        (self.len, self.most, self.left) = (0, 1, 0);
        (more > 0).then_some((self.path, more.into()))
    }

    /// Whether there are runs at present.
    #[inline(always)]
    pub(super) fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// Sets whether there are runs. A present one has [ended](Self::end) if there are none.
    pub(super) fn set_fast(&mut self, is_fast: bool) {
        self.is_fast = is_fast;
    }

    /// So many bytes have been sent up to now. Returns how many that were per second since this was asked last.
    pub(super) fn rate(&mut self, now: Instant, sent: u64) -> u64 {
        let micros = now.since(self.since).as_micros().max(1) as u64;
        let bytes = sent.saturating_sub(self.sent);
        (self.since, self.sent) = (now, sent);
        bytes.saturating_mul(1_000_000) / micros
    }
}
