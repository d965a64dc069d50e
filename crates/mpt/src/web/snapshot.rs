//! What there is to see, as the page reads it.
//!
//! Rates are bits per second, times seconds unless the name ends in `_ms`, shares and losses 0 to 1. It is between
//! this daemon and the page that it serves, and so no interface: programs read `mpt status --json`.

use mpt_control::{ConnectionState, Event, Explanation, PathState, TunnelStatus};
use serde_json::{Value, json};

use crate::output;
use crate::watch::{ConnectionRates, Model, PathRates, TunnelRates};

/// Most events that are shown, the latest ones.
pub(super) const MAX_EVENTS: usize = 50;

/// Most connections of a tunnel that are shown.
const MAX_CONNECTIONS: usize = 64;

/// Most problems of a connection that are shown.
const MAX_PROBLEMS: usize = 16;

/// All of it.
pub(super) fn snapshot(model: &Model, explained: &Result<Vec<Explanation>, String>) -> Value {
    let status = &model.status;
    json!({
        "version": status.version,
        "pid": status.pid,
        "uptime": status.uptime_seconds,
        "tunnels": model.tunnels().map(|(it, rates)| tunnel(it, rates, explained)).collect::<Vec<_>>(),
        "silent": status.stalled_tunnels().collect::<Vec<_>>(),
        "failed": status.failed_tunnels,
        "unexplained": explained.as_ref().err(),
        "more": model.tunnels().map(|(it, _)| it.connections.len().saturating_sub(MAX_CONNECTIONS)).sum::<usize>(),
        "events": events(model),
    })
}

fn tunnel(
    status: &TunnelStatus,
    rates: &TunnelRates,
    explained: &Result<Vec<Explanation>, String>,
) -> Value {
    let words = |connection: &ConnectionState| {
        let explained = explained.as_ref().ok()?;
        explained
            .iter()
            .find(|it| it.tunnel == status.name && it.connection == connection.name)
            .map(paragraphs)
    };
    let connections: Vec<Value> = status
        .connections
        .iter()
        .zip(&rates.connections)
        .take(MAX_CONNECTIONS)
        .map(|(it, rates)| {
            let problems = problems(status, |of| of == Some(&it.name));
            connection(it, rates, words(it), problems)
        })
        .collect();
    json!({
        "name": status.name,
        "mtu": status.mtu,
        "addresses": status.addresses,
        "drops": rates.drops,
        "problems": problems(status, |of| !status.connections.iter().any(|it| of == Some(&it.name))),
        "connections": connections,
    })
}

fn connection(
    status: &ConnectionState,
    rates: &ConnectionRates,
    words: Option<Vec<String>>,
    problems: Vec<String>,
) -> Value {
    let paths: Vec<Value> =
        status.paths.iter().zip(&rates.paths).map(|(it, rates)| path(it, rates)).collect();
    json!({
        "name": status.name,
        "peer": status.peer,
        "networks": status.networks,
        "profile": status.profile,
        "framing": status.framing,
        "scheduler": status.scheduler,
        "weighted": status.goes_by_weights(),
        "problems": problems,
        "sent": rates.flow.map(|flow| flow.sent),
        "received": rates.flow.map(|flow| flow.received),
        "drops": rates.flow.map(|flow| flow.drops),
        "paths": paths,
        "words": words.unwrap_or_default(),
    })
}

fn path(status: &PathState, rates: &PathRates) -> Value {
    let out = status.to_peer.as_ref();
    json!({
        "name": status.name,
        "state": status.state,
        "cause": status.cause,
        "off": status.status == "off",
        "standby": status.standby,
        "metered": status.metered,
        "quota": status.quota.as_ref().map(output::quota),
        "interface": status.interface,
        "local": status.local,
        "remote": status.remote,
        "weight": status.weight,
        "priority": status.priority,
        "sent": rates.flow.map(|flow| flow.sent),
        "received": rates.flow.map(|flow| flow.received),
        "share": rates.share,
        "rtt_ms": status.rtt_ms,
        "jitter_ms": status.jitter_ms,
        "queueing_ms": out.and_then(|out| out.queueing_ms),
        "loss": status.loss,
        "loss_out": out.and_then(|out| out.loss),
        "heard": status.last_heard_seconds,
    })
}

/// What is wrong with connections of these names, in the words of `mpt status`.
fn problems(status: &TunnelStatus, of: impl Fn(Option<&String>) -> bool) -> Vec<String> {
    let problems = status.problems.iter().filter(|it| of(it.connection.as_ref()));
    problems.take(MAX_PROBLEMS).map(output::problem).collect()
}

/// The words of `mpt explain`, a paragraph each.
fn paragraphs(explanation: &Explanation) -> Vec<String> {
    let text = output::explanations(std::slice::from_ref(explanation));
    // The first line is a heading.
    let text = text.replacen('\n', "\n\n", 1);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("\n\n").map(one_line).filter(|text| !text.is_empty()).collect()
}

/// The latest events, the very latest first.
fn events(model: &Model) -> Vec<Value> {
    let all = model.status.tunnels.iter().flat_map(|tunnel| &tunnel.events);
    let mut latest: Vec<&Event> = all.collect();
    // The order of what happened at one time stays that of the daemon, turned round.
    latest.reverse();
    latest.sort_by(|a, b| b.at_seconds.total_cmp(&a.at_seconds));
    let uptime = model.status.uptime_seconds;
    let shown = latest.iter().take(MAX_EVENTS);
    shown.map(|it| json!({ "ago": uptime - it.at_seconds, "text": output::event(it) })).collect()
}
