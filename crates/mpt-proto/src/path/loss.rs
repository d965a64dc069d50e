//! How many of the peer's datagrams a path has lost, from what its keepalives say was sent.
//!
//! Of what was sent between two keepalives and what arrived between them, the difference was lost; where
//! the path keeps its order that is exact. Where it does not, a keepalive can overtake data, which seems lost until the
//! next one, or be overtaken, which hides as many losses until then. So the sums are compared and not the
//! intervals, and what seems to be less than nothing is shown as nothing.

use std::time::Duration;

use crate::time::Instant;

/// How much of the past the recent share is about.
const RECENT: Duration = Duration::from_secs(10);

/// How many points of the past it is kept at.
const POINTS: usize = 8;

/// A keepalive that was sent so much earlier than another came out of order; one that seems to be even
/// older is of another clock.
const OVERTAKEN: Duration = Duration::from_secs(10);

/// What was sent and what arrived at a keepalive, modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: Instant,
    sent: u32,
    arrived: u32,
}

impl Point {
    /// How many were sent and how many arrived from an earlier point to this one.
    fn since(&self, earlier: &Self) -> (u32, u32) {
        let sent = self.sent.wrapping_sub(earlier.sent);
        (sent, self.arrived.wrapping_sub(earlier.arrived))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Loss {
    /// Sent and arrived since the peer was first heard, less those of `begin`; and the same now.
    known: Option<Known>,
    /// Lost before the peer restarted.
    before: u64,
    /// What was known before the last keepalive, which may have been forged.
    previous: Option<Box<Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    /// When the peer sent its last keepalive, in µs of its clock.
    time: u32,
    last: Point,
    sent: u64,
    arrived: u64,
    /// The last points at least an eighth of [`RECENT`] apart, the next to be replaced first.
    past: [Point; POINTS],
    oldest: usize,
}

impl Loss {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.previous.as_deref().map_or(0, size_of_val)
    }

    /// A keepalive came that was sent at `time` of the peer's clock, after `sent` datagrams; `arrived` came.
    pub(super) fn on_keepalive(&mut self, now: Instant, time: u32, sent: u32, arrived: u32) {
        let point = Point { at: now, sent, arrived };
        let Some(known) = &mut self.known else {
            self.known = Some(Known::new(time, point));
            return;
        };
        let later = time.wrapping_sub(known.time).cast_signed();
        let overtaken = -(OVERTAKEN.as_micros() as i32);
        if (overtaken..=0).contains(&later) {
            return;
        }
        // More had been sent by the last keepalive than by this one, so one of them was forged. What was known
        // before both is right in either case.
        if sent != 0
            && sent.wrapping_sub(known.last.sent).cast_signed() < 0
            && let Some(previous) = self.previous.take()
            && sent.wrapping_sub(previous.last.sent).cast_signed() >= 0
        {
            *known = *previous;
        }
        let (more, came) = point.since(&known.last);
        if later < overtaken || more.cast_signed() < 0 {
            self.before += known.lost();
            *known = Known::new(time, point);
            return;
        }
        match &mut self.previous {
            Some(previous) => **previous = known.clone(),
            None => self.previous = Some(Box::new(known.clone())),
        }
        known.time = time;
        known.last = point;
        known.sent += u64::from(more);
        known.arrived += u64::from(came);
        if now.since(known.past[(known.oldest + POINTS - 1) % POINTS].at) >= RECENT / POINTS as u32
        {
            known.past[known.oldest] = point;
            known.oldest = (known.oldest + 1) % POINTS;
        }
    }

    /// How many the peer had sent by its last keepalive.
    pub(super) fn sent(&self) -> u32 {
        self.known.as_ref().map_or(0, |known| known.last.sent)
    }

    /// How many were lost; `None` before the peer's first report of how many it sent.
    pub(super) fn lost(&self) -> Option<u64> {
        self.known.as_ref().map(|known| self.before + known.lost())
    }

    /// The share of those of the last ten seconds or so; `None` if there were none.
    pub(super) fn recent(&self) -> Option<f64> {
        let known = self.known.as_ref()?;
        let (sent, arrived) = known.last.since(&known.past[known.oldest]);
        (sent > 0).then(|| f64::from(sent.saturating_sub(arrived)) / f64::from(sent))
    }
}

impl Known {
    fn new(time: u32, last: Point) -> Self {
        Self { time, last, sent: 0, arrived: 0, past: [last; POINTS], oldest: 0 }
    }

    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keepalives a second apart, each with what was sent and what arrived.
    fn after(points: &[(u32, u32)]) -> Loss {
        let mut loss = Loss::default();
        for (second, &(sent, arrived)) in (1_u32..).zip(points) {
            let now = Instant::ZERO + Duration::from_secs(second.into());
            loss.on_keepalive(now, second * 1_000_000, sent, arrived);
        }
        loss
    }

    #[test]
    fn datagrams_sent_that_did_not_arrive_are_lost() {
        assert_eq!(Loss::default().lost(), None);
        let loss = after(&[(500, 20)]);
        assert_eq!((loss.lost(), loss.recent()), (Some(0), None), "what was before is not known");
        let loss = after(&[(500, 20), (600, 110)]);
        assert_eq!((loss.lost(), loss.recent()), (Some(10), Some(0.1)));
        let loss = after(&[(u32::MAX - 9, u32::MAX), (90, 98)]);
        assert_eq!(loss.lost(), Some(1), "counts wrap");
    }

    #[test]
    fn overtaking_packets_are_accounted_for() {
        let loss = after(&[(0, 0), (100, 105)]);
        assert_eq!((loss.lost(), loss.recent()), (Some(0), Some(0.0)));
        let loss = after(&[(0, 0), (100, 105), (200, 198)]);
        assert_eq!(loss.lost(), Some(2));
        let loss = after(&[(0, 0), (100, 95), (200, 200)]);
        assert_eq!(loss.lost(), Some(0));
    }

    #[test]
    fn a_keepalive_out_of_order_is_passed_over() {
        let mut loss = after(&[(0, 0), (100, 100), (200, 200)]);
        let now = Instant::ZERO + Duration::from_secs(4);
        loss.on_keepalive(now, 2_000_000, 100, 210);
        loss.on_keepalive(now, 3_000_000, 200, 210);
        assert_eq!(loss.lost(), Some(0));
        loss.on_keepalive(now, 4_000_000, 220, 219);
        assert_eq!(loss.lost(), Some(1));
    }

    #[test]
    fn a_restarted_peer_keeps_the_loss_count() {
        let mut loss = after(&[(0, 0), (100, 95)]);
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        // Its clock restarts, at an earlier time; then at a later time by chance, so that only the
        // count shows it.
        for (round, time) in [(1, 3_000_000_000_u32), (2, 3_100_000_000)] {
            loss.on_keepalive(at(10 * round), time, 0, 1000);
            loss.on_keepalive(at(10 * round + 1), time.wrapping_add(1_000_000), 50, 1049);
            assert_eq!(loss.lost(), Some(5 + round));
            assert_eq!(loss.recent(), Some(0.02));
        }
    }

    #[test]
    fn the_recent_share_forgets() {
        let mut points = vec![(0, 0), (1000, 0)];
        points.extend((1..=9).map(|n| (1000 + n * 100, n * 100)));
        assert!(after(&points).recent().is_some_and(|share| share > 0.5));
        points.extend((10..=20).map(|n| (1000 + n * 100, n * 100)));
        let loss = after(&points);
        assert_eq!((loss.recent(), loss.lost()), (Some(0.0), Some(1000)));
    }
}
