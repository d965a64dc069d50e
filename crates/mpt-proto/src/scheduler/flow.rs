//! Flow mapping: all packets of a flow take one path.
//!
//! A packet of a pinned port takes the path it is pinned to. Any other falls into one of 4,096
//! buckets by the hash of its flow, and every bucket has a path, found by weighted rendezvous
//! hashing (Thaler, Ravishankar: Using Name-Based Mappings to Increase Hit Rates, IEEE/ACM
//! Transactions on Networking 6(1), 1998): bucket and path together give a number, and the path
//! with the best number gets the bucket. The number of a path is independent of other paths. So
//! when a path is removed only its own buckets move; when it comes back it gets exactly these back;
//! and when its weight changes buckets only move to it, or only from it.
//!
//! That the shares follow the weights is the exponential distribution's doing: of independent
//! waiting times with rates *w* the shortest belongs to a path with the probability *w* / Σ*w*. Each
//! path draws one, -ln *u* / *w* for *u* evenly spread over 0 to 1.
//!
//! The table is made when it is first needed after a change, so that sixty-four paths that come up
//! one after the other, or a thousand idle connections, cost nothing.

use crate::framing::datagram::Item;
use crate::hash::mix;
use crate::id::MAX_PATHS;
use crate::id::PathId;
use crate::pins::Pins;
use crate::scheduler::share::Share;
use crate::wire::flow::Flow;

/// How many buckets. A path's number of them varies by about its square root, as if they were drawn
/// by lot: of 4,096 a half is 2,048 ± 32 and a twelfth 341 ± 18. One byte each, and 15 µs of
/// computing per path and change.
const BUCKETS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct FlowMapping {
    /// The paths that share what is not pinned, with their weights.
    sharing: Vec<(PathId, u16)>,
    /// The paths to which something is pinned, least number first.
    pinned: Vec<(PathId, Pins)>,
    /// The path of each bucket; empty if it has not been needed since the paths changed.
    table: Vec<PathId>,
}

impl FlowMapping {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.sharing.capacity() * size_of::<(PathId, u16)>()
            + self.pinned.capacity() * size_of::<(PathId, Pins)>()
            + self.table.capacity() * size_of::<PathId>()
    }

    /// `usable` paths may take what is pinned to them, those of the best tier share the rest.
    pub(crate) fn set_paths<'p>(
        &mut self,
        usable: impl Iterator<Item = Share<'p>>,
        best_tier: impl Iterator<Item = Share<'p>>,
    ) {
        self.pinned.clear();
        let pinned = usable.filter(|share| !share.pins.is_empty());
        self.pinned.extend(pinned.map(|share| (share.path, share.pins.clone())));
        self.pinned.sort_by_key(|(path, _)| *path);
        let sharing: Vec<_> = best_tier.map(|share| (share.path, share.weight)).collect();
        if sharing != self.sharing {
            self.sharing = sharing;
            self.table.clear();
        }
    }

    /// The path for an inner packet. Cold, so that the compiler saves registers around this call only and
    /// not for each packet of the other policies.
    #[cold]
    pub(crate) fn select(&mut self, item: &Item<'_>) -> Option<PathId> {
        if let ([], [(path, _)]) = (&self.pinned[..], &self.sharing[..]) {
            return Some(*path);
        }
        let flow = Flow::parse(item.packet, item.inner);
        match self.pinned.iter().find(|(_, pins)| pins.holds(&flow)) {
            Some((path, _)) => Some(*path),
            None => self.select_by_hash(flow.hash()),
        }
    }

    fn select_by_hash(&mut self, hash: u64) -> Option<PathId> {
        if self.table.is_empty() {
            let paths = &self.sharing;
            self.table.extend((0..BUCKETS as u64).map_while(|bucket| winner(bucket, paths)));
        }
        self.table.get(hash as usize % BUCKETS).copied()
    }
}

/// The path that has a bucket; `None` only if there are no paths.
fn winner(bucket: u64, paths: &[(PathId, u16)]) -> Option<PathId> {
    let waiting = |(path, weight): &(PathId, u16)| {
        let number = mix(bucket * MAX_PATHS as u64 + u64::from(path.0));
        // The upper 53 bits, as many as the fraction of a double has; never 0.
        let evenly_spread = ((number >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -evenly_spread.ln() / f64::from(*weight)
    };
    let times = paths.iter().map(|share| (share.0, waiting(share)));
    times.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(path, _)| path)
}

#[cfg(test)]
mod tests;
