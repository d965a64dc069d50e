//! What can change of a connection while it sends: see [`Change`](crate::Change).

use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use crate::change::Surcharge;
use crate::class::Classes;
use crate::config::{ConnectionConfig, PathConfig};
use crate::framing::extended::tx::WirePath;
use crate::id::MAX_PATHS;
use crate::id::PathId;
use crate::path::PathStatus;
use crate::scheduler::Scheduler;
use crate::time::Instant;
use crate::tx::retransmit::LossWindow;
use crate::wire::extended::NO_PATH;

impl TransmitHalf {
    /// A further path, unless there is one of that number.
    pub(crate) fn add_path(&mut self, id: PathId, config: &PathConfig, now: Instant) {
        if self.staying(id).is_some() {
            return;
        }
        let wire = self.new_wire_path();
        self.paths.put(id.index(), TransmitPath::new(config, self.header_len(), wire, now));
        self.greet_on_new_path(now);
        self.refresh_classes();
    }

    /// A path id that no path has. Ids are used in turn, and path sequences continue beyond those of all paths
    /// that are gone, so that no pair of both occurs twice in a session.
    fn new_wire_path(&mut self) -> WirePath {
        let used = |id| self.paths.iter().any(|(_, path)| path.wire.id == id);
        let next = |id: u8| if id >= NO_PATH - 1 { 0 } else { id + 1 };
        let mut id = next(self.last_wire.id);
        while used(id) {
            id = next(id);
        }
        self.last_wire.id = id;
        self.last_wire
    }

    /// A path is gone.
    pub(super) fn take_path(&mut self, index: usize) {
        if let Some(path) = self.paths.take(index) {
            self.last_wire.next = self.last_wire.next.max(path.wire.next);
        }
    }

    /// There is a path more on which a session can be asked for.
    fn greet_on_new_path(&mut self, now: Instant) {
        if let Some(greeting) = &mut self.greeting {
            greeting.on_path(now);
        }
    }

    /// Removes a path, after it has notified the peer. A path without keepalives notifies nothing.
    pub(crate) fn remove_path(&mut self, id: PathId, now: Instant) {
        self.set_status(id, PathStatus::Off, now);
        let Some(path) = self.staying(id) else { return };
        path.leaving = true;
        if path.next_keepalive.is_none() || !self.framing.is_ready() {
            self.take_path(id.index());
        }
    }

    /// A path has other settings.
    pub(crate) fn set_path(&mut self, id: PathId, config: &PathConfig, now: Instant) {
        let Some(path) = self.staying(id) else { return };
        if path.ends != (config.socket, config.remote) {
            let is_elsewhere = path.ends.1 != config.remote;
            path.ends = (config.socket, config.remote);
            path.mtu.restart(now);
            path.mtu_told = None;
            if is_elsewhere {
                self.on_elsewhere(now, id.index());
            }
        }
        let Some(path) = self.staying(id) else { return };
        if (path.keepalive, path.failover) != (config.keepalive, config.failover) {
            (path.keepalive, path.failover) = (config.keepalive, config.failover);
            path.next_keepalive = None;
            path.keepalive_now(now);
        }
        (path.own_dead_time, path.statuses) = (config.dead_time, 0);
        self.set_status(id, config.status, now);
        let tells = self.framing.announces();
        let Some(path) = self.staying(id) else { return };
        path.fixed_rate = config.rate;
        path.refuses = config.refuses;
        path.price = Duration::from_millis(config.price.into());
        let weight = path.weight.configured_as(config);
        if tells && weight.to_announce() != path.weight.to_announce() {
            path.keepalive_now(now);
        }
        let before = path.weight.in_force();
        path.weight = weight;
        if (before, path.priority, &path.pins) != (weight.in_force(), config.priority, &config.pins)
        {
            path.priority = config.priority;
            path.pins.clone_from(&config.pins);
            self.reschedule(now);
        } else {
            self.set_rates(now);
        }
        self.refresh_classes();
    }

    /// A path costs more than its settings say, or no longer does.
    pub(crate) fn set_surcharge(&mut self, id: PathId, surcharge: Surcharge, now: Instant) {
        let Some(path) = self.staying(id) else { return };
        let before = std::mem::replace(&mut path.surcharge, surcharge);
        if before.last_resort == surcharge.last_resort {
            self.set_rates(now);
        } else {
            self.reschedule(now);
        }
    }

    /// Takes over other settings: the scheduler, and whether the peer recognises copies.
    pub(crate) fn set(&mut self, config: &ConnectionConfig, now: Instant) {
        let framing_changed = self.framing.set(config);
        self.thins_acks = config.thin_acks;
        self.equalises = config.equalise;
        self.competes = config.compete;
        self.breaks = config.breaker;
        self.repairs = config.repairs();
        self.told.reorder = config.reorder;
        self.paths.iter_mut().for_each(|(_, path)| path.statuses = 0);
        self.classes = Classes::new(&config.classes);
        self.refresh_classes();
        let policy_changed = config.scheduler != self.policy;
        if policy_changed {
            self.policy = config.scheduler;
            self.scheduler = Scheduler::new(self.policy);
        }
        if policy_changed || framing_changed {
            self.reschedule(now);
        }
    }

    /// Sets the administrative status of a path. Switching off is announced to the peer once, if
    /// its kind supports it.
    pub(crate) fn set_status(&mut self, path: PathId, status: PathStatus, now: Instant) {
        let tells = self.framing.announces();
        self.change(path, now, |path| {
            if status != path.status {
                path.status = status;
                let spoken_to = path.present && (tells || status == PathStatus::Available);
                path.next_keepalive = path.keepalive.filter(|_| spoken_to).map(|_| now);
            }
        });
        if status == PathStatus::Available {
            self.greet_on_new_path(now);
        }
    }

    /// The path's interface, address or route is back, or lost. A loss is reported to the peer at
    /// once on the other paths, because it would continue to send. The loss may have been
    /// `unnoticed` for this time.
    pub(crate) fn set_present(
        &mut self,
        path: PathId,
        present: bool,
        unnoticed: Duration,
        now: Instant,
    ) {
        let (mut lost, mut doubt) = (false, None);
        self.change(path, now, |path| {
            lost = path.present && !present;
            doubt = path.usable().then(|| LossWindow::new(now, unnoticed, path.metrics.round_trip));
            path.present = present;
            path.next_keepalive = None;
            path.keepalive_now(now);
        });
        if present {
            self.greet_on_new_path(now);
        }
        if lost {
            self.lost = doubt.map(|doubt| (path, doubt));
        }
        if lost && self.framing.announces() {
            self.told_lost = path.index().wrapping_sub(1).min(MAX_PATHS);
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// Every path goes off, and the peer is told that this host stops.
    pub(crate) fn close(&mut self, now: Instant) {
        self.stopping = true;
        let paths: Vec<PathId> = self.paths().collect();
        paths.into_iter().for_each(|path| self.set_status(path, PathStatus::Off, now));
    }

    /// Removes the connection, after every path has notified the peer.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ending = true;
        let paths: Vec<PathId> = self.paths().collect();
        paths.into_iter().for_each(|path| self.remove_path(path, now));
    }

    /// Whether it only has to notify the peer of its end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether it has ended and all notifications are sent.
    pub(crate) fn is_over(&self) -> bool {
        self.ending && self.paths.is_empty()
    }

    /// Changes a path, and the scheduler's paths if it has become one of them or ceased to be.
    pub(super) fn change(
        &mut self,
        path: PathId,
        now: Instant,
        change: impl FnOnce(&mut TransmitPath),
    ) {
        let Some(path) = self.staying(path) else { return };
        let was_usable = path.usable();
        change(path);
        if path.usable() != was_usable {
            self.reschedule(now);
        }
    }

    /// A path that is not being removed.
    pub(super) fn staying(&mut self, path: PathId) -> Option<&mut TransmitPath> {
        self.paths.get_mut(path.index()).filter(|path| !path.leaving)
    }
}
