//! One honest queue in two stages, where paths are chosen by earliest arrival.
//!
//! A packet that arrives while no path is full is sent at once, and is not copied. Otherwise it waits in the first
//! stage ([`FlowQueues`]), without a number: there packets are dropped or marked if they wait too long. When
//! some path can take it ([`Earliest`]) it is *committed*: it gets its number, and stands in the queue of that
//! path, the second stage, from which nothing is dropped. From there it leaves at the pace of the path.
//!
//! A packet of a flow that sends little goes before both: it is committed at once, and leaves as the next of its path.
//!
//! [`Earliest`]: crate::scheduler::earliest::Earliest
//! [`FlowQueues`]: crate::queue::FlowQueues

use std::cell::LazyCell;
use std::ops::Deref;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::stages::{Committed, Due, Offered, Paced};
use crate::class::Class;
use crate::framing::datagram::Item;
use crate::framing::{Stamp, Tx};
use crate::id::PathId;
use crate::queue::store::{Place, Store};
use crate::queue::{Packet, Service, Verdict, Volume, Waiting};
use crate::scheduler::earliest::{Choice, Earliest};
use crate::sequence::Seq;
use crate::stats::Drop;
use crate::time::Instant;
use crate::tx::repair::Again;
use crate::wire::flow::Flow;
use crate::wire::segment::Segment;
use crate::wire::{ecn, inner, segment};

/// A wake-up may be so much late, so that one serves several packets.
const GATHER: Duration = Duration::from_micros(500);

/// A packet that was moved to another path may arrive so much later than the delays of the paths explain.
const MOVED: Duration = Duration::from_millis(10);

impl TransmitHalf {
    /// Takes an inner packet. `None` if there is no path.
    pub(super) fn offer(&mut self, now: Instant, item: &Item<'_>) -> Option<Offered> {
        let flow = LazyCell::new(|| Flow::parse(item.packet, item.inner));
        let hash = LazyCell::new(|| flow.hash());
        self.on_flow(now, item, &flow, &hash);
        let treated = self.treated(now, item, &flow, &hash);
        if let Some((treated, allowed)) = treated.and_then(|it| Some((it, it.allowed?))) {
            return self.offer_within(now, item, *hash, treated, allowed);
        }
        if let Some(waits) = self.hold_back(now, item, &hash) {
            return Some(waits);
        }
        if let Some(treated) = treated.filter(|it| it.is_covered)
            && let Some(offered) = self.offer_covered(now, item, treated, None)
        {
            return Some(offered);
        }
        let (len, tos) = (item.packet.len(), item.inner.tos);
        let waits = self.paced.as_ref().is_some_and(|paced| !paced.queues.is_empty());
        let volume = self.volume(now, item, &flow, &hash, waits);
        let copies =
            self.is_of_train(now, len) || self.scheduler.earliest().is_some_and(Earliest::copies);
        let is_critical = self.is_critical(now, item, volume);
        let takes_two = treated.and_then(|it| Some((it.class, it.takes_two?)));
        if (is_critical || takes_two.is_some())
            && !copies
            && let Some(offered) = self.offer_twice(now, item, volume, takes_two, None)
        {
            return Some(offered);
        }
        let choice = match waits {
            true => Some(Choice::Wait(now)),
            // What takes several paths is copied, so it is kept first.
            false if copies => {
                self.choose(now, len, volume, Duration::ZERO).map(|_| Choice::Wait(now))
            }
            false => self.choose(now, len, volume, Duration::ZERO),
        };
        let Some(choice) = choice else {
            self.drops.add(Drop::NoPath);
            return None;
        };
        if volume == Volume::Sparse
            && !copies
            && let Some(offered) = self.offer_ahead(now, item)
        {
            return Some(offered);
        }
        let paced = self.paced.as_mut()?;
        match choice {
            Choice::Path(path) => {
                let mut stamp = self.framing.number(item)?;
                if paced.equalise.has_flag(volume) {
                    stamp = stamp.equalised();
                }
                let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
                let earliest = self.scheduler.earliest_mut()?;
                earliest.commit_chosen(now, path, wire_len);
                if !paced.has_committed(path) && earliest.may_send(now, path) {
                    let is_due = earliest.is_due(now, path);
                    let stamp = self.on_leaving(now, path, stamp, (wire_len, len), false);
                    self.paths[path.index()].on_idle_if(is_due);
                    return Some(Offered::Now(path, stamp));
                }
                let place = paced.store.take(len);
                paced.push(path, Committed::new(place, stamp, tos, wire_len));
                let next = earliest.next(path);
                paced.wake_at(next);
                Some(Offered::Later(place))
            }
            Choice::Wait(until) => {
                let place = paced.store.take(len);
                let is_tcp = segment::is_tcp(item.packet, item.inner);
                paced.queues.push(now, *hash, Packet { place, len, tos, volume, is_tcp });
                paced.wake_at(if copies { now } else { until + GATHER });
                while let Some(dropped) = paced.queues.overflow(now) {
                    paced.store.give_back(dropped.place);
                    self.drops.add(Drop::QueueFull);
                }
                Some(Offered::Later(place))
            }
        }
    }

    /// How much the flow of an inner packet of `len` bytes sends, as far as that matters: others wait before it, or bulk
    /// flows have an equal delay.
    fn volume(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        flow: &impl Deref<Target = Flow>,
        hash: &impl Deref<Target = u64>,
        waits: bool,
    ) -> Volume {
        let busy =
            waits || self.suspects(now) || self.scheduler.earliest().is_some_and(Earliest::is_busy);
        let Some(paced) = self.paced.as_mut().filter(|paced| busy || paced.equalise.is_active())
        else {
            return Volume::Usual;
        };
        let equalises = paced.equalise.is_active();
        let segment = equalises.then(|| segment::parse(item.packet, item.inner)).flatten();
        let len = item.packet.len();
        let service = segment.filter(|it| *it == Segment::Syn).and_then(|_| Service::of(flow));
        let (queues, early) = (&mut paced.queues, paced.equalise.early());
        let judged = queues.volume(now, **hash, len, segment, early, service);
        paced.equalise.on_packet(now, judged);
        // What did not take the early delay from the first packet on gains nothing by it, nor by a longer one.
        let is_learned =
            paced.equalise.is_learned() && (segment.is_none() || !paced.equalise.is_early());
        let is_bulk = judged.volume == Volume::Bulk && (judged.is_known || is_learned);
        match judged.volume {
            Volume::Sparse if !busy => Volume::Usual,
            Volume::Bulk if !is_bulk => Volume::Usual,
            Volume::Sparse | Volume::Usual | Volume::Early | Volume::Bulk => judged.volume,
        }
    }

    /// Takes an inner packet of a flow that sends so little that it need not wait, though others wait before it.
    fn offer_ahead(&mut self, now: Instant, item: &Item<'_>) -> Option<Offered> {
        let (len, tos) = (item.packet.len(), item.inner.tos);
        let paced = self.paced.as_mut()?;
        let wire_len = self.framing.overhead() + len + IPV4_UDP;
        let path = self.scheduler.earliest()?.select_ahead(now, wire_len)?;
        let wire_len = self.paths[path.index()].wire_len(self.framing.overhead() + len);
        let mut stamp = self.framing.number(item)?;
        let earliest = self.scheduler.earliest_mut()?;
        if earliest.may_send(now, path) && !paced.has_ahead(path) {
            if paced.has_committed(path) {
                stamp = stamp.out_of_turn();
            }
            earliest.commit(now, path, wire_len);
            let stamp = self.on_leaving(now, path, stamp, (wire_len, len), false);
            return Some(Offered::Now(path, stamp));
        }
        let place = paced.store.take(len);
        let packet = Packet { place, len, tos, volume: Volume::Sparse, is_tcp: false };
        self.commit_ahead(now, path, packet, stamp, None);
        Some(Offered::Later(place))
    }

    /// A packet leaves as the next of a path.
    pub(super) fn commit_ahead(
        &mut self,
        now: Instant,
        path: PathId,
        packet: Packet,
        mut stamp: Stamp,
        class: Option<Class>,
    ) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        let Packet { place, len, tos, .. } = packet;
        if paced.has_committed(path) {
            stamp = stamp.out_of_turn();
        }
        let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
        earliest.commit_ahead(now, path, wire_len);
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, Committed { ahead: true, class, ..committed });
        paced.wake_at(earliest.next(path));
    }

    /// Whether something has become due earlier than it was when this was last asked.
    pub(super) fn take_sooner(&mut self) -> bool {
        self.paced.as_mut().is_some_and(|paced| std::mem::take(&mut paced.sooner))
    }

    /// The path for a packet of this length, of a flow of this volume, that has waited for so long.
    fn choose(&self, now: Instant, len: usize, volume: Volume, waited: Duration) -> Option<Choice> {
        // The headers of the paths differ by no more than 20 bytes.
        let wire_len = self.framing.overhead() + len + IPV4_UDP;
        let earliest = self.scheduler.earliest()?;
        match self.paced.as_ref().and_then(|paced| paced.equalise.of(volume)) {
            Some(equal) if earliest.equalises() => earliest.select_equalised(now, equal),
            _ => earliest.select(now, wire_len, waited),
        }
    }

    /// A packet leaves on a path: the rest of its stamp.
    pub(super) fn on_leaving(
        &mut self,
        now: Instant,
        path: PathId,
        stamp: Stamp,
        (wire_len, len): (usize, usize),
        is_copy: bool,
    ) -> Stamp {
        let earliest = self.scheduler.earliest_mut();
        let has_idled = earliest.is_none_or(|earliest| earliest.on_sent(now, path, wire_len));
        if let Some(paced) = &mut self.paced {
            paced.equalise.on_sent(wire_len);
        }
        let moves = self.paced.as_ref().is_some_and(|paced| paced.moves(now));
        let stamp = if moves { stamp.out_of_turn() } else { stamp };
        let sender = &mut self.paths[path.index()];
        // What is sent before this says nothing of what the path delivers: others may have been chosen.
        sender.on_idle_if(has_idled);
        let stamp = stamp.leaving(now, &mut sender.wire);
        if !is_copy {
            self.fail_over.on_sent(now, sender, wire_len);
            sender.spare.on_sent(wire_len);
        }
        sender.idle.on_data(now);
        sender.mtu.on_data(now, stamp.overhead() + len);
        sender.black_hole.on_sent(stamp.overhead() + len);
        stamp
    }

    /// The next packet that has waited and whose time it is.
    pub(super) fn poll_paced(&mut self, now: Instant) -> Option<Due> {
        let paced = self.paced.as_mut()?;
        if let Some(place) = paced.lent.take() {
            paced.store.give_back(place);
        }
        if paced.at.is_none_or(|at| now < at) {
            return None;
        }
        self.send_parities(now);
        while let Some(held) = self.paced.as_mut()?.acks.poll(now) {
            self.release(now, held);
        }
        let mut waits_until = None;
        while let Some(until) = self.commit_next(now) {
            if let Some(until) = until {
                waits_until = Some(until + GATHER);
                break;
            }
        }
        if self.paced.as_ref().is_some_and(|paced| !paced.within.is_empty()) {
            let until = self.commit_within(now).map(|until| until + GATHER);
            waits_until = waits_until.into_iter().chain(until).min();
        }
        let (paced, earliest) = (self.paced.as_mut()?, self.scheduler.earliest()?);
        let mut lanes = paced.committed.iter().filter(|(_, lane)| !lane.is_empty());
        let due = lanes.find(|(index, _)| earliest.may_send(now, PathId(*index as u8)));
        let due = due.map(|(index, _)| index);
        drop(lanes);
        if let Some(index) = due {
            let lane = paced.committed.get_mut(index)?;
            let Committed { place, stamp, tos, wire_len, is_copy, of_train, again, .. } =
                lane.pop_front()?;
            paced.lent = Some(place);
            let number = stamp.sequence().map(Seq::value);
            if number.is_some_and(|number| paced.moved.remove(&number)) {
                paced.moves_until = now + earliest.skew() + MOVED;
            }
            let len = paced.store.get(place).0.len();
            let path = PathId(index as u8);
            let is_last = lane.is_empty() && paced.queues.is_empty() && paced.within.is_empty();
            let idle = self.paths[index].idle;
            let stamp = self.on_leaving(now, path, stamp, (wire_len, len), is_copy);
            if of_train {
                // No beacon is to follow: nobody waits for it, and it would seem to be the end of the train.
                self.paths[index].idle = idle;
            }
            self.paths[index].on_idle_if(is_last);
            if again.is_some_and(Again::is_parity) {
                self.on_parity_leaving(path, &stamp, place);
            }
            let keep = self.keep_waited(of_train, again);
            return Some(Due { path, stamp, tos, place, len, keep, is_copy });
        }
        let lanes = paced.committed.iter().filter(|(_, lane)| !lane.is_empty());
        let next = lanes.map(|(index, _)| earliest.next(PathId(index as u8)));
        let others = paced.acks.due().into_iter().chain(self.repair.groups.due());
        paced.at = next.chain(waits_until).chain(others).min();
        None
    }

    /// Commits the next packet of the first stage. `None` if there is none, `Some(Some(until))` if it has to wait.
    fn commit_next(&mut self, now: Instant) -> Option<Option<Instant>> {
        let next = self.paced.as_mut()?.queues.next()?;
        let (len, volume, waited) = (next.len as usize, next.volume, next.waited(now));
        let choice = self.choose(now, len, volume, waited);
        let spills = self.scheduler.earliest().is_some_and(|earliest| earliest.spills(waited));
        let paced = self.paced.as_mut()?;
        let path = match choice {
            Some(Choice::Path(path)) => path,
            Some(Choice::Wait(until)) => return Some(Some(until)),
            None => {
                self.clear_paced();
                return None;
            }
        };
        let Waiting { place, tos, .. } = match paced.queues.pop(now)? {
            Verdict::Send(waiting) => waiting,
            // It did not yield before, and there is a path for it.
            Verdict::Congested(waiting) | Verdict::Overload(waiting) if spills => waiting,
            Verdict::Overload(waiting) => {
                paced.store.give_back(waiting.place);
                self.drops.add(Drop::QueueDelay);
                return Some(None);
            }
            Verdict::Congested(waiting) => {
                let packet = paced.store.get_mut(waiting.place);
                let marked = inner::parse(packet).and_then(|inner| ecn::mark(packet, &inner));
                let Some(tos) = marked else {
                    paced.store.give_back(waiting.place);
                    self.drops.add(Drop::QueueDelay);
                    return Some(None);
                };
                self.marked += 1;
                waiting.with_tos(tos)
            }
        };
        let Some(mut stamp) = number(&mut self.framing, &paced.store, place) else {
            paced.store.give_back(place);
            self.drops.add(Drop::InnerMalformed);
            return Some(None);
        };
        if paced.equalise.has_flag(volume) {
            stamp = stamp.equalised();
        }
        let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
        if let Some(earliest) = self.scheduler.earliest_mut() {
            earliest.commit_chosen(now, path, wire_len);
        }
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, committed);
        self.commit_copies(now, path, committed);
        Some(None)
    }

    /// Drops all that waits: there is no path, or no session, for it.
    pub(super) fn clear_paced(&mut self) {
        let dropped = self.waiting();
        let Some(paced) = &mut self.paced else { return };
        (0..dropped).for_each(|_| self.drops.add(Drop::NoPath));
        let services = std::mem::take(&mut paced.queues.services);
        **paced = Paced::default();
        paced.queues.services = services;
        if let Some(earliest) = self.scheduler.earliest_mut() {
            earliest.clear();
        }
    }

    /// Begins or ends to queue, by what the scheduler and the framing need; what is committed to a path that is not
    /// used any more goes by the others.
    pub(super) fn refresh_paced(&mut self, now: Instant) {
        let wanted = self.framing.index().is_some() && self.scheduler.earliest().is_some();
        if wanted != self.paced.is_some() {
            self.clear_paced();
            self.paced = wanted.then(Box::default);
        }
        self.move_homeless(now);
        self.open(now);
    }
}

/// Numbers a packet that has waited; `None` if it is none that can be.
pub(super) fn number(framing: &mut Tx, store: &Store, place: Place) -> Option<Stamp> {
    let packet = store.get(place).0;
    let inner = inner::parse(packet)?;
    framing.number(&Item::new(packet, &inner))
}

/// The bytes of an IPv4 and a UDP header.
pub(super) const IPV4_UDP: usize = 28;
