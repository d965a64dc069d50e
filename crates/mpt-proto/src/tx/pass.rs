//! Long packets pass straight through while nothing waits and no path is full: only their path is to be chosen.
//!
//! What becomes of them is the same as by [`offer`](TransmitHalf::offer), which asks more: a long packet neither begins
//! nor ends anything, and nothing is done for it because of its class or its flow.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::paced::IPV4_UDP;
use crate::framing::Stamp;
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::scheduler::earliest::Choice;
use crate::time::Instant;
use crate::wire::flow::Flow;

/// Shorter packets may be those that begin or end a flow, or belong to a call.
const SHORTEST: usize = 800;

impl TransmitHalf {
    /// The path of a long inner packet that leaves at once, and its stamp. `None` if there is more to be asked: then nothing
    /// has happened, and it is to be [offered](Self::offer).
    #[inline(never)]
    pub(super) fn pass(&mut self, now: Instant, item: &Item<'_>) -> Option<(PathId, Stamp)> {
        let len = item.packet.len();
        let (paced, earliest) = (self.paced.as_ref()?, self.scheduler.earliest()?);
        if len < SHORTEST
            || self.repair.any_treated
            || self.suspects(now)
            || !paced.queues.is_empty()
            || paced.equalise.is_active()
            || earliest.copies()
            || earliest.is_busy()
            || self.begins_train(now, len)
        {
            return None;
        }
        let overhead = self.framing.overhead();
        let of_run = self.run.path_for(now, len);
        let path = match of_run {
            Some(path) => path,
            None => match earliest.select(now, overhead + len + IPV4_UDP, Duration::ZERO)? {
                Choice::Path(path) => path,
                Choice::Wait(_) => return None,
            },
        };
        if paced.has_committed(path) || !earliest.may_send(now, path) {
            return None;
        }
        let is_due = earliest.is_due(now, path);
        let stamp = self.framing.number(item)?;
        let paced = self.paced.as_mut()?;
        paced.trains.sent += len as u64;
        paced.trains.asked_at = now;
        paced.offered_at = now;
        if paced.flows.samples(len) {
            let flow = Flow::parse(item.packet, item.inner);
            paced.flows.on_packet(now, flow.hash(), &flow, item.inner.tos, len);
        }
        let wire_len = self.paths[path.index()].wire_len(stamp.overhead() + len);
        self.scheduler.earliest_mut()?.commit_chosen(now, path, wire_len);
        let stamp = self.on_leaving(now, path, stamp, (wire_len, len), false);
        self.paths[path.index()].on_idle_if(is_due);
        match of_run {
            Some(_) => self.run.add(len),
            None => self.run.begin(now, path, len, overhead),
        }
        Some((path, stamp))
    }
}
