//! Polling of carriers, more often than the kernel's notifications.
//!
//! The kernel rate-limits its notifications of lost carriers and may delay each by a second
//! (`net/core/link_watch.c`), unless the interface stands on another. A query gets the current
//! state at once. What an interface without a carrier is given meanwhile is lost in silence, so
//! those that carry packets are asked about every few milliseconds; where nothing is carried,
//! nothing can be lost. What is received counts too: the peer goes on sending until it is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mpt_io::netlink::{Link, Netlink};

/// Between two looks at interfaces that carry packets. A look costs some 10 µs for each.
const SOON: Duration = Duration::from_millis(5);

/// Between two looks at those that do not, to find out whether they still do not.
const LATER: Duration = Duration::from_secs(1);

/// Packets per second from which on an interface is taken to carry packets, and not only a few
/// keepalives.
const BUSY: f64 = 50.0;

/// For so long packets are counted at least before that is judged: TCP pauses between its bursts.
const WINDOW: Duration = Duration::from_millis(200);

/// The interfaces that are looked at.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    /// By number, with the packets that they had carried when the counting began.
    watched: BTreeMap<u32, Option<u64>>,
    looked: Option<Instant>,
    /// When they were last found as they were known to be.
    well: Option<Instant>,
    counting: Option<Instant>,
    busy: bool,
}

impl Carriers {
    /// Paths leave through this interface.
    pub(super) fn watch(&mut self, index: u32) {
        self.watched.entry(index).or_default();
    }

    /// An interface is gone.
    pub(super) fn forget(&mut self, index: u32) {
        self.watched.remove(&index);
    }

    /// When to look next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let last = self.looked.filter(|_| !self.watched.is_empty())?;
        Some(last + if self.busy { SOON } else { LATER })
    }

    /// When all of them were last found to be as they were known to be, if ever.
    pub(super) fn last_well(&self) -> Option<Instant> {
        self.well
    }

    /// Looks, if it is time to. Returns the interfaces that are not in the state that `known` says.
    pub(super) fn look(
        &mut self,
        now: Instant,
        netlink: &mut Netlink,
        known: &BTreeMap<u32, Link>,
    ) -> Vec<Link> {
        if self.deadline().is_some_and(|at| now < at) || self.watched.is_empty() {
            return Vec::new();
        }
        self.looked = Some(now);
        let counted = now.saturating_duration_since(*self.counting.get_or_insert(now));
        let judge = counted >= WINDOW;
        let mut busy = false;
        let mut changed = Vec::new();
        for (index, carried) in &mut self.watched {
            let Some(before) = known.get(index) else { continue };
            // A notification reports soon enough what was removed or renamed since.
            let Ok(Some(link)) = netlink.link(&before.name) else { continue };
            if link.index != *index {
                continue;
            }
            let so_far = link.tx_packets.saturating_add(link.rx_packets);
            let packets = so_far.saturating_sub(*carried.get_or_insert(so_far));
            busy |= packets as f64 >= BUSY * counted.as_secs_f64();
            if judge {
                *carried = Some(so_far);
            }
            let state = |link: &Link| (link.up, link.carrier, link.running);
            if state(&link) != state(before) {
                changed.push(link);
            }
        }
        if changed.is_empty() {
            self.well = Some(now);
        }
        if judge {
            (self.busy, self.counting) = (busy, Some(now));
        }
        changed
    }
}
