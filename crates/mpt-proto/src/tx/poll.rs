//! The datagrams that the endpoint itself has to send, in the order in which they are.

use std::net::{IpAddr, SocketAddr};

use super::side::TransmitSide;
use crate::event::Event;
use crate::framing::extended::identity::At;
use crate::framing::extended::reply::OriginReply;
use crate::framing::{Stamp, extended};
use crate::id::{ConnectionId, PathId, SocketId};
use crate::time::Instant;
use crate::tx::connection::TransmitHalf;
use crate::tx::message::{Control, ControlMessage};
use crate::tx::retransmit::Sent;
use crate::tx::stages::Due;
use crate::tx::transmit::{Payload, Transmit};
use crate::wire::extended::NO_PATH;
use crate::wire::keepalive;

/// The longest payload of UDP over IPv4, in bytes, less the longest GRE header.
const MAX_PAYLOAD: usize = 65_507 - 16;

impl TransmitSide {
    /// The next datagram that the endpoint itself has to send: a keepalive, or a retransmission of
    /// a [kept](Self::emit) packet. Call this until `None`, after every other call that changes it.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'static>> {
        if let Some(over) = self.over.take() {
            self.take_over(over);
        }
        while let Some(reply) = self.replies.pop_front() {
            if let Some(transmit) = self.reply(now, &reply) {
                return Some(transmit);
            }
        }
        if let Some(transmit) = self.poll_paced(now) {
            return Some(transmit);
        }
        // Keepalives first: the peer hears of a lost path before the retransmissions arrive.
        let Some((index, Control { path, stamp, mut message, padded })) = self.poll_control(now)
        else {
            // That a path is silent may just have been found out: what it leaves behind is due.
            let paced = self.poll_paced(now).or_else(|| self.poll_probe(now));
            return paced.or_else(|| self.poll_retransmission(now));
        };
        let id = ConnectionId(index as u16);
        self.woken = Some(now);
        if stamp.is_sealed() {
            // Its keys are needed until the datagram is written.
            self.over = Some(id);
        } else {
            self.take_over(id);
        }
        let payload = self.control_payload(&mut message, &stamp, padded);
        if let ControlMessage::Feedback { reports, .. } = message
            && let Some(half) = self.connections.get_mut(index)
        {
            half.put_reports_back(reports, now);
        }
        self.refresh(id);
        Some(Transmit { connection: id, path, tos: 0, stamp, payload })
    }

    /// A connection that has nothing more to say goes.
    fn take_over(&mut self, id: ConnectionId) {
        if self.connections.get(id.index()).is_some_and(TransmitHalf::is_over) {
            self.connections.take(id.index());
            self.refresh(id);
        }
    }

    /// The next inner packet that has waited and may leave.
    fn poll_paced(&mut self, now: Instant) -> Option<Transmit<'static>> {
        loop {
            let (index, _) = self.deadlines.first().filter(|(_, at)| *at <= now)?;
            let half = &mut self.connections[index];
            if let Some(due) = half.poll_paced(now) {
                let Due { path, stamp, tos, place, len, keep, is_copy } = due;
                let payload = Payload::Waited { place, len, keep, is_copy };
                let connection = ConnectionId(index as u16);
                return Some(Transmit { connection, path, tos, stamp, payload });
            }
            let at = half.deadline().map(|deadline| deadline.at);
            self.deadlines.set(index, at);
            // Something else is due.
            if self.deadlines.first().is_some_and(|(first, _)| first == index) {
                return None;
            }
        }
    }

    /// The next control message of a connection that is due.
    fn poll_control(&mut self, now: Instant) -> Option<(usize, Control)> {
        loop {
            // Keepalives of many connections gather where one of them is due.
            let early = self.woken == Some(now);
            let first = self.deadlines.first().filter(|(_, at)| *at <= now || early)?;
            let (index, connection) = (first.0, ConnectionId(first.0 as u16));
            if let Some(control) = self.connections[index].poll_control(now, early) {
                return Some((index, control));
            }
            if self.connections[index].take_unanswered() {
                self.events.push(Event::NoSession { connection });
            }
            self.refresh(connection);
            // What is only nearly due stays.
            if self.deadlines.first() == Some(first) {
                return None;
            }
        }
    }

    /// A message to an origin; `None` if it is to be sealed and cannot be any more.
    fn reply(&mut self, now: Instant, reply: &OriginReply) -> Option<Transmit<'static>> {
        self.destination = (reply.at, reply.from);
        let payload = Payload::Reply { len: reply.emit(&mut self.control[..]) };
        let id = reply
            .path
            .and_then(|(connection, path)| self.connections.get(connection.index())?.wire_id(path));
        let id = id.unwrap_or(NO_PATH);
        let (kind, path) = (reply.kind(), PathId(u8::MAX));
        let (connection, stamp) = if let Some(by) = reply.sealed_by {
            let half = self.connections.get_mut(by.index())?;
            (by, half.framing.stamp_uncounted(now, kind, id)?)
        } else {
            let stamp = extended::tx::Stamp::uncounted(now, kind, reply.key, id);
            (ConnectionId(u16::MAX), Stamp::Extended(stamp))
        };
        Some(Transmit { connection, path, tos: 0, stamp, payload })
    }

    /// Where to send the last [`TransmitKind::Reply`](crate::TransmitKind::Reply) that was polled: by which socket, to what address, and from
    /// which own one if that is known.
    pub fn destination(&self) -> (SocketId, SocketAddr, Option<IpAddr>) {
        let (At { socket, remote }, from) = self.destination;
        (socket, remote, from)
    }

    fn poll_probe(&mut self, now: Instant) -> Option<Transmit<'static>> {
        while let Some((connection, path, len)) = self.probes.pop_front() {
            let half = self.connections.get_mut(connection.index());
            let control = half.and_then(|half| half.probe(now, path, len));
            if let Some(Control { stamp, mut message, padded, .. }) = control {
                let payload = self.control_payload(&mut message, &stamp, padded);
                return Some(Transmit { connection, path, tos: 0, stamp, payload });
            }
        }
        None
    }

    /// Writes a control message, with the padding that makes it a datagram of a length.
    fn control_payload(
        &mut self,
        message: &mut ControlMessage,
        stamp: &Stamp,
        padded: Option<usize>,
    ) -> Payload<'static> {
        // What is behind the message is padding, which is zero.
        if padded.is_some() {
            self.control.fill(0);
        }
        let len = message.emit(&mut self.control);
        let Some(padded) = padded else { return Payload::Control { len } };
        let len = padded.saturating_sub(stamp.overhead());
        Payload::Control { len: len.clamp(keepalive::LEN + 1, MAX_PAYLOAD) }
    }

    fn poll_retransmission(&mut self, now: Instant) -> Option<Transmit<'static>> {
        loop {
            let (place, sent) = self.retransmit.take_next()?;
            let Sent { connection, tos, stamp, .. } = sent;
            let packet = self.retransmit.packet(place);
            let half = self.connections.get_mut(connection.index());
            if let Some((path, stamp)) = half.and_then(|half| half.retransmit(now, packet, &stamp))
            {
                let payload = Payload::Kept { place, len: packet.len() };
                self.retransmit.set_path(place, path);
                return Some(Transmit { connection, path, tos, stamp, payload });
            }
        }
    }
}
