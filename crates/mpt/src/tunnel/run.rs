//! The loop: readiness, core, flush, next deadline.
//!
//! Each wake-up reads the clock once, takes a bounded number of packets from every source that is
//! ready, hands them through the core, and sends what came of it before it waits again. Waiting is
//! level-triggered, so whatever a budget left behind is reported at once.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_io::netlink::Netlink;
use mpt_io::poll::{Events, Poll};
use mpt_io::tun::{Burst, Device};
use mpt_io::udp::{Receive, Socket};
use mpt_proto::{ConnectionId, Endpoint, Event, Origin, PathId, SocketId, Traffic};

use super::Command;
use super::incoming::Incoming;
use super::open::{ConnectionInfo, MIN_MTU, core_status, inner_mtu, path_mtu};
use super::outgoing::Outgoing;
use crate::config;

/// What is ready: a wake-up by a command, the interface, or one of the sockets from here on.
pub(super) const WAKER: u64 = 0;
pub(super) const DEVICE: u64 = 1;
pub(super) const SOCKETS: u64 = 2;

/// Reads from the interface in one wake-up, and the bytes after which there is no further one:
/// enough to fill a train for each of a few paths, little enough that received datagrams do not wait
/// for long.
const DEVICE_READS: usize = 64;
const DEVICE_BYTES: u64 = 256 << 10;

/// Batches taken from one socket in one wake-up. One may hold a megabyte.
const SOCKET_BATCHES: usize = 2;

/// How often a path's MTU is looked up while it refuses datagrams for their size, or is smaller than
/// it was: nobody tells when it grows again.
const MTU_INTERVAL: Duration = Duration::from_secs(1);

/// Events kept for `mpt status`.
const RECENT_EVENTS: usize = 32;

/// Everything a running tunnel owns.
pub(super) struct Tunnel {
    pub(super) settings: config::Tunnel,
    pub(super) epoch: Instant,
    pub(super) commands: Receiver<Command>,
    pub(super) poll: Poll,
    pub(super) device: Device,
    pub(super) mtu: u32,
    /// The largest that the buffers allow.
    pub(super) max_mtu: u32,
    pub(super) sockets: Vec<Socket>,
    pub(super) connections: Vec<ConnectionInfo>,
    pub(super) endpoint: Endpoint,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) receive: Receive,
    pub(super) burst: Burst,
    /// Inner packets read from the interface.
    pub(super) read: Traffic,
    /// Reads that failed, which a poll reports again; by socket.
    pub(super) receive_errors: Vec<u64>,
    pub(super) recent: VecDeque<(mpt_proto::Instant, Event)>,
    pub(super) next_mtu_check: mpt_proto::Instant,
}

impl Tunnel {
    /// Moves packets until told to stop.
    ///
    /// # Errors
    ///
    /// If the interface is gone or nothing can be waited for.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(self.sockets.len() + 2);
        loop {
            if events.is_empty() {
                // A timer ended the wait, perhaps after this machine stood still. Nobody is silent,
                // and nothing lost, before what arrived meanwhile has been looked at.
                self.poll
                    .wait(&mut events, Some(Duration::ZERO))
                    .context("cannot wait for packets")?;
            }
            let now = self.now();
            for event in events.iter() {
                match event.token {
                    WAKER => {}
                    DEVICE => self.read_device()?,
                    token => self.read_socket((token - SOCKETS) as usize, now),
                }
            }
            self.endpoint.handle_timeout(now, &mut self.incoming.to(&self.receive, &self.device));
            let stop = self.take_commands(now);
            self.send(now);
            self.check_mtu(now);
            if stop {
                return Ok(());
            }
            let deadlines =
                [self.endpoint.poll_timeout().map(|next| next.at), self.mtu_check_due()];
            let deadline = deadlines.into_iter().flatten().min();
            let timeout = deadline.map(|at| at.since(self.now()));
            self.poll.wait(&mut events, timeout).context("cannot wait for packets")?;
        }
    }

    pub(super) fn now(&self) -> mpt_proto::Instant {
        mpt_proto::Instant::ZERO + self.epoch.elapsed()
    }

    /// Takes inner packets from the interface and stages their datagrams.
    fn read_device(&mut self) -> anyhow::Result<()> {
        let budget = self.read.bytes + DEVICE_BYTES;
        for _ in 0..DEVICE_READS {
            if self.read.bytes >= budget {
                break;
            }
            let read = self.device.read(&mut self.burst);
            let Some(mut packets) = read.context("the interface is gone")? else { break };
            while let Some(packet) = packets.next_packet() {
                self.read.packets += 1;
                self.read.bytes += packet.len() as u64;
                if let Some(transmit) = self.endpoint.handle_inner(packet) {
                    self.outgoing.stage(&transmit, &self.sockets);
                }
            }
        }
        Ok(())
    }

    /// Takes datagrams from a socket and delivers what is in them.
    fn read_socket(&mut self, socket: usize, now: mpt_proto::Instant) {
        let id = SocketId(socket as u16);
        for _ in 0..SOCKET_BATCHES {
            let Ok(taken) = self.sockets[socket].receive(&mut self.receive) else {
                self.receive_errors[socket] += 1;
                break;
            };
            let mut sink = self.incoming.to(&self.receive, &self.device);
            for datagram in self.receive.datagrams() {
                let origin = Origin { socket: id, remote: datagram.remote, tos: datagram.tos };
                self.endpoint.handle_datagram(now, origin, datagram.payload, &mut sink);
            }
            if taken < self.receive.slots() {
                break;
            }
        }
    }

    /// Sends what is due and what was staged, ends the burst of deliveries, and tells the events.
    fn send(&mut self, now: mpt_proto::Instant) {
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            self.outgoing.stage(&transmit, &self.sockets);
        }
        self.outgoing.flush(&self.sockets);
        self.incoming.flush(&self.device);
        while let Some(event) = self.endpoint.poll_event() {
            let text = self.describe(&event);
            tracing::info!(tunnel = self.settings.name, "{text}");
            if self.recent.len() == RECENT_EVENTS {
                self.recent.pop_front();
            }
            self.recent.push_back((now, event));
        }
    }

    /// Carries out what other threads ask for; true if that is to stop.
    fn take_commands(&mut self, now: mpt_proto::Instant) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                // Whoever asked may have lost patience; then nobody reads the answer.
                Command::Status(reply) => {
                    let _ = reply.send(self.status(now));
                }
                Command::SetPathStatus { connection, path, status, reply } => {
                    let found = self.find_path(&connection, &path);
                    if let Some((connection, path)) = found {
                        self.set_path_status(now, connection, path, status);
                    }
                    let _ = reply.send(found.is_some());
                }
                Command::Stop => {
                    self.endpoint.close(now, &mut self.incoming.to(&self.receive, &self.device));
                    return true;
                }
            }
        }
        false
    }

    fn set_path_status(
        &mut self,
        now: mpt_proto::Instant,
        connection: ConnectionId,
        path: PathId,
        status: config::PathStatus,
    ) {
        let info = &mut self.connections[usize::from(connection.0)].paths[usize::from(path.0)];
        info.settings.status = status;
        let mut sink = self.incoming.to(&self.receive, &self.device);
        self.endpoint.set_path_status(now, connection, path, core_status(status), &mut sink);
    }

    fn find_path(&self, connection: &str, path: &str) -> Option<(ConnectionId, PathId)> {
        let at = self.connections.iter().position(|info| info.settings.name == connection)?;
        let paths = &self.connections[at].paths;
        let place = paths.iter().position(|info| info.settings.name == path)?;
        Some((ConnectionId(at as u16), PathId(place as u8)))
    }

    /// When to look at the MTU of paths again, if of any.
    fn mtu_check_due(&self) -> Option<mpt_proto::Instant> {
        let paths = || self.connections.iter().flat_map(|connection| &connection.paths);
        let due = paths().any(|path| path.mtu < path.best_mtu) || self.outgoing.any_too_big();
        due.then_some(self.next_mtu_check)
    }

    /// Follows the kernel's idea of the MTU of paths that refuse datagrams or have shrunk.
    fn check_mtu(&mut self, now: mpt_proto::Instant) {
        if self.mtu_check_due().is_none_or(|due| now < due) {
            return;
        }
        self.next_mtu_check = now + MTU_INTERVAL;
        for (connection, info) in (0..).map(ConnectionId).zip(&mut self.connections) {
            for (path, path_info) in (0..).map(PathId).zip(&mut info.paths) {
                let refused = self.outgoing.take_too_big(connection, path);
                if !refused && path_info.mtu == path_info.best_mtu {
                    continue;
                }
                path_info.mtu = path_mtu(&path_info.settings, path_info.remote, &info.settings);
                path_info.best_mtu = path_info.best_mtu.max(path_info.mtu);
                let fits = path_info.mtu >= MIN_MTU;
                let mut sink = self.incoming.to(&self.receive, &self.device);
                self.endpoint.set_path_fits(now, connection, path, fits, &mut sink);
            }
        }
        let mtu = inner_mtu(&self.settings, &self.connections).min(self.max_mtu);
        if mtu == self.mtu {
            return;
        }
        let set = Netlink::open().and_then(|mut link| link.set_mtu(self.device.index(), mtu));
        match set {
            Ok(()) => {
                tracing::info!(tunnel = self.settings.name, mtu, "the MTU changed");
                self.mtu = mtu;
            }
            Err(error) => tracing::warn!(tunnel = self.settings.name, mtu, "{error}"),
        }
    }
}
