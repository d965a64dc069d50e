//! Parity across paths: of packets that would be repaired too late, where there are so many that this costs less than to send
//! each of them twice.
//!
//! Packets of one path are gathered for a moment, and some parities of them go by other paths: as many as the loss of both
//! needs, and none if nothing is lost ([`Groups`](super::repair::Groups)). They leave before all that waits, at the pace of their
//! path, and count as what may be sent again does, if others would have to wait for them.

use super::classify::Treated;
use super::connection::TransmitHalf;
use super::paced::IPV4_UDP;
use super::repair::groups::Group;
use super::repair::{Again, CopyKind};
use super::retransmit::Sent;
use super::stages::{Committed, Offered};
use crate::framing::Stamp;
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::queue::store::Place;
use crate::scheduler::earliest::Earliest;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::wire::erasure::{add, factor};
use crate::wire::extended::parity::{Members, Parity};

/// What a parity has of the type of service of its packets: the DSCP.
const DSCP: u8 = 0xfc;

impl TransmitHalf {
    /// Takes a packet that parity is to cover, if there is a path with room for it that loses some, and another one.
    #[inline(never)]
    pub(super) fn offer_covered(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        treated: Treated,
        within: Option<&Earliest>,
    ) -> Option<Offered> {
        let (len, tos) = (item.packet.len(), item.inner.tos);
        let among = within.or(self.scheduler.earliest())?;
        let path = among.select_ahead(now, self.framing.overhead() + len + IPV4_UDP)?;
        if among.others_ahead(now, len, path).is_empty() || !self.is_lossy_path(path) {
            return None;
        }
        let stamp = self.framing.number(item)?.covered();
        self.counts_of(treated.class).covered += 1;
        let (paced, earliest) = (self.paced.as_mut()?, self.scheduler.earliest_mut()?);
        let stamp = if paced.has_committed(path) { stamp.out_of_turn() } else { stamp };
        let place = paced.store.take(len);
        let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
        earliest.commit_ahead_chosen(now, path, wire_len);
        let again = Again { first: now, times: 0, kind: CopyKind::Covered, is_second: false };
        let (ahead, again) = (true, Some(again));
        let class = within.map(|_| treated.class);
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, Committed { ahead, again, class, ..committed });
        paced.wake_at(earliest.next(path));
        Some(Offered::Covered(place))
    }

    /// A packet that parity covers leaves by a path.
    pub(super) fn cover(&mut self, now: Instant, sent: &Sent, packet: &[u8]) {
        let Some(number) = sent.stamp.sequence() else { return };
        let groups = &mut self.repair.groups;
        let distance = sent.stamp.distance();
        let full = groups.put(now, sent.path, number, distance, sent.tos, packet);
        if let Some(group) = full {
            self.send_parities_of(now, &group);
        }
        if let Some((paced, due)) = self.paced.as_mut().zip(self.repair.groups.due()) {
            paced.wake_at(due);
        }
    }

    /// Sends the parities of groups that have been gathered for long enough.
    pub(super) fn send_parities(&mut self, now: Instant) {
        while let Some(group) = self.repair.groups.take_due(now) {
            self.send_parities_of(now, &group);
        }
    }

    fn send_parities_of(&mut self, now: Instant, group: &Group) {
        let (Some(members), Some(earliest)) =
            (Members::new(&group.numbers), self.scheduler.earliest())
        else {
            return;
        };
        let longest = group.longest();
        let len = Parity::size(&members, longest);
        let paths = earliest.others_ahead(now, len, group.path);
        let Some(&first) = paths.first() else { return };
        let [loss, others] = [group.path, first].map(|path| self.loss_lately(path));
        let count = self.repair.groups.parities(group.numbers.len(), loss, others);
        let is_free = !earliest.is_busy();
        let mut sent = 0;
        for (number, path) in (0..count).zip(paths.iter().cycle()) {
            let Some(stamp) = self.framing.parity() else { return };
            let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
            let by = self.paths.get_mut(group.path.index());
            if !is_free && !by.is_some_and(|path| path.spare.take_beside_repairs(wire_len)) {
                self.repair.stats.parity.refused += (count - number) as u64;
                break;
            }
            let mut sum = vec![0; longest];
            for (at, packet) in group.packets().enumerate() {
                add(&mut sum, packet, factor(number, at));
            }
            let parity = Parity { number, count, members: members.clone(), bytes: &sum };
            self.commit_parity(now, *path, &parity, (stamp, group.tos & DSCP), wire_len);
            sent += 1;
        }
        self.repair.groups.on_sent(group, sent);
    }

    fn commit_parity(
        &mut self,
        now: Instant,
        path: PathId,
        parity: &Parity<'_>,
        (stamp, tos): (Stamp, u8),
        wire_len: usize,
    ) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        let place = paced.store.take(Parity::size(&parity.members, parity.bytes.len()));
        paced.store.fill(place, |message| {
            parity.emit(message);
            false
        });
        earliest.commit_ahead(now, path, wire_len);
        let again = Again { first: now, times: 0, kind: CopyKind::Covered, is_second: true };
        let (ahead, is_copy, again) = (true, true, Some(again));
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, Committed { ahead, is_copy, again, ..committed });
        paced.wake_at(earliest.next(path));
        self.repair.stats.parity.tried += 1;
        self.repair.stats.parity.bytes += wire_len as u64;
    }

    /// A parity leaves on a path.
    pub(super) fn on_parity_leaving(&mut self, path: PathId, stamp: &Stamp, place: Place) {
        let message = self.paced.as_ref().map(|paced| paced.store.get(place).0);
        let first = message.and_then(|message| Parity::parse(message).ok()?.members.first().into());
        if let Some((first, sequence)) = first.zip(stamp.path_sequence()) {
            let first: Seq = first;
            self.repair.groups.on_parity(path, sequence, first);
        }
    }

    /// The share of datagrams that a path has lost lately.
    fn loss_lately(&self, path: PathId) -> f64 {
        let path = self.paths.get(path.index());
        path.and_then(|path| path.feedback.loss_recent()).unwrap_or_default()
    }
}
