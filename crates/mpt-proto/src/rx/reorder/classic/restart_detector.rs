//! Detects a restart of the sender's sequence numbers.
//!
//! A number that does not fit is either the first sign of a restarted peer or a freak: a duplicate
//! from long ago, a corrupted or a forged datagram. Believing one at once lets a single forged
//! datagram stop the tunnel; never believing one stops it when the peer restarts. So numbers are
//! believed when several of them, near each other, come without a fitting one in between. Whatever
//! was believed in error is corrected the same way by the genuine packets that follow.

use crate::id::PathId;
use crate::sequence::Seq;

/// How many numbers out of all reach are believed. Two can be chance.
pub(super) const STRAYS: u32 = 3;

/// How many numbers from behind are believed, if every live path brought some of them. A path that
/// duplicates, or stood still for a while, brings many in a row; a restarted sender brings nothing
/// else by any.
pub(super) const BEHIND: u32 = 32;

/// Numbers this near to each other support the same restart: more than the skew of paths spreads
/// them.
pub(super) const NEAR: u32 = 1024;

/// A restarted sender begins at [`Seq::FIRST`], so once a restart has been announced a number below
/// this proves it.
const BEGINNING: u32 = 1024;

/// What to think of a number that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Doubted,
    /// The peer restarted as it had announced; numbers before this one may still come.
    Announced,
    /// The numbers have been elsewhere for a while, and so have those before this one.
    Confirmed,
}

#[derive(Debug, Default)]
pub(super) struct RestartDetector {
    last: Option<Seq>,
    run: u32,
    /// The paths that brought numbers of the row, one bit each.
    paths: u64,
    announced: Announced,
}

/// What the peer has sent since the last number that fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Announced {
    /// Nothing special.
    #[default]
    Nothing,
    /// What it sends when it starts, but at other times too.
    Perhaps,
    /// What only a peer sends that has just started.
    Surely,
}

impl RestartDetector {
    /// The peer has said what only a peer without memory says.
    pub(super) fn on_announcement(&mut self) {
        self.announced = Announced::Surely;
    }

    /// The peer has sent what it sends when it starts, but at other times too.
    pub(super) fn on_hint(&mut self) {
        if self.announced == Announced::Nothing {
            self.announced = Announced::Perhaps;
        }
    }

    /// A number fits: all is well.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether this number begins an order that was announced. One that was given up and `missed` since is
    /// rather late, unless the beginning has surely been announced.
    pub(super) fn is_announced(&self, seq: Seq, missed: bool) -> bool {
        let announced = match self.announced {
            Announced::Nothing => false,
            Announced::Perhaps => !missed,
            Announced::Surely => true,
        };
        announced && seq.value() < BEGINNING
    }

    /// A number that came by `path` does not fit; it takes `needed` of its kind to be believed.
    /// `live` are the paths that may bring any, one bit each. One that was given up and `missed` since
    /// is rather late than a beginning, unless that has surely been announced.
    pub(super) fn on_misfit(
        &mut self,
        seq: Seq,
        path: PathId,
        live: u64,
        needed: u32,
        missed: bool,
    ) -> Verdict {
        if self.is_announced(seq, missed) {
            return Verdict::Announced;
        }
        match self.last.map(|last| seq.offset_from(last).unsigned_abs()) {
            Some(0) => {}
            Some(distance) if distance <= NEAR => self.run += 1,
            _ => (self.run, self.paths) = (1, 0),
        }
        self.last = Some(seq);
        self.paths |= 1 << path.index();
        let everywhere = needed == STRAYS || live & !self.paths == 0 || self.run >= NEAR;
        if self.run >= needed && everywhere { Verdict::Confirmed } else { Verdict::Doubted }
    }
}
