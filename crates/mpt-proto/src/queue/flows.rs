//! The queue of each flow: where it is.

use std::collections::VecDeque;
use std::time::Duration;

use super::codel::Codel;
use super::services::Services;
use super::sparse::{Allowance, Beginning, Volume};
use super::store::Place;
use crate::time::Instant;

/// Queues, in sets of which each flow has one by its hash. In a set a flow takes the queue that has been idle for longest.
const SETS: usize = 32;
const IN_A_SET: usize = 8;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) place: Place,
    pub(crate) len: u32,
    pub(crate) tos: u8,
    pub(crate) volume: Volume,
    pub(super) since: Instant,
}

impl Waiting {
    /// For how long it has waited.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.since(self.since)
    }

    /// The same packet with another type of service.
    pub(crate) fn with_tos(self, tos: u8) -> Self {
        Self { tos, ..self }
    }
}

/// What waits of one flow, and what is known of it. Where all of a set have something waiting, more flows share them.
#[derive(Debug, Default)]
pub(super) struct FlowQueue {
    pub(super) packets: VecDeque<Waiting>,
    pub(super) bytes: usize,
    /// Whether what waits counts as TCP.
    pub(super) is_tcp: bool,
    pub(super) deficit: i32,
    /// Whether it is in the list of those that have their turn.
    pub(super) listed: bool,
    pub(super) codel: Codel,
    pub(super) allowance: Allowance,
    pub(super) beginning: Beginning,
    /// When it was last asked for.
    last: Instant,
    /// Whether flows of which something waits share it.
    is_shared: bool,
}

/// All queues of a connection.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The hashes of the flows that the queues in the same places are of.
    hashes: Vec<u64>,
    queues: Vec<FlowQueue>,
}

impl Flows {
    /// The queue of the flow with this hash, and its place.
    pub(super) fn of(
        &mut self,
        now: Instant,
        hash: u64,
        services: &mut Services,
    ) -> (u16, &mut FlowQueue) {
        if self.queues.is_empty() {
            self.hashes.resize(SETS * IN_A_SET, 0);
            self.queues.resize_with(SETS * IN_A_SET, FlowQueue::default);
        }
        let first = hash as usize % SETS * IN_A_SET;
        let set = &self.hashes[first..first + IN_A_SET];
        let place = match set.iter().position(|known| *known == hash) {
            Some(at) => first + at,
            None => self.place(first, hash, services),
        };
        let queue = &mut self.queues[place];
        queue.last = now;
        queue.is_shared &= !queue.packets.is_empty();
        (place as u16, queue)
    }

    /// A place for a flow that has none of its own in the set that begins here.
    #[cold]
    fn place(&mut self, first: usize, hash: u64, services: &mut Services) -> usize {
        let shared = first + hash as usize / SETS % IN_A_SET;
        let is_shared = |queue: &FlowQueue| queue.is_shared && !queue.packets.is_empty();
        let idle = (first..first + IN_A_SET).filter(|place| self.queues[*place].packets.is_empty());
        let order = |place: &usize| (self.queues[*place].listed, self.queues[*place].last);
        // While a packet of the flow may wait in the queue that it shares, another one must not overtake it.
        let Some(place) = idle.min_by_key(order).filter(|_| !is_shared(&self.queues[shared]))
        else {
            self.queues[shared].is_shared = true;
            return shared;
        };
        let queue = &mut self.queues[place];
        queue.beginning.on_judged(services, false);
        let packets = std::mem::take(&mut queue.packets);
        let (listed, deficit) = (queue.listed, queue.deficit);
        *queue = FlowQueue { packets, listed, deficit, ..FlowQueue::default() };
        self.hashes[place] = hash;
        place
    }

    pub(super) fn at(&mut self, place: u16) -> &mut FlowQueue {
        &mut self.queues[usize::from(place)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FlowQueue> {
        self.queues.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut FlowQueue> {
        self.queues.iter_mut()
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        let packets: usize = self.queues.iter().map(|queue| queue.packets.capacity()).sum();
        self.hashes.capacity() * size_of::<u64>()
            + self.queues.capacity() * size_of::<FlowQueue>()
            + packets * size_of::<Waiting>()
    }
}
