//! The bytes of a datagram, written in place.

use super::retransmit::Sent;
use super::side::TransmitSide;
use super::transmit::{Keep, Payload, Transmit};
use crate::time::Instant;

impl TransmitSide {
    /// Writes a datagram in place. `fill` is given the payload and the place for it, and copies the one to
    /// the other, or finishes an inner packet on the way. A control message and a retransmission are
    /// copied as they are.
    ///
    /// A copy of an inner packet that may have to be sent again is kept; [`Self::poll_transmit`] then
    /// gives it out.
    ///
    /// # Panics
    ///
    /// If `datagram` is not [`Transmit::size`] bytes long.
    #[inline(always)]
    pub fn emit(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        datagram: &mut [u8],
        fill: impl FnOnce(&[u8], &mut [u8]),
    ) {
        self.emit_either(now, transmit, datagram, |packet, place| {
            fill(packet, place);
            false
        });
    }

    /// The same, where `fill` leaves the checksum of an inner packet partial if it returns true. It may do so where
    /// [`Transmit::may_be_partial`] says so.
    ///
    /// # Panics
    ///
    /// If `datagram` is not [`Transmit::size`] bytes long.
    #[inline(always)]
    pub fn emit_either(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        datagram: &mut [u8],
        fill: impl FnOnce(&[u8], &mut [u8]) -> bool,
    ) {
        let &Transmit { connection, path, tos, stamp, payload } = transmit;
        match payload {
            Payload::Inner { packet, keep } => {
                let stamp = stamp.emit_either(datagram, |place| fill(packet, place));
                let sent = Sent { at: now, connection, path, tos, stamp };
                self.keep_copy(keep, sent, &datagram[stamp.overhead()..]);
            }
            Payload::Waited { place, keep, .. } => {
                let half = self.connections.get(connection.index());
                let Some(paced) = half.and_then(|half| half.paced.as_ref()) else { return };
                let (packet, partial) = paced.packet(place);
                let stamp = stamp.emit_either(datagram, |place| {
                    place.copy_from_slice(packet);
                    partial
                });
                let sent = Sent { at: now, connection, path, tos, stamp };
                self.keep_copy(keep, sent, &datagram[stamp.overhead()..]);
            }
            Payload::Control { len } | Payload::Reply { len } => {
                stamp.emit(datagram, |place| {
                    let (message, padding) = place.split_at_mut(len.min(self.control.len()));
                    message.copy_from_slice(&self.control[..message.len()]);
                    padding.fill(0);
                });
            }
            Payload::Kept { place, .. } => {
                let packet = self.retransmit.packet(place);
                stamp.emit(datagram, |place| place.copy_from_slice(packet));
            }
        }
    }
    /// Keeps a copy of an inner packet that has just been written.
    #[inline(always)]
    fn keep_copy(&mut self, keep: Keep, sent: Sent, packet: &[u8]) {
        match keep {
            Keep::Not => {}
            Keep::Briefly => {
                if self.retransmit.allows(sent.at, packet.len()) {
                    self.retransmit.put(sent, packet);
                }
            }
            Keep::UntilTold(before) => {
                let (first, times) = before.unwrap_or((sent.at, 0));
                self.unacknowledged.put(sent, first, times, packet);
            }
        }
    }
}
