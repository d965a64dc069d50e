//! Numbers out of reach. They come behind an outage of more packets than are remembered: then others follow that are near.
//! One alone was forged, or is from long ago.

use std::time::Duration;

use crate::id::PathId;
use crate::sequence::Seq;
use crate::time::Instant;

/// So many in a row are believed. Two can be chance.
const AHEAD: u8 = 3;

/// A session never goes back, but its order may have been led astray by forged numbers. A path that stood still for long
/// brings some from behind, too: so every live path has to, for so long.
const BEHIND: u8 = 32;
const LEAST: Duration = Duration::from_millis(250);

/// Those of one row follow each other within this time.
const APART: Duration = Duration::from_secs(1);

/// Numbers this near to each other are of one row: more than the skew of paths spreads them.
const NEAR: u32 = 1024;

/// The numbers out of reach since the last one that was not.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// The number that was expected meanwhile.
    expected: Seq,
    first_at: Instant,
    last_at: Instant,
    last: Seq,
    least: Seq,
    count: u8,
    /// The paths by which they came, one bit each.
    paths: u64,
}

impl Beyond {
    /// A number within reach came.
    #[inline]
    pub(super) fn end_row(&mut self) {
        self.count = 0;
    }

    /// One more came by a path. Returns with which number the order goes on, if it does so elsewhere.
    pub(super) fn on_number(
        &mut self,
        now: Instant,
        (seq, path): (Seq, PathId),
        expected: Seq,
        live: u64,
    ) -> Option<Seq> {
        let is_near = seq.offset_from(self.last).unsigned_abs() <= NEAR;
        let follows = is_near && now.since(self.last_at) < APART && self.expected == expected;
        let bit = 1 << path.index();
        if self.count == 0 || !follows {
            let (first_at, last_at, last, least) = (now, now, seq, seq);
            *self = Self { expected, first_at, last_at, last, least, count: 1, paths: bit };
            return None;
        }
        self.count = self.count.saturating_add(u8::from(seq != self.last));
        (self.last, self.last_at) = (seq, now);
        self.paths |= bit;
        if seq.offset_from(self.least) < 0 {
            self.least = seq;
        }
        let is_believed = match self.least.offset_from(expected) > 0 {
            true => self.count >= AHEAD,
            false => {
                let is_everywhere = live & !self.paths == 0;
                self.count >= BEHIND && is_everywhere && now.since(self.first_at) >= LEAST
            }
        };
        is_believed.then_some(self.least)
    }
}
