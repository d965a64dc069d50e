//! Control messages: keepalives go out, and [`Message`]s of the receive half come in.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use crate::framing::Stamp;
use crate::id::PathId;
use crate::messages::{Feedback, KeepaliveFeedback, Message, PathUpdate, Reply};
use crate::path::{DownCause, PathState, PathStatus};
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::tx::retransmit::{LossWindow, PEER_UNNOTICED};
use crate::wire::gre::Protocol;
use crate::wire::keepalive::{Activation, Keepalive, Report, Trailer};

impl TransmitHalf {
    /// The next keepalive that is due, or if `early` nearly so.
    pub(crate) fn poll_keepalive(
        &mut self,
        now: Instant,
        early: bool,
    ) -> Option<(PathId, Stamp, Keepalive)> {
        let due = |path: &TransmitPath| path.is_due(now, early);
        let index = self.paths.iter().find(|(_, path)| due(path))?.0;
        let path = &mut self.paths[index];
        let off = path.status == PathStatus::Off;
        // The first one reports that nothing was heard, even if the peer has been heard already: it
        // announces a start. The next one reports the actual state.
        let tells = self.framing.announces();
        let first = tells && path.keepalives_sent == 0;
        let deaf = !off && (first || !path.hearing);
        let next = |every| if first && path.hearing { now } else { now + every };
        path.next_keepalive = if off { None } else { path.keepalive.map(next) };
        path.keepalives_sent += 1;
        let report = Report { deaf, off };
        let (sender, receiver) = self.addresses;
        path.black_hole.on_keepalive_sent();
        let arrivals = path.arrived.tell(now, path.keepalive.unwrap_or_default());
        let echo = path.heard.and_then(|heard| heard.echo(now));
        let weight = path.weight.to_announce();
        let trailer = Some(Trailer { sent: path.sent.packets as u32, time: now.micros(), echo });
        if path.leaving {
            self.paths.take(index);
        }
        let standby = self.scheduler.is_standby(PathId(index as u8));
        let activation = Activation { standby, calls: self.calls };
        let (path, lost) = (Some(index as u8), self.next_lost(index));
        let message = if tells {
            Keepalive {
                report,
                activation,
                arrivals,
                weight,
                path,
                lost,
                sender,
                receiver,
                trailer,
            }
        } else {
            Keepalive::bare(sender, receiver)
        };
        Some((PathId(index as u8), self.control_stamp(), message))
    }

    /// The longest datagram that recently arrived at the peer on a path, in bytes, by its keepalives since the
    /// last call; `None` if none reported it.
    pub(crate) fn take_carried(&mut self, path: PathId) -> Option<usize> {
        self.paths.get_mut(path.index())?.carried.take().map(usize::from)
    }

    /// The stamp and the message of a probe on a path, to be padded; `None` if the peer would not report its
    /// arrival, or nothing may be sent on the path.
    pub(crate) fn probe(&self, path: PathId) -> Option<(Stamp, Keepalive)> {
        let path = self.paths.get(path.index())?;
        let sends = path.present && path.status == PathStatus::Available && !path.leaving;
        if !self.framing.announces() || !sends || path.keepalive.is_none() {
            return None;
        }
        let (sender, receiver) = self.addresses;
        Some((self.control_stamp(), Keepalive::bare(sender, receiver)))
    }

    /// The stamp of control messages.
    fn control_stamp(&self) -> Stamp {
        let protocol = if self.addresses.0.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 };
        self.framing.stamp_control(protocol)
    }

    /// The lost path to report in a keepalive on another path: all of them in turn.
    fn next_lost(&mut self, on: usize) -> Option<u8> {
        let lost = |(index, path): &(usize, &TransmitPath)| !path.present && *index != on;
        let after = self.paths.iter().filter(lost).find(|(index, _)| *index > self.told_lost);
        let (index, _) = after.or_else(|| self.paths.iter().find(lost))?;
        self.told_lost = index;
        Some(index as u8)
    }

    /// When the next keepalive is due.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let at = self.paths.iter().filter_map(|(_, path)| path.next_keepalive).min()?;
        Some(Deadline { at, timer: Timer::Keepalive })
    }

    /// The receive half has a message. Returns a path that proves too narrow, with the length of the longest
    /// datagram that it carries.
    pub(crate) fn on_message(&mut self, message: Message, now: Instant) -> Option<(PathId, usize)> {
        match message {
            Message::Feedback(feedback) => self.on_feedback(feedback),
            Message::Reply(Reply::Keepalive { path }) => {
                if let Some(path) = self.staying(path) {
                    path.keepalive_now(now);
                }
            }
            Message::Update(update) => return self.on_update(update, now),
        }
        None
    }

    /// What arrived is reported by the next keepalive.
    fn on_feedback(&mut self, Feedback { path, longest, keepalive }: Feedback) {
        let Some(path) = self.paths.get_mut(path.index()) else { return };
        path.arrived.on_arrived(longest);
        if let Some(KeepaliveFeedback { count, heard }) = keepalive {
            path.heard = heard;
            path.arrived.on_keepalives(count);
        }
    }

    fn on_update(&mut self, update: PathUpdate, now: Instant) -> Option<(PathId, usize)> {
        let mut flight = None;
        if let PathUpdate::State { path, state: PathState::Down(DownCause::PeerLost) } = update {
            flight = self.flight(path);
        }
        let path = self.paths.get_mut(update.path().index())?;
        match update {
            PathUpdate::Hearing { hearing, .. } => path.hearing = hearing,
            PathUpdate::Report { path: id, arrivals, weight, round_trip } => {
                path.metrics.round_trip = round_trip;
                let narrow = path.black_hole.on_told(now, arrivals);
                let carried = arrivals.map(|arrivals| arrivals.longest.get());
                path.carried = path.carried.max(carried).filter(|_| narrow.is_none());
                let (before, weight) = (path.weight, path.weight.announced_as(weight));
                // Limited, because forged keepalives could have the shares computed again and again. A
                // change beyond the limit is applied with a later keepalive.
                if weight.in_force() != before.in_force() && self.weights.take(now) {
                    path.weight = weight;
                    self.reschedule(now);
                }
                return Some((id, narrow?));
            }
            PathUpdate::State { path: id, state } => {
                let is_lost = path.usable() && state == PathState::Down(DownCause::PeerLost);
                // Limited, because forged keepalives could have a path lost and found again and again.
                if is_lost && self.words.take(now) {
                    self.lost = Some((id, LossWindow::new(now, PEER_UNNOTICED, flight)));
                }
                self.change(id, now, |path| {
                    path.up = state == PathState::Up;
                    path.black_hole.forget();
                    path.carried = None;
                });
            }
        }
        None
    }

    /// How long datagrams took to the peer on a path of which it has just sent word by another, and that
    /// word back. On that other path it may have waited behind much that the lost one had not.
    fn flight(&self, path: PathId) -> Option<Duration> {
        let path = self.paths.get(path.index())?;
        let round_trip = path.metrics.round_trip?;
        let word = self.paths.iter().filter_map(|(_, path)| path.heard).max_by_key(|it| it.at)?;
        let detour = path.heard.map_or(0, |back| word.slower_than(back));
        let by = Duration::from_micros(detour.unsigned_abs().into());
        Some(if detour < 0 { round_trip.saturating_sub(by) } else { round_trip + by })
    }
}
