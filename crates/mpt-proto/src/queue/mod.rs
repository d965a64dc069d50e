//! What waits because the paths are full: one queue for each flow (RFC 8290), so that a flow which fills its own does
//! not delay the others, and CoDel in each. Nothing has a number yet, so what is dropped here leaves no gap.
//!
//! Flows take turns, a quantum of bytes each. A flow that has nothing waiting goes before those that have.

pub(crate) mod acks;
mod codel;
mod flows;
mod services;
mod sparse;
pub(crate) mod store;

use std::collections::VecDeque;

use crate::time::Instant;
use crate::wire::segment::Segment;
pub(crate) use codel::Times;
use codel::{Judgement, Left};
use flows::Flows;
pub(crate) use flows::Waiting;
pub(crate) use services::{Service, Services};
use sparse::Begins;
pub(crate) use sparse::{Early, Judged, Volume};
use store::Place;

/// What a flow may send in its turn, in bytes: a packet of Ethernet.
const QUANTUM: i32 = 1514;

/// Nobody waits in smaller a store, in bytes.
const LEAST: usize = 256 << 10;

/// A packet that has to wait: where it is, its length in bytes, its type of service, how much its flow sends, and whether it
/// is TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) place: Place,
    pub(crate) len: usize,
    pub(crate) tos: u8,
    pub(crate) volume: Volume,
    pub(crate) is_tcp: bool,
}

/// What CoDel wants of a packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Send(Waiting),
    /// It is to be dropped, or marked if it can be.
    Congested(Waiting),
    /// It is to be dropped, even if it could be marked.
    Overload(Waiting),
}

/// All queues of a connection.
#[derive(Debug)]
pub(crate) struct FlowQueues {
    flows: Flows,
    /// Flows that had nothing waiting, and all others with something waiting.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    bytes: usize,
    /// Of these, the bytes of flows that are TCP.
    tcp_bytes: usize,
    limits: Limits,
    times: Times,
    /// What TCP connections have sent so far, by what they are for.
    pub(crate) services: Services,
}

/// How many bytes may wait. CoDel keeps the delay low; this bounds the memory, and what a sender loses at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of flows that are TCP.
    pub(crate) tcp: usize,
    /// Of all flows. It is at least as much.
    pub(crate) all: usize,
}

impl Default for FlowQueues {
    fn default() -> Self {
        Self {
            flows: Flows::default(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            tcp_bytes: 0,
            limits: Limits { tcp: LEAST, all: LEAST },
            times: Times::default(),
            services: Services::default(),
        }
    }
}

impl FlowQueues {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Gives back memory. Nothing waits.
    pub(crate) fn rest(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.beginning.on_judged(&mut self.services, false));
        self.flows = Flows::default();
        // Flows that had their turn may still be listed.
        (self.new, self.old) = (VecDeque::new(), VecDeque::new());
    }

    /// How many packets wait.
    pub(crate) fn len(&self) -> usize {
        self.flows.iter().map(|flow| flow.packets.len()).sum()
    }

    /// The bytes of the packets that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.flows.memory()
            + (self.new.capacity() + self.old.capacity()) * 2
            + self.services.memory()
    }

    /// What CoDel judges by, and how many bytes may wait.
    pub(crate) fn set_limits(&mut self, times: Times, limits: Limits) {
        self.times = times;
        let tcp = limits.tcp.max(LEAST);
        self.limits = Limits { tcp, all: limits.all.max(tcp) };
    }

    /// How much the flow with this hash sends, with its packet of `len` bytes. It is sparse only if nothing of it waits.
    /// It is asked for each packet that may have to. `segment` says what of TCP the packet is; with the first one of a connection its
    /// service is told.
    pub(crate) fn volume(
        &mut self,
        now: Instant,
        hash: u64,
        len: usize,
        segment: Option<Segment>,
        early: Early,
        service: Option<Service>,
    ) -> Judged {
        let services = &mut self.services;
        let (_, flow) = self.flows.of(now, hash, services);
        let trip = self.times.round_trip;
        let volume = flow.allowance.take(now, len, trip);
        let begins = Begins { early, trip, is_bulk: volume == Volume::Bulk };
        let is_known = flow.beginning.on_packet(now, hash, segment, begins, service, services);
        if volume == Volume::Bulk && flow.beginning.is_of(hash) {
            flow.beginning.on_judged(services, true);
        }
        let is_over = volume != Volume::Sparse;
        let is_ack = matches!(segment, Some(Segment::Ack(_) | Segment::Report | Segment::Marked));
        let volume = match volume {
            // However many there are, none of them waits for others.
            Volume::Bulk if is_ack => Volume::Usual,
            Volume::Bulk => Volume::Bulk,
            Volume::Sparse | Volume::Usual | Volume::Early if is_known => Volume::Early,
            Volume::Sparse if !flow.packets.is_empty() => Volume::Usual,
            Volume::Sparse | Volume::Usual | Volume::Early => volume,
        };
        Judged { volume, is_known, is_over }
    }

    /// A packet of the flow with this hash has to wait, `len` bytes long.
    pub(crate) fn push(&mut self, now: Instant, hash: u64, packet: Packet) {
        let Packet { place, len, tos, volume, is_tcp } = packet;
        let (index, flow) = self.flows.of(now, hash, &mut self.services);
        // Flows may share a queue. It counts as what its first packet was until it is empty.
        if flow.packets.is_empty() {
            flow.is_tcp = is_tcp;
        }
        flow.packets.push_back(Waiting { place, len: len as u32, tos, volume, since: now });
        flow.bytes += len;
        self.bytes += len;
        if flow.is_tcp {
            self.tcp_bytes += len;
        }
        if !flow.listed {
            flow.listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(index);
        }
    }

    /// A packet of the longest queue, of TCP if it is TCP of which too much waits, which is to be dropped, if more waits than may: the first one, by whose loss its sender
    /// is told soonest. If that did not slow down for what it was told until now, it is one of the last: its window comes back as
    /// late as can be, so it sends less.
    pub(crate) fn overflow(&mut self, now: Instant) -> Option<Waiting> {
        let only_tcp = self.tcp_bytes > self.limits.tcp;
        if !only_tcp && self.bytes <= self.limits.all {
            return None;
        }
        let meant = self.flows.iter_mut().filter(|flow| flow.is_tcp || !only_tcp);
        let longest = meant.max_by_key(|flow| flow.bytes)?;
        let is_ignored = longest.codel.is_ignored(now, self.times);
        let packets = &mut longest.packets;
        // The very last may have come just now, and still have to be filled in.
        let at = if is_ignored { packets.len().saturating_sub(2) } else { 0 };
        let dropped = packets.remove(at)?;
        longest.bytes -= dropped.len as usize;
        self.bytes -= dropped.len as usize;
        if longest.is_tcp {
            self.tcp_bytes -= dropped.len as usize;
        }
        Some(dropped)
    }

    /// The packet that leaves next.
    pub(crate) fn next(&mut self) -> Option<Waiting> {
        let index = self.turn()?;
        self.flows.at(index).packets.front().copied()
    }

    /// Takes the packet that leaves next.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Verdict> {
        let index = self.turn()?;
        let flow = self.flows.at(index);
        let first = flow.packets.pop_front()?;
        let len = first.len as usize;
        flow.bytes -= len;
        self.bytes -= len;
        if flow.is_tcp {
            self.tcp_bytes -= len;
        }
        flow.deficit -= first.len as i32;
        let left = match flow.bytes {
            0 => Left::Nothing,
            // Of TCP less may wait. A window that doubles fills all of this in less than an interval, and would lose thousands at once.
            bytes if !flow.is_tcp && bytes > self.limits.all / 2 => Left::Much,
            _ => Left::Some,
        };
        Some(match flow.codel.on_dequeue(now, first.waited(now), left, self.times) {
            Judgement::Send => Verdict::Send(first),
            Judgement::Tell => Verdict::Congested(first),
            Judgement::Drop => Verdict::Overload(first),
        })
    }

    /// Whose turn it is.
    fn turn(&mut self) -> Option<u16> {
        loop {
            let is_new = !self.new.is_empty();
            let &index = self.new.front().or(self.old.front())?;
            let flow = self.flows.at(index);
            let list = if is_new { &mut self.new } else { &mut self.old };
            if flow.packets.is_empty() {
                list.pop_front();
                // So that it cannot go before all others again by leaving for a moment (RFC 8290 section 4.2).
                if is_new {
                    self.old.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            }
            if flow.deficit > 0 {
                return Some(index);
            }
            flow.deficit += QUANTUM;
            list.pop_front();
            self.old.push_back(index);
        }
    }
}

#[cfg(test)]
mod tests;
