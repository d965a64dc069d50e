//! The orders that were left for another one, because the sender seemed to have restarted.
//!
//! If the numbers that led away were forged, or the sender's last packets are still on their way, the next
//! number of the order that was left comes soon. It is out of all reach of the present order, and taken at
//! once all the same: where TCP waits for each packet before it sends the next, a third number in a row
//! would come seconds later.

use std::time::Duration;

use super::restart_detector::NEAR;
use crate::rx::reorder::history::CLASSIC_REACH as REACH;
use crate::sequence::Seq;
use crate::time::Instant;

/// For so long one is kept. A sender that restarts again and again begins at 0 each time, and must not be
/// taken to continue the beginning of a former life.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// How many are kept. With two a forger who has made up another order cannot push the genuine one out by
/// making up a third.
const KEPT: usize = 2;

/// An order that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The number that was expected next.
    pub(super) next: Seq,
    /// How many packets had come in it.
    pub(super) packets: u64,
    /// When it was left.
    pub(super) at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct LeftOrders([Option<Left>; KEPT]);

impl LeftOrders {
    /// An order was left. Of one too many, that is forgotten in which the fewest packets came.
    pub(super) fn put(&mut self, mut left: Left) {
        for kept in &mut self.0 {
            kept.take_if(|kept| left.at.since(kept.at) >= KEPT_FOR);
            match kept {
                None => {
                    *kept = Some(left);
                    return;
                }
                Some(other) if other.packets < left.packets => std::mem::swap(other, &mut left),
                Some(_) => {}
            }
        }
    }

    /// Takes out the order that a number continues: ahead of what was expected next by no more than an outage
    /// explains, or overtaken by it.
    pub(super) fn take(&mut self, now: Instant, seq: Seq) -> Option<Left> {
        let continues = |left: &mut Left| {
            let near = (-NEAR.cast_signed()..REACH).contains(&seq.offset_from(left.next));
            near && now.since(left.at) < KEPT_FOR
        };
        self.0.iter_mut().find_map(|kept| kept.take_if(continues))
    }

    /// Nothing is known of any order.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(next: u32, packets: u64) -> Left {
        Left { next: Seq::new(next), packets, at: Instant::ZERO }
    }

    #[test]
    fn an_order_is_continued_from_a_little_behind_to_the_reach() {
        for (seq, continues) in [
            (100_000, true),
            (100_000 - NEAR, true),
            (100_000 - NEAR - 1, false),
            (100_000 + REACH as u32 - 1, true),
            (100_000 + REACH as u32, false),
        ] {
            let mut orders = LeftOrders::default();
            orders.put(left(100_000, 1));
            assert_eq!(orders.take(Instant::ZERO, Seq::new(seq)).is_some(), continues, "{seq}");
            assert_eq!(
                orders.take(Instant::ZERO, Seq::new(100_000)).is_some(),
                !continues,
                "taken once"
            );
        }
    }

    #[test]
    fn an_order_is_forgotten_after_a_minute() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for (seconds, kept) in [(59, true), (60, false)] {
            let mut orders = LeftOrders::default();
            orders.put(left(100_000, 1));
            assert_eq!(orders.take(at(seconds), Seq::new(100_000)).is_some(), kept);
        }
        // Nor does it take the place of others.
        let mut orders = LeftOrders::default();
        orders.put(left(100_000, 900));
        orders.put(left(200_000, 900));
        orders.put(Left { at: at(60), ..left(300_000, 1) });
        assert!(orders.take(at(61), Seq::new(300_000)).is_some());
    }

    #[test]
    fn those_with_the_most_packets_are_kept() {
        let mut orders = LeftOrders::default();
        for (next, packets) in [(0, 5), (1_000_000, 900), (2_000_000, 3), (3_000_000, 70)] {
            orders.put(left(next, packets));
        }
        assert_eq!(orders.take(Instant::ZERO, Seq::new(0)), None);
        assert_eq!(orders.take(Instant::ZERO, Seq::new(2_000_000)), None);
        assert_eq!(orders.take(Instant::ZERO, Seq::new(1_000_000)), Some(left(1_000_000, 900)));
        assert_eq!(orders.take(Instant::ZERO, Seq::new(3_000_000)), Some(left(3_000_000, 70)));
    }
}
