//! What a session measures of the peer's datagrams.

use std::time::Duration;

use crate::id::PathId;
use crate::path::delay::Delays;
use crate::rx::missing::FeedbackCame;
use crate::time::Instant;

/// The measurements of one session.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) delays: Delays,
    /// The arrival, path and send timestamp of the last datagram.
    pub(super) last: (Instant, PathId, u32),
    /// When the last feedback was given out, and what arrived since, in bytes.
    pub(super) told_at: Instant,
    pub(super) bytes: u64,
    /// When the next one is due, if anything arrived since.
    pub(super) due: Option<Instant>,
    /// When it will be known what is lost. What arrives until then is told before.
    pub(super) lost_at: Option<Instant>,
    /// When packets will have been held for long, for what may be on a path that is silent, as far as that is known.
    pub(super) silent_at: Option<Instant>,
    /// When something may be overdue on a path.
    pub(super) quiet_at: Option<Instant>,
    pub(super) slack: Slack,
    /// The same of packets that are sent again.
    pub(super) repair_slack: Slack,
    /// Whether losses are repaired.
    pub(super) repairs: bool,
    /// Which feedback has come.
    pub(super) came: FeedbackCame,
}

/// How much longer gaps are waited for than the delays explain: more since packets have come after they were given
/// up, as a queue that grows makes them.
#[derive(Debug, Default)]
pub(super) struct Slack {
    extra: Duration,
    late: u64,
    since: Instant,
}

impl Slack {
    /// What a late packet adds at first, and the most that many add.
    const STEP: Duration = Duration::from_millis(10);
    const MOST: Duration = Duration::from_millis(160);

    /// Without a late packet for so long it is halved.
    const FORGIVEN: Duration = Duration::from_secs(5);

    /// Takes in how many packets have come late so far. Returns what to wait in addition.
    pub(super) fn after(&mut self, now: Instant, late: u64) -> Duration {
        if late != self.late {
            (self.late, self.since) = (late, now);
            self.extra = (self.extra * 2).clamp(Self::STEP, Self::MOST);
        } else if now.since(self.since) >= Self::FORGIVEN {
            self.since = now;
            self.extra = if self.extra > Self::STEP { self.extra / 2 } else { Duration::ZERO };
        }
        self.extra
    }
}

/// What is known of the way from the peer by one path, in extended framing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiveQuality {
    /// How much longer datagrams take by this path than by the fastest of the connection at its best.
    pub delay: Duration,
    /// How much longer than they take at best, on average: the time in queues.
    pub queueing: Duration,
    /// The mean deviation of the delay.
    pub deviation: Duration,
    /// Interarrival jitter (RFC 3550 section 6.4.1) of all datagrams.
    pub jitter: Duration,
    /// Datagrams that were lost for certain.
    pub lost: u64,
    /// Datagrams that arrived, control included, copies not.
    pub received: u64,
}

impl Measured {
    /// A session in which losses are repaired or not.
    pub(super) fn new(repairs: bool) -> Self {
        Self {
            delays: Delays::default(),
            last: (Instant::ZERO, PathId(u8::MAX), 0),
            told_at: Instant::ZERO,
            bytes: 0,
            due: None,
            lost_at: None,
            silent_at: None,
            quiet_at: None,
            slack: Slack::default(),
            repair_slack: Slack::default(),
            repairs,
            came: FeedbackCame::default(),
        }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.delays.memory()
    }

    /// Gives back memory that is not needed.
    pub(super) fn rest(&mut self) {
        self.delays.rest();
    }

    /// A path is gone, or new.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.delays.forget_path(path);
    }

    /// Something arrived that is to be told so much later, if nothing is to be told sooner that arrived before. That a loss
    /// will be known later is no reason to wait for it.
    #[inline]
    pub(super) fn tell_after(&mut self, now: Instant, time: Duration) {
        self.due.get_or_insert(now + time);
    }

    /// What is lost is to be told at this time, or earlier.
    #[inline]
    pub(super) fn tell_by(&mut self, at: Instant) {
        self.lost_at = Some(self.lost_at.map_or(at, |before| before.min(at)));
    }

    /// When the next feedback is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.due, self.lost_at, self.silent_at, self.quiet_at].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_told_before_it_is_known_what_is_lost() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut measured = Measured::new(true);
        measured.tell_by(at(50));
        assert_eq!(measured.deadline(), Some(at(50)));
        measured.tell_after(at(1), Duration::from_millis(5));
        measured.tell_after(at(2), Duration::from_millis(5));
        assert_eq!(measured.deadline(), Some(at(6)));
    }

    #[test]
    fn late_packets_make_waits_longer_until_none_comes_for_a_while() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut slack = Slack::default();
        let mut after = |now, late| slack.after(now, late).as_millis();
        assert_eq!(after(at(0), 0), 0);
        assert_eq!([1, 2, 3, 3].map(|late| after(at(1), late)), [10, 20, 40, 40]);
        assert_eq!((4..20).map(|late| after(at(2), late)).last(), Some(160));
        assert_eq!((after(at(6), 19), after(at(7), 19), after(at(8), 19)), (160, 80, 80));
        assert_eq!([12, 17, 22, 27, 32].map(|now| after(at(now), 19)), [40, 20, 10, 0, 0]);
    }
}
