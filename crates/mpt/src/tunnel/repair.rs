//! What became of packets that paths have lost, in the words of the control socket.

use std::net::SocketAddr;

use mpt_control::{
    ClassCounters, CopyCounters, FlowExplanation, RepairExplanation, RepairStatus, StoreStatus,
};
use mpt_proto::wire::flow::Flow;
use mpt_proto::{
    Beyond, ClassStats, CopyStats, FlowStats, Instant, ReorderStats, RepairStats, StoreStats,
    TransmitHalf, Why,
};

use super::history::{SPAN, Sent};

/// So many flows are explained.
const FLOWS: usize = 8;

/// What was counted of a connection since it began; `None` where nothing is known of what arrives.
pub(super) fn repair(half: &TransmitHalf) -> Option<RepairStatus> {
    let (stats, beyond) = (half.repair_stats(), half.beyond());
    let was_ever = stats != RepairStats::default();
    (half.has_session() || was_ever).then(|| {
        let Beyond { headers, copies, control } = beyond;
        RepairStatus {
            active: half.is_repaired(),
            lost: stats.lost,
            too_late: stats.too_late,
            repaired: counters(stats.repaired),
            doubled: stats.doubled,
            early: stats.early,
            needless: stats.needless,
            moved: counters(stats.moved),
            duplicated: counters(stats.duplicated),
            parity: counters(stats.parity),
            leaves: stats.leaves,
            returns: stats.returns,
            header_bytes: headers,
            copy_bytes: copies,
            control_bytes: control,
            beyond: share(headers + copies + control, half.stats().sent.bytes),
        }
    })
}

/// What was counted between the first and the last of these counts.
pub(super) fn explain_repair([past, present]: [&Sent; 2]) -> RepairExplanation {
    let ([before, now], [spent, spends]) =
        ([past.repair, present.repair], [past.beyond, present.beyond]);
    let further = spends.copies - spent.copies + spends.control - spent.control;
    RepairExplanation {
        lost: now.lost - before.lost,
        too_late: now.too_late - before.too_late,
        repaired: difference(now.repaired, before.repaired),
        needless: now.needless - before.needless,
        moved: difference(now.moved, before.moved),
        duplicated: difference(now.duplicated, before.duplicated),
        parity: difference(now.parity, before.parity),
        leaves: now.leaves - before.leaves,
        beyond: share(further, present.sent.bytes - past.sent.bytes),
    }
}

/// What was counted of each class.
pub(super) fn classes(half: &TransmitHalf) -> Vec<ClassCounters> {
    let told = |(name, stats): (&str, ClassStats)| {
        let ClassStats { lost, repaired, duplicated, covered, given_up } = stats;
        ClassCounters { name: name.to_owned(), lost, repaired, duplicated, covered, given_up }
    };
    let mut classes: Vec<_> = half.class_stats().map(told).collect();
    classes.sort_by(|one, other| one.name.cmp(&other.name));
    classes
}

/// The flows of which most was sent lately, and why they are of their classes.
pub(super) fn explain_flows(now: Instant, half: &TransmitHalf) -> Vec<FlowExplanation> {
    half.flows(now, SPAN, FLOWS).iter().map(explain_flow).collect()
}

fn explain_flow(stats: &FlowStats) -> FlowExplanation {
    let (why, value) = match stats.why {
        Why::Configured => ("configured", None),
        Why::Dscp(dscp) => ("dscp", Some(u64::from(dscp))),
        Why::Port(port) => ("port", Some(u64::from(port))),
        Why::Steady => ("steady", None),
        Why::Little => ("little", None),
        Why::Much => ("much", None),
    };
    let Flow { source, destination, protocol, ports } = stats.flow;
    let name = match protocol {
        Flow::TCP => "tcp".to_owned(),
        Flow::UDP => "udp".to_owned(),
        other => format!("protocol {other}"),
    };
    let ends = match ports {
        Some(ports) => [(source, ports.source), (destination, ports.destination)]
            .map(|(address, port)| SocketAddr::new(address, port).to_string()),
        None => [source, destination].map(|address| address.to_string()),
    };
    let [source, destination] = ends;
    FlowExplanation {
        flow: format!("{name} {source} -> {destination}"),
        class: stats.class.clone(),
        why: why.to_owned(),
        value,
        bytes: stats.bytes,
    }
}

/// What is kept of what was sent, and its bounds.
pub(super) fn store(stats: StoreStats) -> StoreStatus {
    let StoreStats { packets, bytes, forgotten } = stats;
    StoreStatus {
        packets,
        bytes,
        forgotten,
        most_packets: StoreStats::MOST_PACKETS as u64,
        most_bytes: StoreStats::MOST_BYTES as u64,
        most_bytes_per_second: StoreStats::MOST_BYTES_PER_SECOND as u64,
    }
}

/// The share of numbers that did not come at all.
pub(super) fn residual_loss(stats: &ReorderStats) -> Option<f64> {
    let given_up = stats.lost_early_release + stats.lost_max_delay + stats.lost_window;
    let lost = given_up.saturating_sub(stats.late);
    let came = stats.in_order + stats.reordered + stats.late;
    (came > 0).then(|| lost as f64 / (lost + came) as f64)
}

/// How many packets were held for how long; empty if none was.
pub(super) fn hold_times(stats: &ReorderStats) -> Vec<u64> {
    let counts = stats.hold_times.counts();
    let any = counts.iter().any(|count| *count > 0);
    if any { counts.to_vec() } else { Vec::new() }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn counters(stats: CopyStats) -> CopyCounters {
    let CopyStats { tried, saved, in_vain, refused, bytes } = stats;
    CopyCounters { tried, saved, in_vain, refused, bytes }
}

fn difference(present: CopyStats, past: CopyStats) -> CopyCounters {
    CopyCounters {
        tried: present.tried - past.tried,
        saved: present.saved - past.saved,
        in_vain: present.in_vain - past.in_vain,
        refused: present.refused - past.refused,
        bytes: present.bytes - past.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_told_with_its_class_and_what_decides() {
        let flow = Flow {
            source: "fd00:9::1".parse().unwrap(),
            destination: "fd00:9::2".parse().unwrap(),
            protocol: Flow::UDP,
            ports: Some(mpt_proto::wire::flow::Ports { source: 4000, destination: 3478 }),
        };
        let stats = |why| FlowStats {
            flow,
            class: "realtime".into(),
            why,
            bytes: 7,
            idle: std::time::Duration::ZERO,
        };
        let told = explain_flow(&stats(Why::Port(3478)));
        assert_eq!(told.flow, "udp [fd00:9::1]:4000 -> [fd00:9::2]:3478");
        assert_eq!((told.why.as_str(), told.value, told.bytes), ("port", Some(3478), 7));
        assert_eq!(explain_flow(&stats(Why::Steady)).why, "steady");
    }

    #[test]
    fn what_came_late_was_not_lost() {
        let stats = ReorderStats {
            in_order: 900,
            reordered: 88,
            late: 2,
            lost_early_release: 10,
            lost_max_delay: 2,
            ..ReorderStats::default()
        };
        assert_eq!(residual_loss(&stats), Some(0.01));
        assert_eq!(residual_loss(&ReorderStats::default()), None);
    }

    #[test]
    fn counts_are_about_the_time_between() {
        let of = |times: u64| CopyStats {
            tried: 10 * times,
            saved: 8 * times,
            in_vain: times,
            refused: 2 * times,
            bytes: 14_000 * times,
        };
        let sent = |times: u64| Sent {
            sent: mpt_proto::Traffic { packets: 100 * times, bytes: 100_000 * times },
            repair: RepairStats {
                lost: 13 * times,
                too_late: times,
                repaired: of(times),
                needless: 2 * times,
                leaves: times,
                ..RepairStats::default()
            },
            beyond: Beyond { headers: 5000 * times, copies: 14_000 * times, control: 1000 * times },
            ..Sent::default()
        };
        let explained = explain_repair([&sent(3), &sent(4)]);
        assert_eq!(explained.repaired, counters(of(1)));
        assert_eq!((explained.lost, explained.too_late, explained.leaves), (13, 1, 1));
        assert_eq!(explained.needless, 2);
        assert_eq!(explained.beyond, Some(0.15));
        assert_eq!(explain_repair([&sent(4), &sent(4)]).beyond, None);
    }
}
