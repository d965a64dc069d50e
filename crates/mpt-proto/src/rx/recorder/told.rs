//! What the last feedbacks of a path said, as far as it is told again.

use std::time::Duration;

use super::samples::Delay;
use crate::time::Instant;

/// What was resolved since so many feedbacks ago is told again.
const FEEDBACKS: usize = 4;

/// Of feedbacks that are closer together only the first one counts.
const APART: Duration = Duration::from_millis(5);

/// What the last feedbacks said.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// When they were written, and the first path sequence that was not resolved then; the last one first.
    resolved: [Option<(Instant, u32)>; FEEDBACKS],
    /// How many datagrams were lost by the last one.
    pub(super) lost: u64,
    /// The delays that it told.
    pub(super) delay: Option<Delay>,
}

impl Told {
    /// Path sequences begin anew.
    pub(super) fn forget(&mut self) {
        self.resolved = [None; FEEDBACKS];
    }

    /// Feedback is written.
    pub(super) fn on_feedback(&mut self, now: Instant, resolved: u32, lost: u64) {
        self.lost = lost;
        if self.resolved[0].is_none_or(|(at, _)| now.since(at) >= APART) {
            self.resolved.rotate_right(1);
            self.resolved[0] = Some((now, resolved));
        }
    }

    /// The first path sequence that is told again; `None` if all are.
    pub(super) fn first(&self) -> Option<u32> {
        self.resolved[FEEDBACKS - 1].map(|(_, resolved)| resolved)
    }
}
