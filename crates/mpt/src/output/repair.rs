//! What became of packets that paths have lost, for people.

use mpt_control::{
    ClassCounters, CopyCounters, FlowExplanation, ReorderStatus, RepairExplanation, RepairStatus,
    StoreStatus,
};

use super::quantity::{bytes, count, ms, percent};

/// Up to how many milliseconds packets of each entry but the last of [`ReorderStatus::hold_times`] were held.
pub(crate) const HOLD_BOUNDS_MS: [u16; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/// What is more than this share of the inner packets tells only that hardly any were sent.
const MOST: f64 = 1.0;

/// Of fewer bytes of inner packets nothing is a ratio: an idle connection sends its keepalives and little else.
const ENOUGH: f64 = 1e6;

/// What the status says of a connection that repairs; nothing of what is zero.
pub(super) fn connection(repair: &RepairStatus) -> Vec<String> {
    let mut lines = Vec::new();
    let mut facts = Vec::new();
    facts.extend((repair.lost > 0).then(|| format!("lost {}", repair.lost)));
    facts.extend(copies("sent again", &repair.repaired));
    facts.extend((repair.doubled > 0).then(|| format!("on two paths {}", repair.doubled)));
    facts.extend(
        (repair.early > 0)
            .then(|| format!("early {} (needless {})", repair.early, repair.needless)),
    );
    facts.extend((repair.too_late > 0).then(|| format!("too late {}", repair.too_late)));
    facts.extend(copies("moved", &repair.moved));
    facts.extend(copies("duplicated", &repair.duplicated));
    facts.extend(copies("parities", &repair.parity));
    let left = (repair.leaves > 0)
        .then(|| format!("paths left {}, used again {}", repair.leaves, repair.returns));
    facts.extend(left);
    if !facts.is_empty() {
        lines.push(format!("repair: {}", facts.join(", ")));
    }
    if let Some(beyond) = repair.beyond {
        let all = [repair.header_bytes, repair.copy_bytes, repair.control_bytes];
        let sum = all.iter().sum::<u64>();
        let is_ratio = beyond <= MOST && sum as f64 >= beyond * ENOUGH;
        let part = |part: u64| match is_ratio {
            true => percent(beyond * part as f64 / sum.max(1) as f64),
            false => bytes(part),
        };
        let ([headers, copies, control], total) = (all.map(part), part(sum));
        let unit = if is_ratio { " %" } else { "" };
        lines.push(format!(
            "beyond inner packets: {total}{unit} (headers {headers}, copies {copies}, control {control})"
        ));
    }
    lines
}

/// What the status says of the classes of a connection.
pub(super) fn classes(classes: &[ClassCounters]) -> Option<String> {
    let class = |class: &ClassCounters| {
        let facts = [
            ("lost", class.lost),
            ("sent again", class.repaired),
            ("duplicated", class.duplicated),
            ("covered by parity", class.covered),
            ("given up", class.given_up),
        ];
        let facts: Vec<String> = facts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        (!facts.is_empty()).then(|| format!("{} {}", class.name, facts.join(", ")))
    };
    let all: Vec<String> = classes.iter().filter_map(class).collect();
    (!all.is_empty()).then(|| format!("classes: {}", all.join("; ")))
}

/// Why a flow is of its class.
pub(super) fn flow(it: &FlowExplanation) -> String {
    let value = it.value.unwrap_or_default();
    let why = match it.why.as_str() {
        "configured" => "it is configured so".to_owned(),
        "dscp" => format!("its packets have DSCP {value}"),
        "port" => format!("it is of port {value}"),
        "steady" => "it sends small packets at a steady pace".to_owned(),
        "little" => "it sends little".to_owned(),
        "much" => "it sends much".to_owned(),
        other => other.to_owned(),
    };
    format!("{}, {}: {}, because {why}.", it.flow, bytes(it.bytes), it.class)
}

/// `moved 12 (saved 10, in vain 1)`.
fn copies(what: &str, copies: &CopyCounters) -> Option<String> {
    let CopyCounters { tried, saved, in_vain, refused, .. } = *copies;
    let facts = [("saved", saved), ("in vain", in_vain), ("refused", refused)];
    let facts: Vec<String> = facts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    match facts.as_slice() {
        [] if tried == 0 => None,
        [] => Some(format!("{what} {tried}")),
        facts => Some(format!("{what} {tried} ({})", facts.join(", "))),
    }
}

/// For how long packets were held, and what was lost for good.
pub(super) fn order(reorder: &ReorderStatus) -> Vec<String> {
    let mut lines = Vec::new();
    let held: u64 = reorder.hold_times.iter().sum();
    if held > 0 {
        let bounds = HOLD_BOUNDS_MS.iter().map(|bound| format!("up to {bound} ms"));
        let bounds = bounds.chain(["longer".to_owned()]);
        let times = bounds.zip(&reorder.hold_times).filter(|(_, count)| **count > 0);
        let times: Vec<String> = times.map(|(bound, count)| format!("{bound} {count}")).collect();
        let mean = ms(reorder.hold_seconds * 1e3 / held as f64);
        lines.push(format!("held: {mean} ms on average, {}", times.join(", ")));
    }
    if let Some(loss) = reorder.residual_loss.filter(|loss| *loss > 0.0) {
        lines.push(format!("loss from the peer after repair: {} %", percent(loss)));
    }
    lines
}

/// What is kept of what was sent; nothing if nothing ever was.
pub(super) fn store(store: &StoreStatus) -> Option<String> {
    if store.packets == 0 && store.forgotten == 0 {
        return None;
    }
    let StoreStatus { packets, most_packets, most_bytes, forgotten, .. } = *store;
    let forgotten = if forgotten == 0 { String::new() } else { format!(", forgotten {forgotten}") };
    let (kept, most) = (bytes(store.bytes), bytes(most_bytes));
    Some(format!(
        "not acknowledged: {packets} of {most_packets} packets, {kept} of {most}{forgotten}"
    ))
}

/// What an explanation says of it.
pub(super) fn sentences(repair: &RepairExplanation) -> Vec<String> {
    let mut sentences = Vec::new();
    if repair.lost > 0 {
        let CopyCounters { tried, saved, in_vain, refused, .. } = repair.repaired;
        let lost = tried.saturating_sub(repair.needless);
        let mut facts = vec![format!("{lost} were sent again")];
        let saved = saved.saturating_sub(repair.needless);
        facts.extend((saved > 0).then(|| format!("{saved} arrived by that")));
        facts.extend((in_vain > 0).then(|| format!("{in_vain} were lost once more")));
        facts.extend(
            (repair.too_late > 0).then(|| format!("for {} it was too late", repair.too_late)),
        );
        facts.extend(
            (refused > 0)
                .then(|| format!("for {refused} it would have taken more bytes than it may")),
        );
        sentences.push(format!(
            "Of {} that the paths lost {}.",
            count(repair.lost, "packet"),
            facts.join(", ")
        ));
    }
    if repair.needless > 0 {
        let packets = count(repair.needless, "packet");
        sentences.push(format!("{packets} sent again as they seemed to be lost came late."));
    }
    if repair.duplicated.tried > 0 {
        let CopyCounters { tried, saved, .. } = repair.duplicated;
        sentences.push(format!(
            "{} that begin or end a flow, or ask for a name, took two paths at once; of {saved} of them one copy was lost.",
            count(tried, "packet")
        ));
    }
    if repair.parity.tried > 0 {
        let CopyCounters { tried, saved, refused, .. } = repair.parity;
        let refused = match refused {
            0 => String::new(),
            count => format!(" {count} more would have taken more bytes than they may."),
        };
        sentences.push(format!(
            "{} went by other paths than the packets that they cover; by them the peer has brought back {}.{refused}",
            match tried {
                1 => "1 parity".to_owned(),
                tried => format!("{tried} parities"),
            },
            count(saved, "packet")
        ));
    }
    if repair.leaves > 0 {
        let times = if repair.leaves == 1 { "once" } else { &format!("{} times", repair.leaves) };
        sentences.push(format!(
            "A path was left {times} because it was silent, and {} that were on their way by it were sent again by the \
             others.",
            count(repair.moved.tried, "packet")
        ));
    }
    if let Some(beyond) = repair.beyond.filter(|beyond| (0.01..=MOST).contains(beyond)) {
        sentences.push(format!(
            "Copies and messages of the tunnel took {} % of the bytes of inner packets.",
            percent(beyond)
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_told_with_what_was_done_and_flows_with_the_reason() {
        let class = |name: &str, lost| ClassCounters {
            name: name.into(),
            lost,
            repaired: lost / 2,
            ..ClassCounters::default()
        };
        assert_eq!(
            classes(&[class("bulk", 4), class("realtime", 1), class("interactive", 0)]).as_deref(),
            Some("classes: bulk lost 4, sent again 2; realtime lost 1")
        );
        assert_eq!(classes(&[class("bulk", 0)]), None);
        let mut it = FlowExplanation {
            flow: "udp 10.9.0.1:4000 -> 10.9.0.2:5004".into(),
            class: "realtime".into(),
            why: "dscp".into(),
            value: Some(46),
            bytes: 48_000,
        };
        assert_eq!(
            flow(&it),
            "udp 10.9.0.1:4000 -> 10.9.0.2:5004, 48.0 kB: realtime, because its packets have DSCP 46."
        );
        it.why = "steady".into();
        assert!(flow(&it).ends_with("because it sends small packets at a steady pace."));
    }

    #[test]
    fn what_is_zero_is_left_out() {
        assert_eq!(connection(&RepairStatus::default()), Vec::<String>::new());
        assert_eq!(order(&ReorderStatus::default()), Vec::<String>::new());
        assert_eq!(store(&StoreStatus::default()), None);
        assert_eq!(sentences(&RepairExplanation::default()), Vec::<String>::new());
    }

    #[test]
    fn what_was_done_is_said_with_what_came_of_it() {
        let copies = CopyCounters { tried: 20, saved: 18, in_vain: 1, refused: 3, bytes: 28_000 };
        let repair = RepairStatus {
            lost: 24,
            too_late: 1,
            repaired: copies,
            doubled: 2,
            early: 15,
            needless: 5,
            moved: CopyCounters { tried: 7, ..CopyCounters::default() },
            duplicated: CopyCounters { tried: 9, saved: 1, in_vain: 8, ..CopyCounters::default() },
            parity: CopyCounters { tried: 5, saved: 2, ..CopyCounters::default() },
            leaves: 1,
            header_bytes: 30_000,
            copy_bytes: 5000,
            control_bytes: 5000,
            beyond: Some(0.04),
            ..RepairStatus::default()
        };
        assert_eq!(
            connection(&repair),
            [
                "repair: lost 24, sent again 20 (saved 18, in vain 1, refused 3), on two paths 2, early 15 (needless 5), too late 1, moved 7, \
                 duplicated 9 (saved 1, in vain 8), parities 5 (saved 2), paths left 1, used again 0",
                "beyond inner packets: 4.00 % (headers 3.00, copies 0.50, control 0.50)",
            ]
        );
        // Shortly after the start hardly anything was sent.
        let early = RepairStatus {
            header_bytes: 250,
            copy_bytes: 90_000,
            control_bytes: 5020,
            beyond: Some(192.17),
            ..RepairStatus::default()
        };
        assert_eq!(
            connection(&early),
            ["beyond inner packets: 95.3 kB (headers 250 B, copies 90.0 kB, control 5.02 kB)"]
        );
        let explained = RepairExplanation { beyond: Some(1.5), ..RepairExplanation::default() };
        assert_eq!(sentences(&explained), Vec::<String>::new());
        let reorder = ReorderStatus {
            hold_times: vec![2, 0, 0, 0, 1, 0, 0, 0, 0, 1],
            hold_seconds: 0.6,
            residual_loss: Some(0.0002),
            ..ReorderStatus::default()
        };
        assert_eq!(
            order(&reorder),
            [
                "held: 150 ms on average, up to 1 ms 2, up to 20 ms 1, longer 1",
                "loss from the peer after repair: 0.02 %",
            ]
        );
        let kept = StoreStatus {
            packets: 3,
            bytes: 4200,
            forgotten: 1,
            most_packets: 32_768,
            most_bytes: 33_554_432,
            ..StoreStatus::default()
        };
        assert_eq!(
            store(&kept).as_deref(),
            Some("not acknowledged: 3 of 32768 packets, 4.20 kB of 33.6 MB, forgotten 1")
        );
        let explained = RepairExplanation {
            lost: 24,
            too_late: 1,
            repaired: copies,
            needless: 5,
            leaves: 1,
            moved: CopyCounters { tried: 7, ..CopyCounters::default() },
            duplicated: CopyCounters { tried: 9, saved: 1, in_vain: 8, ..CopyCounters::default() },
            parity: CopyCounters { tried: 5, saved: 2, refused: 1, ..CopyCounters::default() },
            beyond: Some(0.02),
        };
        assert_eq!(
            sentences(&explained),
            [
                "Of 24 packets that the paths lost 15 were sent again, 13 arrived by that, 1 were lost once more, for 1 it \
                 was too late, for 3 it would have taken more bytes than it may.",
                "5 packets sent again as they seemed to be lost came late.",
                "9 packets that begin or end a flow, or ask for a name, took two paths at once; of 1 of them one copy was lost.",
                "5 parities went by other paths than the packets that they cover; by them the peer has brought back 2 packets. 1 more \
                 would have taken more bytes than they may.",
                "A path was left once because it was silent, and 7 packets that were on their way by it were sent again by \
                 the others.",
                "Copies and messages of the tunnel took 2.00 % of the bytes of inner packets.",
            ]
        );
    }
}
