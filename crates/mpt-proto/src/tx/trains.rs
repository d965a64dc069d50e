//! Trains: what paths can carry is found out before they are needed.
//!
//! While one path carries all because none is full, copies of what it carries are sent by each of the others now and then, many
//! at once. How fast such a train arrives is what the path can carry ([`RateEstimator::on_train`]). So when the first
//! path becomes full, the others need not begin with next to nothing. The peer drops the copies.
//!
//! [`RateEstimator::on_train`]: crate::path::rate::RateEstimator::on_train

use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use super::stages::{Committed, Trains};
use crate::id::PathId;
use crate::scheduler::earliest::Earliest;
use crate::time::Instant;

/// A train follows when so many times its bytes have been sent.
const COSTS: u64 = 1;

/// Shorter packets are no part of a train: links send so many a second that hosts cannot tell them apart.
const SHORTEST: usize = 800;

/// A train is gathered within this time, or not sent.
const GATHERED: Duration = Duration::from_millis(100);

/// A path on which data was sent since this is not told by a train: it would wait behind that.
const UNUSED: Duration = Duration::from_millis(20);

impl TransmitHalf {
    /// Whether a packet of `len` bytes becomes part of a train. Then it waits for a moment, as it is copied.
    pub(super) fn is_of_train(&mut self, now: Instant, len: usize) -> bool {
        let Some(paced) = &mut self.paced else { return false };
        let trains = &mut paced.trains;
        trains.sent += len as u64;
        if trains.to.is_some() {
            if now.since(trains.began) < GATHERED {
                return len >= SHORTEST;
            }
            trains.to = None;
            for committed in trains.gathered.drain(..) {
                paced.store.give_back(committed.place);
            }
        }
        let sent = trains.sent;
        let wanted = self.wanted_train(now, len, sent);
        if let Some(paced) = &mut self.paced {
            (paced.trains.to, paced.trains.began) = (wanted, now);
        }
        wanted.is_some()
    }

    /// Whether [`is_of_train`](Self::is_of_train) is to be asked about a packet of `len` bytes.
    pub(super) fn begins_train(&self, now: Instant, len: usize) -> bool {
        let Some(paced) = &self.paced else { return false };
        let Trains { sent, to, asked_at, .. } = &paced.trains;
        to.is_some() || *asked_at != now && self.wanted_train(now, len, sent + len as u64).is_some()
    }

    /// The path that a train of packets of `len` bytes is to be sent on, and of how many, after so many bytes.
    fn wanted_train(&self, now: Instant, len: usize, sent: u64) -> Option<(PathId, usize)> {
        if len < SHORTEST {
            return None;
        }
        let wants = |it: &&Earliest| it.is_trained() && it.has_several();
        let earliest = self.scheduler.earliest().filter(wants)?;
        let fits = |size: usize| sent >= COSTS * (size * len) as u64;
        self.paths.iter().find_map(|(index, path)| {
            let free = path.usable() && path.cost().is_zero() && path.fixed_rate.is_none();
            let size = wanted(now, path).filter(|size| free && fits(*size))?;
            let carries = earliest.has(PathId(index as u8));
            (carries && path.idle.elapsed(now) >= UNUSED).then_some((PathId(index as u8), size))
        })
    }

    /// A packet takes a path: a copy of it takes another one as part of a train, if one is gathered.
    pub(super) fn gather(&mut self, now: Instant, path: PathId, committed: Committed) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        let Some((to, size)) = paced.trains.to.filter(|(to, _)| *to != path) else { return };
        let sender = self.paths.get_mut(to.index());
        let is_free = |sender: &&mut TransmitPath| {
            sender.idle.elapsed(now) >= UNUSED && wanted(now, sender).is_some()
        };
        let Some(sender) = sender.filter(is_free) else {
            // It is used meanwhile, or gone.
            paced.trains.began = Instant::ZERO;
            return;
        };
        let place = paced.store.copy(committed.place);
        let len = paced.store.get(place).0.len();
        let wire_len = sender.wire_len(committed.stamp.overhead() + len);
        // It says nothing of what comes by its path.
        let stamp = committed.stamp.out_of_turn();
        paced.trains.gathered.push(Committed {
            place,
            stamp,
            wire_len,
            is_copy: true,
            of_train: true,
            ..committed
        });
        if paced.trains.gathered.len() < size {
            return;
        }
        let payload = |it: &Committed| it.stamp.overhead() + paced.store.get(it.place).0.len();
        let bytes = paced.trains.gathered.iter().map(payload).sum::<usize>();
        sender.rate.on_train(now, sender.wire.next, [size, bytes], sender.round_trip());
        sender.resent += size as u64;
        for committed in std::mem::take(&mut paced.trains.gathered) {
            earliest.commit(now, to, committed.wire_len);
            paced.push(to, committed);
        }
        (paced.trains.to, paced.trains.sent) = (None, 0);
        paced.wake_at(now);
    }
}

/// Of how many copies the next train may be. They leave at the pace of a path, if it has one, and would show that.
fn wanted(now: Instant, path: &TransmitPath) -> Option<usize> {
    path.rate.wants_train(now).filter(|_| path.rate.is_open())
}
