//! A host that gets no processor for a while: what arrives waits, and is read in batches afterwards.

use std::collections::VecDeque;
use std::time::Duration;

use mpt_proto::{Instant, Origin};

/// Datagrams that are read at once (`mpt_io::udp::MAX_BATCH`).
const BATCH: usize = 64;

/// How many datagrams, and how many inner packets, can wait. A socket of the daemon has 4 MB.
const ROOM: usize = 2048;

/// What waits for a host, until when it does nothing.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) until: Instant,
    datagrams: VecDeque<(Instant, Origin, Vec<u8>)>,
    inner: VecDeque<Vec<u8>>,
}

impl Pause {
    pub(super) fn new(until: Instant) -> Self {
        Self { until, datagrams: VecDeque::new(), inner: VecDeque::new() }
    }

    /// Returns false if there is no room.
    pub(super) fn keep_datagram(&mut self, now: Instant, origin: Origin, datagram: &[u8]) -> bool {
        keep(&mut self.datagrams, (now, origin, datagram.to_vec()))
    }

    /// Returns false if there is no room.
    pub(super) fn keep_inner(&mut self, packet: &[u8]) -> bool {
        keep(&mut self.inner, packet.to_vec())
    }

    /// The next datagrams that are read at once, each with its origin and how long it has waited.
    pub(super) fn take_batch(&mut self, now: Instant) -> Vec<(Origin, Duration, Vec<u8>)> {
        let batch = self.datagrams.drain(..self.datagrams.len().min(BATCH));
        batch.map(|(at, origin, datagram)| (origin, now.since(at), datagram)).collect()
    }

    pub(super) fn take_inner(&mut self) -> Option<Vec<u8>> {
        self.inner.pop_front()
    }
}

fn keep<T>(waiting: &mut VecDeque<T>, item: T) -> bool {
    let fits = waiting.len() < ROOM;
    if fits {
        waiting.push_back(item);
    }
    fits
}
