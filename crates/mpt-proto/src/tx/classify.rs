//! What is done for packets because of the class of their flow: see [`class`](crate::class).

use std::ops::Deref;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use super::rates::least_round_trip;
use crate::class::{Class, FlowStats, RepairMode, Wanted};
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::slots::Slots;
use crate::time::Instant;
use crate::tx::repair::ClassStats;
use crate::wire::flow::Flow;
use crate::wire::inner;

/// Where less is lost nothing is sent twice because of it.
const CLEAN: f64 = 1e-3;

/// A loss is known so much later than a round trip after the packet was sent.
const KNOWN_AFTER: Duration = Duration::from_millis(10);

/// Longer packets do not take two paths, unless that is configured.
const LONGEST: usize = 600;

/// Parity covers no longer ones: it is up to 160 bytes longer than they, and every path carries inner packets of 1280 bytes.
const LONGEST_COVERED: usize = 1100;

/// What is done for a packet because of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Treated {
    pub(super) class: Class,
    /// It takes two paths at once, because of this.
    pub(super) takes_two: Option<RepairMode>,
    /// Parity covers it.
    pub(super) is_covered: bool,
    /// The paths that it may take, one bit each; `None` if it may take all.
    pub(super) allowed: Option<u64>,
}

impl TransmitHalf {
    /// A packet was offered.
    #[inline]
    pub(super) fn on_flow(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        flow: &impl Deref<Target = Flow>,
        hash: &impl Deref<Target = u64>,
    ) {
        let Some(paced) = &mut self.paced else { return };
        if paced.flows.samples(item.packet.len()) {
            paced.flows.on_packet(now, **hash, flow, item.inner.tos, item.packet.len());
        }
    }

    /// What is done for a packet because of its class; `None` if nothing is.
    #[inline]
    pub(super) fn treated(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        flow: &impl Deref<Target = Flow>,
        hash: &impl Deref<Target = u64>,
    ) -> Option<Treated> {
        if !self.repair.any_treated && !self.doubts.any(now) {
            return None;
        }
        self.treat(now, item, flow, **hash)
    }

    #[inline(never)]
    fn treat(&mut self, now: Instant, item: &Item<'_>, flow: &Flow, hash: u64) -> Option<Treated> {
        let paced = self.paced.as_ref()?;
        let (class, _) = paced.flows.class(&self.classes, hash, flow, item.inner.tos);
        let wanted = self.classes.wanted(class);
        let len = item.packet.len();
        let is_repaired = self.is_repaired();
        let in_doubt = is_repaired && self.doubts.any(now) && Self::minds_doubt(wanted);
        let is_protected = is_repaired && (in_doubt || self.protects(wanted));
        let by_parity = matches!(wanted.repair, RepairMode::Auto | RepairMode::Parity);
        let is_covered = is_protected
            && by_parity
            && !in_doubt
            && len <= LONGEST_COVERED
            && self.repair.has_parity()
            && self.repair.groups.is_worth(now);
        let takes_two = is_protected && (len <= LONGEST || wanted.repair == RepairMode::Duplicate);
        let takes_two = takes_two.then_some(wanted.repair);
        let allowed = self.allowed(class);
        let treated = Treated { class, takes_two, is_covered, allowed };
        (takes_two.is_some() || is_covered || allowed.is_some()).then_some(treated)
    }

    /// The paths that a class may take, one bit each; `None` if it may take all.
    pub(super) fn allowed(&self, class: Class) -> Option<u64> {
        allowed(&self.paths, class)
    }

    /// Whether something is done for packets of a class before they are lost.
    fn protects(&self, wanted: Wanted) -> bool {
        match wanted.repair {
            RepairMode::Duplicate => true,
            RepairMode::Auto => self.is_too_slow(wanted) && self.is_lossy(),
            RepairMode::Parity => self.is_lossy(),
            RepairMode::None | RepairMode::Retransmit => false,
        }
    }

    /// Whether a repair comes too late for a class.
    fn is_too_slow(&self, wanted: Wanted) -> bool {
        let round_trip = least_round_trip(&self.paths);
        wanted.deadline.is_some_and(|deadline| round_trip * 3 / 2 + KNOWN_AFTER > deadline)
    }

    /// Whether a path loses so much that something is done about it.
    pub(super) fn is_lossy_path(&self, path: PathId) -> bool {
        let path = self.paths.get(path.index());
        path.is_some_and(|path| path.feedback.loss_recent() > Some(CLEAN))
    }

    fn is_lossy(&self) -> bool {
        self.paths.iter().any(|(_, path)| path.feedback.loss_recent() > Some(CLEAN))
    }

    /// Something was told of the paths: whether anything is done for packets of any class before they are lost, and how
    /// much may be.
    pub(super) fn refresh_classes(&mut self) {
        let restricts = self.paths.iter().any(|(_, path)| path.refuses != 0);
        self.repair.any_treated =
            restricts || self.classes.all_wanted().any(|wanted| self.protects(wanted));
        for (_, path) in self.paths.iter_mut() {
            path.spare.set_loss(path.feedback.loss_recent().unwrap_or(0.0));
        }
    }

    /// The class of a packet that was sent.
    pub(super) fn class_of(&self, packet: &[u8]) -> Option<(Class, Wanted)> {
        let inner = inner::parse(packet)?;
        let flow = Flow::parse(packet, &inner);
        let (class, _) =
            self.paced.as_ref()?.flows.class(&self.classes, flow.hash(), &flow, inner.tos);
        Some((class, self.classes.wanted(class)))
    }

    /// Whether a lost packet is to be sent again, for its class, that was sent first so long ago.
    pub(super) fn is_worth(&self, wanted: Wanted, ago: Duration) -> bool {
        let arrives = ago + least_round_trip(&self.paths) / 2;
        wanted.repair != RepairMode::None
            && wanted.deadline.is_none_or(|deadline| !wanted.is_strict || arrives <= deadline)
    }

    /// What is counted of a class.
    pub(super) fn counts_of(&mut self, class: Class) -> &mut ClassStats {
        self.repair.class(self.classes.name(class))
    }

    /// What became of lost packets, by the names of their classes.
    pub fn class_stats(&self) -> impl Iterator<Item = (&str, ClassStats)> {
        self.repair.classes.iter().map(|(name, stats)| (&**name, *stats))
    }

    /// The flows of which packets were sent in the last seconds, the largest first, no more than `most`.
    pub fn flows(&self, now: Instant, within: Duration, most: usize) -> Vec<FlowStats> {
        let flows = self.paced.as_ref().map(|paced| &paced.flows);
        flows.map_or_else(Vec::new, |flows| flows.stats(now, &self.classes, within, most))
    }
}

/// The same of these paths.
pub(super) fn allowed(paths: &Slots<TransmitPath>, class: Class) -> Option<u64> {
    let Class::Configured(at) = class else { return None };
    let refuses = |path: &TransmitPath| path.refuses >> at & 1 != 0;
    if !paths.iter().any(|(_, path)| refuses(path)) {
        return None;
    }
    let allowed = paths.iter().filter(|(_, path)| !refuses(path));
    Some(allowed.fold(0, |bits, (index, _)| bits | 1 << index))
}
