//! Ways back that are silent: nothing that the peer sends by a path arrives, while it arrives by others.
//!
//! Each feedback says by which path the one before was sent. If that one has not come, and nothing else comes by that path for
//! longer than it may be late, the path is dead in this direction, though what is sent on it may arrive.

use std::time::Duration;

use super::connection::ReceiveHalf;
use super::path::ReceivePath;
use super::record::NOTHING_CAME;
use crate::id::PathId;
use crate::messages::{Messages, PathUpdate};
use crate::time::Instant;
use crate::wire::extended::feedback::Feedback;

/// How long nothing comes by a path from when it should have, on top of how much slower it is, until it is silent.
const SILENT: Duration = Duration::from_millis(40);

/// The peer is told for so long that nothing comes: it may not know, as what it sends there is little.
const TOLD_FOR: Duration = Duration::from_millis(500);

/// How many mean deviations of its delay what comes by a path may be late.
const DEVIATIONS: u32 = 4;

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
    fn on_came(&mut self, number: u16) -> bool {
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
    since: Instant,
    received: u64,
    count: i32,
    /// Whether the path counts as silent.
    is_silent: bool,
}

/// How many feedbacks in a row a path that loses this share of datagrams does not lose by chance.
fn in_a_row(loss: f64) -> i32 {
    (LEAST..MOST).find(|&count| loss.powi(count) <= RARELY).unwrap_or(MOST)
}

impl ReceiveHalf {
    /// Feedback has come by a path. It may say that another one is missing.
    pub(super) fn on_feedback_came(
        &mut self,
        now: Instant,
        by: PathId,
        feedback: &Feedback<'_>,
        messages: &mut Messages,
    ) {
        self.hear_ways_back(messages);
        let Some(measured) = &mut self.measured else { return };
        let is_missing = measured.came.on_came(feedback.number);
        let before = feedback.before.and_then(|id| self.session.as_deref()?.path(id));
        let Some(path) = before.filter(|path| is_missing && *path != by) else { return };
        let receiver = &mut self.paths[path.index()];
        let received = receiver.recorder.received();
        match receiver.missing.as_mut().filter(|missing| missing.received == received) {
            Some(missing) => missing.count = missing.count.saturating_add(1),
            None => {
                let missing = Missing { since: now, received, count: 1, is_silent: false };
                receiver.missing = Some(missing);
            }
        }
        let at = receiver.told_missing_at(now);
        measured.silent_at = measured.silent_at.into_iter().chain(at).min();
        self.watch_ways_back(now, messages);
    }

    /// Tells of paths by which nothing comes back.
    pub(super) fn watch_ways_back(&mut self, now: Instant, messages: &mut Messages) {
        let Some(measured) = self.measured.as_ref() else { return };
        for (index, receiver) in self.paths.iter_mut() {
            let path = PathId(index as u8);
            let Some(missing) = receiver.missing.as_mut().filter(|it| !it.is_silent) else {
                continue;
            };
            let (received, lost) = (receiver.recorder.received(), receiver.recorder.lost());
            let loss = (lost + 1) as f64 / (received + lost + 100) as f64;
            let delay = measured.delays.get(path);
            let deviation = delay.map_or(Duration::ZERO, |delay| delay.deviation);
            let slower = measured.delays.relative(path).unwrap_or_default();
            let late = SILENT + slower + deviation * DEVIATIONS;
            let is_late = missing.received == received && now.since(missing.since) >= late;
            if is_late && missing.count >= in_a_row(loss) {
                missing.is_silent = true;
                messages.update(self.id, PathUpdate::WayBack { path, is_silent: true });
            }
        }
    }

    /// Tells of paths that counted as silent and by which something has come.
    pub(super) fn hear_ways_back(&mut self, messages: &mut Messages) {
        for (index, path) in self.paths.iter_mut() {
            let silent = path.missing.filter(|missing| missing.is_silent);
            if silent.is_some_and(|missing| missing.received != path.recorder.received()) {
                path.missing = None;
                let path = PathId(index as u8);
                messages.update(self.id, PathUpdate::WayBack { path, is_silent: false });
            }
        }
    }
}

impl ReceivePath {
    /// When the peer is to be told, if that is not too long ago, that nothing has come by the path of which feedback is missing.
    pub(super) fn told_missing_at(&self, now: Instant) -> Option<Instant> {
        let missing = self.missing.filter(|it| it.received == self.recorder.received())?;
        let at = missing.since.max(self.recorder.last_at()? + NOTHING_CAME);
        (now.since(missing.since) < TOLD_FOR).then_some(at)
    }
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
