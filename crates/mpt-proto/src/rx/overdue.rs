//! The paths on which something is [overdue](super::quiet).

use super::connection::ReceiveHalf;
use super::quiet::AGAIN;
use crate::id::PathId;
use crate::time::Instant;

impl ReceiveHalf {
    /// The live paths on which something is overdue, one bit each, and when it will be on the next.
    pub(super) fn overdue(&self, now: Instant) -> (u64, Option<Instant>) {
        let Some(measured) = self.measured.as_ref().filter(|it| it.repairs) else {
            return (0, None);
        };
        if self.live.count_ones() < 2 {
            return (0, None);
        }
        let live = self.paths.iter().filter(|(index, _)| self.live >> index & 1 != 0);
        let due = live.filter_map(|(index, path)| {
            let delay = measured.delays.get(PathId(index as u8))?;
            Some((index, path.quiet.due(delay.deviation)?))
        });
        due.fold((0, None), |(overdue, next), (index, at)| match at <= now {
            true => (overdue | 1 << index, next),
            false => (overdue, next.into_iter().chain([at]).min()),
        })
    }

    /// The peer is told of these paths, one bit each, on which something is overdue.
    pub(super) fn on_told_quiet(&mut self, now: Instant, overdue: u64) {
        let told = self.paths.iter_mut().filter(|(index, _)| overdue >> index & 1 != 0);
        told.for_each(|(_, path)| path.quiet.on_told());
        if let Some(measured) = self.measured.as_mut().filter(|_| overdue != 0) {
            measured.quiet_at = measured.quiet_at.into_iter().chain([now + AGAIN]).min();
        }
    }
}
