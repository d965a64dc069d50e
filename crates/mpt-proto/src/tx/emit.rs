//! The bytes of a datagram, written in place.

use super::retransmit::Sent;
use super::side::TransmitSide;
use super::transmit::{Keep, Payload, Transmit};
use crate::framing::Stamp;
use crate::id::ConnectionId;
use crate::stats::Drop;
use crate::time::Instant;
use crate::tx::repair::Again;

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
        // The stamp is read where it is, field by field: it was written so a moment ago, and to copy it as a whole would
        // have to wait for that.
        let stamp = &transmit.stamp;
        match transmit.payload {
            Payload::Inner { packet, keep } => {
                let partial = stamp.emit_either(datagram, |place| fill(packet, place));
                self.keep_copy(now, transmit, keep, partial, datagram);
            }
            Payload::Waited { place, keep, .. } => {
                let half = self.connections.get(transmit.connection.index());
                let Some(paced) = half.and_then(|half| half.paced.as_ref()) else { return };
                let (packet, partial) = paced.packet(place);
                stamp.emit_either(datagram, |place| {
                    place.copy_from_slice(packet);
                    partial
                });
                self.keep_copy(now, transmit, keep, partial, datagram);
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
        self.seal(transmit, datagram);
    }

    /// Keeps a copy of an inner packet that has just been written, if that is to be done.
    #[inline(always)]
    fn keep_copy(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        keep: Keep,
        partial: bool,
        datagram: &[u8],
    ) {
        match keep {
            Keep::Not => {}
            Keep::Briefly => {
                if self.retransmit.allows(now, datagram.len()) {
                    let sent = sent(now, transmit, partial);
                    self.retransmit.put(sent, &datagram[sent.stamp.payload(datagram.len())]);
                }
            }
            Keep::UntilTold(again) => {
                let is_covered = again.is_some_and(Again::is_covered);
                let is_kept = self.unacknowledged.allows(now, datagram.len());
                if !is_covered && !is_kept {
                    return;
                }
                let sent = sent(now, transmit, partial);
                let packet = &datagram[sent.stamp.payload(datagram.len())];
                if is_covered {
                    self.cover(now, &sent, packet);
                }
                if is_kept {
                    self.unacknowledged.put(sent, again, packet);
                }
            }
        }
    }

    /// A packet that parity covers was written.
    #[cold]
    fn cover(&mut self, now: Instant, sent: &Sent, packet: &[u8]) {
        if let Some(half) = self.connections.get_mut(sent.connection.index()) {
            half.cover(now, sent, packet);
        }
    }

    /// Seals what was written, where that is to be done.
    #[inline(always)]
    fn seal(&mut self, transmit: &Transmit<'_>, datagram: &mut [u8]) {
        if transmit.stamp.is_sealed() {
            self.do_seal(transmit.connection, &transmit.stamp, datagram);
        }
    }

    #[inline(never)]
    fn do_seal(&mut self, connection: ConnectionId, stamp: &Stamp, datagram: &mut [u8]) {
        let sealed = match self.connections.get_mut(connection.index()) {
            Some(half) => half.framing.seal(stamp, datagram),
            // It is over, and its keys with it.
            None => {
                datagram.fill(0);
                Err(Drop::SealExpired)
            }
        };
        if let Err(reason) = sealed {
            self.drops.add(reason);
        }
    }
}

fn sent(now: Instant, transmit: &Transmit<'_>, partial: bool) -> Sent {
    let &Transmit { connection, path, tos, mut stamp, .. } = transmit;
    if !partial {
        stamp.complete();
    }
    Sent { at: now, connection, path, tos, stamp }
}
