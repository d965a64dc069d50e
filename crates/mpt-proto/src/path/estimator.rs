//! What the keepalives of the peer say of a path: round trip, jitter, loss.
//!
//! A keepalive contains its sending time and the number of datagrams with inner packets sent before
//! it, and echoes the last sending time that reached the peer with its waiting time there. See
//! section 4.4 of `docs/protocol.md`.

use std::time::Duration;

use super::clock::{Judgement, PeerClock, Unconfirmed, tolerance};
use super::jitter::Jitter;
use super::loss::Loss;
use super::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::keepalive::{Echo, Trailer};

/// No path is slower. Such an echo is of a time before a restart of this end.
const LONGEST: Duration = Duration::from_secs(60);

/// For this many microseconds, 10 s, a keepalive may have been in flight. An apparently longer time
/// indicates a restart of the peer (section 4.4 of `docs/protocol.md`).
pub(crate) const OVERTAKEN: u32 = 10_000_000;

/// Measurements of a path. Each is `None` until the peer's keepalives provide it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// How long datagrams take to the peer and back, without what they wait there.
    pub round_trip: Option<RoundTrip>,
    /// How the time from the peer to here varies: interarrival jitter (RFC 3550 section 6.4.1) of
    /// its keepalives.
    pub jitter: Option<Duration>,
    /// How many of the peer's datagrams with inner packets did not arrive, since it was first heard.
    /// Exact where the path keeps its order; elsewhere as many as were on their way at a keepalive can be
    /// counted in error, until the next one.
    pub lost: Option<u64>,
    /// Their share of those sent in the last ten seconds or so, from 0 to 1; `None` if none were.
    pub loss_recent: Option<f64>,
}

/// When the peer sent a keepalive and when that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it was sent, in microseconds of the peer's clock, modulo 2^32.
    pub time: u32,
    /// When it came.
    pub at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PathEstimator {
    round_trip: Option<RoundTrip>,
    jitter: Jitter,
    loss: Loss,
    /// How many datagrams with inner packets came, modulo 2^32, copies not counted.
    arrived: u32,
    heard: Option<Heard>,
    /// The peer's clock, by the keepalives so far.
    clock: Option<PeerClock>,
    /// The clock and the losses before the last jump.
    left: Option<Box<(PeerClock, Loss)>>,
    /// Keepalives that may be forged, since the last one that followed.
    doubt: Option<Unconfirmed>,
}

impl PathEstimator {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let left = self.left.as_deref().map_or(0, |it| size_of_val(it) + it.1.memory());
        self.loss.memory() + left
    }

    /// A datagram with an inner packet arrived, delivered or not.
    #[inline]
    pub(crate) fn on_data(&mut self) {
        self.arrived = self.arrived.wrapping_add(1);
    }

    /// What came last was a copy of what had come before.
    pub(crate) fn on_copy(&mut self) {
        self.arrived = self.arrived.wrapping_sub(1);
    }

    /// A keepalive came that was so [judged](Self::judge). Returns the sending time to be echoed, if the peer's
    /// keepalives tell any.
    pub(crate) fn on_keepalive(
        &mut self,
        now: Instant,
        trailer: Option<Trailer>,
        judgement: Judgement,
    ) -> Option<Heard> {
        let Some(trailer @ Trailer { sent, time, echo }) = trailer else {
            self.heard = None;
            return None;
        };
        if matches!(judgement, Judgement::Returns | Judgement::Jumps) {
            self.change_clock(judgement);
        }
        match &mut self.clock {
            Some(clock) => clock.on_keepalive(now, &trailer, self.arrived),
            None => self.clock = Some(PeerClock::new(now, &trailer, self.arrived)),
        }
        self.jitter.on_arrival(time, now);
        self.loss.on_keepalive(now, time, sent, self.arrived);
        if let Some(round_trip) = echo.and_then(|echo| round_trip(now, echo)) {
            self.round_trip = Some(RoundTrip::after(self.round_trip, round_trip));
        }
        // An overtaken one took a slower route, but its echo is as good: the waiting time is known.
        self.heard = Some(Heard { time, at: now });
        self.heard
    }

    /// Whether a keepalive can be the peer's, which sends one at this interval. To be asked before
    /// [`on_keepalive`](Self::on_keepalive), which is only for those that are neither overtaken nor doubted.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        trailer: Option<Trailer>,
        interval: Duration,
    ) -> Judgement {
        let Some(trailer) = trailer else { return Judgement::Follows };
        let arrived = self.arrived;
        let Some(clock) = self.clock.filter(|clock| !clock.is_old(now)) else {
            return Judgement::Jumps;
        };
        let tolerance = tolerance(self.jitter.get());
        let restarts = trailer.sent == 0 && self.loss.sent() > 0;
        let allows = |clock: &PeerClock| clock.allows(now, &trailer, arrived, tolerance);
        let follows = |clock: &PeerClock| allows(clock) && !clock.has_overtaken(&trailer);
        let known = !restarts && allows(&clock);
        if known && follows(&clock) {
            self.doubt = None;
            return Judgement::Follows;
        }
        if self.left.as_ref().is_some_and(|left| follows(&left.0)) {
            return Judgement::Returns;
        }
        if known {
            self.doubt = None;
            return Judgement::Overtaken;
        }
        let doubt = Unconfirmed::after(self.doubt, now, &trailer, arrived, tolerance);
        self.doubt = Some(doubt);
        match trailer.sent == 0 || doubt.is_over(now, interval) {
            true => Judgement::Jumps,
            false => Judgement::Doubted,
        }
    }

    /// Leaves the clock for another one, or returns to the one before.
    fn change_clock(&mut self, judgement: Judgement) {
        let Some(clock) = self.clock else { return };
        let here = (clock, self.loss.clone());
        if judgement == Judgement::Returns
            && let Some(left) = &mut self.left
        {
            let (clock, loss) = std::mem::replace(&mut **left, here);
            (self.clock, self.loss) = (Some(clock), loss);
        } else {
            self.left = Some(Box::new(here));
            self.clock = None;
        }
        self.doubt = None;
        self.jitter.on_other_clock();
    }

    /// Whether the peer can have sent something at this time on another path, if that arrives now.
    pub(crate) fn allows_elsewhere(&self, now: Instant, time: Option<u32>) -> bool {
        self.clock.zip(time).is_some_and(|(clock, time)| clock.allows_elsewhere(now, time))
    }

    /// Whether a keepalive arrived on the path that the peer sent after this time, if both times
    /// are known.
    pub(crate) fn heard_after(&self, time: Option<u32>) -> bool {
        self.heard.zip(time).is_some_and(|(heard, time)| is_before(time, heard.time, OVERTAKEN))
    }

    pub(crate) fn quality(&self) -> Quality {
        Quality {
            round_trip: self.round_trip,
            jitter: self.jitter.get(),
            lost: self.loss.lost(),
            loss_recent: self.loss.recent(),
        }
    }
}

/// Whether a sending time is before another one of the same peer, by up to so many microseconds.
pub(crate) fn is_before(time: u32, other: u32, by_at_most: u32) -> bool {
    (1..=by_at_most).contains(&other.wrapping_sub(time))
}

impl Heard {
    /// How many microseconds longer this keepalive was on its way than another one of the same peer.
    pub(crate) fn slower_than(self, other: Self) -> i32 {
        let on_its_way = |heard: Self| heard.at.micros().wrapping_sub(heard.time);
        on_its_way(self).wrapping_sub(on_its_way(other)).cast_signed()
    }

    /// What a keepalive sent at `now` echoes; `None` if it has been too long.
    pub(crate) fn echo(self, now: Instant) -> Option<Echo> {
        let held = u32::try_from(now.since(self.at).as_micros()).ok()?;
        (held < Echo::NONE).then_some(Echo { time: self.time, held })
    }
}

/// The round trip by an echo.
pub(super) fn round_trip(now: Instant, echo: Echo) -> Option<Duration> {
    let micros = u64::from(now.micros().wrapping_sub(echo.time));
    // Both clocks are read in whole microseconds, so a trip of none can seem to be less.
    let trip = Duration::from_micros(micros.saturating_sub(echo.held.into()));
    let before_start = Duration::from_micros(micros) > now.since(Instant::ZERO);
    let impossible = u64::from(echo.held) > micros + 1000;
    (!before_start && !impossible && trip <= LONGEST).then_some(trip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn the_wait_at_the_peer_is_no_part_of_the_round_trip() {
        let trip = |now, time, held| round_trip(at(now), Echo { time, held });
        assert_eq!(trip(1_500_000, 1_000_000, 460_000), Some(Duration::from_millis(40)));
        assert_eq!(trip(1_000_000, 1_000_000, 1), Some(Duration::ZERO), "rounded");
        let wrap = 1 << 32;
        assert_eq!(trip(wrap + 20, u32::MAX - 9, 10), Some(Duration::from_micros(20)));
    }

    #[test]
    fn echoes_from_before_a_restart_are_ignored() {
        let trip = |now, time, held| round_trip(at(now), Echo { time, held });
        assert_eq!(trip(1_000_000, 3_600_000_000, 0), None, "before the start");
        assert_eq!(trip(1_000_000, 900_000, 200_000), None, "waited longer than it was away");
        assert_eq!(trip(100_000_000, 1_000_000, 0), None, "too long");
    }

    #[test]
    fn the_slower_direction_is_known_with_any_peer_clock() {
        let [quick, slow] = [(u32::MAX - 4, 1000), (15, 1025)]
            .map(|(time, millionths)| Heard { time, at: at(millionths) });
        assert_eq!((slow.slower_than(quick), quick.slower_than(slow)), (5, -5));
    }

    #[test]
    fn a_keepalive_held_too_long_is_not_echoed() {
        let heard = Heard { time: 7, at: at(0) };
        assert_eq!(heard.echo(at(12)), Some(Echo { time: 7, held: 12 }));
        let longest = u64::from(u32::MAX) - 1;
        assert_eq!(heard.echo(at(longest)), Some(Echo { time: 7, held: u32::MAX - 1 }));
        assert_eq!(heard.echo(at(longest + 1)), None);
    }
}
