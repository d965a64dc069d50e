//! Numbers out of reach. They come behind an outage of more packets than are remembered: then others follow that are near.
//! One alone was forged, or is from long ago.

use crate::sequence::Seq;

/// So many in a row are believed, if no other number is resolved meanwhile. Two can be chance.
const AHEAD: u8 = 3;

/// A session never goes back, but its order may have been led astray by forged numbers. A path that stood still for long
/// brings some from behind, too.
const BEHIND: u8 = 32;

/// Numbers this near to each other are of one row: more than the skew of paths spreads them.
const NEAR: u32 = 1024;

/// The numbers out of reach since the last one that was not.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// The number that was expected meanwhile.
    expected: Seq,
    last: Seq,
    least: Seq,
    count: u8,
}

impl Beyond {
    /// One more came. Returns with which number the order goes on, if it does so elsewhere.
    pub(super) fn on_number(&mut self, seq: Seq, expected: Seq) -> Option<Seq> {
        let is_near = seq.offset_from(self.last).unsigned_abs() <= NEAR;
        if self.count == 0 || !is_near || self.expected != expected {
            *self = Self { expected, last: seq, least: seq, count: 1 };
            return None;
        }
        self.count += u8::from(seq != self.last);
        self.last = seq;
        if seq.offset_from(self.least) < 0 {
            self.least = seq;
        }
        let needed = if self.least.offset_from(expected) > 0 { AHEAD } else { BEHIND };
        (self.count >= needed).then_some(self.least)
    }
}
