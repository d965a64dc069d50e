//! Paths that take turns in [runs](super::run): which of them is next, and whether there are runs at all.

use super::connection::TransmitHalf;
use super::run::FAST;
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::time::Instant;

impl TransmitHalf {
    /// The path for an inner packet while there are runs; `None` if there is none.
    #[inline(always)]
    pub(super) fn select_in_run(&mut self, now: Instant, item: &Item<'_>) -> Option<PathId> {
        let len = item.packet.len();
        if let Some(path) = self.run.path_for(now, len) {
            self.run.add(len);
            return Some(path);
        }
        self.begin_run(now, item)
    }

    #[inline(never)]
    fn begin_run(&mut self, now: Instant, item: &Item<'_>) -> Option<PathId> {
        self.end_run();
        let path = self.scheduler.select(now, item, &self.paths)?;
        self.run.begin(now, path, item.packet.len(), self.framing.overhead());
        Some(path)
    }

    /// No packet goes with the present run any more.
    pub(super) fn end_run(&mut self) {
        if let Some((path, packets)) = self.run.end() {
            self.scheduler.add(path, packets);
        }
    }

    /// There are no runs until it is known again how much is sent.
    pub(super) fn stop_runs(&mut self) {
        self.end_run();
        self.run.set_fast(false);
    }

    /// Decides by what was sent since this was asked last whether there are runs from now on. To be asked every few
    /// milliseconds.
    #[cold]
    pub(super) fn set_runs(&mut self, now: Instant) {
        let rate = self.run.rate(now, self.sent.bytes);
        let least = self.scheduler.least_share();
        let is_fast =
            least.is_some_and(|(least, all)| rate / u64::from(all) * u64::from(least) >= FAST);
        if !is_fast {
            self.end_run();
        }
        self.run.set_fast(is_fast);
    }
}
