//! The commands of the original MPT: its protocol beside the tunnel.
//!
//! They have separate sockets, one for each data socket of such a connection, with the same address
//! and interface and the connection's `command_port`. So where a path has a `local` commands come
//! to that address only. Without such a connection there is none. The main thread serves them: no
//! packet waits for a command, and a flood on a command port does not affect tunnels.
//!
//! What a peer says of a path goes to the core as a step, until the peer takes it back or is heard on the
//! path again. What this host says of one is that it is switched off or missing here, or is not any more;
//! everything else the peer finds out by itself.

mod faults;
mod sockets;
mod station;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use mpt_control::{CommandStatus, Problem};
use mpt_io::poll::Poll;
use mpt_io::udp::{Receive, ReceiveOptions, SendBatch, Socket};
use mpt_original::{
    Code, Commands, ConnectionCommands, CreateCommands, Destination, Event, MAX_MESSAGE, Outcome,
    PathReport,
};
use mpt_proto::{ConnectionId, PathId};

use self::faults::Faults;
use self::sockets::Sockets;
use self::station::{Leg, Station, reports};
use super::connection::Connection;
use crate::config::{self, Auth, Prefix};
use crate::tunnel::core::core_prefix;
use crate::tunnel::op::TunnelOp;

/// Batches taken from one socket at a time. The rest is taken next time, after all other events.
const BATCHES: usize = 4;

/// Messages taken at once. Each has room for the longest.
const SLOTS: usize = 4;

/// The commands of a tunnel.
pub(super) struct CommandPorts {
    /// Where the core's time begins.
    epoch: Instant,
    commands: Commands,
    sockets: Sockets,
    /// None before there is a socket.
    batch: Option<Receive>,
    stations: BTreeMap<ConnectionId, Station>,
    counters: Counters,
    faults: Faults,
}

#[derive(Debug, Default)]
struct Counters {
    received: u64,
    sent: u64,
    /// Could not be sent.
    failed: u64,
    /// A command about an unknown path.
    no_path: u64,
    /// Asked for a connection, authenticated and in order, and did not get it.
    create_declined: u64,
    /// A command that the peer did not answer, or refused.
    untold: u64,
}

impl CommandPorts {
    /// None so far. Times count from `epoch`; sockets to come are waited for in `poll`.
    pub(super) fn new(epoch: Instant, poll: Rc<Poll>) -> Self {
        Self {
            epoch,
            commands: Commands::default(),
            sockets: Sockets::new(poll),
            batch: None,
            stations: BTreeMap::new(),
            counters: Counters::default(),
            faults: Faults::default(),
        }
    }

    /// Follows changes of the connections. `own` are the tunnel's addresses. Changes of a path are
    /// sent to its peer. Unused sockets are closed; [`Self::open`] opens the others.
    pub(super) fn reconcile<'c>(
        &mut self,
        connections: impl Iterator<Item = &'c Connection>,
        own: &[Prefix],
        now: Instant,
    ) {
        let at = self.core_time(now);
        let mut before = std::mem::take(&mut self.stations);
        let mut keys: Vec<mpt_original::Key> = Vec::new();
        for connection in connections {
            let Some(commands) = &connection.settings.commands else { continue };
            let Some((local, remote)) = tunnel_addresses(connection, own) else { continue };
            let old = before.remove(&connection.id);
            let old_legs = old.map(|station| station.legs);
            let legs: BTreeMap<PathId, Leg> = connection
                .paths
                .values()
                .map(|path| {
                    let old = old_legs.as_ref().and_then(|legs| legs.get(&path.id));
                    (path.id, Leg::new(path, commands.port, old))
                })
                .collect();
            let auth = core_auth(&commands.auth);
            if let (true, mpt_original::Auth::Sha256(key)) = (commands.accept_create, &auth)
                && !keys.contains(key)
            {
                keys.push(key.clone());
            }
            let sources: Vec<IpAddr> = legs.values().filter_map(|leg| leg.remote).collect();
            if sources.is_empty() {
                // While the peer's address is unknown, there is none.
                self.commands.remove_connection(connection.id);
            } else {
                let settings = ConnectionCommands { local, remote, auth, sources };
                self.commands.set_connection(connection.id, settings);
            }
            for report in old_legs.iter().flat_map(|old| reports(old, &legs)) {
                self.commands.tell(at, connection.id, report);
            }
            let station = Station {
                name: connection.settings.name.clone(),
                remote_port: commands.remote_port,
                legs,
            };
            self.stations.insert(connection.id, station);
        }
        before.into_keys().for_each(|gone| self.commands.remove_connection(gone));
        self.commands.set_create(Some(CreateCommands { keys, zero_cookie: true }));
        let legs = self.stations.values().flat_map(|station| station.legs.values());
        self.sockets.want(legs.filter_map(|leg| leg.key.clone()));
    }

    /// Closes the sockets that these connections do not want, so that their ports are free for others.
    pub(super) fn release(&mut self, connections: &[config::Connection]) {
        self.sockets.release(connections);
    }

    /// Whether there is a socket to [open](Self::open).
    pub(super) fn lack_sockets(&self) -> bool {
        self.sockets.lack()
    }

    /// Opens the sockets that are wanted and are not open.
    ///
    /// # Errors
    ///
    /// If one cannot be had. The others are open.
    pub(super) fn open(&mut self) -> anyhow::Result<()> {
        let outcome = self.sockets.open();
        if self.sockets.len() > 0 && self.batch.is_none() {
            // One byte more than any may have, so that a longer one is not taken for it.
            let options = ReceiveOptions {
                slots: SLOTS,
                spare: 0,
                slot_size: MAX_MESSAGE + 1,
                coalescing: false,
            };
            self.batch = Some(Receive::new(&options));
        }
        outcome
    }

    /// Handles received messages, answers them, and sends queued commands. Commands of peers about
    /// paths become operations.
    pub(super) fn serve(&mut self, now: Instant, step: &mut dyn FnMut(TunnelOp)) {
        let at = self.core_time(now);
        if let Some(mut batch) = self.batch.take() {
            (0..self.sockets.len()).for_each(|index| self.receive(at, index, &mut batch, step));
            self.batch = Some(batch);
        }
        self.commands.handle_timeout(at);
        self.take_events(step);
        self.send(at, None);
    }

    /// Takes what came to one socket, and answers it.
    fn receive(
        &mut self,
        at: mpt_proto::Instant,
        index: usize,
        batch: &mut Receive,
        step: &mut dyn FnMut(TunnelOp),
    ) {
        for _ in 0..BATCHES {
            let filled = match self.sockets.get(index).receive(batch) {
                Ok(filled) => filled,
                Err(error) => {
                    tracing::debug!("commands cannot be received: {error}");
                    return;
                }
            };
            for datagram in batch.datagrams() {
                self.counters.received += 1;
                let from = datagram.remote;
                let refused = self.commands.handle_datagram(at, from, datagram.payload, chance);
                if let Some(refusal) = refused {
                    self.on_refused(from, refusal);
                }
                self.take_events(step);
                self.send(at, Some((index, datagram.local)));
            }
            if filled < batch.slots() {
                return;
            }
        }
    }

    /// A message was refused: warns of it if that is because both ends do not fit.
    fn on_refused(&mut self, from: SocketAddr, refusal: mpt_original::Refusal) {
        let host = from.ip().to_canonical();
        let is_of = |station: &&Station| station.legs.values().any(|leg| leg.remote == Some(host));
        let connection = self.stations.values().find(is_of).map(|station| station.name.as_str());
        let warned = self.faults.see(Instant::now(), from, refusal, connection);
        if let Some(Problem { code, text, remedy, .. }) = warned {
            tracing::warn!(connection, code, "{text}: {remedy}");
        }
    }

    /// What does not work of the commands, and what to do about it.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.faults.problems(Instant::now())
    }

    /// Sends what is due; answers by the socket, and from the address, by which the question came.
    fn send(&mut self, at: mpt_proto::Instant, came_by: Option<(usize, Option<IpAddr>)>) {
        while let Some(transmit) = self.commands.poll_transmit(at) {
            let way = match transmit.to {
                Destination::Source(to) => came_by.map(|(index, local)| (index, local, to)),
                Destination::Peer { connection, about } => self.way(connection, about),
            };
            let sent = way.is_some_and(|(index, local, to)| {
                send(self.sockets.get(index), local, to, &transmit.message)
            });
            if sent {
                self.counters.sent += 1;
            } else {
                self.counters.failed += 1;
            }
        }
    }

    /// Socket, source and destination of a command about a path to the peer of a connection.
    fn way(
        &self,
        connection: ConnectionId,
        about: PathReport,
    ) -> Option<(usize, Option<IpAddr>, SocketAddr)> {
        let station = self.stations.get(&connection)?;
        station.ways(about).find_map(|leg| {
            let index = self.sockets.position(leg.key.as_ref()?)?;
            Some((index, leg.local, SocketAddr::new(leg.remote?, station.remote_port)))
        })
    }

    fn take_events(&mut self, step: &mut dyn FnMut(TunnelOp)) {
        while let Some(event) = self.commands.poll_event() {
            match event {
                Event::Path { connection, local, remote, down } => {
                    let station = self.stations.get(&connection);
                    let path = station.and_then(|station| station.path(local, remote));
                    match path {
                        Some(path) => step(TunnelOp::SetPeerDown { connection, path, down }),
                        None => self.counters.no_path += 1,
                    }
                }
                Event::Told { connection, report, outcome } => {
                    self.on_told(connection, report, outcome);
                }
                Event::Create(create) => {
                    self.commands.answer_create(create.id, Err(Code::UNKNOWN));
                    self.counters.create_declined += 1;
                    // Not a line for each: the log is not theirs to fill.
                    if self.counters.create_declined.is_power_of_two() {
                        tracing::warn!(
                            from = %create.from,
                            "a peer requests connection {}, which is refused: add it to the file",
                            create.description.name
                        );
                    }
                }
            }
        }
    }

    fn on_told(&mut self, connection: ConnectionId, report: PathReport, outcome: Outcome) {
        let why = match outcome {
            Outcome::Done | Outcome::Superseded => return,
            Outcome::AuthFailed => "its commands have another authentication type",
            Outcome::Refused(_) => "it refuses",
            Outcome::Unanswered => "it does not answer",
        };
        self.counters.untold += 1;
        let Some(station) = self.stations.get(&connection) else { return };
        let path = station.path(report.initiator, report.responder);
        let path = path.and_then(|path| station.legs.get(&path)).map_or("?", |leg| &leg.name);
        let is = if report.down { "down" } else { "up" };
        tracing::warn!(
            connection = station.name,
            path,
            "cannot notify the peer that it is {is}: {why}; the peer detects it by keepalives"
        );
    }

    /// When to call [`serve`](Self::serve) at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let at = self.commands.poll_timeout()?;
        Some(self.epoch + at.since(mpt_proto::Instant::ZERO))
    }

    /// What is shown of it; `None` if there are no commands.
    pub(super) fn status(&self) -> Option<CommandStatus> {
        if self.stations.is_empty() {
            return None;
        }
        let &Counters { received, sent, failed, no_path, create_declined, untold } = &self.counters;
        let refusals = self.commands.refusals().iter();
        let mut refused: BTreeMap<String, u64> =
            refusals.map(|(refusal, count)| (refusal.name().to_owned(), count)).collect();
        for (name, count) in [
            ("command_create_declined", create_declined),
            ("command_no_path", no_path),
            ("command_unsent", failed),
            ("command_untold", untold),
        ] {
            if count > 0 {
                refused.insert(name.to_owned(), count);
            }
        }
        Some(CommandStatus {
            local: self.sockets.local(),
            absent: self.sockets.absent(),
            messages_received: received,
            messages_sent: sent,
            refused,
        })
    }

    fn core_time(&self, now: Instant) -> mpt_proto::Instant {
        mpt_proto::Instant::ZERO + now.saturating_duration_since(self.epoch)
    }
}

/// Own and the peer's tunnel address of a connection, as its keepalives name them.
fn tunnel_addresses(connection: &Connection, own: &[Prefix]) -> Option<(IpAddr, IpAddr)> {
    let &remote = connection.settings.peer.first()?;
    let same_version = || own.iter().filter(|own| own.addr.is_ipv4() == remote.is_ipv4());
    let holds = |own: &&Prefix| core_prefix(own).is_some_and(|own| own.contains(remote));
    let own = same_version().find(holds).or_else(|| same_version().next())?;
    Some((own.addr, remote))
}

fn core_auth(auth: &Auth) -> mpt_original::Auth {
    match auth {
        Auth::None => mpt_original::Auth::None,
        Auth::Random => mpt_original::Auth::Random,
        Auth::Sha256(secret) => mpt_original::Auth::Sha256(secret.key().clone()),
    }
}

/// Sends a message and says whether the kernel has taken it.
fn send(socket: &Socket, local: Option<IpAddr>, to: SocketAddr, message: &[u8]) -> bool {
    let mut send_batch = SendBatch::new(to, local);
    let Some(place) = send_batch.reserve(message.len()) else { return false };
    place.copy_from_slice(message);
    send_batch.commit();
    socket.send(&mut send_batch).datagrams == 1
}

/// An unpredictable number: a hash with a random key of the system.
fn chance() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
