//! What `mpt explain` says of a tunnel: the transmit side's part, completed by the receive side.
//!
//! Both note their counters every half second ([`History`]), so that it can be said what has happened since.

use std::time::Duration;

use mpt_control::{
    Estimate, Explanation, Finding, Found, Limit, OrderExplanation, PathExplanation,
    QueueExplanation, Traffic,
};
use mpt_proto::{
    ConnectionId, Instant, PathId, PathStanding, RateStage, ReceiveHalf, TransmitHalf,
};

use super::history::{History, INTERVAL, Ordered, PathSent, SPAN, Sent};
use super::measured::{milliseconds, stage};
use super::receive::ReceiveLoop;
use super::repair::{explain_flows, explain_repair};
use super::report::{framing, scheduler};
use super::table::{ConnectionInfo, PathInfo};
use super::transmit::TransmitLoop;
use crate::config;

/// The most connections that are explained at once: nobody reads more.
pub(crate) const MOST: usize = 64;

/// A path that is kept busy for more than this share of the time is full.
const BUSY: f64 = 0.2;

impl TransmitLoop {
    /// Notes the counters if it is time.
    pub(super) fn note(&mut self, now: Instant) {
        if now < self.note_at {
            return;
        }
        self.note_at = now + INTERVAL;
        for (id, info) in self.table.connections_mut() {
            let Some(half) = self.endpoint.find(id) else { continue };
            info.history.put(now, Sent::of(half));
            for (path, info) in info.paths_mut() {
                info.history.put(now, PathSent::of(now, half, path));
            }
        }
    }

    /// Why packets went where they went: of the connection of this name, or of all, but of no more than one beyond
    /// [`MOST`].
    pub(super) fn explain(
        &self,
        now: Instant,
        name: Option<&str>,
    ) -> Vec<(ConnectionId, Explanation)> {
        let all = self.table.connections();
        let named = all.filter(|(_, info)| name.is_none_or(|name| name == info.settings.name));
        let explain =
            |(id, info)| Some((id, self.explain_connection(now, self.endpoint.find(id)?, info)));
        named.filter_map(explain).take(MOST + 1).collect()
    }

    fn explain_connection(
        &self,
        now: Instant,
        half: &TransmitHalf,
        info: &ConnectionInfo,
    ) -> Explanation {
        let present = Sent::of(half);
        let (since, past) = info.history.before(now).unwrap_or((Duration::ZERO, present));
        let mut paths: Vec<PathExplanation> =
            info.paths().map(|(path, info)| explain_path_lately(now, half, path, info)).collect();
        put_shares(&mut paths);
        Explanation {
            tunnel: self.settings.name.clone(),
            connection: info.settings.name.clone(),
            scheduler: scheduler(half, info.settings.policies.scheduler).to_owned(),
            framing: framing(half, info.settings.policies.framing).to_owned(),
            seconds: since.as_secs_f64(),
            sent: difference(present.sent, past.sent),
            no_path: present.no_path - past.no_path,
            queue: explain_queue(half, &paths, [&past, &present]),
            paths,
            flows: explain_flows(now, half),
            repair: half.is_repaired().then(|| explain_repair([&past, &present])),
            order: OrderExplanation::default(),
        }
    }
}

/// What each path carried of what all did.
pub(super) fn put_shares(paths: &mut [PathExplanation]) {
    let bytes: u64 = paths.iter().map(|path| path.sent.bytes).sum();
    for path in paths {
        path.share = path.sent.bytes as f64 / bytes.max(1) as f64;
    }
}

fn explain_path_lately(
    now: Instant,
    half: &TransmitHalf,
    path: PathId,
    info: &PathInfo,
) -> PathExplanation {
    let present = PathSent::of(now, half, path);
    let (_, past) = info.history.before(now).unwrap_or((Duration::ZERO, present));
    explain_path(now, half, path, info, [past, present])
}

/// What a path is at, and what was counted of it between the first and the last of these counts; without its share.
pub(super) fn explain_path(
    now: Instant,
    half: &TransmitHalf,
    path: PathId,
    info: &PathInfo,
    [past, present]: [PathSent; 2],
) -> PathExplanation {
    let samples = present.samples.wrapping_sub(past.samples);
    let busy = present.busy_samples.wrapping_sub(past.busy_samples);
    let busy = (samples > 0).then(|| f64::from(busy) / f64::from(samples));
    let standing = half.standing(now, path);
    let copies = present.resent - past.resent;
    let carries = present.sent.packets + copies > past.sent.packets;
    PathExplanation {
        name: info.settings.name.clone(),
        id: u64::from(path.0),
        state: String::new(),
        cause: info.absence.clone(),
        weight: u64::from(half.weight(path)),
        sent: difference(present.sent, past.sent),
        share: 0.0,
        resent: copies,
        lost: present.lost.saturating_sub(past.lost),
        quota: None,
        limit: limit(now, half, path, info, standing.as_ref(), busy.filter(|_| carries)),
        estimate: standing.map(|standing| estimate(now, standing, busy)),
    }
}

/// What keeps a path from carrying more, as far as the transmit side knows. It was kept `busy` for this share of the
/// time, where it carried packets.
fn limit(
    now: Instant,
    half: &TransmitHalf,
    path: PathId,
    info: &PathInfo,
    standing: Option<&PathStanding>,
    busy: Option<f64>,
) -> Limit {
    let cut = |found: &mpt_proto::Found| {
        matches!(found.what, mpt_proto::Finding::Cut { .. }) && now.since(found.at) < SPAN
    };
    match standing {
        _ if info.settings.status == config::PathStatus::Off => Limit::Off,
        _ if info.absence.is_some() => Limit::Down,
        _ if half.standby(path) => Limit::Standby,
        None => Limit::Weight,
        Some(standing) if !standing.usable => Limit::Down,
        Some(standing) if standing.stopped_until.is_some() => Limit::Stopped,
        Some(standing) if standing.too_slow => Limit::Delay,
        Some(standing) if standing.found.iter().any(cut) => Limit::Loss,
        Some(standing) if standing.stage == RateStage::Start => Limit::Start,
        // A path that has never been full is not limited. What it was kept busy with are the trains at the beginning.
        Some(PathStanding { stage: RateStage::Open | RateStage::Trains, fixed: false, .. }) => {
            Limit::Load
        }
        Some(_) if busy.is_some_and(|busy| busy > BUSY) => Limit::Rate,
        Some(_) => Limit::Load,
    }
}

fn estimate(now: Instant, standing: PathStanding, busy: Option<f64>) -> Estimate {
    Estimate {
        stage: stage(standing.stage).to_owned(),
        fixed: standing.fixed,
        rate: standing.rate.map(bits),
        pace: standing.pace.map(bits),
        queueing_ms: milliseconds(standing.queue),
        queueing_target_ms: standing.queue_target.map(milliseconds),
        skew_ms: standing.skew.map(milliseconds),
        deviation_ms: standing.deviation.map(milliseconds),
        rtt_ms: standing.round_trip.map(milliseconds),
        loss: standing.loss,
        committed: standing.committed as u64,
        committed_bytes: standing.committed_bytes,
        busy,
        found: standing.found.iter().map(|found| told(now, found)).collect(),
    }
}

/// A finding of the core in the words of the control socket.
fn told(now: Instant, found: &mpt_proto::Found) -> Found {
    Found { ago_seconds: now.since(found.at).as_secs_f64(), what: finding(found.what) }
}

/// What was found, in the words of the control socket.
pub(super) fn finding(what: mpt_proto::Finding) -> Finding {
    match what {
        mpt_proto::Finding::Full { rate, queue } => {
            Finding::Full { rate: bits(rate), queueing_ms: milliseconds(queue) }
        }
        mpt_proto::Finding::Rate { from, to } => Finding::Rate { from: bits(from), to: bits(to) },
        mpt_proto::Finding::Cut { from, to, loss } => {
            Finding::Cut { from: bits(from), to: bits(to), loss }
        }
        mpt_proto::Finding::Drained { before, after } => {
            Finding::Drained { before_ms: milliseconds(before), after_ms: milliseconds(after) }
        }
        mpt_proto::Finding::Longer { by } => Finding::Longer { by_ms: milliseconds(by) },
        mpt_proto::Finding::Rival { queue } => Finding::Rival { queueing_ms: milliseconds(queue) },
        mpt_proto::Finding::Alone { queue } => Finding::Alone { queueing_ms: milliseconds(queue) },
        mpt_proto::Finding::Stopped { loss } => Finding::Stopped { loss },
        mpt_proto::Finding::Resumed => Finding::Resumed,
    }
}

/// What waits in front of these paths, and what was counted between the first and the last of these counts.
pub(super) fn explain_queue(
    half: &TransmitHalf,
    paths: &[PathExplanation],
    [past, present]: [&Sent; 2],
) -> Option<QueueExplanation> {
    let queue = half.queue_standing()?;
    let carry = |path: &&PathExplanation| {
        !matches!(
            path.limit,
            Limit::Down | Limit::Delay | Limit::Off | Limit::Standby | Limit::Stopped
        )
    };
    let carrying = paths.iter().filter(carry).filter_map(|path| path.estimate.as_ref());
    let pace: Option<u64> = carrying.map(|estimate| estimate.pace).sum();
    let drains = |pace: u64| queue.waiting_bytes as f64 * 8e3 / pace as f64;
    Some(QueueExplanation {
        waiting: queue.waiting as u64,
        waiting_bytes: queue.waiting_bytes as u64,
        drains_ms: pace.filter(|pace| *pace > 0).map(drains),
        dropped_delay: present.dropped_delay - past.dropped_delay,
        dropped_full: present.dropped_full - past.dropped_full,
        marked: present.marked - past.marked,
        equal_delay_ms: milliseconds(queue.equal_delay),
        acks_held: queue.acks as u64,
        acks_thinned: present.acks_thinned - past.acks_thinned,
    })
}

impl ReceiveLoop {
    /// Notes the counters if it is time.
    pub(super) fn note(&mut self, now: Instant) {
        if now < self.note_at {
            return;
        }
        self.note_at = now + INTERVAL;
        self.histories.retain(|id, _| self.endpoint.find(*id).is_some());
        for (id, half) in self.endpoint.connections() {
            self.histories.entry(id).or_default().put(now, Ordered::of(half));
        }
    }

    /// Adds the receive side's part to the transmit side's.
    pub(super) fn complete_explanations(
        &self,
        now: Instant,
        explanations: Vec<(ConnectionId, Explanation)>,
    ) -> Vec<Explanation> {
        let complete = |(id, mut explanation): (ConnectionId, Explanation)| {
            // It can end between the two sides.
            if let Some(half) = self.endpoint.find(id) {
                let history = self.histories.get(&id);
                explanation.order = explain_order(now, half, history);
                explanation.paths.iter_mut().for_each(|path| put_state(half, path));
            }
            explanation
        };
        explanations.into_iter().map(complete).collect()
    }
}

/// The order of what comes from the peer, and what was counted of it lately.
pub(super) fn explain_order(
    now: Instant,
    half: &ReceiveHalf,
    history: Option<&History<Ordered>>,
) -> OrderExplanation {
    let present = Ordered::of(half);
    let past = history.and_then(|history| history.before(now)).map_or(present, |(_, past)| past);
    let order = half.stats().reorder;
    OrderExplanation {
        delivered: present.delivered - past.delivered,
        held: order.held,
        held_max: order.held_max,
        reordered: present.reordered - past.reordered,
        repaired: present.repaired - past.repaired,
        late: present.late - past.late,
        lost: present.lost.saturating_sub(past.lost),
    }
}

/// The state of a path, which the receive side decides.
pub(super) fn put_state(half: &ReceiveHalf, path: &mut PathExplanation) {
    let id = PathId(path.id as u8);
    if !half.has(id) {
        return;
    }
    let state = half.state(id);
    state.name().clone_into(&mut path.state);
    path.cause = path.cause.take().or_else(|| state.cause().map(str::to_owned));
    if path.state != "up" && path.limit != Limit::Off {
        path.limit = Limit::Down;
    }
}

fn difference(present: mpt_proto::Traffic, past: mpt_proto::Traffic) -> Traffic {
    Traffic { packets: present.packets - past.packets, bytes: present.bytes - past.bytes }
}

fn bits(bytes: u64) -> u64 {
    bytes.saturating_mul(8)
}
