//! What is more likely lost than late, before the peer tells for certain.

use std::collections::VecDeque;

use super::{Entry, Kept, Place, Seen, Unacknowledged};
use crate::id::{ConnectionId, PathId};
use crate::tx::repair::Overtaken;
use crate::wire::extended::feedback::Block;

/// Of so many packets, the last that were sent on a path, feedback is looked at before it is certain; and of those that its bitmap tells about, which
/// may have been sent long before these where datagrams overtake each other.
const REACH: usize = 2048;

/// So many are given out for one feedback at the most. The others are for the next one.
const MOST: usize = 64;

impl Unacknowledged {
    /// The peer tells what arrived by a path. What of that which was sent on it, for the first time, is missing and probably
    /// lost goes into `lost`. Returns how many have arrived that were taken to be lost before.
    pub(crate) fn on_missing(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        block: &Block,
        overtaken: &mut Overtaken,
        lost: &mut Vec<Place>,
    ) -> u64 {
        let Some(sent) = self.paths.get(&(connection.0, path.0)) else { return 0 };
        let place = |of: u32| {
            let is_before = |sequence: u32| sequence.wrapping_sub(of).cast_signed() < 0;
            sent.partition_point(|(sequence, _)| is_before(*sequence))
        };
        let [first, middle] = [block.first(), block.bitmap_end()].map(place);
        let end = place(block.highest.wrapping_add(1));
        let newest = sent.range(end.saturating_sub(REACH).max(middle)..end);
        let told = sent.range(first..middle).chain(newest);
        let (entries, gone) = (&mut self.entries, self.gone);
        let mut needless = 0;
        for &(sequence, number) in told.clone() {
            let Some(kept) = kept_mut(entries, gone, number) else { continue };
            if kept.seen != Seen::Arrived && block.was_received(sequence) == Some(true) {
                needless += u64::from(kept.seen == Seen::TakenLost);
                kept.seen = Seen::Arrived;
                overtaken.on_arrived(kept.first);
            }
        }
        for &(_, number) in told.clone().rev() {
            if let Some(newest) = kept_mut(entries, gone, number) {
                overtaken.on_newest(newest.first);
                break;
            }
        }
        let Some(before) = overtaken.lost_before() else { return needless };
        let is_open = |sequence: u32| block.resolved.wrapping_sub(sequence).cast_signed() <= 0;
        for &(sequence, number) in told {
            let Some(kept) = kept_mut(entries, gone, number) else { continue };
            if kept.first > before || lost.len() == MOST {
                break;
            }
            let is_missing = kept.seen == Seen::Missing && is_open(sequence);
            if is_missing && block.was_received(sequence) == Some(false) {
                lost.push(Place(number));
            }
        }
        needless
    }

    /// A packet that is missing has been sent again, before it is certain that it is lost.
    pub(crate) fn take_for_lost(&mut self, Place(number): Place) {
        let at = number.checked_sub(self.gone);
        let entry = at.and_then(|at| self.entries.get_mut(at as usize)).filter(|it| it.open);
        if let Some(entry) = entry {
            entry.kept.seen = Seen::TakenLost;
        }
    }
}

/// A packet of which nothing is known for certain, and that was sent once.
fn kept_mut(entries: &mut VecDeque<Entry>, gone: u64, number: u64) -> Option<&mut Kept> {
    let entry = entries.get_mut(number.checked_sub(gone)? as usize)?;
    (entry.open && entry.kept.is_first()).then_some(&mut entry.kept)
}
