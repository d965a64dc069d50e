//! Copies of feedback on another path than that of the last one.
//!
//! Feedback goes on one path, and may get lost: alone, which matters if nothing follows, or with all that goes this way,
//! when the path is dead in that direction. Then all paths of the peer would seem to be silent. So what was told is told
//! again now and then, on the second best path.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::message::Control;
use super::path::TransmitPath;
use crate::time::Instant;

impl TransmitHalf {
    /// When feedback is due: a new one, or a copy, or one of the peer that has to come.
    pub(super) fn feedback_due(&self) -> Option<Instant> {
        let due = [self.reports_at, self.copies.due(), self.fail_over.deadline()];
        due.into_iter().flatten().min()
    }

    /// The next copy that is due: on the best path but the one that the feedback went by, if there is another one.
    pub(super) fn poll_feedback_copy(&mut self, now: Instant) -> Option<Control> {
        let (path, blocks) = self.copies.take(now)?;
        let gathered = self.paced.as_ref().and_then(|paced| paced.trains.to).map(|(to, _)| to);
        let usable = self.paths.iter().filter(|(index, path)| {
            let has_train =
                path.rate.has_train(now) || gathered.is_some_and(|to| to.index() == *index);
            path.usable() && !has_train
        });
        let trip = |path: &TransmitPath| path.metrics.round_trip.unwrap_or(Duration::MAX);
        let (index, _) = usable
            .min_by_key(|(index, it)| (*index == path.index(), it.left.is_some(), trip(it)))?;
        self.feedback_on(now, index, blocks)
    }
}
