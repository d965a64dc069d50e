//! Packets that paths lost, as metrics.

use mpt_control::{ClassCounters, ReorderStatus, RepairStatus, StoreStatus};
use prometheus_client::registry::Unit;

use super::family::{Families, Labels};
use super::page::with;
use crate::output::HOLD_BOUNDS_MS;

/// What was sent more than once by a connection, and what is sent beyond inner packets.
pub(super) fn repair(page: &mut Families, labels: &Labels, repair: &RepairStatus) {
    let help = "Whether losses are repaired: both hosts do so, in a session.";
    let active = if repair.active { 1.0 } else { 0.0 };
    page.gauge("mpt_connection_repair_active", None, help, labels.clone(), active);
    for (name, help, count) in [
        (
            "lost_packets",
            "Packets that were found to be lost on their way to the peer.",
            repair.lost,
        ),
        (
            "overdue_packets",
            "Lost packets not sent again because it would have been too late.",
            repair.too_late,
        ),
        ("doubled_packets", "Repairs that took two paths at once.", repair.doubled),
        (
            "early_packets",
            "Packets sent again before it was certain that they were lost.",
            repair.early,
        ),
        ("needless_packets", "Those of them that were only late.", repair.needless),
        ("paths_left", "How often a path was left because it was silent.", repair.leaves),
        ("paths_returned", "How often one that was left was used again.", repair.returns),
    ] {
        let name = format!("mpt_connection_repair_{name}");
        page.counter(name, None, help, labels.clone(), count);
    }
    for (kind, copies) in [
        ("repaired", &repair.repaired),
        ("moved", &repair.moved),
        ("duplicated", &repair.duplicated),
        ("parity", &repair.parity),
    ] {
        let labels = with(labels, "kind", kind.to_owned());
        for (outcome, count) in [
            ("tried", copies.tried),
            ("saved", copies.saved),
            ("in_vain", copies.in_vain),
            ("refused", copies.refused),
        ] {
            let help = "Packets sent more than once, by reason and by what came of it.";
            let labels = with(&labels, "outcome", outcome.to_owned());
            page.counter("mpt_connection_copies_packets", None, help, labels, count);
        }
        let help = "Bytes of IP packets sent for packets sent more than once, by reason.";
        page.counter("mpt_connection_copies", Some(Unit::Bytes), help, labels, copies.bytes);
    }
    for (part, bytes) in [
        ("headers", repair.header_bytes),
        ("copies", repair.copy_bytes),
        ("control", repair.control_bytes),
    ] {
        let help = "Bytes of IP packets sent beyond inner packets, by part.";
        let labels = with(labels, "part", part.to_owned());
        page.counter("mpt_connection_beyond", Some(Unit::Bytes), help, labels, bytes);
    }
}

/// What became of lost packets of each class.
pub(super) fn classes(page: &mut Families, labels: &Labels, classes: &[ClassCounters]) {
    for class in classes {
        let labels = with(labels, "class", class.name.clone());
        for (outcome, count) in [
            ("lost", class.lost),
            ("repaired", class.repaired),
            ("duplicated", class.duplicated),
            ("covered", class.covered),
            ("given_up", class.given_up),
        ] {
            let help = "Packets of a class that were lost, and what was done about loss.";
            let labels = with(&labels, "outcome", outcome.to_owned());
            page.counter("mpt_connection_class_packets", None, help, labels, count);
        }
    }
}

/// For how long packets from the peer were held, and what did not come.
pub(super) fn order(page: &mut Families, labels: &Labels, reorder: &ReorderStatus) {
    if let Some(loss) = reorder.residual_loss {
        let help = "Share of the peer's packets that did not come at all, after repair.";
        page.gauge("mpt_connection_residual_loss_ratio", None, help, labels.clone(), loss);
    }
    let bounds = HOLD_BOUNDS_MS.iter().map(|bound| format!("{}", f64::from(*bound) / 1e3));
    let mut held = 0;
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&reorder.hold_times) {
        held += count;
        let help =
            "Packets that were held for so many seconds at the most, to wait for earlier ones.";
        page.counter(
            "mpt_connection_held_packets",
            None,
            help,
            with(labels, "within", bound),
            held,
        );
    }
}

/// What is kept of what was sent.
pub(super) fn store(page: &mut Families, labels: &Labels, store: &StoreStatus) {
    for (what, packets, bytes) in
        [("present", store.packets, store.bytes), ("most", store.most_packets, store.most_bytes)]
    {
        let labels = with(labels, "value", what.to_owned());
        let help = "Packets kept until they are acknowledged, and the most that are.";
        page.gauge("mpt_tunnel_store_packets", None, help, labels.clone(), packets as f64);
        let help = "Bytes of packets kept until they are acknowledged, and the most that are.";
        page.gauge("mpt_tunnel_store", Some(Unit::Bytes), help, labels, bytes as f64);
    }
    let help = "Packets not kept until they were acknowledged, because of a bound.";
    let forgotten = store.forgotten;
    page.counter("mpt_tunnel_store_forgotten_packets", None, help, labels.clone(), forgotten);
}
