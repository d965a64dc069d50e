//! What paths are like is found out before there is traffic: at the beginning of a session trains of padded beacons show
//! what each carries, and single ones how its delay varies.
//!
//! What is known before the first packet of a connection decides what its sender takes for the least round trip:
//! see [`early`](super::early).

use std::time::Duration;

use super::connection::TransmitHalf;
use super::message::{Control, ControlMessage};
use super::opened::Opened;
use super::path::TransmitPath;
use crate::id::PathId;
use crate::rx::record::PADDED;
use crate::scheduler::earliest::Earliest;
use crate::time::Instant;
use crate::wire::extended::Kind;
use crate::wire::extended::beacon::Beacon;

/// Single datagrams for each path, and trains after them.
const TRAINS: u8 = 3;
const SINGLES: u8 = 24;

/// A first path is shown together with those that follow it within this.
const FOLLOWED: Duration = Duration::from_millis(300);

/// How far single ones are apart.
const APART: Duration = Duration::from_millis(5);

/// A train follows so long after anything else: then the peer does not count that with it.
const QUIET: Duration = Duration::from_millis(40);

/// So long after the last train the peer knows what follows from it: feedback and a path status have passed.
const TOLD: Duration = Duration::from_millis(500);

/// A path on which data was sent since this shows by that what it is like.
const UNUSED: Duration = Duration::from_millis(20);

/// A path that carries data all the time is not waited for any longer.
const LONGEST: Duration = Duration::from_secs(5);

impl TransmitHalf {
    /// There is a session, or another path.
    pub(super) fn open(&mut self, now: Instant) {
        let Some(earliest) = self.scheduler.earliest().filter(|it| it.is_trained()) else { return };
        let Some(paced) = self.paced.as_mut() else { return };
        let several = earliest.has_several();
        paced.trains.opening.at = Some(if several { now } else { now + FOLLOWED });
        let usable = self.paths.iter_mut().map(|(_, path)| path).filter(|path| path.usable());
        for Opened { trains, alone, until, .. } in usable.map(|path| &mut path.opened) {
            if several && std::mem::take(alone) {
                (*trains, *until) = (0, now + LONGEST);
            } else if *until == Instant::ZERO {
                *until = now + LONGEST;
            }
        }
    }

    /// Whether it is being found out what a path is like, or will be as soon as it is usable.
    pub(super) fn finds_out(&self, now: Instant, path: &TransmitPath) -> bool {
        let is_trained = self.scheduler.earliest().is_some_and(Earliest::is_trained);
        let will = is_trained && path.opened.until == Instant::ZERO;
        will && path.may_be_shown() || path.is_being_found_out(now)
    }

    /// The next datagram that shows what a path is like.
    pub(super) fn poll_opening(&mut self, now: Instant) -> Option<Control> {
        let opening = self.paced.as_ref()?.trains.opening;
        if opening.at.is_none_or(|at| now < at) {
            return None;
        }
        let (path, left) = opening.train.or_else(|| self.next_opening(now))?;
        let is_train = opening.train.is_some() || left > 1;
        let Some(sender) = self.paths.get_mut(path.index()) else {
            self.paced.as_mut()?.trains.opening.train = None;
            return None;
        };
        if opening.train.is_none() && is_train {
            let bytes = left * sender.mtu.least();
            sender.rate.on_train(now, sender.wire.next, [left, bytes], sender.round_trip());
        }
        let opening = &mut self.paced.as_mut()?.trains.opening;
        opening.train = Some((path, left - 1)).filter(|(_, left)| *left > 0);
        let padded = Some(if is_train { sender.mtu.least() } else { PADDED });
        let (id, path_sequence) = (sender.wire.id, sender.wire.next.wrapping_sub(1));
        let stamp = self.framing.stamp_control(now, Kind::Beacon, &mut sender.wire)?;
        let covered = self.framing.last_sequence().unwrap_or(Beacon::NOTHING);
        let message = ControlMessage::Beacon(Beacon { path: id, covered, path_sequence });
        Some(Control { path, stamp, message, padded })
    }

    /// The path that is to be shown next, and by how many datagrams.
    fn next_opening(&mut self, now: Instant) -> Option<(PathId, usize)> {
        let (earliest, paced) = (self.scheduler.earliest()?, self.paced.as_ref()?);
        let several = earliest.has_several();
        let mut waits = false;
        let mut next = None;
        for (index, path) in self.paths.iter_mut() {
            let path_id = PathId(index as u8);
            if !earliest.has(path_id) || !path.is_shown(now) || next.is_some() {
                continue;
            }
            waits = true;
            if path.opened.latest != path.wire.next {
                (path.opened.latest, path.opened.quiet_since) = (path.wire.next, now);
            }
            // What goes with a train would seem to be part of it.
            // A beacon says that nothing is outstanding.
            let is_idle = path.idle.elapsed(now) >= UNUSED && !paced.has_committed(path_id);
            if !is_idle || path.rate.awaits_train(now) {
                continue;
            }
            if path.opened.singles < SINGLES {
                if now >= path.opened.next {
                    path.opened.singles += 1;
                    path.opened.next = now + APART;
                    next = Some((path_id, 1));
                }
            } else if now < path.opened.quiet_since + QUIET {
                // What goes before a train would seem to be part of it.
            } else if !several && !path.rate.varies() {
                // What it carries shows while it is used.
                (path.opened.trains, path.opened.alone) = (TRAINS, true);
            } else if let Some(size) = path.rate.wants_train(now) {
                path.opened.trains += 1;
                next = Some((path_id, size));
            } else {
                // It is too slow for a longer one, or its delay varies too much.
                path.opened.trains = TRAINS;
            }
        }
        if next.is_none() {
            let opening = &mut self.paced.as_mut()?.trains.opening;
            opening.at = waits.then(|| now + APART);
        }
        next
    }
}

impl TransmitPath {
    /// Whether it is to be shown what the path is like, or what follows from that is still being told to the peer.
    fn is_being_found_out(&self, now: Instant) -> bool {
        let last = self.opened.quiet_since;
        let is_told = last == Instant::ZERO || now >= last + TOLD;
        self.is_shown(now) || !self.rate.is_measured() && !is_told
    }

    /// Whether it is to be shown what the path is like.
    pub(super) fn is_shown(&self, now: Instant) -> bool {
        let Opened { trains, singles, until, .. } = self.opened;
        self.may_be_shown() && now < until && (trains < TRAINS || singles < SINGLES)
    }

    fn may_be_shown(&self) -> bool {
        self.cost().is_zero() && self.fixed_rate.is_none() && !self.rate.is_measured()
    }
}
