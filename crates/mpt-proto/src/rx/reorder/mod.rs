//! The reorder buffer: sequence numbers in as they come, packets out in order.
//!
//! There are two orders. The [`classic`] one knows nothing but the numbers and their paths, holds a packet for a
//! configured time at the most, and infers a restart of the sender from its numbers: plain framing, and extended
//! framing where the operator configured a window or a maximum delay. The order by [`evidence`] knows each packet's
//! predecessor in its flow and the delays of the paths: extended framing.

mod arrived;
mod classic;
mod evidence;
mod history;

use std::time::Duration;

pub(crate) use arrived::{Accepted, After, Arrived};

use crate::config::{EVIDENCE_WINDOW, ReorderConfig};
use crate::id::PathId;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::{Drop, ReorderStats};
use crate::time::Instant;
use classic::ClassicOrder;
use evidence::EvidenceOrder;

const _: () = assert!(EVIDENCE_WINDOW <= history::LEN);

/// The order of one connection, at the receiver.
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    order: Order,
    restarts: Restarts,
}

/// How it is known that the peer's numbers begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restarts {
    /// By the numbers themselves, in plain framing.
    Inferred,
    /// A session begins with them.
    Told,
}

#[derive(Debug)]
enum Order {
    Classic(ClassicOrder),
    Evidence(EvidenceOrder),
}

impl Order {
    /// An order in which `next` is expected, if that is known.
    fn new(config: ReorderConfig, restarts: Restarts, next: Seq, stats: ReorderStats) -> Self {
        let next_told = (restarts == Restarts::Told).then_some(next);
        match by_evidence(&config) {
            true => Self::Evidence(EvidenceOrder::new(config, next, stats)),
            false => Self::Classic(ClassicOrder::new(config, next_told, stats)),
        }
    }
}

/// Without a window nothing is held, whatever is known.
fn by_evidence(config: &ReorderConfig) -> bool {
    config.evidence && config.window > 0
}

/// The same of either order.
macro_rules! of_either {
    ($buffer:expr, $order:ident => $what:expr) => {
        match &mut $buffer.order {
            Order::Classic($order) => $what,
            Order::Evidence($order) => $what,
        }
    };
    (ref $buffer:expr, $order:ident => $what:expr) => {
        match &$buffer.order {
            Order::Classic($order) => $what,
            Order::Evidence($order) => $what,
        }
    };
}

impl ReorderBuffer {
    /// A buffer into which nothing came yet, by no path.
    pub(crate) fn new(config: ReorderConfig) -> Self {
        let restarts = Restarts::Inferred;
        let order = Order::new(config, restarts, Seq::FIRST, ReorderStats::default());
        Self { order, restarts }
    }

    pub(crate) fn config(&self) -> &ReorderConfig {
        of_either!(ref self, order => order.config())
    }

    /// Bytes of memory apart from its own size, and from the packets that are held.
    pub(crate) fn memory(&self) -> usize {
        of_either!(ref self, order => order.memory())
    }

    /// Gives back memory that is needed while packets are held, if none is.
    pub(crate) fn shrink(&mut self) {
        of_either!(self, order => order.shrink());
    }

    /// The number expected next; `None` before the first one, unless it is known where a session begins.
    pub(crate) fn next(&self) -> Option<Seq> {
        of_either!(ref self, order => order.next())
    }

    /// Whether nothing that was sent after this number has come, or so lately that it may have overtaken it.
    pub(crate) fn is_timely(&self, now: Instant, seq: Seq) -> bool {
        match &self.order {
            Order::Classic(order) => order.next().is_none_or(|next| seq.offset_from(next) >= 0),
            Order::Evidence(order) => order.is_timely(now, seq),
        }
    }

    pub(crate) fn stats(&self) -> ReorderStats {
        of_either!(ref self, order => order.stats())
    }

    /// When a held packet will be delivered, if nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        of_either!(ref self, order => order.deadline())
    }

    /// A packet without a number: nothing can be said about its place.
    pub(crate) fn pass(&mut self, packet: &[u8], sink: &mut impl Sink) {
        of_either!(self, order => order.pass(packet, sink));
    }

    /// A packet with a number came.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        arrived: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        match &mut self.order {
            Order::Classic(order) => order.insert(now, arrived.path, arrived.seq, packet, sink),
            Order::Evidence(order) => order.insert(now, arrived, packet, sink),
        }
    }

    /// Other settings. What is held leaves if its window is another, its time is over by them, or another order
    /// begins.
    pub(crate) fn set_config(&mut self, now: Instant, config: ReorderConfig, sink: &mut impl Sink) {
        match &mut self.order {
            Order::Classic(order) if !by_evidence(&config) => order.set_config(now, config, sink),
            Order::Evidence(order) if by_evidence(&config) => order.set_config(now, config, sink),
            Order::Classic(_) | Order::Evidence(_) => {
                // Within a session the numbers go on.
                self.release_all(sink);
                self.replace(now, config, self.next().unwrap_or(Seq::FIRST), sink);
            }
        }
    }

    /// Goes on with an order in which nothing came yet.
    fn replace(&mut self, now: Instant, config: ReorderConfig, next: Seq, sink: &mut impl Sink) {
        self.release_all(sink);
        let (paths, live) = of_either!(self, order => (order.paths(), order.live()));
        let stats = ReorderStats { held: 0, ..self.stats() };
        self.order = Order::new(config, self.restarts, next, stats);
        (0..paths).for_each(|path| self.forget_path(PathId(path as u8)));
        self.set_live(now, live, sink);
    }

    /// The numbers begin anew, at [`Seq::FIRST`] if a session has begun or ended; what is held is delivered.
    pub(crate) fn restart(&mut self, now: Instant, restarts: Restarts, sink: &mut impl Sink) {
        self.restarts = restarts;
        self.replace(now, *self.config(), Seq::FIRST, sink);
    }

    /// A path is new, or gone: nothing has come by it.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        of_either!(self, order => order.forget_path(path));
    }

    /// Delivers everything that is held, and waits for nothing before it.
    pub(crate) fn release_all(&mut self, sink: &mut impl Sink) {
        of_either!(self, order => order.release_all(sink));
    }

    /// A beacon says that everything up to this number that was sent on a path has arrived, or is lost.
    pub(crate) fn covered(&mut self, now: Instant, path: PathId, seq: Seq, sink: &mut impl Sink) {
        if let Order::Evidence(order) = &mut self.order {
            order.covered(now, path, seq, sink);
        }
    }

    /// For how long a packet that came by a path is held before the gap ahead of it is given up, and the mean
    /// deviation of the delay of that path. The next [`deadline`](Self::deadline) follows it.
    pub(crate) fn set_wait(&mut self, path: PathId, wait: Duration, deviation: Duration) {
        if let Order::Evidence(order) = &mut self.order {
            order.set_wait(path, wait, deviation);
        }
    }

    /// How long a packet that all paths have passed is waited for, as it is sent again; zero if it is not.
    pub(crate) fn set_repair_wait(&mut self, now: Instant, wait: Duration) {
        if let Order::Evidence(order) = &mut self.order {
            order.repairs.set_wait(now, wait);
        }
    }

    /// How long what is on a path that may have fallen silent is waited for, as it is sent again by another one; zero if it is not.
    pub(crate) fn set_silence(&mut self, silence: Duration) {
        if let Order::Evidence(order) = &mut self.order {
            order.repairs.set_silence(silence);
        }
    }

    /// When packets have been held for as long as delays explain, or will have been, for what may be on paths that are silent: these,
    /// one bit each.
    pub(crate) fn silent_at(&self) -> Option<(Instant, u64)> {
        match &self.order {
            Order::Classic(_) => None,
            Order::Evidence(order) => order.silent_at(),
        }
    }

    /// How many packets came after they had been given up, without those that had been sent again.
    pub(crate) fn late_in_turn(&self) -> u64 {
        match &self.order {
            Order::Classic(order) => order.stats().late,
            Order::Evidence(order) => order.late_in_turn,
        }
    }

    /// So many datagrams have come by a path: its order is known after the first ones.
    pub(crate) fn set_received(&mut self, path: PathId, datagrams: u64) {
        if let Order::Evidence(order) = &mut self.order {
            order.set_received(path, datagrams);
        }
    }

    /// How long packets of a path may be overtaken by others on it, as far as that has shown: what the record of its
    /// path sequences should wait for too.
    pub(crate) fn margin(&self, path: PathId) -> Duration {
        match &self.order {
            Order::Classic(_) => Duration::ZERO,
            Order::Evidence(order) => order.margin(path),
        }
    }

    /// The peer announced a restart, in plain framing.
    pub(crate) fn on_restart_announced(&mut self) {
        if let Order::Classic(order) = &mut self.order {
            order.on_restart_announced();
        }
    }

    /// The peer may have restarted: it has sent a keepalive like that after a start.
    pub(crate) fn on_restart_possible(&mut self) {
        if let Order::Classic(order) = &mut self.order {
            order.on_restart_possible();
        }
    }

    /// The peer may send again what it sent before, in long rows: until then nothing follows from that.
    pub(crate) fn expect_copies(&mut self, until: Instant) {
        of_either!(self, order => order.expect_copies(until));
    }

    /// Other paths than before are live, one bit each.
    pub(crate) fn set_live(&mut self, now: Instant, live: u64, sink: &mut impl Sink) {
        match &mut self.order {
            Order::Classic(order) => order.set_live(live, sink),
            Order::Evidence(order) => order.set_live(now, live, sink),
        }
    }

    /// Gives up the gaps before packets that have been held for long enough.
    pub(crate) fn on_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        of_either!(self, order => order.on_timeout(now, sink));
    }
}

#[cfg(test)]
mod tests;
