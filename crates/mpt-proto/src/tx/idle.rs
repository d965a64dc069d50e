//! Since when a path has been idle, and which beacons that asks for.

use std::time::Duration;

use crate::time::Instant;
use crate::wire::extended::beacon::AFTER;

/// The data that was sent last on a path, and how many beacons have followed it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    /// When; without a meaning before there was any.
    since: Instant,
    /// Beacons still to be sent.
    due: u8,
}

impl Idle {
    /// Data was sent on the path.
    #[inline(always)]
    pub(super) fn on_data(&mut self, now: Instant) {
        *self = Self { since: now, due: AFTER.len() as u8 };
    }

    /// How long ago data was sent on the path last.
    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        now.since(self.since)
    }

    /// A beacon was sent.
    pub(super) fn on_beacon(&mut self) {
        self.due -= 1;
    }

    /// When the next beacon is to be sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let sent = AFTER.len().checked_sub(self.due.into())?;
        Some(self.since + *AFTER.get(sent)?)
    }
}
