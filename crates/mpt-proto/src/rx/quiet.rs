//! Paths by which nothing comes any more, though something should.
//!
//! A path that has nothing to carry says so: a beacon follows 5 ms after the last packet, and another one 20 ms later (section
//! 8.2 of `docs/protocol.md`). So until both have come something is to come, and if nothing does the path may be dead. The peer
//! is told at once what has arrived, on two paths: it need not wait until feedback has stayed out for longer than usual.

use std::time::Duration;

use crate::time::Instant;
use crate::wire::extended::beacon::AFTER;

/// After a packet something follows in this time, and after the first beacon in that.
const AFTER_PACKET: Duration = AFTER[0];
const AFTER_BEACON: Duration = AFTER[1].saturating_sub(AFTER[0]);

/// How much later it may come at least: what a busy host takes.
const SPARE: Duration = Duration::from_millis(5);

/// How many mean deviations of the delay it may be late, and how many times what lies between two packets: where a path is slow
/// no beacon follows a packet behind which another one waits.
const DEVIATIONS: u32 = 4;
const GAPS: u32 = 2;

/// The peer is told so often that nothing follows, and with so much time between.
const TIMES: u8 = 4;
pub(super) const AGAIN: Duration = Duration::from_millis(10);

/// What came last by a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// The second beacon, or nothing yet: nothing need follow.
    #[default]
    Rest,
    Packet,
    Beacon,
}

/// What should come by a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet {
    last: Last,
    /// When something came last.
    since: Instant,
    /// The smoothed time between packets that follow each other without a beacon, in microseconds.
    gap: u32,
    /// How often the peer was told that nothing follows.
    told: u8,
}

impl Quiet {
    /// When something is overdue at the earliest.
    pub(super) const EARLIEST: Duration = AFTER_PACKET.saturating_add(SPARE);

    /// A packet came that is not out of turn, behind all that had come by the path.
    pub(super) fn on_packet(&mut self, at: Instant) {
        if self.last == Last::Packet {
            let micros = u32::try_from(at.since(self.since).as_micros()).unwrap_or(u32::MAX);
            self.gap = self.gap - self.gap / 8 + micros / 8;
        }
        *self = Self { last: Last::Packet, since: at, told: 0, ..*self };
    }

    /// A beacon came behind all that had come by the path.
    pub(super) fn on_beacon(&mut self, at: Instant) {
        let last = if self.last == Last::Packet { Last::Beacon } else { Last::Rest };
        *self = Self { last, since: at, told: 0, ..*self };
    }

    /// Something else came.
    #[inline]
    pub(super) fn on_other(&mut self, at: Instant) {
        (self.since, self.told) = (self.since.max(at), 0);
    }

    /// When something will be overdue, and the peer is to be told so, where delays have this mean deviation; `None` if nothing
    /// need come, or that was told often enough.
    pub(super) fn due(&self, deviation: Duration) -> Option<Instant> {
        let follows = match self.last {
            Last::Rest => return None,
            Last::Packet => AFTER_PACKET,
            Last::Beacon => AFTER_BEACON,
        };
        let spare =
            (deviation * DEVIATIONS).max(Duration::from_micros(self.gap.into()) * GAPS).max(SPARE);
        let again = AGAIN * u32::from(self.told);
        (self.told < TIMES).then(|| self.since + follows + spare + again)
    }

    /// The peer is told that nothing follows.
    pub(super) fn on_told(&mut self) {
        self.told = self.told.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn after_a_packet_a_beacon_is_due_and_after_that_another_one() {
        let (mut quiet, steady) = (Quiet::default(), Duration::ZERO);
        assert_eq!(quiet.due(steady), None);
        quiet.on_packet(at(100));
        assert_eq!(quiet.due(steady), Some(at(110)));
        assert_eq!(quiet.due(Duration::from_millis(4)), Some(at(121)), "four deviations");
        quiet.on_beacon(at(105));
        assert_eq!(quiet.due(steady), Some(at(130)));
        quiet.on_other(at(120));
        assert_eq!(quiet.due(steady), Some(at(145)), "the path delivers");
        quiet.on_beacon(at(125));
        assert_eq!(quiet.due(steady), None, "nothing need follow");
        quiet.on_other(at(400));
        assert_eq!(quiet.due(steady), None);
    }

    #[test]
    fn where_packets_are_far_apart_the_next_is_waited_for_longer() {
        let mut quiet = Quiet::default();
        (0..100).for_each(|number| quiet.on_packet(at(12 * number)));
        let due = quiet.due(Duration::ZERO).unwrap();
        assert!(due > at(99 * 12 + 5 + 23) && due <= at(99 * 12 + 5 + 24), "{due:?}");
        // A call has a beacon behind each packet, and is not slow.
        let mut quiet = Quiet::default();
        for number in 0..100 {
            quiet.on_packet(at(20 * number));
            quiet.on_beacon(at(20 * number + 5));
        }
        assert_eq!(quiet.due(Duration::ZERO), Some(at(99 * 20 + 30)));
    }

    #[test]
    fn the_peer_is_told_four_times_and_anew_when_something_has_come() {
        let (mut quiet, steady) = (Quiet::default(), Duration::ZERO);
        quiet.on_packet(at(100));
        let told = (0..6).map_while(|_| {
            let due = quiet.due(steady);
            quiet.on_told();
            due
        });
        assert_eq!(told.collect::<Vec<_>>(), [110, 120, 130, 140].map(at));
        quiet.on_packet(at(300));
        assert!(quiet.due(steady).is_some());
    }
}
