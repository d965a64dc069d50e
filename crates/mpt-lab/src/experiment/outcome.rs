//! What a measurement amounts to: against the ideal, in processor time, and in doubts.

use std::time::Duration;

use anyhow::Result;

use crate::cell::ideal::{Framing, Ideal};
use crate::cell::{Cell, Change};
use crate::processor;
use crate::record::{EventRecord, FlowRecord, PathRecord, Processor, Run, Settling, megabits};

/// How the flow followed the rates of links.
pub(super) fn add_settling(
    records: &mut [EventRecord],
    flow: &FlowRecord,
    cell: &Cell,
    framing: Framing<'_>,
) {
    let Some(series) = &flow.series else { return };
    for (record, event) in records.iter_mut().zip(&cell.events) {
        if !matches!(event.change, Change::Rate(_)) {
            continue;
        }
        let mut later = cell.events.iter().map(|other| other.at).filter(|at| *at > event.at);
        let until = later.next().unwrap_or(cell.traffic.seconds);
        let ideal = Ideal::between(cell, framing, event.at, until);
        let times = [event.at, until].map(Duration::from_secs_f64);
        record.settling =
            ideal.and_then(|ideal| Settling::of(series, times, ideal.goodput, cell.scale));
    }
}

/// What a flow reached of what links and weights allow.
pub(super) fn rate_against(run: &mut Run, flow: &FlowRecord, ideal: Option<Ideal>) {
    let ratio = |goodput: Option<f64>, whole: fn(Ideal) -> f64| {
        Some(goodput? / megabits(whole(ideal?))).filter(|ratio| ratio.is_finite())
    };
    run.ideal_mbps = ideal.map(|ideal| megabits(ideal.goodput));
    run.bound_mbps = ideal.map(|ideal| megabits(ideal.bound));
    run.efficiency = ratio(flow.goodput_mbps, |ideal| ideal.goodput);
    run.long_efficiency = ratio(flow.long_goodput_mbps, |ideal| ideal.goodput);
    run.yields = ratio(flow.goodput_mbps, |ideal| ideal.link_rates);
}

/// What a measurement cost without daemons, from this process' and the emulator's time before it.
pub(super) fn cost(
    [own, emulator]: [Duration; 2],
    elapsed: Duration,
    flow: &FlowRecord,
    from_left: bool,
) -> Result<Processor> {
    let since = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
    let (sender, receiver) = (flow.sender_seconds, flow.receiver_seconds);
    // Of servers and streams the threads and programs are not known; what is not known is no number.
    let known = sender > 0.0 || receiver > 0.0;
    let (left, right) = match (known, from_left) {
        (false, _) => (f64::NAN, f64::NAN),
        (true, true) => (sender, receiver),
        (true, false) => (receiver, sender),
    };
    Ok(Processor {
        elapsed: elapsed.as_secs_f64(),
        total: if known { since(processor::own()?, own) } else { f64::NAN },
        emulator: since(processor::emulator()?, emulator),
        left,
        right,
        gigabits: flow.received_bytes() as f64 * 8.0 / 1e9,
    })
}

/// What makes a result doubtful beyond the emulator's own doubts.
pub(super) fn doubts(flow: &FlowRecord, paths: &[PathRecord]) -> Vec<String> {
    let failure = flow.failure.iter().map(|failure| format!("a flow ended early: {failure}"));
    let idle = paths.iter().filter(|path| path.sent_packets == 0);
    let idle = idle.map(|path| format!("path `{}` ({}) carried nothing", path.name, path.state));
    failure.chain(idle).collect()
}
