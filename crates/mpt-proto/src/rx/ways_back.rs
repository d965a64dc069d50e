//! Ways back that are silent: nothing that the peer sends by a path arrives, while it arrives by others.
//!
//! Each feedback says by which path the one before was sent. If that one has not come, and nothing else comes by that path for
//! longer than it may be late, the path is dead in this direction, though what is sent on it may arrive.

use std::time::Duration;

use super::connection::ReceiveHalf;
use super::missing::{Missing, in_a_row};
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
