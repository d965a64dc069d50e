//! What a keepalive of the peer changes.

use std::num::NonZeroU16;
use std::time::Duration;

use super::connection::{Arrival, ReceiveHalf};
use crate::id::PathId;
use crate::messages::{Feedback, KeepaliveFeedback, Messages, PathUpdate};
use crate::path::clock::Judgement;
use crate::path::rtt::RoundTrip;
use crate::sink::Sink;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::keepalive::{Activation, Keepalive};

/// So many packets on other paths, and none on one, say that the peer does not use that one.
const PASSED_OVER: u64 = 32;

impl ReceiveHalf {
    /// A probe of the peer arrived: a sign that the path is heard, and a length.
    pub(super) fn receive_probe(
        &mut self,
        now: Instant,
        arrival: Arrival,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        let Arrival { path, len, .. } = arrival;
        let heard = &mut self.paths[path.index()];
        if !heard.plain.speaks_keepalive {
            return Err(Drop::ControlUnknown);
        }
        if let Some(longest) = heard.plain.on_arrived(now, len) {
            messages.feedback(self.id, Feedback { path, longest, keepalive: None });
        }
        heard.probes_received += 1;
        heard.liveness.on_heard(now);
        self.tell(now, sink, messages);
        Ok(())
    }

    /// A keepalive of the peer arrived, or the path status in its place. Only plain framing has it announce
    /// `restarts`.
    pub(super) fn receive_keepalive(
        &mut self,
        now: Instant,
        arrival: Arrival,
        keepalive: &Keepalive,
        restarts: bool,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> Result<(), Drop> {
        let Arrival { path, len, .. } = arrival;
        self.rest(now);
        self.hear_ways_back(messages);
        self.look_whether_passed_over(now, path);
        let heard = &mut self.paths[path.index()];
        if !heard.plain.speaks_keepalive {
            return Err(Drop::ControlUnknown);
        }
        if let Some(longest) = heard.plain.on_arrived(now, len) {
            messages.feedback(self.id, Feedback { path, longest, keepalive: None });
        }
        heard.keepalives_received += 1;
        let (count, arrivals) = (heard.keepalives_received as u8, keepalive.arrivals);
        let time = keepalive.trailer.map(|trailer| trailer.time);
        let judgement = heard.estimator.judge(now, keepalive.trailer, heard.plain.interval());
        if matches!(judgement, Judgement::Overtaken | Judgement::Doubted) {
            heard.liveness.on_heard(now);
            self.tell(now, sink, messages);
            return Ok(());
        }
        let was_deaf = heard.liveness.peer_deaf();
        heard.liveness.on_keepalive(now, keepalive.report);
        let heard_deaf = heard.liveness.peer_deaf();
        let echoed = heard.estimator.on_keepalive(now, keepalive.trailer, judgement);
        if heard.plain.is_from_before_loss(time) {
            heard.liveness.on_peer_lost();
        } else {
            heard.plain.lost_at = None;
        }
        let round_trip = heard.estimator.quality().round_trip.map(RoundTrip::recent);
        heard.plain.peer_id = keepalive.path;
        let Activation { standby, calls } = keepalive.activation;
        heard.plain.stands_by = standby.then_some(calls);
        if Activation::is_after(calls, self.calls) {
            self.calls = calls;
        }
        let weight = keepalive.weight;
        let report = PathUpdate::Report { path, arrivals, weight, round_trip };
        messages.update(self.id, report);
        let keepalive_feedback = Some(KeepaliveFeedback { count, heard: echoed });
        let feedback = Feedback { path, longest: 0, keepalive: keepalive_feedback };
        messages.feedback(self.id, feedback);
        // A keepalive that reports a loss has a time too.
        if let Some(lost) = keepalive.lost.filter(|_| time.is_some()) {
            let others = self.paths.iter_mut().filter(|(other, _)| *other != path.index());
            for (_, other) in others.filter(|(_, other)| other.plain.peer_id == Some(lost)) {
                // The report of the loss may have been overtaken by the recovery on a faster path.
                if other.estimator.allows_elsewhere(now, time) && !other.estimator.heard_after(time)
                {
                    other.plain.lost_at = time;
                    other.liveness.on_peer_lost();
                }
            }
        }
        // A peer that has just started has heard nothing. The same is true for one whose path
        // failed, but then its numbers continue, and the first one in order discards the
        // announcement.
        let all_deaf = || self.paths.iter().all(|(_, path)| path.liveness.peer_deaf());
        if restarts && heard_deaf && (!was_deaf || all_deaf()) {
            self.reorder.on_restart_announced();
            self.calls = calls;
        }
        // An original's first keepalive is equal to all others.
        if self.framing.plain.may_restart_silently() {
            self.reorder.on_restart_possible();
        }
        self.tell(now, sink, messages);
        Ok(())
    }

    /// Gives back what an idle connection does not need. To be called now and then: with keepalives, which come where
    /// nothing else does, and when a path falls silent. Keepalives that are lost need memory, too, until the next one.
    pub(super) fn rest(&mut self, now: Instant) {
        let is_holding = self.reorder.stats().held > 0 || self.play_out.deadline().is_some();
        let begins = self.rest.begins(now, self.delivered.packets, is_holding);
        if self.rest.goes_on() {
            self.paths.iter_mut().for_each(|(_, path)| path.recorder.rest());
            self.handshakes.iter_mut().for_each(|handshakes| handshakes.epochs.rest());
        }
        if !begins {
            return;
        }
        self.reorder.shrink();
        self.play_out.shrink();
        self.marked.shrink_to(0);
        self.stream.rest();
        self.measured.iter_mut().for_each(|measured| measured.rest());
        self.session.iter_mut().for_each(|session| session.rest());
        self.paths.iter_mut().for_each(|(_, path)| path.order.rest());
    }

    /// The peer says how often it sends path statuses on a path, in milliseconds.
    pub(super) fn on_interval(
        &mut self,
        path: PathId,
        interval: Option<NonZeroU16>,
        messages: &mut Messages,
    ) {
        let interval = interval.map(|millis| Duration::from_millis(millis.get().into()));
        let heard = &mut self.paths[path.index()];
        if heard.peer_interval != interval {
            heard.peer_interval = interval;
            heard.set_dead_time();
            messages.update(self.id, PathUpdate::Interval { path, interval });
        }
    }

    /// A keepalive comes on a path that the peer may have said is down: does it send everything elsewhere?
    fn look_whether_passed_over(&mut self, now: Instant, path: PathId) {
        if !self.paths[path.index()].liveness.is_told() {
            return;
        }
        let all: u64 = self.paths.iter().map(|(_, other)| other.received.packets).sum();
        let heard = &mut self.paths[path.index()];
        let here = heard.received.packets;
        let before = *heard.passed_over.get_or_insert((here, all - here));
        if here > before.0 {
            heard.passed_over = Some((here, all - here));
        } else if all - here >= before.1 + PASSED_OVER {
            heard.passed_over = Some((here, all - here));
            heard.liveness.on_passed_over(now);
        }
    }
}
