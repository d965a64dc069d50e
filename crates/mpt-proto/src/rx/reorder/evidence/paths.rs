//! The paths by which packets come.

use std::time::Duration;

use super::EvidenceOrder;
use super::path::{PathEvidence, Record};
use crate::id::PathId;
use crate::rx::reorder::history::REACH;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::time::Instant;

impl EvidenceOrder {
    /// A path is new, or gone: nothing has come by it. What waits by its records still waits no longer.
    pub(in crate::rx::reorder) fn forget_path(&mut self, path: PathId) {
        let wait = self.config.max_delay;
        if self.paths.len() <= path.index() {
            self.paths.resize(path.index() + 1, PathEvidence::new(wait));
        }
        let Some(left) = self.paths[path.index()].forget(wait) else { return };
        if left.seq.offset_from(self.next) < 0 {
            return;
        }
        self.inherited = Some(self.inherited.map_or(left, |before| {
            let higher = if left.seq.offset_from(before.seq) > 0 { left.seq } else { before.seq };
            Record { seq: higher, at: left.at.max(before.at) }
        }));
    }

    /// How long to wait after a packet came by a path, from 1 to 250 ms, and the mean deviation of its delay.
    pub(in crate::rx::reorder) fn set_wait(
        &mut self,
        path: PathId,
        wait: Duration,
        deviation: Duration,
    ) {
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.set_wait(wait, deviation);
        }
    }

    /// So many datagrams have come by a path: its order is known after the first ones.
    pub(in crate::rx::reorder) fn set_received(&mut self, path: PathId, datagrams: u64) {
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.set_received(datagrams);
        }
    }

    /// How long packets of a path may be overtaken by others on it.
    pub(in crate::rx::reorder) fn margin(&self, path: PathId) -> Duration {
        self.paths.get(path.index()).map_or(Duration::ZERO, PathEvidence::margin)
    }

    /// Until then, packets that were sent on a path that is lost may come by others.
    pub(in crate::rx::reorder) fn expect_copies(&mut self, until: Instant) {
        self.copies_until = until;
    }

    /// A beacon says that everything up to this number that was sent on a path has arrived, or is lost.
    pub(in crate::rx::reorder) fn covered(
        &mut self,
        now: Instant,
        path: PathId,
        seq: Seq,
        sink: &mut impl Sink,
    ) {
        let ahead = seq.offset_from(self.next);
        if !(-REACH..REACH.min(self.config.window as i32)).contains(&ahead) {
            return;
        }
        self.paths[path.index()].on_beacon(seq);
        if ahead < 0 {
            return;
        }
        self.extend(seq);
        self.paths[path.index()].record(now, seq, self.next);
        self.recorded |= 1 << path.index();
        self.on_timeout(now, sink);
    }

    /// Other paths than before are live, one bit each.
    pub(in crate::rx::reorder) fn set_live(
        &mut self,
        now: Instant,
        live: u64,
        sink: &mut impl Sink,
    ) {
        (self.now, self.live) = (now, live);
        self.give_up_passed(now, sink);
    }
}
