//! Whether a keepalive can be the peer's, by its sending time and by how much it says was sent.
//!
//! Plain framing authenticates nothing, so a single keepalive is not evidence of a jump. The peer's clock runs
//! as fast as ours: a keepalive that was sent later than the fastest one so far allows is not genuine, or the
//! delay of the path has fallen, or the peer has restarted. If further keepalives continue it for a whole
//! keepalive interval, and none fits the former clock, the jump is accepted. A keepalive that begins at 0 is
//! accepted immediately, because a restart must not take time; if it was forged, the next genuine one fits the
//! clock that was left, which is therefore kept.

use std::time::Duration;

use crate::time::Instant;
use crate::wire::keepalive::Trailer;

/// How much faster than any keepalive so far one may be.
const FASTER: Duration = Duration::from_millis(250);

/// The same as a multiple of the jitter, where that is more.
const FASTER_JITTERS: u32 = 4;

/// How much faster one may be that arrives on another path, whose delay is less, in microseconds.
const FASTER_PATH: i32 = 500_000;

/// For so many microseconds a keepalive may have been overtaken by another on the same path.
const OVERTAKEN: i32 = 1_000_000;

/// How much faster a keepalive may be than the fastest one so far on a path with this jitter, in microseconds.
pub(super) fn tolerance(jitter: Option<Duration>) -> i32 {
    let faster = FASTER.max(jitter.unwrap_or_default() * FASTER_JITTERS);
    i32::try_from(faster.as_micros()).unwrap_or(i32::MAX).min(OVERTAKEN)
}

/// Sending times wrap after 71 minutes. After a pause of this length they cannot be compared.
const PAUSE: Duration = Duration::from_secs(1800);

/// The fastest keepalive counts for less by this part of the time since: clocks drift, and paths change.
const DRIFT: u32 = 1000;

/// So many more datagrams than arrived may have been sent at any time, and per millisecond: what a path can
/// have lost.
const LOST: i64 = 16_384;
const LOST_PER_MILLISECOND: i64 = 100;

/// How a keepalive relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It follows them.
    Follows,
    /// One that was sent later arrived before it.
    Overtaken,
    /// It follows those before the last jump.
    Returns,
    /// The peer has restarted, or its clock has jumped.
    Jumps,
    /// It may be forged.
    Doubted,
}

/// The clock of the peer, as the keepalives on one path show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerClock {
    /// The last keepalive: when it was sent and when it arrived, how many datagrams had been sent, and how many
    /// had arrived.
    time: u32,
    at: Instant,
    sent: u32,
    arrived: u32,
    /// Sending time less arrival of the fastest keepalive, in microseconds modulo 2^32.
    fastest: u32,
}

/// Keepalives that do not follow the clock, the last of them, and when the first one arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unconfirmed {
    clock: PeerClock,
    since: Instant,
}

impl PeerClock {
    pub(super) fn new(now: Instant, trailer: &Trailer, arrived: u32) -> Self {
        let Trailer { time, sent, .. } = *trailer;
        Self { time, at: now, sent, arrived, fastest: offset(now, time) }
    }

    /// A keepalive that follows arrived.
    pub(super) fn on_keepalive(&mut self, now: Instant, trailer: &Trailer, arrived: u32) {
        let fastest = self.fastest_at(now);
        let next = Self::new(now, trailer, arrived);
        let faster = ahead(next.fastest, fastest) > 0;
        *self = Self { fastest: if faster { next.fastest } else { fastest }, ..next };
    }

    /// Whether the peer can have sent this now, `arrived` datagrams having arrived.
    pub(super) fn allows(
        &self,
        now: Instant,
        trailer: &Trailer,
        arrived: u32,
        tolerance: i32,
    ) -> bool {
        let in_time = !self.is_old(now)
            && ahead(trailer.time, self.time) >= -OVERTAKEN
            && ahead(offset(now, trailer.time), self.fastest_at(now)) <= tolerance;
        // What was overtaken says how much had been sent before.
        in_time && (self.has_overtaken(trailer) || self.allows_sent(now, trailer.sent, arrived))
    }

    fn allows_sent(&self, now: Instant, sent: u32, arrived: u32) -> bool {
        let more = i64::from(ahead(sent, self.sent));
        let lost = more - i64::from(arrived.wrapping_sub(self.arrived));
        let elapsed = i64::try_from(now.since(self.at).as_millis()).unwrap_or(i64::MAX);
        // Less than before: the last one may have been forged, by as much as this allows.
        more >= -LOST - LOST_PER_MILLISECOND * 1000
            && lost <= LOST.saturating_add(elapsed.saturating_mul(LOST_PER_MILLISECOND))
    }

    /// Whether so long ago that nothing can be compared with it.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        now.since(self.at) >= PAUSE
    }

    /// Whether this was sent before the last keepalive.
    pub(super) fn has_overtaken(&self, trailer: &Trailer) -> bool {
        (-OVERTAKEN..0).contains(&ahead(trailer.time, self.time))
    }

    /// Whether the peer can have sent something at this time on a faster path, if that arrives now.
    pub(super) fn allows_elsewhere(&self, now: Instant, time: u32) -> bool {
        !self.is_old(now) && ahead(offset(now, time), self.fastest_at(now)) <= FASTER_PATH
    }

    fn fastest_at(&self, now: Instant) -> u32 {
        let since = now.since(self.at).min(PAUSE);
        self.fastest.wrapping_sub((since / DRIFT).as_micros() as u32)
    }
}

impl Unconfirmed {
    /// After another keepalive that does not follow the clock.
    pub(super) fn after(
        before: Option<Self>,
        now: Instant,
        trailer: &Trailer,
        arrived: u32,
        tolerance: i32,
    ) -> Self {
        match before {
            Some(mut doubt) if doubt.clock.allows(now, trailer, arrived, tolerance) => {
                doubt.clock.on_keepalive(now, trailer, arrived);
                doubt
            }
            _ => Self { clock: PeerClock::new(now, trailer, arrived), since: now },
        }
    }

    /// Whether it has lasted for a keepalive interval.
    pub(super) fn is_over(&self, now: Instant, interval: Duration) -> bool {
        now.since(self.since) >= interval
    }
}

/// Sending time less arrival.
fn offset(now: Instant, time: u32) -> u32 {
    time.wrapping_sub(now.micros())
}

/// How far one value modulo 2^32 is ahead of another.
fn ahead(value: u32, other: u32) -> i32 {
    value.wrapping_sub(other).cast_signed()
}
