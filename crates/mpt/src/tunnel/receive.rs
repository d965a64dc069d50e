//! The receive side: from the sockets through the order of packets to the interface, and what
//! happened.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use mpt_io::tun::Device;
use mpt_io::udp::{Receive, Socket};
use mpt_proto::{ConnectionId, Event, Instant, Note, Origin, SocketId};

use super::Order;
use super::incoming::Incoming;
use crate::config;

/// Batches taken from one socket in one wake-up. One may hold a megabyte.
const SOCKET_BATCHES: usize = 2;

/// Events kept for `mpt status`.
const RECENT_EVENTS: usize = 32;

/// Everything that receiving needs.
pub(super) struct ReceiveLoop {
    pub(super) settings: Arc<config::Tunnel>,
    pub(super) device: Arc<Device>,
    pub(super) sockets: Arc<[Socket]>,
    pub(super) endpoint: mpt_proto::ReceiveSide,
    pub(super) incoming: Incoming,
    pub(super) receive: Receive,
    /// Reads that failed, which a poll reports again; by socket.
    pub(super) receive_errors: Vec<u64>,
    pub(super) recent: VecDeque<(Instant, Event)>,
}

impl ReceiveLoop {
    /// Takes datagrams from a socket and delivers what is in them. Those that came in one piece
    /// have one origin, for which the paths are looked up once.
    pub(super) fn read_socket(&mut self, socket: usize, now: Instant) {
        let id = SocketId(socket as u16);
        for _ in 0..SOCKET_BATCHES {
            let Ok(taken) = self.sockets[socket].receive(&mut self.receive) else {
                self.receive_errors[socket] += 1;
                break;
            };
            let mut sink = self.incoming.to(&self.receive, &self.device);
            for coalesced in self.receive.coalesced() {
                let origin = Origin { socket: id, remote: coalesced.remote, tos: coalesced.tos };
                let mut arrivals = self.endpoint.arrivals(origin);
                for datagram in coalesced.payloads() {
                    arrivals.handle_datagram(now, datagram, &mut sink);
                }
            }
            if taken < self.receive.slots() {
                break;
            }
        }
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now, &mut self.incoming.to(&self.receive, &self.device));
    }

    /// Does what the transmit side leaves to it; breaks if that is to stop.
    pub(super) fn carry_out(&mut self, now: Instant, order: Order) -> ControlFlow<()> {
        let mut sink = self.incoming.to(&self.receive, &self.device);
        match order {
            // Whoever asked may have lost patience; then nobody reads the answer.
            Order::Status { mut status, reply } => {
                self.complete(now, &mut status);
                let _ = reply.send(*status);
            }
            Order::SetPathStatus { connection, path, status, reply } => {
                self.endpoint.set_path_status(connection, path, status, &mut sink);
                let _ = reply.send(true);
            }
            Order::SetPathFits { connection, path, fits } => {
                self.endpoint.set_path_fits(connection, path, fits, &mut sink);
            }
            Order::Tell(event) => self.tell(now, event),
            Order::Stop => {
                self.endpoint.close(&mut sink);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// What the transmit side must know next.
    pub(super) fn poll_note(&mut self) -> Option<(ConnectionId, Note)> {
        self.endpoint.poll_note()
    }

    /// Ends the burst of deliveries, and tells the events.
    pub(super) fn flush(&mut self, now: Instant) {
        self.incoming.flush(&self.device);
        while let Some(event) = self.endpoint.poll_event() {
            self.tell(now, event);
        }
    }

    fn tell(&mut self, now: Instant, event: Event) {
        let text = self.describe(&event);
        tracing::info!(tunnel = self.settings.name, "{text}");
        if self.recent.len() == RECENT_EVENTS {
            self.recent.pop_front();
        }
        self.recent.push_back((now, event));
    }

    /// When there is something to do although nothing arrives.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout().map(|next| next.at)
    }
}
