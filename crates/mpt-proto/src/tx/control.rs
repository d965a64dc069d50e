//! Control messages: keepalives go out, and [`Message`]s of the receive half come in.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::copies::FeedbackCopies;
use super::greeting::{Greet, Greeting};
use super::message::{Control, ControlMessage};
use super::path::TransmitPath;
use crate::framing::extended::session::{Offer, SessionUpdate};
use crate::framing::sealed::tx::Sealing;
use crate::framing::{Stamp, extended};
use crate::hash::mix;
use crate::id::PathId;
use crate::messages::{Feedback, KeepaliveFeedback, Message, PathUpdate, Reply};
use crate::path::{DownCause, PathState, PathStatus};
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::tx::retransmit::{LossWindow, PEER_UNNOTICED};
use crate::wire::extended::Kind;
use crate::wire::extended::challenge::Challenge;
use crate::wire::extended::hello::{self, Capabilities, Hello};
use crate::wire::extended::status::Status;
use crate::wire::gre::Protocol;
use crate::wire::keepalive::{Activation, Keepalive, Report, Trailer};

impl TransmitHalf {
    /// The next control message that is due, or if `early` a keepalive that is nearly so.
    pub(crate) fn poll_control(&mut self, now: Instant, early: bool) -> Option<Control> {
        self.watch_silence(now);
        let greeting = self.poll_initiation(now).or_else(|| self.poll_greeting(now));
        let keepalive = greeting.or_else(|| self.poll_keepalive(now, early));
        let feedback = keepalive.or_else(|| self.poll_feedback(now));
        let feedback = feedback.or_else(|| self.poll_feedback_copy(now));
        let beacon = feedback.or_else(|| self.poll_beacon(now));
        beacon.or_else(|| self.poll_mtu(now)).or_else(|| self.poll_opening(now))
    }

    /// The handshake initiation, on the next of all paths.
    fn poll_initiation(&mut self, now: Instant) -> Option<Control> {
        let (initiation, _, pending) = self.initiation.as_mut()?;
        let mut open = self.paths.iter().filter(|(_, path)| path.is_open());
        let next = open.find(|(index, _)| *pending & 1 << index != 0);
        let Some((index, path)) = next else {
            self.initiation = None;
            return None;
        };
        *pending &= !(1 << index);
        let (kind, id) = (Kind::HandshakeInitiation, path.wire.id);
        let stamp = Stamp::Extended(extended::tx::Stamp::uncounted(now, kind, 0, id));
        let message = ControlMessage::Initiation(initiation.clone());
        Some(Control { path: PathId(index as u8), stamp, message, padded: None })
    }

    /// An epoch begins, and a session with it if none continues.
    fn on_sealing(&mut self, sealing: &Sealing, now: Instant) {
        self.framing.begin_epoch(sealing);
        if let Some((peer, own)) = sealing.begins {
            self.on_session(SessionUpdate::Agreed(peer, own), now);
        } else {
            // The peer begins to use it with the first datagram that it gets.
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// The next hello or confirm that is due.
    fn poll_greeting(&mut self, now: Instant) -> Option<Control> {
        let greeting = self.greeting.as_mut()?;
        let open = self.paths.iter().filter(|(_, path)| path.is_open());
        let open = open.fold(0, |bits, (index, _)| bits | 1 << index);
        let reachable = self.paths.iter().any(|(_, path)| path.usable());
        let (path, greet) = greeting.poll(now, open, reachable)?;
        let own = greeting.own();
        let (sender, receiver) = self.addresses;
        let hello = |echo, cookie| Hello {
            version: hello::VERSION,
            capabilities: Capabilities::own(self.repairs),
            session: own.session,
            echo,
            sender,
            receiver,
            key: self.key,
            cookie,
            index: own.index,
        };
        let id = self.paths[path.index()].wire.id;
        let (kind, key, message) = match greet {
            Greet::Hello => (Kind::Hello, 0, ControlMessage::Hello(hello(0, 0))),
            Greet::Confirm(Offer { peer, cookie, .. }) => {
                let message = ControlMessage::Confirm(hello(peer.session, cookie));
                (Kind::HelloConfirm, peer.index, message)
            }
        };
        let stamp = Stamp::Extended(extended::tx::Stamp::uncounted(now, kind, key, id));
        Some(Control { path, stamp, message, padded: None })
    }

    /// The next keepalive, or path status, that is due, or if `early` nearly so.
    fn poll_keepalive(&mut self, now: Instant, early: bool) -> Option<Control> {
        if !self.framing.is_ready() {
            return None;
        }
        let due = |path: &TransmitPath| path.is_due(now, early);
        let index = self.paths.iter().find(|(_, path)| due(path))?.0;
        self.give_back_memory(now);
        let path = &mut self.paths[index];
        let off = path.status == PathStatus::Off;
        // The first one reports that nothing was heard, even if the peer has been heard already: it
        // announces a start. The next one reports the actual state. A session says the same better.
        let tells = self.framing.announces();
        let first = tells && path.keepalives_sent == 0 && self.framing.index().is_none();
        let deaf = if off { self.stopping } else { first || !path.hearing };
        let next = |every| if first && path.hearing { now } else { now + every };
        path.next_keepalive = if off { None } else { path.interval().map(next) };
        path.keepalives_sent += 1;
        let report = Report { deaf, off };
        let (sender, receiver) = self.addresses;
        path.black_hole.on_keepalive_sent();
        let arrivals = path.arrived.tell(now, path.keepalive.unwrap_or_default());
        let echo = path.heard.and_then(|heard| heard.echo(now));
        let weight = path.weight.to_announce();
        let interval = path.told_interval();
        let sent = path.sent.packets as u32;
        let protocol = if sender.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 };
        let stamp = self.framing.stamp_status(now, protocol, &mut path.wire);
        if path.leaving {
            self.take_path(index);
        }
        let standby = self.scheduler.is_standby(PathId(index as u8));
        let activation = Activation { standby, calls: self.calls };
        let lost = self.next_lost(index);
        let equalise = self.told_equal_delay();
        let message = if stamp.is_extended() {
            ControlMessage::Status(Status {
                report,
                activation,
                count: arrivals.map_or(0, |arrivals| arrivals.keepalives),
                longest: arrivals.map(|arrivals| arrivals.longest),
                weight,
                lost: lost.map(|lost| self.paths[usize::from(lost)].wire.id),
                interval,
                sent,
                echo,
                equalise,
                settings: self.tell_settings(index),
            })
        } else if tells {
            ControlMessage::Keepalive(Keepalive {
                report,
                activation,
                arrivals,
                weight,
                path: Some(index as u8),
                lost,
                sender,
                receiver,
                trailer: Some(Trailer { sent, time: now.micros(), echo }),
            })
        } else {
            ControlMessage::Keepalive(Keepalive::bare(sender, receiver))
        };
        Some(Control { path: PathId(index as u8), stamp, message, padded: None })
    }

    /// The longest datagram that recently arrived at the peer on a path, in bytes, by its keepalives since the
    /// last call; `None` if none reported it.
    pub(crate) fn take_carried(&mut self, path: PathId) -> Option<usize> {
        self.paths.get_mut(path.index())?.carried.take().map(usize::from)
    }

    /// A probe on a path, to be padded; `None` if the peer would not report its arrival, or nothing may be sent on
    /// the path.
    pub(crate) fn probe(&mut self, now: Instant, id: PathId, len: usize) -> Option<Control> {
        let padded = Some(len);
        let own = self.greeting.as_ref().map(Greeting::own);
        let path = self.paths.get_mut(id.index())?;
        if !self.framing.announces() || !path.is_open() || path.keepalive.is_none() {
            return None;
        }
        if let Some(own) = own.filter(|_| self.framing.index().is_some()) {
            path.probes += 1;
            path.mtu.on_sent(path.probes, len);
            let number = probe_number(own.session, id, path.probes);
            let wire = path.wire.id;
            let stamp = self.framing.stamp_uncounted(now, Kind::PathChallenge, wire)?;
            let message = ControlMessage::Challenge(Challenge { number });
            return Some(Control { path: id, stamp, message, padded });
        }
        let (sender, receiver) = self.addresses;
        let protocol = if sender.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 };
        let stamp = self.framing.stamp_status(now, protocol, &mut path.wire);
        let message = ControlMessage::Keepalive(Keepalive::bare(sender, receiver));
        Some(Control { path: id, stamp, message, padded })
    }

    /// The session has begun, or ended, or is about to.
    pub(crate) fn on_session(&mut self, update: SessionUpdate, now: Instant) {
        let Some(greeting) = &mut self.greeting else { return };
        match update {
            SessionUpdate::Wanted(own) => {
                greeting.ask(now, own);
                self.clear_paced();
                self.framing.end();
                self.has_beacons = false;
                self.paths.iter_mut().for_each(|(_, path)| path.peer_interval = None);
            }
            SessionUpdate::Offered(offer) => return greeting.confirm(now, offer),
            SessionUpdate::Doubted => return greeting.on_reachable(now, false),
            SessionUpdate::Holds => return greeting.on_reachable(now, true),
            SessionUpdate::Agreed(peer, own) => {
                greeting.agree(own);
                self.clear_paced();
                self.framing.begin(&peer);
                self.has_beacons = true;
                self.reports.clear();
                (self.repair, self.copies) =
                    (self.repair.renewed(peer.repairs, peer.parity), FeedbackCopies::default());
                self.paths.iter_mut().for_each(|(_, path)| path.begin_session(now));
            }
        }
        self.reschedule(now);
        self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
    }

    /// The lost path to report in a keepalive on another path: all of them in turn.
    fn next_lost(&mut self, on: usize) -> Option<u8> {
        let lost = |(index, path): &(usize, &TransmitPath)| !path.present && *index != on;
        let after = self.paths.iter().filter(lost).find(|(index, _)| *index > self.told_lost);
        let (index, _) = after.or_else(|| self.paths.iter().find(lost))?;
        self.told_lost = index;
        Some(index as u8)
    }

    /// When the next keepalive or hello is due.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let hello = self.greeting.as_ref().and_then(Greeting::deadline);
        let initiation = self.initiation.as_ref().map(|(_, at, _)| *at);
        let hello = hello.into_iter().chain(initiation).min();
        let hello = hello.map(|at| Deadline { at, timer: Timer::Hello });
        if !self.framing.is_ready() {
            return hello;
        }
        let keepalive = self.paths.iter().filter_map(|(_, path)| path.next_keepalive).min();
        let keepalive = keepalive.map(|at| Deadline { at, timer: Timer::Keepalive });
        let beacon = self.beacons_at.map(|at| Deadline { at, timer: Timer::Beacon });
        let feedback = self.feedback_due().map(|at| Deadline { at, timer: Timer::Feedback });
        let data = Deadline::earlier(beacon, feedback);
        let data = Deadline::earlier(data, self.mtu_deadline());
        let opening = self.paced.as_ref().and_then(|paced| paced.trains.opening.at);
        let opening = opening.map(|at| Deadline { at, timer: Timer::Probe });
        let data = Deadline::earlier(data, opening);
        let paced = self.paced.as_ref().and_then(|paced| paced.at);
        let paced = paced.map(|at| Deadline { at, timer: Timer::Pace });
        let data = Deadline::earlier(data, paced);
        Deadline::earlier(Deadline::earlier(hello, keepalive), data)
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
            Message::Session(update) => self.on_session(update, now),
            Message::Report(block) => self.on_report(block, now),
            Message::PeerReport(header, block) => self.on_peer_report(header, &block, now),
            Message::Sealing(sealing) => self.on_sealing(&sealing, now),
            Message::Initiation(initiation) => {
                self.initiation = Some((initiation, now, u64::MAX));
            }
            // It is for no connection.
            Message::Origin(_) => {}
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
                } else if self.paced.is_none() {
                    self.hold_by_weight(now);
                }
                return Some((id, narrow?));
            }
            PathUpdate::Interval { interval, .. } => {
                path.peer_interval = interval;
                path.next_keepalive = path.next_keepalive.map(|at| match path.interval() {
                    Some(interval) => at.min(now + interval),
                    None => at,
                });
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
                    path.mtu.resume(now);
                    path.on_return(now);
                });
                let reachable = self.paths.iter().any(|(_, path)| path.usable());
                if let Some(greeting) = &mut self.greeting {
                    greeting.on_reachable(now, reachable);
                    if state == PathState::Up {
                        greeting.on_path(now);
                    }
                }
            }
            PathUpdate::WayBack { path, is_silent } => {
                self.on_way_back(now, path.index(), is_silent);
            }
            PathUpdate::Quiet { path } => {
                self.copies.hurry();
                self.doubt(now, path.index());
            }
            PathUpdate::Carried { path: id, number, len } => {
                let session = self.greeting.as_ref().map(|greeting| greeting.own().session);
                let session = session?;
                let is_answered = |&probe: &u32| probe_number(session, id, probe) == number;
                let probe = path.mtu.numbers().find(is_answered);
                if let Some(probe) = probe {
                    path.carried = path.carried.max(Some(len));
                    path.mtu.on_answer(now, probe);
                }
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

/// The number in a path challenge that is a probe: known to the receiver of the challenge, and to nobody before.
fn probe_number(session: u64, path: PathId, probes: u32) -> u64 {
    mix(session ^ u64::from(path.0) << 32 ^ u64::from(probes))
}
