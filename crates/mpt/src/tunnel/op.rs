//! The steps by which a running tunnel changes.
//!
//! The [`reconciler`](super::reconciler), which decides, has done all that can fail: the sockets
//! are open, the names are resolved. So an operation cannot fail. The transmit side does its part
//! and passes the rest as a [`ReceiveCommand`] to the receive side.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use mpt_control::{Explanation, TraceLine, TraceMark, TunnelStatus};
use mpt_io::tun::Device;
use mpt_io::udp::{SendBatch, Socket};
use mpt_proto::{
    AcceptConfig, AcceptId, Change, ClientConfig, ClientId, ConnectionConfig, ConnectionId, Event,
    HostKeys, PathConfig, PathId, PathStatus, SocketId, Surcharge, Traffic,
};

use super::core::pins;
use super::outgoing::PathSender;
use super::reported::KnownMtu;
use super::sockets::NO_SOCKET;
use crate::config;

/// One step.
pub(crate) enum TunnelOp {
    /// A further socket, for the paths to come.
    OpenSocket { id: SocketId, socket: Arc<Socket> },
    /// No path uses the socket any more.
    CloseSocket { id: SocketId },
    /// A further connection, without paths.
    AddConnection {
        id: ConnectionId,
        settings: Arc<config::Connection>,
        /// The template that it was accepted by, with its name.
        accepted_by: Option<(AcceptId, String)>,
        core: Arc<ConnectionConfig>,
    },
    /// Other settings of a connection, of the kind that it can take while it runs.
    SetConnection {
        id: ConnectionId,
        settings: Arc<config::Connection>,
        core: Arc<ConnectionConfig>,
    },
    /// A connection goes, and its paths with it.
    RemoveConnection { id: ConnectionId },
    /// A further path.
    AddPath { connection: ConnectionId, path: PathId, place: Place },
    /// Other settings of a path, or another place.
    SetPath { connection: ConnectionId, path: PathId, place: Place },
    /// A path goes.
    RemovePath { connection: ConnectionId, path: PathId },
    /// What a path costs because of its quota.
    SetSurcharge { connection: ConnectionId, path: PathId, surcharge: Surcharge },
    /// What this host lacks for a path, if anything.
    SetAbsence {
        connection: ConnectionId,
        path: PathId,
        absence: Option<String>,
        /// When nothing was lacking for sure, if that is known.
        well: Option<Instant>,
    },
    /// What the peer says of a path by a command beside the tunnel: that it is down, or is not.
    SetPeerDown { connection: ConnectionId, path: PathId, down: bool },
    /// Whether the paths of a connection come and go with its peer.
    SetLearns { connection: ConnectionId, learns: bool },
    /// The templates by which peers are accepted from now on, with their names.
    SetAccepts { accepts: Vec<(AcceptConfig, String)> },
    /// Clients that are known by their keys, and the numbers of those that are not any more.
    ChangeClients { add: Vec<ClientConfig>, remove: HashSet<ClientId> },
    /// Other keys of this host.
    SetKeys { keys: Box<HostKeys> },
    /// The tunnel's own settings, as far as they can change while it runs.
    SetTunnel { settings: Arc<config::Tunnel> },
    /// The interface, created again after somebody has deleted it.
    SetDevice { device: Arc<Device> },
    /// Routes or interfaces have changed, so the MTU of paths may have.
    CheckMtu,
}

/// When a path was last heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastHeard {
    pub(super) connection: ConnectionId,
    pub(super) path: PathId,
    /// How long ago; `None` = never.
    pub(super) ago: Option<Duration>,
}

/// What a path has carried since it was added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) connection: ConnectionId,
    pub(super) path: PathId,
    /// Bytes of IP packets, in both directions in the end.
    pub(super) bytes: u64,
    /// Bytes of the IP and UDP headers of each datagram.
    pub(super) headers: u64,
}

impl Volume {
    /// Adds datagrams of which the UDP payload was counted.
    pub(super) fn add(&mut self, datagrams: Traffic) {
        self.bytes += datagrams.bytes + datagrams.packets * self.headers;
    }
}

/// What a client gets of a tunnel.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceAnswer {
    /// How many connections are meant.
    pub(crate) connections: usize,
    /// Whether they have too many paths, so that they are not traced.
    pub(crate) too_many: bool,
    /// What came since the mark.
    pub(crate) lines: Vec<TraceLine>,
    /// Up to where that is.
    pub(crate) mark: TraceMark,
}

/// Where a path's datagrams go, and its settings.
pub(crate) struct Place {
    pub(super) settings: config::Path,
    /// The classes that may not take it, one bit each.
    pub(super) refuses: u32,
    /// None as long as it cannot be opened; then there is an absence.
    pub(super) socket: Option<SocketId>,
    pub(super) remote: SocketAddr,
    /// What fits, in bytes of inner packet.
    pub(super) mtu: KnownMtu,
    /// What this host lacks for it, in words.
    pub(super) absence: Option<String>,
}

impl Place {
    /// The path in the core's words.
    pub(super) fn core(&self) -> PathConfig {
        let settings = &self.settings;
        PathConfig {
            socket: self.socket(),
            remote: self.remote,
            weight: settings.weight,
            weight_from_peer: settings.weight_from_peer,
            rate: settings.rate.map(|rate| u64::from(rate) * 1000 / 8),
            price: settings.price(),
            priority: settings.priority,
            pins: pins(&settings.pins),
            refuses: self.refuses,
            keepalive: Some(settings.keepalive).filter(|time| !time.is_zero()),
            dead_time: Some(settings.dead_time).filter(|time| !time.is_zero()),
            failover: settings.failover(),
            status: match settings.status {
                config::PathStatus::Available => PathStatus::Available,
                config::PathStatus::Off => PathStatus::Off,
            },
        }
    }

    /// The way there.
    pub(super) fn path_sender(&self) -> PathSender {
        PathSender::new(self.socket(), SendBatch::new(self.remote, self.settings.local))
    }

    pub(super) fn socket(&self) -> SocketId {
        self.socket.unwrap_or(NO_SOCKET)
    }
}

/// What the transmit side, having done its own part, leaves to the receive side.
pub(super) enum ReceiveCommand {
    /// A further socket.
    OpenSocket { id: SocketId, socket: Arc<Socket> },
    /// A socket that is not used any more.
    CloseSocket { id: SocketId },
    /// A change of the core; with the name of what is added by it.
    Change { change: Change, name: Option<String> },
    /// See [`TunnelOp::SetLearns`].
    SetLearns { connection: ConnectionId, learns: bool },
    /// What TCP from the peer may announce at the most, so that its packets have no more than these
    /// bytes; `None`: whatever it likes.
    ClampMss { mtu: Option<u32> },
    /// An event to be reported with the others.
    Tell { event: Event },
    /// See [`TunnelOp::SetAccepts`].
    SetAccepts { accepts: Vec<(AcceptConfig, String)> },
    /// See [`TunnelOp::ChangeClients`].
    ChangeClients { add: Vec<ClientConfig>, remove: HashSet<ClientId> },
    /// See [`TunnelOp::SetKeys`].
    SetKeys { keys: Box<HostKeys> },
    /// See [`TunnelOp::SetDevice`].
    SetDevice { device: Arc<Device> },
    /// When the paths were last heard.
    LastHeard { reply: Sender<Vec<LastHeard>> },
    /// The receive side's part of what paths with a quota have carried.
    Volumes { volumes: Vec<Volume>, reply: Sender<Vec<Volume>> },
    /// To be answered: all that was asked before is done.
    Sync { reply: Sender<()> },
    /// The receive side's part of the status.
    Status { status: Box<TunnelStatus>, reply: Sender<TunnelStatus> },
    /// The receive side's part of what explains where packets went.
    Explain { explanations: Vec<(ConnectionId, Explanation)>, reply: Sender<Vec<Explanation>> },
    /// The receive side's part of what was traced of some connections since a mark.
    Trace {
        connections: Vec<ConnectionId>,
        after: Option<TraceMark>,
        answer: Box<TraceAnswer>,
        reply: Sender<TraceAnswer>,
    },
    /// The end.
    Stop,
}
