//! An inner packet that may have to wait.

use super::side::TransmitSide;
use super::stages::Offered;
use super::transmit::{Payload, Taken, Transmit, Waiting};
use crate::framing::datagram::Item;
use crate::id::ConnectionId;
use crate::time::Instant;
use crate::wire::inner;

impl TransmitSide {
    /// What [`handle_inner`](Self::handle_inner) does where packets may have to wait.
    #[inline(never)]
    pub(super) fn offer<'a>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        packet: &'a [u8],
        inner: &inner::Inner,
    ) -> Option<Taken<'a>> {
        let connection = self.connections.get_mut(id.index())?;
        let taken = match connection.offer(now, &Item { packet, inner })? {
            Offered::Now(path, stamp) => {
                let payload = Payload::Inner { packet, keep: connection.keeps() };
                Taken::Sent(Transmit { connection: id, path, tos: inner.tos, stamp, payload })
            }
            Offered::Later(place) => {
                let may_be_partial = connection.framing.is_partial();
                Taken::Waits(Waiting { connection: id, packet, place, may_be_partial })
            }
        };
        let sooner = connection.take_sooner();
        if connection.arm_beacons(now) || sooner {
            let at = connection.deadline().map(|deadline| deadline.at);
            self.deadlines.set(id.index(), at);
        }
        Some(taken)
    }

    /// Keeps the bytes of a packet that waits, before anything else is called. `fill` is given the packet and the place
    /// for it, as in [`Self::emit_either`].
    pub fn keep(&mut self, waiting: &Waiting<'_>, fill: impl FnOnce(&[u8], &mut [u8]) -> bool) {
        let connection = self.connections.get_mut(waiting.connection.index());
        if let Some(paced) = connection.and_then(|connection| connection.paced.as_mut()) {
            paced.fill(waiting.place, |place| fill(waiting.packet, place));
        }
    }
}
