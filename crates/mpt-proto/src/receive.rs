//! The receive half of a connection: what is heard on each path, and the order of what arrives.
//!
//! It owns the state of the paths, because that follows from what is received. What the transmit
//! half must know goes out as [`Note`]s.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::config::{ConnectionConfig, PathConfig, Prefix};
use crate::path::liveness::Liveness;
use crate::path::{PathId, PathState, PathStatus};
use crate::reorder::{Accepted, ReorderBuffer};
use crate::sequence::Seq;
use crate::sink::{Held, Sink};
use crate::stats::{Drop, Drops, PathStats, Traffic};
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::wire::gre::Datagram;
use crate::wire::keepalive::{FIRST_CONTROL, Keepalive};
use crate::wire::{ecn, inner};

/// What the receive half tells: the transmit half, and through it whoever reads the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A path is heard again, or no longer. Always told before the state that follows from it.
    Hearing { path: PathId, hearing: bool },
    /// A path changed its state.
    State { path: PathId, from: PathState, to: PathState },
    /// The peer's numbers started anew.
    Restart { expected: Seq, found: Seq },
}

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) path: PathId,
    /// The type of service of its outer header.
    pub(crate) tos: u8,
    /// The length of the whole datagram.
    pub(crate) len: usize,
}

#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    paths: Vec<ReceivePath>,
    reorder: ReorderBuffer,
    /// The tunnel addresses of this end and of the peer, by which keepalives are known.
    addresses: Vec<IpAddr>,
    peer: Vec<IpAddr>,
    networks: Vec<Prefix>,
    /// At most two per path and one more for each call, because every call drains them.
    notes: VecDeque<Note>,
    /// The paths on which the peer may be sending, one bit each.
    live: u64,
    delivered: Traffic,
    drops: Drops,
    /// A packet whose congestion mark was changed: the only one that is copied here.
    marked: Vec<u8>,
}

#[derive(Debug)]
struct ReceivePath {
    liveness: Liveness,
    /// Whether keepalives mean anything here. Where none are sent and none are missed, the peer is
    /// of a kind that has none, and a forged one must not speak for it.
    speaks_keepalive: bool,
    /// What was last told, so that only changes are.
    told: (bool, PathState),
    received: Traffic,
    keepalives_received: u64,
}

impl ReceiveHalf {
    pub(crate) fn new(config: &ConnectionConfig, addresses: &[IpAddr]) -> Self {
        let path = |path: &PathConfig| ReceivePath {
            liveness: Liveness::new(path.status, path.dead_time),
            speaks_keepalive: path.keepalive.is_some() || path.dead_time.is_some(),
            told: (false, PathState::Probing),
            received: Traffic::default(),
            keepalives_received: 0,
        };
        Self {
            paths: config.paths.iter().map(path).collect(),
            reorder: ReorderBuffer::new(config.reorder, config.paths.len()),
            addresses: addresses.to_vec(),
            peer: config.peer.clone(),
            networks: config.networks.clone(),
            notes: VecDeque::new(),
            live: 0,
            delivered: Traffic::default(),
            drops: Drops::default(),
            marked: Vec::new(),
        }
    }

    pub(crate) fn reorder(&self) -> &ReorderBuffer {
        &self.reorder
    }

    pub(crate) fn delivered(&self) -> Traffic {
        self.delivered
    }

    pub(crate) fn drops(&self) -> &Drops {
        &self.drops
    }

    pub(crate) fn state(&self, path: PathId) -> PathState {
        self.paths[path.index()].liveness.state()
    }

    pub(crate) fn last_heard(&self, path: PathId) -> Option<Instant> {
        self.paths[path.index()].liveness.last_heard()
    }

    /// Fills in the receiving side of a path's statistics.
    pub(crate) fn add_stats(&self, path: PathId, stats: &mut PathStats) {
        let path = &self.paths[path.index()];
        stats.received = path.received;
        stats.keepalives_received = path.keepalives_received;
    }

    /// What is to be told next.
    pub(crate) fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// A datagram of this connection came.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram<'_>,
        sink: &mut impl Sink,
    ) {
        let control = datagram.payload.first().is_some_and(|&first| first >= FIRST_CONTROL);
        let outcome = if control {
            self.receive_control(now, arrival.path, datagram.payload, sink)
        } else {
            self.receive_inner(now, arrival, datagram, sink)
        };
        if let Err(reason) = outcome {
            self.drops.add(reason);
        }
    }

    fn receive_control(
        &mut self,
        now: Instant,
        path: PathId,
        message: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Drop> {
        let keepalive = Keepalive::parse(message)?;
        if !self.peer.contains(&keepalive.sender) || !self.addresses.contains(&keepalive.receiver) {
            return Err(Drop::ControlAddress);
        }
        let heard = &mut self.paths[path.index()];
        if !heard.speaks_keepalive {
            return Err(Drop::ControlUnknown);
        }
        heard.keepalives_received += 1;
        let was_deaf = heard.liveness.peer_deaf();
        heard.liveness.on_keepalive(now, keepalive.report);
        // A peer that has just started has heard nothing. So has one whose path died, but then its
        // numbers go on, and the first that fits takes the word back.
        let deaf = |path: &ReceivePath| path.liveness.peer_deaf();
        if keepalive.report.deaf && (!was_deaf || self.paths.iter().all(deaf)) {
            self.reorder.on_restart_announced();
        }
        self.tell(sink);
        Ok(())
    }

    fn receive_inner(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Drop> {
        let inner = inner::parse(datagram.payload)
            .filter(|inner| inner.protocol == datagram.header.protocol)
            .ok_or(Drop::InnerMalformed)?;
        let from_peer = self.peer.contains(&inner.source)
            || self.networks.iter().any(|network| network.contains(inner.source));
        if !from_peer {
            return Err(Drop::InnerSource);
        }
        let Arrival { path, tos, len } = arrival;
        let heard = &mut self.paths[path.index()];
        heard.received.add(len);
        heard.liveness.on_heard(now);
        if heard.told.0 != heard.liveness.hearing() {
            self.tell(sink);
        }
        let mut packet = &datagram.payload[..inner.len];
        let tos = ecn::decapsulate(inner.tos, tos)?;
        if tos != inner.tos {
            self.marked.clear();
            self.marked.extend_from_slice(packet);
            ecn::set_type_of_service(&mut self.marked, &inner, tos);
            packet = &self.marked;
        }
        let mut sink = Counted { sink, delivered: &mut self.delivered };
        let Some(seq) = datagram.header.sequence else {
            self.reorder.pass(packet, &mut sink);
            return Ok(());
        };
        match self.reorder.insert(now, path, seq, packet, &mut sink)? {
            Accepted::Fits => {}
            Accepted::Restart { expected } => {
                self.notes.push_back(Note::Restart { expected, found: seq });
            }
        }
        Ok(())
    }

    /// The next deadline of this half.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let silent = self.paths.iter().filter_map(|path| path.liveness.deadline()).min();
        let silent = silent.map(|at| Deadline { at, timer: Timer::DeadTime });
        let hold = self.reorder.deadline().map(|at| Deadline { at, timer: Timer::MaxDelay });
        Deadline::earlier(hold, silent)
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        self.paths.iter_mut().for_each(|path| path.liveness.on_timeout(now));
        self.tell(sink);
        let mut sink = Counted { sink, delivered: &mut self.delivered };
        self.reorder.on_timeout(now, &mut sink);
    }

    /// The operator wants something else of a path.
    pub(crate) fn set_status(&mut self, path: PathId, status: PathStatus, sink: &mut impl Sink) {
        self.paths[path.index()].liveness.on_status(status);
        self.tell(sink);
    }

    /// A path can, or cannot, carry the least inner packet.
    pub(crate) fn set_fits(&mut self, path: PathId, fits: bool, sink: &mut impl Sink) {
        self.paths[path.index()].liveness.on_mtu(fits);
        self.tell(sink);
    }

    /// Tells what changed on the paths since it was last told.
    pub(crate) fn tell(&mut self, sink: &mut impl Sink) {
        let mut live = 0;
        for (index, path) in self.paths.iter_mut().enumerate() {
            let id = PathId(index as u8);
            let (hearing, state) = (path.liveness.hearing(), path.liveness.state());
            if hearing != path.told.0 {
                self.notes.push_back(Note::Hearing { path: id, hearing });
            }
            if state != path.told.1 {
                self.notes.push_back(Note::State { path: id, from: path.told.1, to: state });
            }
            path.told = (hearing, state);
            live |= u64::from(path.liveness.live()) << index;
        }
        if live != self.live {
            self.live = live;
            let mut sink = Counted { sink, delivered: &mut self.delivered };
            self.reorder.set_live(live, &mut sink);
        }
    }
}

/// Counts what is delivered on its way to the sink.
struct Counted<'a, S> {
    sink: &'a mut S,
    delivered: &'a mut Traffic,
}

impl<S: Sink> Sink for Counted<'_, S> {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.add(packet.len());
        self.sink.deliver(packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.sink.hold(packet)
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let len = self.sink.deliver_held(held);
        self.delivered.add(len);
        len
    }
}
