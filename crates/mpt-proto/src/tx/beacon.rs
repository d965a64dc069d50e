//! Beacons: a path that has become idle says up to what number nothing is outstanding on it (section 8.2 of
//! `docs/protocol.md`). Without them a receiver could not tell a lost packet from one that an idle path still
//! brings.

use super::connection::TransmitHalf;
use super::message::{Control, ControlMessage};
use crate::id::PathId;
use crate::time::Instant;
use crate::wire::extended::Kind;
use crate::wire::extended::beacon::{AFTER, Beacon};

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
        self.check_progress(now);
        let covered = self.framing.last_sequence().unwrap_or(Beacon::NOTHING);
        for (index, path) in self.paths.iter_mut() {
            // It is about to send what has a number already.
            let waits = self.paced.as_ref();
            if waits.is_some_and(|paced| paced.has_committed(PathId(index as u8))) {
                path.idle.on_data(now);
            }
            if path.idle.deadline().is_none_or(|at| now < at) {
                continue;
            }
            path.idle.on_beacon();
            let (id, path_sequence) = (path.wire.id, path.wire.next.wrapping_sub(1));
            let stamp = self.framing.stamp_control(now, Kind::Beacon, &mut path.wire);
            if let Some(stamp) = stamp.filter(|_| path.present) {
                let beacon = Beacon { path: id, covered, path_sequence };
                let message = ControlMessage::Beacon(beacon);
                return Some(Control { path: PathId(index as u8), stamp, message, padded: None });
            }
        }
        self.set_runs(now);
        self.beacons_at = self.paths.iter().filter_map(|(_, path)| path.idle.deadline()).min();
        None
    }
}
