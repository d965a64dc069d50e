//! An inner packet that may have to wait.

use super::side::TransmitSide;
use super::stages::{Accepted, Offered};
use super::transmit::{Payload, Taken, Transmit, Waiting};
use crate::framing::datagram::Item;
use crate::id::ConnectionId;
use crate::time::Instant;
use crate::wire::inner;

impl TransmitSide {
    /// What [`handle_inner`](Self::handle_inner) does where packets may have to wait.
    #[inline(never)]
    pub(super) fn offer(
        &mut self,
        now: Instant,
        id: ConnectionId,
        packet: &[u8],
        inner: &inner::Inner,
    ) {
        self.offered = None;
        let Some(connection) = self.connections.get_mut(id.index()) else { return };
        let Some(offered) = connection.offer(now, &Item::parsed(packet, inner)) else { return };
        let accepted = Accepted { connection: id, offered, tos: inner.tos, len: packet.len() };
        self.offered = Some(accepted);
        let sooner = connection.take_sooner();
        if connection.arm_beacons(now) || sooner {
            let at = connection.deadline().map(|deadline| deadline.at);
            self.deadlines.set(id.index(), at);
        }
    }

    /// What becomes of the packet for which [`handle_inner`](Self::handle_inner) returned `None` last: `None` again if it
    /// was dropped, and counted.
    #[inline]
    pub fn take_offered<'a>(&mut self, packet: &'a [u8]) -> Option<Taken<'a>> {
        let Accepted { connection: id, offered, tos, len } = self.offered.take()?;
        let connection = self.connections.get(id.index())?;
        let packet = packet.get(..len)?;
        Some(match offered {
            Offered::Now(path, stamp) => {
                let payload = Payload::Inner { packet, keep: connection.keep() };
                Taken::Sent(Transmit { connection: id, path, tos, stamp, payload })
            }
            Offered::Later(place) | Offered::Covered(place) => {
                let is_covered = matches!(offered, Offered::Covered(_));
                let may_be_partial = !is_covered && connection.framing.is_partial();
                Taken::Waits(Waiting { connection: id, packet, place, may_be_partial })
            }
        })
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
