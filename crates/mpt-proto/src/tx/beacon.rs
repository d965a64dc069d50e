//! Beacons: a path that has become idle says up to what number nothing is outstanding on it (section 8.2 of
//! `docs/protocol.md`). Without them a receiver could not tell a lost packet from one that an idle path still
//! brings.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::control::{Control, ControlMessage};
use crate::id::PathId;
use crate::time::Instant;
use crate::wire::extended::Kind;
use crate::wire::extended::beacon::Beacon;

/// How long after the last data on a path its beacons are sent.
const AFTER: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(25)];

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

    /// When the next beacon is to be sent.
    fn deadline(&self) -> Option<Instant> {
        let sent = AFTER.len().checked_sub(self.due.into())?;
        Some(self.since + *AFTER.get(sent)?)
    }
}

impl TransmitHalf {
    /// Data was sent: a beacon will be due. Returns whether the deadlines of the connection have changed by that.
    #[inline(always)]
    pub(crate) fn arm_beacons(&mut self, now: Instant) -> bool {
        if !self.has_beacons || self.beacons_at.is_some() {
            return false;
        }
        self.beacons_at = Some(now + AFTER[0]);
        true
    }

    /// The next beacon that is due.
    pub(super) fn poll_beacon(&mut self, now: Instant) -> Option<Control> {
        if self.beacons_at.is_none_or(|at| now < at) {
            return None;
        }
        let covered = self.framing.last_sequence().unwrap_or(Beacon::NOTHING);
        for (index, path) in self.paths.iter_mut() {
            if path.idle.deadline().is_none_or(|at| now < at) {
                continue;
            }
            path.idle.due -= 1;
            let (id, path_sequence) = (path.wire.id, path.wire.next.wrapping_sub(1));
            let stamp = self.framing.stamp_control(now, Kind::Beacon, &mut path.wire);
            if let Some(stamp) = stamp.filter(|_| path.present) {
                let beacon = Beacon { path: id, covered, path_sequence };
                let message = ControlMessage::Beacon(beacon);
                return Some(Control { path: PathId(index as u8), stamp, message });
            }
        }
        self.beacons_at = self.paths.iter().filter_map(|(_, path)| path.idle.deadline()).min();
        None
    }
}
