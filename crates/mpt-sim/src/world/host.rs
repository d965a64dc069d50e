//! A host: the real core, its sockets, and the memory it may use.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use mpt_proto::{
    Change, ConnectionId, Endpoint, EndpointConfig, Event, Instant, KEY_LEN, Origin, PathConfig,
    PathId, PathRequest, Secret, SocketId, Transmit, TransmitKind,
};

use super::inbox::Inbox;
use super::pause::Pause;

/// How many unclaimed packets are kept to be looked at.
const KEPT_UNCLAIMED: usize = 1024;

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The settings of its core.
    pub endpoint: EndpointConfig,
    /// The address and port of each socket; its place is its [`SocketId`].
    pub sockets: Vec<SocketAddr>,
    /// Whether its datagrams carry UDP checksums. Without them a corrupted datagram reaches the
    /// peer's core.
    pub udp_checksum: bool,
    /// How many packets it can keep for its reorder buffers.
    pub held_limit: usize,
    /// What it gives the paths that it learns, but for socket and address; without it, it learns none.
    pub learns: Option<PathConfig>,
}

impl Default for HostConfig {
    /// No socket and no tunnel; UDP checksums; room for one largest reorder window.
    fn default() -> Self {
        Self {
            endpoint: EndpointConfig::default(),
            sockets: Vec::new(),
            udp_checksum: true,
            held_limit: mpt_proto::MAX_WINDOW as usize,
            learns: None,
        }
    }
}

/// What happened at a host outside its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Arrived while the core was stopped, or given to it then to be sent.
    pub stopped: u64,
    /// Arrived, or was given to it to be sent, in a pause, and had no room to wait.
    pub overflows: u64,
    /// Arrived and was no whole UDP datagram with right checksums.
    pub unreadable: u64,
    /// Arrived for an address and port that no socket has.
    pub no_socket: u64,
    /// Was to be sent where no wire leads, or does not fit an IP packet.
    pub no_wire: u64,
    /// Was delivered by the core and belongs to no traffic of the world: altered, invented, or
    /// given in by hand.
    pub unclaimed: u64,
}

/// A datagram to be sent: by which socket, to whom, what.
type Datagram = (SocketId, SocketAddr, Vec<u8>);

/// Where the datagrams of each path go, also of one that is gone: it may still have something to say.
type Ways = BTreeMap<(ConnectionId, PathId), (SocketId, SocketAddr)>;

#[derive(Debug)]
pub(super) struct Host {
    config: HostConfig,
    endpoint: Option<Endpoint>,
    /// While it gets no processor.
    pause: Option<Pause>,
    /// How often its core was started.
    starts: u64,
    ways: Ways,
    inbox: Inbox,
    unclaimed: Vec<Vec<u8>>,
    stats: HostStats,
}

impl Host {
    /// A host whose core was made from `config`.
    pub(super) fn new(config: HostConfig, endpoint: Endpoint) -> Self {
        Self {
            endpoint: Some(endpoint),
            pause: None,
            starts: 1,
            ways: ways(&config.endpoint),
            inbox: Inbox::new(config.held_limit),
            config,
            unclaimed: Vec::new(),
            stats: HostStats::default(),
        }
    }

    pub(super) fn stop(&mut self) {
        self.endpoint = None;
        self.pause = None;
        self.inbox = Inbox::new(self.config.held_limit);
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.starts += 1;
        let secret = new_secret(&self.config.endpoint.secret, self.starts);
        let mut config = EndpointConfig { secret, ..self.config.endpoint.clone() };
        // The virtual clock is not set back by a restart, and the ephemeral keys must differ.
        let seed = [self.starts as u8; KEY_LEN];
        config.keys = config.keys.map(|keys| keys.restarted(seed));
        let endpoint = Endpoint::new(&config, now);
        self.endpoint = Some(endpoint.expect("these settings have made an endpoint before"));
        self.ways = ways(&self.config.endpoint);
    }

    pub(super) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    pub(super) fn stats(&self) -> &HostStats {
        &self.stats
    }

    pub(super) fn stats_mut(&mut self) -> &mut HostStats {
        &mut self.stats
    }

    pub(super) fn held(&self) -> usize {
        self.inbox.held()
    }

    pub(super) fn unclaimed(&self) -> &[Vec<u8>] {
        &self.unclaimed
    }

    pub(super) fn on_unclaimed(&mut self, packet: Vec<u8>) {
        self.stats.unclaimed += 1;
        if self.unclaimed.len() < KEPT_UNCLAIMED {
            self.unclaimed.push(packet);
        }
    }

    /// The socket with this address and port.
    pub(super) fn socket(&self, local: SocketAddr) -> Option<SocketId> {
        let place = self.config.sockets.iter().position(|&socket| socket == local)?;
        Some(SocketId(place as u16))
    }

    /// What stands as source on the datagrams of a socket, and whether they carry a checksum.
    pub(super) fn origin(&self, socket: SocketId) -> (SocketAddr, bool) {
        (self.config.sockets[usize::from(socket.0)], self.config.udp_checksum)
    }

    /// Does nothing until then.
    pub(super) fn pause(&mut self, until: Instant) {
        if self.endpoint.is_some() {
            self.pause.get_or_insert_with(|| Pause::new(until)).until = until;
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    pub(super) fn take_pause(&mut self) -> Option<Pause> {
        self.pause.take()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.pause {
            Some(pause) => Some(pause.until),
            None => Some(self.endpoint.as_ref()?.poll_timeout()?.at),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_timeout(now, &mut self.inbox);
        }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, origin: Origin, datagram: &[u8]) {
        if let Some(pause) = &mut self.pause {
            self.stats.overflows += u64::from(!pause.keep_datagram(now, origin, datagram));
            return;
        }
        match &mut self.endpoint {
            Some(endpoint) => {
                let datagram = &mut datagram.to_vec();
                endpoint.handle_datagram(now, origin, datagram, &mut self.inbox);
            }
            None => self.stats.stopped += 1,
        }
    }

    pub(super) fn handle_batch(&mut self, now: Instant, batch: Vec<(Origin, Duration, Vec<u8>)>) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_batch(now, batch, &mut self.inbox);
        }
    }

    pub(super) fn handle_inner(&mut self, now: Instant, packet: &[u8]) -> Option<Datagram> {
        if let Some(pause) = &mut self.pause {
            self.stats.overflows += u64::from(!pause.keep_inner(packet));
            return None;
        }
        let Some(endpoint) = &mut self.endpoint else {
            self.stats.stopped += 1;
            return None;
        };
        let transmit = endpoint.handle_inner(now, packet)?;
        Some(emit(&self.ways, endpoint, now, &transmit))
    }

    pub(super) fn set_local_len(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        len: usize,
    ) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.set_local_len(now, connection, path, len);
        }
    }

    pub(super) fn change(&mut self, now: Instant, change: &Change) {
        let Some(endpoint) = &mut self.endpoint else { return };
        match change {
            Change::AddConnection { connection, config, .. } => {
                let paths = (0..).map(PathId).zip(&config.paths);
                self.ways.extend(paths.map(|(path, config)| ((*connection, path), way(config))));
            }
            Change::AddPath { connection, path, config }
            | Change::SetPath { connection, path, config } => {
                self.ways.insert((*connection, *path), way(config));
            }
            Change::RemoveConnection { .. }
            | Change::SetConnection { .. }
            | Change::RemovePath { .. }
            | Change::SetSurcharge { .. }
            | Change::SetStatus { .. }
            | Change::SetFits { .. }
            | Change::SetPeerDown { .. }
            | Change::SetPresent { .. } => {}
        }
        endpoint.change(now, change, &mut self.inbox);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let endpoint = self.endpoint.as_mut()?;
        let transmit = endpoint.poll_transmit(now)?;
        Some(emit(&self.ways, endpoint, now, &transmit))
    }

    /// Adds, or moves, the paths that have proved to be the peer's.
    pub(super) fn learn(&mut self, now: Instant) {
        let Some(template) = self.config.learns.clone() else { return };
        while let Some(request) = self.endpoint.as_mut().and_then(Endpoint::poll_path_request) {
            let PathRequest { connection, socket, remote, moved } = request;
            let config = PathConfig { socket, remote, ..template.clone() };
            let free = |path: &PathId| !self.ways.contains_key(&(connection, *path));
            let change = match moved {
                Some(path) => Change::SetPath { connection, path, config },
                None => {
                    let path = (0..64).map(PathId).find(free).expect("a number that is free");
                    Change::AddPath { connection, path, config }
                }
            };
            self.change(now, &change);
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.as_mut()?.poll_event()
    }

    pub(super) fn take_delivered(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.inbox.delivered)
    }
}

fn way(config: &PathConfig) -> (SocketId, SocketAddr) {
    (config.socket, config.remote)
}

fn ways(config: &EndpointConfig) -> Ways {
    let connections = (0..).map(ConnectionId).zip(&config.connections);
    let paths = connections.flat_map(|(connection, config)| {
        let paths = (0..).map(PathId).zip(&config.paths);
        paths.map(move |(path, config)| ((connection, path), way(config)))
    });
    paths.collect()
}

/// The secret of a core that is started for the `starts`th time. The order of its bytes is as good as chance here.
fn new_secret(first: &Secret, starts: u64) -> Secret {
    if starts == 1 {
        return *first;
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&starts.to_be_bytes());
    Secret::new(bytes)
}

/// Writes a datagram as the core wants it.
fn emit(ways: &Ways, endpoint: &mut Endpoint, now: Instant, transmit: &Transmit<'_>) -> Datagram {
    let (socket, remote) = match transmit.kind() {
        TransmitKind::Reply => {
            let (socket, remote, _) = endpoint.destination();
            (socket, remote)
        }
        TransmitKind::Control | TransmitKind::Inner | TransmitKind::Retransmission => {
            ways[&(transmit.connection, transmit.path)]
        }
    };
    let mut datagram = vec![0; transmit.size()];
    endpoint.emit(now, transmit, &mut datagram);
    (socket, remote, datagram)
}
