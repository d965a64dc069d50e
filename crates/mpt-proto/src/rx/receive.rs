//! One datagram of a connection: what it carries, and where that goes.

use std::time::Duration;

use super::connection::{Arrival, ReceiveHalf};
use super::playout::delivery;
use crate::event::Event;
use crate::framing::datagram::{Body, Framed, Opened};
use crate::id::PathId;
use crate::messages::{Feedback, Messages};
use crate::path::feedback;
use crate::rx::reorder::{Accepted, After, Arrived};
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::ecn;
use crate::wire::extended::beacon::Beacon;
use crate::wire::extended::settings::Settings;
use crate::wire::extended::{Flags, Header, Message, status};
use crate::wire::inner::Inner;

impl ReceiveHalf {
    /// A datagram of this connection arrived, `len` bytes long.
    ///
    /// # Errors
    ///
    /// Why it was dropped; that is counted.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        arrival: Arrival,
        opened: &Opened,
        payload: &[u8],
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        self.restart_order(now, sink);
        // Looked at where it is: the processor would wait for what was just written in pieces if it were copied.
        let body = self.framing.read(opened, payload);
        let outcome = match &body {
            Ok(Body::Inner(inner)) => {
                self.receive_packet(now, arrival, opened, inner, payload, sink, messages)
            }
            Ok(body) => self.receive_control(now, arrival, opened, *body, payload, sink, messages),
            Err(reason) => Err(*reason),
        };
        if let Err(reason) = outcome {
            self.drops.add(reason);
        }
        outcome
    }

    /// An inner packet arrived.
    #[expect(clippy::too_many_arguments, reason = "what arrived, and where it goes")]
    #[inline(always)]
    fn receive_packet(
        &mut self,
        now: Instant,
        arrival: Arrival,
        opened: &Opened,
        inner: &Inner,
        payload: &[u8],
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        let place = match &opened.framed {
            Framed::Plain(_) => {
                self.play_out.begin(now, None);
                let numbered = self.session.is_none() || self.accepts_plain(now)?;
                opened.sequence.filter(|_| numbered).map(|seq| Arrived {
                    path: arrival.path,
                    seq,
                    after: After::Unknown,
                    in_turn: true,
                })
            }
            Framed::Extended(header) => {
                self.record(now, &arrival, header);
                if header.flags.contains(Flags::COVERED) {
                    let place = (header.sequence, header.distance);
                    self.keep_covered(now, arrival.path, place, &payload[..inner.len], sink);
                }
                self.play_out.begin(now, self.play_out_wait(now, header));
                header.sequence.map(|seq| Arrived {
                    path: arrival.path,
                    seq,
                    after: after(seq, header.distance),
                    in_turn: !header.flags.contains(Flags::OUT_OF_TURN),
                })
            }
        };
        self.receive_inner(now, arrival, place, inner, payload, sink, messages)
    }

    /// How long a packet has to wait so that it has taken as long as others of its flow. One that is sent out of turn is
    /// waited for already, unless it is a copy that was sent at once: then nothing came that was sent after it, or only just now.
    #[inline(always)]
    fn play_out_wait(&self, now: Instant, header: &Header) -> Option<Duration> {
        if !header.flags.contains(Flags::EQUALISE) {
            return None;
        }
        let (measured, equal) =
            self.measured.as_ref().zip(Some(self.play_out.equal().unwrap_or_default()))?;
        let is_repair = header.flags.contains(Flags::OUT_OF_TURN)
            && !header.sequence.is_some_and(|seq| self.reorder.is_timely(now, seq));
        let wait = measured.delays.until(now, header.sent, equal);
        Some(wait.filter(|_| !is_repair).unwrap_or_default())
    }

    /// Anything but an inner packet arrived.
    #[expect(clippy::too_many_arguments, reason = "what arrived, and where it goes")]
    #[cold]
    fn receive_control(
        &mut self,
        now: Instant,
        arrival: Arrival,
        opened: &Opened,
        body: Body,
        payload: &[u8],
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        let path = &mut self.paths[arrival.path.index()];
        path.control_received.add(arrival.len);
        path.heard_port = arrival.port;
        let restarts = match &opened.framed {
            // Keepalives end with the beginning of a session. One that was on its way then says nothing any more.
            Framed::Plain(_) if self.session.is_some() && !self.accepts_plain(now)? => {
                if !matches!(body, Body::Keepalive(_)) {
                    return Err(Drop::Framing);
                }
                self.paths[arrival.path.index()].keepalives_received += 1;
                return Ok(());
            }
            Framed::Plain(_) => true,
            Framed::Extended(header) => {
                self.record(now, &arrival, header);
                false
            }
        };
        match (body, &opened.framed) {
            (Body::Keepalive(keepalive), _) => {
                self.receive_keepalive(now, arrival, &keepalive, restarts, sink, messages)
            }
            (Body::Status(keepalive, equal, interval), Framed::Extended(header)) => {
                self.play_out.set(header.sent, equal);
                self.on_interval(arrival.path, interval, messages);
                let heard = &mut self.paths[arrival.path.index()];
                let settings = payload.get(status::LEN..).and_then(Settings::parse);
                heard.peer_settings = settings.map(Box::new).or(heard.peer_settings.take());
                self.receive_keepalive(now, arrival, &keepalive, restarts, sink, messages)
            }
            (Body::Probe, _) => self.receive_probe(now, arrival, sink, messages),
            (Body::Message, Framed::Extended(header)) => {
                let message = Message::parse(header.kind, payload)?;
                self.receive_message(now, arrival, message, sink, messages)
            }
            (Body::Message | Body::Status(..) | Body::Inner(_), _) => Err(Drop::ControlUnknown),
        }
    }

    /// A message of extended framing arrived that says something about paths.
    #[cold]
    fn receive_message(
        &mut self,
        now: Instant,
        arrival: Arrival,
        message: Message<'_>,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        self.paths[arrival.path.index()].liveness.on_heard(now);
        if let Message::Feedback(feedback) = message {
            let header = feedback::Header { number: feedback.number, written: feedback.clock };
            for block in feedback.blocks() {
                messages.peer_report(self.id, header, Box::new(block));
            }
            self.on_feedback_came(now, arrival.path, &feedback, messages);
            return Ok(());
        }
        if let Message::Parity(parity) = message {
            return self.receive_parity(now, arrival.path, parity, sink);
        }
        let Message::Beacon(beacons) = message else { return Err(Drop::ControlUnknown) };
        let session = self.session.as_deref();
        let named = |beacon: &Beacon| session.and_then(|it| it.path(beacon.path));
        let paths = &self.paths;
        let is_true = |path: PathId, beacon: &Beacon| {
            path == arrival.path || paths[path.index()].recorder.has_reached(beacon.path_sequence)
        };
        let mut sink = delivery!(self, sink);
        for beacon in beacons {
            if let Some(path) = named(&beacon).filter(|path| is_true(*path, &beacon)) {
                self.reorder.covered(now, path, beacon.covered, &mut sink);
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "what arrived, and where it goes")]
    #[inline(always)]
    fn receive_inner(
        &mut self,
        now: Instant,
        arrival: Arrival,
        place: Option<Arrived>,
        inner: &Inner,
        payload: &[u8],
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        let Arrival { path, tos, len, .. } = arrival;
        let heard = &mut self.paths[path.index()];
        if let Some(longest) = heard.plain.on_arrived(now, len) {
            messages.feedback(self.id, Feedback { path, longest, keepalive: None });
        }
        heard.estimator.on_data();
        let from_peer = self.framing.peer().contains(&inner.source)
            || self.networks.iter().any(|network| network.contains(inner.source));
        if !from_peer {
            return Err(Drop::InnerSource);
        }
        if heard.on_packet(now, len) {
            self.tell(now, sink, messages);
        }
        let mut packet = &payload[..inner.len];
        let tos = ecn::decapsulate(inner.tos, tos)?;
        if tos != inner.tos {
            self.marked.clear();
            self.marked.extend_from_slice(packet);
            ecn::set_type_of_service(&mut self.marked, inner, tos);
            packet = &self.marked;
        }
        let mut sink = delivery!(self, sink);
        let Some(arrived) = place else {
            self.reorder.pass(packet, &mut sink);
            return Ok(());
        };
        let seq = arrived.seq;
        let accepted = self.reorder.insert(now, arrived, packet, &mut sink);
        self.measure(now, path, seq, accepted);
        match accepted? {
            Accepted::Fits | Accepted::Return => {}
            Accepted::Restart { expected } => {
                messages.event(Event::Restart { connection: self.id, expected, found: seq });
            }
        }
        Ok(())
    }
}

/// What a flow distance says of the packet before.
#[inline(always)]
pub(super) fn after(seq: Seq, distance: u16) -> After {
    match distance {
        0 => After::First,
        u16::MAX => After::Far,
        distance => After::Seq(seq.minus(distance.into())),
    }
}
