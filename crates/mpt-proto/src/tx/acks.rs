//! Acknowledgements of TCP connections that wait, so that fewer are sent: see
//! [`queue::acks`](crate::queue::acks).

use std::ops::Deref;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::paced::{IPV4_UDP, number};
use super::rates::{have_jitter, least_round_trip, longest_round_trip, recent_round_trip};
use super::stages::Offered;
use crate::framing::datagram::Item;
use crate::queue::acks::{APART, Fate, Held, Ways};
use crate::queue::{Packet, Volume};
use crate::scheduler::earliest::Earliest;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::short::Short;

/// An acknowledgement waits for at least so long, and for at most a quarter of the round trip: of the least one, or of the usual one where
/// delays vary, of which the least may be less than half.
const LEAST_WAIT: Duration = Duration::from_millis(4);

impl TransmitHalf {
    /// Takes an inner packet if it is an acknowledgement that waits.
    pub(super) fn hold_back(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        hash: &impl Deref<Target = u64>,
    ) -> Option<Offered> {
        let (len, tos) = (item.packet.len(), item.inner.tos);
        // Over one path delays differ no more than they do without a tunnel.
        let several = self.scheduler.earliest().is_some_and(Earliest::has_several);
        if !self.thins_acks || !several {
            return None;
        }
        let Short::Segment(segment) = item.short() else { return None };
        // So far apart, acknowledgements would let a sender stand still in each round trip, and there is no slow start to speak of.
        if longest_round_trip(&self.paths).is_some_and(|trip| trip < APART) {
            return None;
        }
        let vary = have_jitter(&self.paths);
        let round_trip = if vary { recent_round_trip } else { least_round_trip }(&self.paths);
        let longest = LEAST_WAIT.max(round_trip / 4);
        let backlog = self.scheduler.earliest().and_then(|earliest| earliest.backlog(now));
        let is_crowded = backlog.is_some_and(|(backlog, _)| backlog > LEAST_WAIT);
        let paced = self.paced.as_mut()?;
        let ways = Ways { longest, vary, is_crowded };
        let (fate, obsolete) = paced.acks.on_segment(now, **hash, segment, ways);
        if let Some(obsolete) = obsolete {
            paced.store.give_back(obsolete.place);
            self.drops.add(Drop::AckObsolete);
        }
        let Fate::Wait(until) = fate else { return None };
        let place = paced.store.take(len);
        paced.acks.hold(**hash, place, len, tos, until);
        paced.wake_at(until);
        Some(Offered::Later(place))
    }

    /// An acknowledgement has waited long enough.
    pub(super) fn release(&mut self, now: Instant, held: Held) {
        let Held { place, len, tos, hash, .. } = held;
        let wire_len = self.framing.overhead() + len + IPV4_UDP;
        let path = self.scheduler.earliest().and_then(|it| it.select_ahead(now, wire_len));
        let Some(paced) = &mut self.paced else { return };
        let Some(path) = path else {
            let packet = Packet { place, len, tos, volume: Volume::Sparse, is_tcp: true };
            return paced.queues.push(now, hash, packet);
        };
        let Some(stamp) = number(&mut self.framing, &paced.store, place) else {
            paced.store.give_back(place);
            return self.drops.add(Drop::InnerMalformed);
        };
        let packet = Packet { place, len, tos, volume: Volume::Sparse, is_tcp: true };
        self.commit_ahead(now, path, packet, stamp, None);
    }
}
