//! What a receive half tells about itself.

use std::net::SocketAddr;
use std::time::Duration;

use super::connection::ReceiveHalf;
use super::path::ReceivePath;
use crate::config::ReorderConfig;
use crate::framing::extended::identity::At;
use crate::id::{PathId, SocketId};
use crate::measure::Reordering;
use crate::path::PathState;
use crate::path::estimator::Quality;
use crate::prefix::Prefix;
use crate::sequence::Seq;
use crate::stats::{ConnectionStats, PathStats};
use crate::time::Instant;
use crate::wire::extended::settings::Settings;

impl ReceiveHalf {
    /// The settings of the reorder buffer.
    pub fn reorder_config(&self) -> &ReorderConfig {
        self.reorder.config()
    }

    /// The sequence number expected next, once one has been received.
    pub fn expected(&self) -> Option<Seq> {
        self.reorder.next()
    }

    /// Whether the connection has such a path.
    pub fn has(&self, path: PathId) -> bool {
        self.paths.get(path.index()).is_some()
    }

    /// What a path is.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn state(&self, path: PathId) -> PathState {
        self.paths[path.index()].liveness.state()
    }

    /// The silence after which a path is down at present; `None` if it never is.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn dead_time(&self, path: PathId) -> Option<Duration> {
        self.paths[path.index()].liveness.dead_time()
    }

    /// How long the peer may say nothing on a path although all is well: an original MPT, which sends by its own
    /// settings, at least once in the dead time. `None` if the peer answers at once, or the path is never down.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn may_be_silent(&self, path: PathId) -> Option<Duration> {
        let dead_time = self.dead_time(path);
        dead_time.filter(|_| self.framing.plain.always_sends_keepalives())
    }

    /// How the peer is set, by what it says on a path, and how often it would send path statuses there; `None` without a
    /// session, or if it does not say.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn peer_settings(&self, path: PathId) -> Option<(Settings, Option<Duration>)> {
        let path = &self.paths[path.index()];
        Some((**path.peer_settings.as_ref()?, path.peer_interval))
            .filter(|_| self.session.is_some())
    }

    /// The GRE key of its datagrams, if they have one.
    pub fn key(&self) -> Option<u32> {
        self.key
    }

    /// The socket and the address of the peer between which a path leads.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn remote(&self, path: PathId) -> (SocketId, SocketAddr) {
        let At { socket, remote } = self.paths[path.index()].origin;
        (socket, remote)
    }

    /// Whether a path is heard, and the peer says on it that it does not hear us.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn is_peer_deaf(&self, path: PathId) -> bool {
        let liveness = &self.paths[path.index()].liveness;
        liveness.hearing() && liveness.peer_deaf()
    }

    /// When a path was last heard.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn last_heard(&self, path: PathId) -> Option<Instant> {
        self.paths[path.index()].liveness.last_heard()
    }

    /// Whether the peer sends on a path from the port that this host sends to.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn is_heard_from_its_port(&self, path: PathId) -> bool {
        let path = &self.paths[path.index()];
        path.heard_port == path.origin.remote.port()
    }

    /// What was received and what could not be used; the rest is known to the transmit half.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            delivered: self.delivered,
            recovered: self.parity_stats().recovered,
            reorder: self.reorder.stats(),
            drops: self.drops.all(),
            ..ConnectionStats::default()
        }
    }

    /// What was received on a path; the rest is known to the transmit half.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        let &ReceivePath {
            received, control_received, keepalives_received, probes_received, ..
        } = &self.paths[path.index()];
        let keepalives_received = keepalives_received + probes_received;
        PathStats { received, control_received, keepalives_received, ..PathStats::default() }
    }

    /// How the packets of the connection were ordered when they came, before they were put in order.
    pub fn reordering(&self) -> Reordering {
        self.stream.report()
    }

    /// The same of those that came by a path, which are a part of the connection's. What was lost or is
    /// missing is not in it.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_reordering(&self, path: PathId) -> Reordering {
        let ReceivePath { order, copies, .. } = &self.paths[path.index()];
        Reordering { duplicates: *copies, ..order.report() }
    }

    /// What a path does to the peer's datagrams, by the keepalives that came over it.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn quality(&self, path: PathId) -> Quality {
        self.paths[path.index()].estimator.quality()
    }

    /// Bytes of memory that it takes, its own size included: paths, order and measurements. Packets that
    /// are held lie with the caller.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.paths.memory()
            + self.reorder.memory()
            + self.play_out.memory()
            + self.covers.as_ref().map_or(0, |it| size_of_val(&**it) + it.memory())
            + self.measurement_memory()
            + self.marked.capacity()
            + self.framing.plain.memory()
            + self.measured.as_ref().map_or(0, |it| size_of_val(&**it) + it.memory())
            + self.paths.iter().map(|(_, path)| path.memory()).sum::<usize>()
            + self.session().map_or(0, |session| size_of_val(session) + session.memory())
            + self.handshake_memory()
            + self.networks.capacity() * size_of::<Prefix>()
            + self.drops.memory()
    }

    /// Bytes of memory that the measurements take, apart from this value's own size.
    pub fn measurement_memory(&self) -> usize {
        self.stream.memory() + self.paths.iter().map(|(_, path)| path.order.memory()).sum::<usize>()
    }
}
