//! What plain framing infers about one path from the peer's keepalives and from lengths of datagrams.

use std::num::NonZeroU16;
use std::time::Duration;

use crate::config::PathConfig;
use crate::path::estimator::{OVERTAKEN, is_before};
use crate::time::Instant;

/// The interval at which a peer is taken to send keepalives to a host that sends none.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(1);

/// What plain framing infers about one path, as its receiver.
#[derive(Debug)]
pub(crate) struct PlainPath {
    /// When the peer said, by its own clock, that it has lost the path, unless it has come back since.
    pub(crate) lost_at: Option<u32>,
    /// The peer's number for it.
    pub(crate) peer_id: Option<u8>,
    /// The number of calls with which the peer said last that it stands by. If that is the last of all
    /// calls nobody waits for packets of this path: none are sent.
    pub(crate) stands_by: Option<u8>,
    /// Whether keepalives mean anything here. Where none are sent and none are missed, the peer is
    /// of a kind that has none, and a forged one must not speak for it.
    pub(crate) speaks_keepalive: bool,
    longest: Longest,
}

/// The longest datagram of a keepalive interval: reported when one is longer than all before it,
/// and so at least once in each interval.
#[derive(Debug)]
struct Longest {
    /// `None` if no keepalive could report it to the peer.
    every: Option<Duration>,
    len: u16,
    until: Instant,
}

impl PlainPath {
    pub(crate) fn new(config: &PathConfig, known_to_speak: bool) -> Self {
        Self {
            lost_at: None,
            peer_id: None,
            stands_by: None,
            speaks_keepalive: speaks_keepalive(config) || known_to_speak,
            longest: Longest { every: config.keepalive, len: 0, until: Instant::ZERO },
        }
    }

    /// Other settings of the path.
    pub(crate) fn set(&mut self, config: &PathConfig, known_to_speak: bool) {
        self.longest.every = config.keepalive;
        self.speaks_keepalive = speaks_keepalive(config) || known_to_speak;
    }

    /// The longest datagram of this keepalive interval, in bytes.
    pub(crate) fn longest(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.longest.len)
    }

    /// The peer has restarted.
    pub(crate) fn forget_peer(&mut self) {
        (self.lost_at, self.peer_id, self.stands_by) = (None, None, None);
    }

    /// The interval at which the peer is taken to send keepalives: that of this end.
    pub(crate) fn interval(&self) -> Duration {
        self.longest.every.unwrap_or(UNKNOWN_INTERVAL)
    }

    /// A valid datagram of this length arrived. Returns its length if it must be reported to the
    /// peer.
    #[inline(always)]
    pub(crate) fn on_arrived(&mut self, now: Instant, len: usize) -> Option<u16> {
        self.longest.on_arrived(now, len)
    }

    /// Whether the peer sent a keepalive with this time before it lost the path: it was in flight
    /// while the report of the loss came by another path, and does not mean that the path is back.
    pub(crate) fn is_from_before_loss(&self, time: Option<u32>) -> bool {
        self.lost_at.zip(time).is_some_and(|(lost, time)| is_before(time, lost, OVERTAKEN))
    }
}

impl Longest {
    /// A datagram arrived. Returns its length if it must be reported.
    #[inline(always)]
    fn on_arrived(&mut self, now: Instant, len: usize) -> Option<u16> {
        // No datagram is longer than UDP's own length can say.
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        if len <= self.len && now < self.until {
            return None;
        }
        let every = self.every?;
        if now >= self.until {
            self.until = now + every;
        }
        self.len = len;
        Some(len)
    }
}

/// Whether keepalives are sent, or missed.
fn speaks_keepalive(config: &PathConfig) -> bool {
    config.keepalive.is_some() || config.dead_time.is_some()
}
