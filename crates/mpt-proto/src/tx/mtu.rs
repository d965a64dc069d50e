//! Probes of what the paths of a session carry, and the evidence that one has become narrower.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::message::Control;
use crate::id::PathId;
use crate::time::Instant;
use crate::timer::{Deadline, Timer};

/// How long feedback about a path on which data is sent may stay out above two round trips, before that is
/// evidence that long datagrams are lost.
const SILENCE: Duration = Duration::from_millis(50);

impl TransmitHalf {
    /// The longest datagram that is known to arrive on a path, in bytes of UDP payload; `None` without a session, or
    /// before the first probes were answered or lost.
    pub fn proven_len(&self, path: PathId) -> Option<usize> {
        self.framing.index()?;
        self.paths.get(path.index())?.mtu.proven()
    }

    /// The interface and the route of a path allow datagrams of this length.
    pub(crate) fn set_local_len(&mut self, path: PathId, len: usize, now: Instant) {
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.mtu.set_local(now, len);
        }
    }

    /// The next probe that is due.
    pub(super) fn poll_mtu(&mut self, now: Instant) -> Option<Control> {
        self.framing.index()?;
        let due =
            self.paths.iter_mut().filter(|(_, path)| path.usable()).find_map(|(index, path)| {
                Some((PathId(index as u8), path.mtu.poll(now, path.metrics.round_trip)?))
            });
        let (path, len) = due?;
        self.probe(now, path, len)
    }

    /// When the next probe is due.
    pub(super) fn mtu_deadline(&self) -> Option<Deadline> {
        self.framing.index()?;
        let usable = self.paths.iter().filter(|(_, path)| path.usable());
        let at = usable.filter_map(|(_, path)| path.mtu.deadline()).min()?;
        Some(Deadline { at, timer: Timer::Probe })
    }

    /// Data is sent: a path on which it has no effect may have become narrower.
    pub(super) fn check_progress(&mut self, now: Instant) {
        for (_, path) in self.paths.iter_mut() {
            let last = path.wire.next.wrapping_sub(1);
            let patience = path.metrics.round_trip.unwrap_or_default() * 2 + SILENCE;
            if path.feedback.is_silent(now, last, patience) {
                path.mtu.suspect(now);
            }
        }
    }

    /// The paths of which something else is known to arrive than was told last, and whether it is less.
    pub(crate) fn newly_proven(&mut self) -> impl Iterator<Item = (PathId, usize, bool)> + use<'_> {
        let in_session = self.framing.index().is_some();
        self.paths.iter_mut().filter_map(move |(index, path)| {
            let proven =
                path.mtu.proven().filter(|proven| in_session && path.mtu_told != Some(*proven))?;
            let before = path.mtu_told.replace(proven);
            Some((PathId(index as u8), proven, before.is_some_and(|before| proven < before)))
        })
    }
}
