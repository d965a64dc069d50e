//! Numbers that were given up on the word of few. In a session one forged number can have that effect, and where late packets
//! are dropped it would cost all that is sent up to it.

use super::restart_detector::{NEAR, STRAYS};
use crate::sequence::Seq;

/// Numbers that may have been given up in error: they are delivered when they come after all.
#[derive(Debug, Default)]
pub(super) struct Tentative(Option<Range>);

#[derive(Debug)]
struct Range {
    from: Seq,
    /// The number behind the last.
    to: Seq,
    /// The number behind them that came last, and how many there were in a row, each near the one before.
    last: Option<Seq>,
    row: u32,
}

impl Tentative {
    /// So many numbers from `from` on are given up, while so many packets with higher numbers have come.
    pub(super) fn on_given_up(&mut self, from: Seq, count: u32, witnesses: u32) {
        if witnesses >= STRAYS {
            return;
        }
        let to = from.plus(count);
        // Numbers before it were given up before.
        let from = self.0.as_ref().map_or(from, |range| range.from);
        self.0 = Some(Range { from, to, last: None, row: 0 });
    }

    /// Whether there are any such numbers.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// A number came that was not given up, and has not caused that.
    #[cold]
    pub(super) fn on_number(&mut self, seq: Seq) {
        let Some(range) = &mut self.0 else { return };
        let distance = range.last.map(|last| seq.offset_from(last).unsigned_abs());
        match distance {
            Some(0) => return,
            Some(distance) if distance <= NEAR => range.row += 1,
            _ => range.row = 1,
        }
        range.last = Some(seq);
        if range.row >= STRAYS {
            self.0 = None;
        }
    }

    /// Whether a number that was given up is delivered, as that may have been in error. It ends the row.
    pub(super) fn covers(&mut self, seq: Seq) -> bool {
        let Some(range) = &mut self.0 else { return false };
        let covers = seq.offset_from(range.from) >= 0 && seq.offset_from(range.to) < 0;
        if covers {
            (range.last, range.row) = (None, 0);
        }
        covers
    }

    /// The numbers begin anew.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
