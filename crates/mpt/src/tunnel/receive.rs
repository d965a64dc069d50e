//! The receive side: from the sockets through the order of packets to the interface, and what
//! happened.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mpt_control::{Event as RecentEvent, Problem};
use mpt_io::poll::{Interest, Poll};
use mpt_io::tun::Device;
use mpt_io::udp::{Receive, Socket};
use mpt_proto::{
    AcceptConfig, ConnectRequest, ConnectionId, DownCause, Event, Instant, Message, Origin,
    PathState, ReceiveHalf, SocketId, TokenBucket,
};

use super::history::{History, Ordered};
use super::incoming::Incoming;
use super::main_event::{MainEvent, MainEvents};
use super::names::{self, Names, left};
use super::op::{LastHeard, ReceiveCommand};
use super::problems::Problems;
use super::sockets::Sockets;
use super::strangers::Strangers;
use crate::config;

/// The token of socket 0 where sockets are waited for; the others follow. Those below are not sockets.
pub(super) const SOCKETS: u64 = 2;

/// Batches taken from one socket in one wake-up. One may hold a megabyte.
const SOCKET_BATCHES: usize = 2;

/// ICMP messages taken from one socket in one wake-up.
const ICMP_ERRORS: usize = 16;

/// How often the sockets are asked what the kernel has dropped: one system call for each.
const ASK_DROPS_EVERY: Duration = Duration::from_millis(50);

/// Events kept for `mpt status`.
const RECENT_EVENTS: usize = 32;

/// Everything that receiving needs.
pub(super) struct ReceiveLoop {
    pub(super) settings: Arc<config::Tunnel>,
    pub(super) device: Arc<Device>,
    pub(super) sockets: Sockets,
    /// What waits for the sockets.
    pub(super) poll: Arc<Poll>,
    pub(super) endpoint: mpt_proto::ReceiveSide,
    pub(super) incoming: Incoming,
    pub(super) receive: Receive,
    /// The origin of all times.
    pub(super) epoch: std::time::Instant,
    /// Reads that failed, which a poll reports again; by socket.
    pub(super) receive_errors: Vec<u64>,
    pub(super) strangers: Strangers,
    pub(super) names: Names,
    pub(super) problems: Problems,
    /// The events that may go to the log: 200 at once, ten per second for long.
    pub(super) lines: TokenBucket,
    pub(super) recent: VecDeque<RecentEvent>,
    pub(super) main_events: MainEvents,
    /// Who asked to connect in this wake-up, and the address at which.
    pub(super) requests: Vec<(ConnectRequest, Option<IpAddr>)>,
    /// When to ask the sockets next what the kernel has dropped.
    pub(super) ask_drops_at: Instant,
    /// When the counters are noted next, and what they were lately.
    pub(super) note_at: Instant,
    pub(super) histories: BTreeMap<ConnectionId, History<Ordered>>,
}

impl ReceiveLoop {
    /// Takes datagrams from a socket and delivers what is in them. Those that came in one piece
    /// have one origin, for which the paths are looked up once.
    pub(super) fn read_socket(&mut self, id: SocketId, now: Instant) {
        // Closed since it was found to be readable.
        let Some(socket) = self.sockets.get(id) else { return };
        for _ in 0..SOCKET_BATCHES {
            let Ok(taken) = socket.receive(&mut self.receive) else {
                self.receive_errors[usize::from(id.0)] += 1;
                break;
            };
            let read_at = Instant::ZERO + self.epoch.elapsed();
            for piece in 0..self.receive.pieces() {
                let coalesced = self.receive.piece(piece);
                let origin = Origin { socket: id, remote: coalesced.remote, tos: coalesced.tos };
                let (local, datagrams) = (coalesced.local, coalesced.payloads().len());
                let arrivals = self.endpoint.arrivals(origin).addressed_to(local);
                let mut arrivals = arrivals.waited(read_at, coalesced.waited);
                let mut of_peers = 0;
                for number in 0..datagrams {
                    let opened = arrivals.open(now, self.receive.payload_mut(piece, number));
                    let Some(opened) = &opened else { continue };
                    of_peers += 1;
                    // Shared again: packets that wait may stay where they are.
                    let datagram = self.receive.payload(piece, number);
                    let mut sink = self.incoming.to(&self.receive, &self.device);
                    sink.set_partial(opened.is_partial());
                    arrivals.receive(now, opened, datagram, &mut sink);
                }
                drop(arrivals);
                self.strangers.note(datagrams, of_peers);
                while let Some(request) = self.endpoint.poll_connect_request() {
                    self.requests.push((request, local));
                }
                while let Some(request) = self.endpoint.poll_client_request() {
                    self.main_events.give(MainEvent::ClientRequest { request, local });
                }
                while let Some(request) = self.endpoint.poll_path_request() {
                    self.main_events.give(MainEvent::PathRequest { request, local });
                }
            }
            if taken < self.receive.slots() {
                break;
            }
        }
        while let Some(mismatch) = self.endpoint.poll_mismatch() {
            self.problems.see(now, &mismatch);
        }
        self.tell_connect_requests(now);
        while let Some(remote) = self.endpoint.poll_refused_invitation() {
            let recent = names::refused_invitation(now, remote);
            tracing::warn!(tunnel = self.settings.name, "{}", recent.text);
            keep(&mut self.recent, recent);
        }
    }

    /// Takes the ICMP messages about datagrams that a socket has sent.
    pub(super) fn read_errors(&mut self, id: SocketId, now: Instant) {
        let Some(socket) = self.sockets.get(id) else { return };
        for _ in 0..ICMP_ERRORS {
            let Some(error) = socket.take_icmp() else { break };
            self.problems.see_icmp(now, &self.endpoint, id, &error);
        }
    }

    /// How long to leave what arrives next to gather, after this wake-up.
    pub(super) fn rest(&mut self, now: Instant) -> Option<Duration> {
        self.strangers.rest(now)
    }

    /// Warns of what does not work as configured.
    fn look_for_problems(&mut self, now: Instant) {
        for problem in self.problems.look(now, &self.endpoint, &self.names) {
            let Problem { connection, path, code, text, remedy, .. } = problem;
            let text = format!("{}{text}: {remedy}", place(connection.as_ref(), path.as_ref()));
            if self.lines.take(now) {
                tracing::warn!(tunnel = self.settings.name, code, "{text}");
            }
            let at_seconds = now.since(Instant::ZERO).as_secs_f64();
            keep(&mut self.recent, RecentEvent { at_seconds, connection, path, text });
        }
    }

    /// Passes connection requests on to the main thread, and logs refusals.
    fn tell_connect_requests(&mut self, now: Instant) {
        for (request, local) in self.requests.drain(..) {
            if let Some(recent) = self.names.describe_refusal(now, &request) {
                tracing::warn!(tunnel = self.settings.name, "{}", recent.text);
                keep(&mut self.recent, recent);
            } else {
                self.main_events.give(MainEvent::ConnectRequest { request, local });
            }
        }
    }

    /// When the paths were last heard.
    fn last_heard(&self, now: Instant) -> Vec<LastHeard> {
        let paths = |(connection, half): (ConnectionId, &ReceiveHalf)| {
            let of = |path| half.last_heard(path).map(|at| now.since(at));
            let heard = |path| LastHeard { connection, path, ago: of(path) };
            half.paths().map(heard).collect::<Vec<_>>()
        };
        self.endpoint.connections().flat_map(paths).collect()
    }

    /// Does what is due. Feedback, which is, says what the kernel has dropped.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.ask_drops_at {
            self.ask_drops_at = now + ASK_DROPS_EVERY;
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.endpoint.set_wall_clock(now, since_1970);
            for (id, socket) in self.sockets.iter() {
                self.endpoint.set_overflows(id, socket.kernel_drops());
            }
        }
        self.endpoint.handle_timeout(now, &mut self.incoming.to(&self.receive, &self.device));
    }

    /// Does what the transmit side leaves to it; breaks if that is to stop.
    pub(super) fn carry_out(&mut self, now: Instant, order: ReceiveCommand) -> ControlFlow<()> {
        let mut sink = self.incoming.to(&self.receive, &self.device);
        match order {
            // The asking thread may have timed out; then nobody reads the answer.
            ReceiveCommand::Status { mut status, reply } => {
                self.complete(now, &mut status);
                let _ = reply.send(*status);
            }
            ReceiveCommand::Explain { explanations, reply } => {
                let _ = reply.send(self.complete_explanations(now, explanations));
            }
            ReceiveCommand::Trace { connections, after, answer, reply } => {
                let _ = reply.send(self.complete_trace(now, &connections, after, *answer));
            }
            ReceiveCommand::Change { change, name } => {
                if let Some(name) = name {
                    self.names.add(&change, name);
                }
                self.endpoint.change(now, &change, &mut sink);
                self.problems.wake(now);
            }
            ReceiveCommand::SetLearns { connection, learns } => {
                self.problems.set_learns(connection, learns);
            }
            ReceiveCommand::OpenSocket { id, socket } => self.open_socket(id, socket),
            ReceiveCommand::CloseSocket { id } => {
                if let Some(socket) = self.sockets.take(id) {
                    // It can only fail for a socket that is not waited for.
                    let _ = self.poll.remove(&*socket);
                }
            }
            ReceiveCommand::ClampMss { mtu } => self.incoming.clamp_mss(mtu),
            ReceiveCommand::SetAccepts { accepts } => {
                let (accepts, names): (Vec<AcceptConfig>, Vec<String>) =
                    accepts.into_iter().unzip();
                self.names.set_accepts(accepts.iter().map(|accept| accept.id).zip(names));
                self.endpoint.set_accepts(&accepts);
            }
            ReceiveCommand::SetKeys { keys } => self.endpoint.set_keys(&keys),
            ReceiveCommand::ChangeClients { add, remove } => {
                if !remove.is_empty() {
                    self.endpoint.remove_clients(&remove);
                }
                self.endpoint.add_clients(&add);
            }
            ReceiveCommand::SetDevice { device } => {
                self.device = device;
                let text =
                    "the interface was deleted, but not by MPT: it is created again".to_owned();
                let at_seconds = now.since(Instant::ZERO).as_secs_f64();
                keep(&mut self.recent, RecentEvent { at_seconds, text, ..RecentEvent::default() });
            }
            ReceiveCommand::Sync { reply } => {
                let _ = reply.send(());
            }
            ReceiveCommand::LastHeard { reply } => {
                let _ = reply.send(self.last_heard(now));
            }
            ReceiveCommand::Volumes { mut volumes, reply } => {
                self.add_received(&mut volumes);
                let _ = reply.send(volumes);
            }
            ReceiveCommand::Tell { event } => self.tell(now, event),
            ReceiveCommand::Stop => {
                self.endpoint.close(now, &mut sink);
                // That all paths are off now goes without saying.
                while self.endpoint.poll_event().is_some() {}
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn open_socket(&mut self, id: SocketId, socket: Arc<Socket>) {
        let place = usize::from(id.0);
        if self.receive_errors.len() <= place {
            self.receive_errors.resize(place + 1, 0);
        }
        self.receive_errors[place] = 0;
        let token = SOCKETS + u64::from(id.0);
        if let Err(error) = self.poll.add(&*socket, token, Interest::READABLE) {
            let local = socket.local_addr();
            tracing::error!(
                tunnel = self.settings.name,
                "paths from {local} receive nothing and go down: cannot wait for their socket: {error}"
            );
        }
        self.sockets.put(id, socket);
    }

    /// The next message for the transmit side.
    pub(super) fn poll_message(&mut self) -> Option<(ConnectionId, Message)> {
        self.endpoint.poll_message()
    }

    /// Ends the burst of deliveries, and reports the events.
    pub(super) fn flush(&mut self, now: Instant) {
        self.incoming.flush(&self.device);
        let mut lost = Vec::new();
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Path { connection, from: PathState::Up, .. } = event
                && !lost.contains(&connection)
            {
                lost.push(connection);
            }
            self.tell(now, event);
        }
        lost.into_iter().for_each(|connection| self.tell_darkness(now, connection));
        self.look_for_problems(now);
        self.note(now);
    }

    /// A connection has lost a path. Says so if none is up any more: as a warning, unless its peer may come and go.
    fn tell_darkness(&mut self, now: Instant, connection: ConnectionId) {
        let Some(half) = self.endpoint.find(connection) else { return };
        let mut states = half.paths().map(|path| half.state(path));
        if states.any(|state| state == PathState::Up) {
            return;
        }
        let name = self.names.connection(connection).map(str::to_owned);
        let shown = name.as_deref().unwrap_or("?");
        let why = left(half).unwrap_or("no path is up");
        let text = format!("connection {shown}: {why}: packets to the peer are dropped");
        if self.lines.take(now) {
            let tunnel = &self.settings.name;
            match half.accepted_by() {
                Some(_) => tracing::info!(tunnel, "{text}"),
                None => tracing::warn!(tunnel, "{text}"),
            }
        }
        let at_seconds = now.since(Instant::ZERO).as_secs_f64();
        keep(&mut self.recent, RecentEvent { at_seconds, connection: name, path: None, text });
    }

    fn tell(&mut self, now: Instant, event: Event) {
        let recent = self.names.describe(now, &event);
        // Senders of datagrams must not be able to fill the log.
        if self.lines.take(now) {
            let (tunnel, text) = (&self.settings.name, &recent.text);
            // Of what this host lacks an operator has to know.
            match matches!(event, Event::Path { to: PathState::Down(DownCause::Absent), .. }) {
                true => tracing::warn!(tunnel, "{text}"),
                false => tracing::info!(tunnel, "{text}"),
            }
        }
        keep(&mut self.recent, recent);
        self.problems.wake(now);
        self.main_events.event(event);
    }

    /// When there is something to do although nothing arrives.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let next = self.endpoint.poll_timeout().map(|next| next.at);
        next.into_iter().chain(self.problems.deadline()).min()
    }
}

/// The connection and path of an event, as other events name them.
fn place(connection: Option<&String>, path: Option<&String>) -> String {
    let connection = connection.map(|name| format!("connection {name}: ")).unwrap_or_default();
    connection + &path.map(|name| format!("path {name}: ")).unwrap_or_default()
}

/// Puts an event behind the others, the oldest of which may have to go.
fn keep(recent: &mut VecDeque<RecentEvent>, event: RecentEvent) {
    if recent.len() == RECENT_EVENTS {
        recent.pop_front();
    }
    recent.push_back(event);
}
