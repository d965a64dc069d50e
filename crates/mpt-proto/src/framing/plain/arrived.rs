//! What arrived on a path, as this end's keepalives report it to the peer.

use std::num::NonZeroU16;
use std::time::Duration;

use crate::time::Instant;
use crate::wire::keepalive::Arrivals;

/// The longest datagrams that arrived on a path, as its keepalives tell them. Whether they were wanted
/// has no part in it: a datagram that is refused has passed the path.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Of this keepalive interval and the two before, in bytes.
    longest: [u16; 3],
    /// When the present one began.
    since: Instant,
    /// How many keepalives were accepted, modulo 256.
    keepalives: u8,
}

impl Arrived {
    pub(crate) fn new(now: Instant) -> Self {
        Self { longest: [0; 3], since: now, keepalives: 0 }
    }

    /// So many keepalives were accepted, modulo 256.
    pub(crate) fn on_keepalives(&mut self, count: u8) {
        self.keepalives = count;
    }

    /// A datagram of this length arrived.
    pub(crate) fn on_arrived(&mut self, len: u16) {
        self.longest[0] = self.longest[0].max(len);
    }

    /// What the keepalive that leaves now has to tell. Keepalives that leave at once for some reason
    /// begin no interval: in a volley of them all would soon be forgotten.
    pub(crate) fn tell(&mut self, now: Instant, interval: Duration) -> Option<Arrivals> {
        let longest = self.longest.iter().copied().max().and_then(NonZeroU16::new);
        if now.since(self.since) >= interval {
            self.longest.rotate_right(1);
            self.longest[0] = 0;
            self.since = now;
        }
        longest.map(|longest| Arrivals { longest, keepalives: self.keepalives })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(500);

    #[test]
    fn keepalives_report_the_longest_datagram_of_three_intervals() {
        let mut arrived = Arrived::new(Instant::ZERO);
        let tell = |arrived: &mut Arrived, n: u32| {
            let arrivals = arrived.tell(Instant::ZERO + INTERVAL * n, INTERVAL);
            arrivals.map_or((0, 0), |told| (told.longest.get(), told.keepalives))
        };
        arrived.on_keepalives(1);
        assert_eq!(tell(&mut arrived, 0), (0, 0));
        arrived.on_arrived(1472);
        arrived.on_arrived(44);
        // Keepalives out of turn make nothing older.
        (0..9).for_each(|_| assert_eq!(tell(&mut arrived, 0), (1472, 1)));
        for n in 1..=3 {
            assert_eq!(tell(&mut arrived, n), (1472, 1));
            arrived.on_arrived(44);
        }
        arrived.on_keepalives(0);
        for n in 4..=6 {
            assert_eq!(tell(&mut arrived, n), (44, 0));
        }
        assert_eq!(tell(&mut arrived, 7), (0, 0));
    }
}
