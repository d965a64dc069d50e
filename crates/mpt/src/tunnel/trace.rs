//! What a tunnel does over time, for a client that asks again and again: samples of paths and queues, and what is found.
//!
//! Tracing begins with the first question about a connection, and ends some seconds after the last one. Lines wait in a
//! bounded ring: who reads too slowly misses the oldest, and is told how many. Nothing is written to a file here.

use std::time::Duration;

use mpt_control::{TraceLine, TraceMark, Traced};
use mpt_proto::{ConnectionId, Instant, PathId, TransmitHalf};

use super::explain::{explain_order, explain_path, explain_queue, finding, put_shares, put_state};
use super::history::{PathSent, Sent};
use super::op::TraceAnswer;
use super::receive::ReceiveLoop;
use super::table::ConnectionInfo;
use super::trace_buffer::TracedConnection;
use super::transmit::TransmitLoop;

/// Between two samples: several in each round trip of a long path would say little more.
const INTERVAL: Duration = Duration::from_millis(50);

/// Nobody has asked for so long: the client is gone.
const LINGER: Duration = Duration::from_secs(5);

/// The most paths that are traced at once, so that a sample takes well below a millisecond.
const MOST_PATHS: usize = 64;

impl TransmitLoop {
    /// What was traced since a mark, of the connection of this name or of all. They are traced from now on.
    pub(super) fn fetch_trace(
        &mut self,
        now: Instant,
        name: Option<&str>,
        after: Option<TraceMark>,
    ) -> (Vec<ConnectionId>, TraceAnswer) {
        let named = |info: &ConnectionInfo| name.is_none_or(|name| name == info.settings.name);
        let all = self.table.connections().filter(|(_, info)| named(info));
        let wanted: Vec<_> = all.map(|(id, info)| (id, info.paths().count())).collect();
        let paths: usize = wanted.iter().map(|(_, paths)| paths).sum();
        let (connections, too_many) = (wanted.len(), paths > MOST_PATHS);
        if too_many || connections == 0 {
            return (Vec::new(), TraceAnswer { connections, too_many, ..TraceAnswer::default() });
        }
        let wanted: Vec<_> = wanted.into_iter().map(|(id, _)| id).collect();
        for id in &wanted {
            self.trace_connection(now, *id);
        }
        let trace = &mut self.trace;
        let after = after.map_or(trace.number, |mark| mark.line.min(trace.number));
        let (missed, mut lines) = trace.after(after, &wanted);
        if missed > 0 {
            let what = Traced::Missed { lines: missed };
            let at_seconds = lines.first().map_or(seconds(now), |line| line.at_seconds);
            let tunnel = self.settings.name.clone();
            lines.insert(0, TraceLine { at_seconds, tunnel, connection: None, what });
        }
        trace.read = trace.number;
        let mark = TraceMark { line: trace.number, at_micros: 0 };
        (wanted, TraceAnswer { connections, too_many, lines, mark })
    }

    /// A connection is traced for some time.
    fn trace_connection(&mut self, now: Instant, id: ConnectionId) {
        let Some(half) = self.endpoint.find(id) else { return };
        let traced = self.trace.connections.entry(id).or_insert_with(|| TracedConnection {
            until: now,
            sampled: now,
            sent: Sent::of(half),
            paths: half.paths().map(|path| (path, PathSent::of(now, half, path))).collect(),
        });
        traced.until = now + LINGER;
        self.trace.at.get_or_insert(now + INTERVAL);
    }

    /// Takes a sample if it is time.
    pub(super) fn take_trace(&mut self, now: Instant) {
        if self.trace.at.is_none_or(|at| now < at) {
            return;
        }
        let mut connections = std::mem::take(&mut self.trace.connections);
        connections.retain(|id, traced| traced.until > now && self.endpoint.find(*id).is_some());
        for (id, traced) in &mut connections {
            self.sample(now, *id, traced);
        }
        self.trace.at = (!connections.is_empty()).then(|| now + INTERVAL);
        if connections.is_empty() {
            self.trace.forget_lines();
        }
        self.trace.connections = connections;
    }

    fn sample(&mut self, now: Instant, id: ConnectionId, traced: &mut TracedConnection) {
        let Some(half) = self.endpoint.find(id) else { return };
        let Some(info) = self.table.connections().find(|(other, _)| *other == id) else { return };
        let info = info.1;
        let (tunnel, connection) = (self.settings.name.clone(), info.settings.name.clone());
        let line = |at: Instant, what| TraceLine {
            at_seconds: seconds(at),
            tunnel: tunnel.clone(),
            connection: Some(connection.clone()),
            what,
        };
        let mut lines = Vec::new();
        let mut paths = Vec::new();
        for (path, info) in info.paths() {
            let present = PathSent::of(now, half, path);
            let past = traced.paths.insert(path, present).unwrap_or(present);
            let found = found_since(half, path, traced.sampled);
            lines.extend(found.map(|found| {
                let what = finding(found.what);
                line(found.at, Traced::Event { path: info.settings.name.clone(), what })
            }));
            let mut explained = explain_path(now, half, path, info, [past, present]);
            if let Some(estimate) = &mut explained.estimate {
                estimate.found.clear();
            }
            paths.push(explained);
        }
        put_shares(&mut paths);
        let sent = Sent::of(half);
        let queue = explain_queue(half, &paths, [&traced.sent, &sent]);
        (traced.sent, traced.sampled) = (sent, now);
        lines.extend(paths.into_iter().map(|path| line(now, Traced::Path(Box::new(path)))));
        lines.extend(queue.map(|queue| line(now, Traced::Queue(queue))));
        for line in lines {
            self.trace.push(id, line);
        }
    }
}

/// What was found out of a path after a time.
fn found_since(
    half: &TransmitHalf,
    path: PathId,
    since: Instant,
) -> impl Iterator<Item = mpt_proto::Found> + use<> {
    let found = half.standing(since, path).map(|standing| standing.found).unwrap_or_default();
    found.into_iter().filter(move |found| found.at > since)
}

impl ReceiveLoop {
    /// Adds the receive side's part to what a client gets that has what there was until `after`.
    pub(super) fn complete_trace(
        &self,
        now: Instant,
        wanted: &[ConnectionId],
        after: Option<TraceMark>,
        mut answer: TraceAnswer,
    ) -> TraceAnswer {
        let tunnel = self.settings.name.as_str();
        let mut names = Vec::new();
        for id in wanted {
            let (Some(half), Some(name)) = (self.endpoint.find(*id), self.names.connection(*id))
            else {
                continue;
            };
            names.push(name);
            for line in &mut answer.lines {
                if let Traced::Path(path) = &mut line.what
                    && line.connection.as_deref() == Some(name)
                {
                    put_state(half, path);
                }
            }
            let order = explain_order(now, half, self.histories.get(id));
            answer.lines.push(TraceLine {
                at_seconds: seconds(now),
                tunnel: tunnel.to_owned(),
                connection: Some(name.to_owned()),
                what: Traced::Sequence(order),
            });
        }
        let since = after.map_or(seconds(now), |mark| mark.at_micros as f64 / 1e6);
        let events = self.recent.iter().filter(|event| event.at_seconds > since);
        let is_wanted = |name: &str| names.contains(&name);
        let events = events.filter(|event| event.connection.as_deref().is_none_or(is_wanted));
        answer.lines.extend(events.map(|event| TraceLine {
            at_seconds: event.at_seconds,
            tunnel: tunnel.to_owned(),
            connection: event.connection.clone(),
            what: Traced::Status { path: event.path.clone(), text: event.text.clone() },
        }));
        answer.lines.sort_by(|a, b| a.at_seconds.total_cmp(&b.at_seconds));
        answer.mark.at_micros = (seconds(now) * 1e6) as u64;
        answer
    }
}

fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}
