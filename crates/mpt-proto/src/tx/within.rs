//! Packets of classes that may take only some of the paths.
//!
//! They have queues of their own, so that nothing else waits where their paths are full. Where none of these paths carries
//! they are dropped, with a name: the operator who named paths did not want the others to be taken.

use super::classify::{Treated, allowed};
use super::connection::TransmitHalf;
use super::paced::{IPV4_UDP, number};
use super::stages::{Committed, Offered};
use crate::framing::datagram::Item;
use crate::queue::{Early, Judged, Packet, Verdict, Volume};
use crate::scheduler::earliest::Choice;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::{ecn, inner, segment};

impl TransmitHalf {
    /// Takes a packet that may take only these paths, one bit each.
    #[inline(never)]
    pub(super) fn offer_within(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        hash: u64,
        treated: Treated,
        allowed: u64,
    ) -> Option<Offered> {
        let within = self.scheduler.earliest()?.within(allowed);
        if within.is_empty() {
            self.drops.add(Drop::ClassPath);
            return None;
        }
        if treated.is_covered
            && let Some(offered) = self.offer_covered(now, item, treated, Some(&within))
        {
            return Some(offered);
        }
        let is_critical = self.is_critical(now, item, Volume::Usual);
        let takes_two = treated.takes_two.map(|mode| (treated.class, mode));
        if (is_critical || takes_two.is_some())
            && let Some(offered) =
                self.offer_twice(now, item, Volume::Usual, takes_two, Some(&within))
        {
            return Some(offered);
        }
        let (len, tos) = (item.packet.len(), item.inner.tos);
        let wire_len = self.framing.overhead() + len + IPV4_UDP;
        let queues = self.paced.as_mut()?.within(treated.class);
        let Judged { volume, .. } = queues.volume(now, hash, len, None, Early::default(), None);
        if volume == Volume::Sparse
            && let Some(path) = within.select_ahead(now, wire_len)
        {
            let stamp = self.framing.number(item)?;
            let place = self.paced.as_mut()?.store.take(len);
            let packet = Packet { place, len, tos, volume, is_tcp: false };
            self.commit_ahead(now, path, packet, stamp, Some(treated.class));
            return Some(Offered::Later(place));
        }
        let paced = self.paced.as_mut()?;
        let place = paced.store.take(len);
        let queues = paced.within(treated.class);
        let is_tcp = segment::is_tcp(item.packet, item.inner);
        let packet = Packet { place, len, tos, volume: Volume::Usual, is_tcp };
        queues.push(now, hash, packet);
        while let Some(dropped) = paced.within(treated.class).overflow(now) {
            paced.store.give_back(dropped.place);
            self.drops.add(Drop::QueueFull);
        }
        paced.wake_at(now);
        Some(Offered::Later(place))
    }

    /// Commits what waits for some paths only. Returns when the next of that can be.
    pub(super) fn commit_within(&mut self, now: Instant) -> Option<Instant> {
        let mut waits_until = None;
        for at in 0..self.paced.as_ref().map_or(0, |paced| paced.within.len()) {
            let until = self.commit_of(now, at);
            waits_until = waits_until.into_iter().chain(until).min();
        }
        self.paced.as_mut()?.within.retain(|(_, queues)| !queues.is_empty());
        waits_until
    }

    /// Commits what the paths of one set can take.
    fn commit_of(&mut self, now: Instant, at: usize) -> Option<Instant> {
        loop {
            let paced = self.paced.as_mut()?;
            let (class, queues) = paced.within.get_mut(at)?;
            let class = *class;
            let allowed = allowed(&self.paths, class).unwrap_or(u64::MAX);
            let next = queues.next()?;
            let earliest = self.scheduler.earliest_mut()?;
            let wire_len = self.framing.overhead() + next.len as usize + IPV4_UDP;
            let choice = earliest.within(allowed).select(now, wire_len, next.waited(now));
            let verdict = match choice {
                Some(Choice::Wait(until)) => return Some(until),
                Some(Choice::Path(_)) | None => queues.pop(now)?,
            };
            let (Verdict::Send(waiting) | Verdict::Congested(waiting) | Verdict::Overload(waiting)) =
                verdict;
            let place = waiting.place;
            if matches!(verdict, Verdict::Overload(_)) {
                paced.store.give_back(place);
                self.drops.add(Drop::QueueDelay);
                continue;
            }
            let Some(Choice::Path(path)) = choice else {
                paced.store.give_back(place);
                self.drops.add(Drop::ClassPath);
                continue;
            };
            let mut tos = waiting.tos;
            if matches!(verdict, Verdict::Congested(_)) {
                let packet = paced.store.get_mut(place);
                let marked = inner::parse(packet).and_then(|inner| ecn::mark(packet, &inner));
                let Some(marked) = marked else {
                    paced.store.give_back(place);
                    self.drops.add(Drop::QueueDelay);
                    continue;
                };
                self.marked += 1;
                tos = marked;
            }
            let Some(stamp) = number(&mut self.framing, &paced.store, place) else {
                paced.store.give_back(place);
                self.drops.add(Drop::InnerMalformed);
                continue;
            };
            let len = paced.store.get(place).0.len();
            let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
            earliest.commit_chosen(now, path, wire_len);
            let committed =
                Committed { class: Some(class), ..Committed::new(place, stamp, tos, wire_len) };
            paced.push(path, committed);
            paced.wake_at(now);
            if earliest.copies() {
                self.commit_copies(now, path, committed);
            }
        }
    }
}
