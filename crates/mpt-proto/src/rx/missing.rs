//! Feedback of the peer that is missing, by which [ways back](super::ways_back) that are silent show.

use crate::time::Instant;

/// So many feedbacks have to be missing, and so many that chance loses all of them this rarely.
const LEAST: i32 = 2;
const MOST: i32 = 20;
const RARELY: f64 = 1.1e-6;

/// Feedback that has come, by number.
#[derive(Debug, Default)]
pub(super) struct FeedbackCame {
    /// The highest number; `None` before the first.
    highest: Option<u16>,
    /// Which numbers up to the highest have come, that one in the least significant bit.
    came: u64,
}

impl FeedbackCame {
    /// The feedback with this number has come. Returns whether it is the latest, and the one before is missing.
    pub(super) fn on_came(&mut self, number: u16) -> bool {
        let Some(highest) = self.highest else {
            (self.highest, self.came) = (Some(number), u64::MAX);
            return false;
        };
        let ahead = number.wrapping_sub(highest).cast_signed();
        if ahead <= 0 {
            let back = u32::from(ahead.unsigned_abs());
            self.came |= 1_u64.checked_shl(back).unwrap_or(0);
            return false;
        }
        self.came = self.came.checked_shl(ahead.unsigned_abs().into()).unwrap_or(0) | 1;
        self.highest = Some(number);
        self.came & 0b10 == 0
    }
}

/// Feedback that should have come by a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// When the first one was missed, and how many datagrams had come by the path until then.
    pub(super) since: Instant,
    pub(super) received: u64,
    pub(super) count: i32,
    /// Whether the path counts as silent.
    pub(super) is_silent: bool,
}

/// How many feedbacks in a row a path that loses this share of datagrams does not lose by chance.
pub(super) fn in_a_row(loss: f64) -> i32 {
    (LEAST..MOST).find(|&count| loss.powi(count) <= RARELY).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feedback_before_is_missing_until_it_comes() {
        let mut came = FeedbackCame::default();
        let came = [65_533, 65_534, 0, 65_535, 1, 3, 2, 4, 100].map(|it| came.on_came(it));
        assert_eq!(came, [false, false, true, false, false, true, false, false, true]);
    }

    #[test]
    fn more_have_to_be_missing_where_some_are_lost() {
        assert_eq!([0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.9].map(in_a_row), [2, 2, 3, 4, 5, 6, 20]);
    }
}
