//! The transmit half of every connection, and which of them an inner packet is for.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::change::Change;
use crate::config::ConnectionConfig;
use crate::deadlines::Deadlines;
use crate::event::{Event, Events};
use crate::framing::datagram::Item;
use crate::framing::extended::identity::{At, Identity};
use crate::framing::extended::reply::OriginReply;
use crate::framing::extended::session::SessionUpdate;
use crate::id::{ConnectionId, PathId, SocketId};
use crate::messages::{Message, ORIGIN_REPLIES};
use crate::prefix::{Prefix, own_address};
use crate::secret::Secret;
use crate::slots::Slots;
use crate::stats::{Drop, Drops, Traffic};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::tx::connection::TransmitHalf;
use crate::tx::message::MAX_CONTROL;
use crate::tx::repair::{self, Unacknowledged};
use crate::tx::retransmit::RetransmitBuffer;
use crate::tx::route::Routes;
use crate::tx::stages::Accepted;
use crate::tx::transmit::{Payload, Transmit, TransmitKind};
use crate::wire::inner;

/// The side of an [`Endpoint`](crate::Endpoint) that sends.
///
/// It shares nothing with the [`ReceiveSide`](crate::ReceiveSide) and may run on another thread.
/// Information of that side arrives as [`Message`]s.
#[derive(Debug)]
pub struct TransmitSide {
    /// This end's tunnel addresses.
    pub(super) local: Vec<Prefix>,
    pub(super) connections: Slots<TransmitHalf>,
    /// The packet that was offered last to a connection whose packets may have to wait.
    pub(super) offered: Option<Accepted>,
    pub(super) routes: Routes,
    pub(super) deadlines: Deadlines,
    /// What was lately sent.
    pub(super) retransmit: RetransmitBuffer,
    /// What was sent and is not acknowledged, of connections that repair losses.
    pub(super) unacknowledged: Unacknowledged,
    /// What of that is to be sent again; empty between two calls.
    pub(super) missing: Vec<repair::Place>,
    /// The same of packets that are probably lost.
    pub(super) late: Vec<repair::Place>,
    pub(super) events: Events,
    pub(super) drops: Drops,
    /// When a keepalive was last due.
    pub(super) woken: Option<Instant>,
    /// The last control message that was polled.
    pub(super) control: Box<[u8; MAX_CONTROL]>,
    /// What origins are to be sent, and where the last of it goes.
    pub(super) replies: VecDeque<OriginReply>,
    pub(super) destination: (At, Option<IpAddr>),
    pub(super) secret: Secret,
    /// How many connections were added: which identity the next one has.
    pub(super) added: u64,
    /// A connection to be looked at with the next datagram: it may have nothing more to say.
    pub(super) over: Option<ConnectionId>,
    /// Probes to send, with the lengths of their datagrams; at most one for each path.
    pub(super) probes: VecDeque<(ConnectionId, PathId, usize)>,
}

impl TransmitSide {
    /// A side without connections, whose tunnel addresses these are.
    pub(crate) fn new(local: Vec<Prefix>, secret: Secret) -> Self {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        Self {
            local,
            connections: Slots::default(),
            offered: None,
            routes: Routes::default(),
            deadlines: Deadlines::default(),
            retransmit: RetransmitBuffer::default(),
            unacknowledged: Unacknowledged::default(),
            missing: Vec::new(),
            late: Vec::new(),
            events: Events::default(),
            drops: Drops::default(),
            woken: None,
            control: Box::new([0; MAX_CONTROL]),
            replies: VecDeque::new(),
            destination: (At { socket: SocketId(0), remote: nowhere }, None),
            secret,
            added: 0,
            over: None,
            probes: VecDeque::new(),
        }
    }

    /// Takes an inner packet from the tunnel interface, and decides where it goes. `None` if it was
    /// dropped; then it is counted.
    ///
    /// Also `None` if packets of its connection may have to wait; then [`take_offered`](Self::take_offered) says what
    /// becomes of it.
    #[inline(always)]
    pub fn handle_inner<'a>(&mut self, now: Instant, packet: &'a [u8]) -> Option<Transmit<'a>> {
        let Some(inner) = inner::parse(packet) else {
            self.drops.add(Drop::InnerMalformed);
            return None;
        };
        let connection = self.routes.find(packet, &inner);
        let found = connection.and_then(|id| Some((id, self.connections.get_mut(id.index())?)));
        let Some((id, connection)) = found else {
            self.drops.add(self.unrouted(inner.destination));
            return None;
        };
        let packet = &packet[..inner.len];
        let item = Item::new(packet, &inner);
        let (path, stamp) = if connection.paced.is_none() {
            connection.transmit(now, &item)?
        } else if let Some(passed) = connection.pass(now, &item) {
            passed
        } else {
            self.offer(now, id, packet, &inner);
            return None;
        };
        if connection.arm_beacons(now) {
            let at = connection.deadline().map(|deadline| deadline.at);
            self.deadlines.set(id.index(), at);
        }
        let payload = Payload::Inner { packet, keep: connection.keep() };
        Some(Transmit { connection: id, path, tos: inner.tos, stamp, payload })
    }

    /// The connection that a packet is for, if none of its paths can carry packets at present.
    #[cold]
    pub fn without_path(&mut self, packet: &[u8]) -> Option<ConnectionId> {
        let inner = inner::parse(packet)?;
        let id = self.routes.find(packet, &inner)?;
        let connection = self.connections.get(id.index())?;
        (!connection.has_usable_path()).then_some(id)
    }

    /// Whether any path of a connection can carry packets at present; not if there is no such connection.
    pub fn has_usable_path(&self, id: ConnectionId) -> bool {
        self.connections.get(id.index()).is_some_and(TransmitHalf::has_usable_path)
    }

    /// How a packet is counted to whose destination no connection leads.
    #[cold]
    fn unrouted(&self, destination: IpAddr) -> Drop {
        let group = match destination {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        let mut broadcasts = self.local.iter().filter_map(Prefix::broadcast);
        if group || broadcasts.any(|broadcast| broadcast == destination) {
            Drop::Multicast
        } else {
            Drop::NoRoute
        }
    }

    /// Datagrams of one kind left this host on a path: the kernel took them. Refused datagrams must
    /// not be counted, or the peer would take them for lost on the path. Call this after each send
    /// and before [`Self::poll_transmit`], whose keepalives report the number sent to the peer.
    ///
    /// `egress_rate` is the rate at which the path's interface sends, in bytes per second, if known.
    pub fn on_sent(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        kind: TransmitKind,
        datagrams: Traffic,
        egress_rate: Option<u64>,
    ) {
        if let Some(half) = self.connections.get_mut(connection.index()) {
            half.on_sent(path, kind, datagrams, egress_rate);
        }
    }

    /// The kernel refused datagrams of one kind on a path. In a session they have taken path sequences, so that the peer
    /// takes them for lost; this end does not.
    pub fn on_refused(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        kind: TransmitKind,
        datagrams: u64,
    ) {
        if let Some(half) = self.connections.get_mut(connection.index()) {
            half.on_refused(path, kind, datagrams);
        }
    }

    /// Takes what [`ReceiveSide::poll_message`](crate::ReceiveSide::poll_message) gave out, in that order
    /// and sooner rather than later: until then packets go where they went before. A path update about what
    /// is gone by now says nothing any more.
    pub fn handle_message(&mut self, now: Instant, connection: ConnectionId, message: Message) {
        if let Message::Origin(reply) = message {
            if self.replies.len() < ORIGIN_REPLIES {
                self.replies.push_back(reply);
            }
            return;
        }
        let Some(half) = self.connections.get_mut(connection.index()) else { return };
        if matches!(message, Message::Session(SessionUpdate::Agreed(..) | SessionUpdate::Wanted(_)))
        {
            self.unacknowledged.forget(connection);
        }
        if let Some((path, carries)) = half.on_message(message, now) {
            self.events.push(Event::Narrow { connection, path, carries });
        }
        self.repair(now, connection);
        self.refresh(connection);
    }

    /// What was found out about the paths, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The tunnel has this MTU, and `is_set` says whether it is configured or follows from the paths. Peers are told, in
    /// sessions.
    pub fn set_tunnel_mtu(&mut self, mtu: u16, is_set: bool) {
        self.connections.iter_mut().for_each(|(_, half)| half.set_tunnel_mtu(mtu, is_set));
    }

    /// Sends a probe on a path with the next [`poll_transmit`](Self::poll_transmit): a keepalive padded to a
    /// datagram of `len` bytes, at least 73. If it arrives the peer's keepalives report that length
    /// ([`take_carried`](Self::take_carried)). Nothing is sent to a peer that would not report it, nor on a
    /// path without keepalives.
    pub fn send_probe(&mut self, connection: ConnectionId, path: PathId, len: usize) {
        self.probes.retain(|&(other, on, _)| (other, on) != (connection, path));
        self.probes.push_back((connection, path, len));
    }

    /// The interface and the route of a path allow datagrams with this many bytes of UDP payload. In a session, probes
    /// find out whether they arrive ([`Event::Proven`]).
    pub fn set_local_len(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        len: usize,
    ) {
        if let Some(half) = self.connections.get_mut(connection.index()) {
            half.set_local_len(path, len, now);
            self.refresh(connection);
        }
    }

    /// The longest datagram that recently arrived at the peer on a path, in bytes of UDP payload, by the
    /// keepalives received since the last call (section 7.3 of `docs/protocol.md`); `None` if none reported it,
    /// or the path changed its state.
    pub fn take_carried(&mut self, connection: ConnectionId, path: PathId) -> Option<usize> {
        self.connections.get_mut(connection.index())?.take_carried(path)
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (index, _) = self.deadlines.first()?;
        self.connections[index].deadline()
    }

    /// Applies a change to sending. Pass it to the receive side next.
    pub fn change(&mut self, now: Instant, change: &Change) {
        let id = change.connection();
        if matches!(change, Change::AddConnection { .. }) {
            self.added += 1;
        }
        let connection = self.connections.get_mut(id.index()).filter(|half| !half.is_ending());
        let Some(connection) = connection else {
            if let Change::AddConnection { config, .. } = change {
                self.add(id, config, now);
                self.refresh(id);
            }
            return;
        };
        match change {
            // The number is in use.
            Change::AddConnection { .. } => {}
            Change::RemoveConnection { .. } => {
                connection.end(now);
                self.routes.remove(id);
                if connection.is_over() {
                    self.connections.take(id.index());
                }
            }
            Change::SetConnection { config, .. } => {
                connection.set(config, now);
                self.routes.remove(id);
                route(&mut self.routes, id, config);
            }
            Change::AddPath { path, config, .. } => connection.add_path(*path, config, now),
            Change::RemovePath { path, .. } => connection.remove_path(*path, now),
            Change::SetPath { path, config, .. } => connection.set_path(*path, config, now),
            Change::SetSurcharge { path, surcharge, .. } => {
                connection.set_surcharge(*path, *surcharge, now);
            }
            Change::SetStatus { path, status, .. } => connection.set_status(*path, *status, now),
            // The receive side decides what these mean to the path.
            Change::SetFits { .. } | Change::SetPeerDown { .. } => {}
            Change::SetPresent { path, present, unnoticed, .. } => {
                connection.set_present(*path, *present, *unnoticed, now);
            }
        }
        self.refresh(id);
    }

    fn add(&mut self, id: ConnectionId, config: &ConnectionConfig, now: Instant) {
        let own = |peer: &IpAddr| Some((own_address(&self.local, *peer)?, *peer));
        // Nothing else would stop a connection without a common version from being used.
        let Some(addresses) = config.peer.iter().find_map(own) else { return };
        route(&mut self.routes, id, config);
        self.retransmit.forget(id);
        self.unacknowledged.forget(id);
        let own = Identity::derive(&self.secret, self.added, 0);
        self.connections.put(id.index(), TransmitHalf::new(config, addresses, own, now));
    }

    /// Brings what follows from a connection up to date.
    pub(super) fn refresh(&mut self, id: ConnectionId) {
        let half = self.connections.get_mut(id.index());
        if let Some((path, doubt)) = half.and_then(TransmitHalf::take_lost) {
            self.retransmit.send_again(id, path, doubt);
        }
        self.resend_left(id);
        let half = self.connections.get_mut(id.index());
        for (path, carries, narrower) in half.into_iter().flat_map(TransmitHalf::newly_proven) {
            self.events.push(Event::Proven { connection: id, path, carries, narrower });
        }
        let half = self.connections.get_mut(id.index());
        for (path, lost) in half.into_iter().flat_map(TransmitHalf::take_stops) {
            self.events.push(match lost {
                Some(lost_percent) => Event::Stopped { connection: id, path, lost_percent },
                None => Event::Resumed { connection: id, path },
            });
        }
        let deadline = self.connections.get(id.index()).and_then(TransmitHalf::deadline);
        self.deadlines.set(id.index(), deadline.map(|deadline| deadline.at));
    }

    /// Bytes of memory that is shared by all connections.
    pub fn memory(&self) -> usize {
        self.retransmit.memory() + self.unacknowledged.memory()
    }

    /// Switches all paths off, so that the peers learn from the keepalives still to be polled that
    /// this end is going away.
    pub fn close(&mut self, now: Instant) {
        for (index, connection) in self.connections.iter_mut() {
            connection.close(now);
            self.deadlines.set(index, connection.deadline().map(|deadline| deadline.at));
        }
    }

    /// The transmit half of a connection.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn connection(&self, id: ConnectionId) -> &TransmitHalf {
        &self.connections[id.index()]
    }

    /// Counts an inner packet that is not offered because it is bigger than what the paths carry, which
    /// the sender of the datagrams knows.
    pub fn drop_too_big(&mut self) {
        self.drops.add(Drop::InnerTooBig);
    }

    /// The transmit half of a connection, if there is one of that number. One that is being removed
    /// exists until its peer has been notified.
    pub fn find(&self, id: ConnectionId) -> Option<&TransmitHalf> {
        self.connections.get(id.index())
    }

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = (ConnectionId, &TransmitHalf)> {
        self.connections.iter().map(|(index, half)| (ConnectionId(index as u16), half))
    }
}

/// Has the packets to a peer and the networks behind it go by its connection.
fn route(routes: &mut Routes, id: ConnectionId, config: &ConnectionConfig) {
    let peers = config.peer.iter().map(|peer| Prefix::host(*peer));
    for prefix in peers.chain(config.networks.iter().copied()) {
        routes.add(prefix, id, config.selector.as_ref());
    }
}
