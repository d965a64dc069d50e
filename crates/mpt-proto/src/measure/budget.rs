//! How much is measured: what packets out of order cost must not grow with their rate.

use std::time::Duration;

use crate::time::Instant;

/// Looks at a number of packets in a row, and then at none until a second is over.
///
/// Up to that many packets per second all are looked at. Above, it is a sample of whole stretches, in
/// each of which the order can be judged as if nothing came before.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    left: u32,
    until: Instant,
    /// Whether packets have passed since the last one that was looked at.
    skipped: bool,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It follows the last one that was looked at.
    On,
    /// It is measured, and others before it were not.
    Restarted,
    /// It is skipped.
    Away,
}

impl Budget {
    /// Packets that are looked at in a row. At the 700 instructions that a packet out of order costs,
    /// they take half a percent of a processor's second; at 1400 bytes they are 224 Mbit.
    pub(crate) const PACKETS: u32 = 20_000;

    const SECOND: Duration = Duration::from_secs(1);

    /// A packet came.
    #[inline]
    pub(crate) fn look(&mut self, now: Instant) -> Look {
        if self.left == 0 {
            if now < self.until {
                self.skipped = true;
                return Look::Away;
            }
            (self.left, self.until) = (Self::PACKETS, now + Self::SECOND);
        }
        self.left -= 1;
        if std::mem::take(&mut self.skipped) { Look::Restarted } else { Look::On }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_stream_is_seen_whole_and_a_fast_one_in_stretches() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut budget = Budget::default();
        assert!((0..100_000).all(|packet| budget.look(at(packet * 60)) == Look::On));

        let mut budget = Budget::default();
        let looks: Vec<Look> = (0..200_000).map(|packet| budget.look(at(packet * 10))).collect();
        let count = |look| looks.iter().filter(|&&other| other == look).count();
        assert_eq!(count(Look::Restarted), 1, "after the first of the two seconds");
        assert_eq!(count(Look::On), 2 * Budget::PACKETS as usize - 1);
        assert!(looks[..Budget::PACKETS as usize].iter().all(|look| *look == Look::On));
    }
}
