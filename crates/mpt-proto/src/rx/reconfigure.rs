//! What can change of a connection while it receives: see [`Change`](crate::Change).
//!
//! A path that goes is listened to until nothing can be in flight on it any more. For as long it is there,
//! but does not change again.

use super::connection::ReceiveHalf;
use super::path::ReceivePath;
use super::playout::delivery;
use crate::config::{ConnectionConfig, PathConfig};
use crate::id::PathId;
use crate::messages::Messages;
use crate::path::PathStatus;
use crate::sink::Sink;
use crate::time::Instant;

impl ReceiveHalf {
    /// Takes out the paths that have been left and from which nothing comes any more.
    pub(crate) fn take_gone(&mut self, now: Instant) -> Vec<PathId> {
        let gone: Vec<PathId> = self
            .paths
            .iter()
            .filter(|(_, path)| path.is_gone(now))
            .map(|(index, _)| PathId(index as u8))
            .collect();
        for path in &gone {
            self.paths.take(path.index());
            self.reorder.forget_path(*path);
            if let Some(session) = &mut self.session {
                session.unbind(*path);
            }
            if let Some(measured) = &mut self.measured {
                measured.forget_path(*path);
            }
        }
        gone
    }

    /// A further path. Returns false if there is one of that number.
    pub(crate) fn add_path(&mut self, id: PathId, config: &PathConfig) -> bool {
        if self.staying(id).is_some() {
            return false;
        }
        self.reorder.forget_path(id);
        self.paths.put(id.index(), ReceivePath::new(config, self.known_to_speak()));
        true
    }

    /// A path that is not being removed.
    fn staying(&mut self, path: PathId) -> Option<&mut ReceivePath> {
        self.paths.get_mut(path.index()).filter(|path| !path.leaving)
    }

    /// Whether the peer sends keepalives even where none are sent to it and none are missed: one that
    /// was accepted has asked to connect with one, and an original sends them by its own settings.
    fn known_to_speak(&self) -> bool {
        self.accepted_by.is_some()
            || self.session.is_some()
            || self.framing.plain.always_sends_keepalives()
    }

    /// A path goes, as soon as nothing can be in flight on it any more.
    pub(crate) fn remove_path(
        &mut self,
        now: Instant,
        id: PathId,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        self.set_status(now, id, PathStatus::Off, sink, messages);
        let max_delay = self.reorder.config().max_delay;
        let Some(path) = self.staying(id) else { return };
        path.leaving = true;
        path.lingers = Some(path.lingers.unwrap_or(now).max(now + max_delay));
    }

    /// A path has other settings. Returns whether there is such a path.
    pub(crate) fn set_path(
        &mut self,
        now: Instant,
        id: PathId,
        config: &PathConfig,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) -> bool {
        let known_to_speak = self.known_to_speak();
        let Some(path) = self.staying(id) else { return false };
        path.set(config, known_to_speak);
        self.set_status(now, id, config.status, sink, messages);
        true
    }

    /// The connection has other networks, or another order.
    pub(crate) fn set(&mut self, now: Instant, config: &ConnectionConfig, sink: &mut impl Sink) {
        self.networks.clone_from(&config.networks);
        if let Some((handshakes, keys)) = self.handshakes.as_mut().zip(config.peer_keys.as_ref())
            && handshakes.peer.public == keys.public
        {
            handshakes.peer.clone_from(keys);
        }
        self.repair = config.repairs();
        self.order_in_session = config.reorder;
        let order = self.order_now();
        let mut sink = delivery!(self, sink);
        self.reorder.set_config(now, order, &mut sink);
    }

    /// The operator wants something else of a path.
    pub(crate) fn set_status(
        &mut self,
        now: Instant,
        path: PathId,
        status: PathStatus,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        let Some(path) = self.staying(path) else { return };
        path.liveness.on_status(status);
        self.tell(now, sink, messages);
    }

    /// A path can, or cannot, carry the least inner packet.
    pub(crate) fn set_fits(
        &mut self,
        now: Instant,
        path: PathId,
        fits: bool,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        let Some(path) = self.staying(path) else { return };
        path.liveness.on_mtu(fits);
        self.tell(now, sink, messages);
    }

    /// The peer has reported by other means than a keepalive that a path is down, or up.
    pub(crate) fn set_peer_down(
        &mut self,
        now: Instant,
        path: PathId,
        down: bool,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        let Some(path) = self.staying(path) else { return };
        path.liveness.on_peer_down(now, down);
        self.tell(now, sink, messages);
    }

    /// What a path needs of this host is there, or gone.
    pub(crate) fn set_present(
        &mut self,
        now: Instant,
        path: PathId,
        present: bool,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        let Some(path) = self.staying(path) else { return };
        path.liveness.on_present(present);
        self.tell(now, sink, messages);
    }

    /// Every path goes off.
    pub(crate) fn close(&mut self, now: Instant, sink: &mut impl Sink, messages: &mut Messages) {
        for (_, path) in self.paths.iter_mut() {
            path.liveness.on_status(PathStatus::Off);
        }
        self.tell(now, sink, messages);
    }

    /// The connection ends: what is held is delivered.
    pub(crate) fn end(&mut self, sink: &mut impl Sink) {
        let mut out = delivery!(self, sink);
        self.reorder.release_all(&mut out);
        self.play_out.end(sink, &mut self.delivered);
    }
}
