//! What the paths to a peer carry, each way: how much of a load arrives by each of them.
//!
//! A path carries what arrives by it only if it was full, and this host was not busy: then what arrives late has waited here.
//! Else it carries at least that.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mpt_control::{
    Client, ConnectionState, ErrorKind, Explanation, Limit, PathState, Reply, Request, Status,
    TunnelStatus,
};

use super::busy::Ticks;
use super::{connections, load, reachable};
use crate::{output, watch};

/// So long a load lasts before it is measured what arrives of it, and how long that is done.
const RAMP: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(2);

/// What a path has carried under a load, in bits per second.
#[derive(Clone, Debug, PartialEq)]
struct Carried {
    path: String,
    to_peer: f64,
    from_peer: f64,
    /// Why it could have carried more towards the peer, if it could.
    free: Option<&'static str>,
}

/// What the paths of each connection carry, as lines.
pub(super) fn rates(client: &mut Client, status: &Status, name: Option<&str>) -> Result<String> {
    let mut text = String::new();
    for (tunnel, state) in connections(status, name) {
        let Some(peer) = reachable(state).next() else { continue };
        if state.framing == "plain" {
            text.push_str(&format!(
                "{}: rates are not measured: the peer reports none in plain framing\n",
                state.name
            ));
            continue;
        }
        text.push_str(&of_connection(client, tunnel, state, peer)?);
    }
    Ok(text)
}

fn of_connection(
    client: &mut Client,
    tunnel: &TunnelStatus,
    state: &ConnectionState,
    peer: IpAddr,
) -> Result<String> {
    let (name, mtu) = (&state.name, usize::try_from(tunnel.mtu).unwrap_or_default());
    let there = measure(client, name, || load::there(peer, mtu, RAMP + SPAN))?;
    let socket = load::echo_socket(peer);
    let back = match &socket {
        Ok(socket) => measure(client, name, || load::and_back(socket, peer, mtu, RAMP + SPAN))?,
        Err(_) => Vec::new(),
    };
    let mut text = String::new();
    for path in &there {
        let back = back.iter().find(|other| other.path == path.path);
        text.push_str(&line(name, path, back));
    }
    text.push_str(&match socket {
        Ok(_) => format!(
            "{name}: from the peer no more comes back than arrives there: `mpt doctor --rate` there says what its \
             paths carry\n"
        ),
        Err(error) => format!(
            "{name}: rates from the peer are not measured: no ICMP socket: {error}: run this as root, or `mpt \
             doctor --rate` there\n"
        ),
    });
    Ok(text)
}

/// What is said of a path.
fn line(connection: &str, there: &Carried, back: Option<&Carried>) -> String {
    let rate = |bits: f64| output::rate(bits);
    let up = match there {
        Carried { to_peer, .. } if *to_peer <= 0.0 => "took nothing of the load to the peer".into(),
        Carried { to_peer, free: None, .. } => format!("carries {} to the peer", rate(*to_peer)),
        Carried { to_peer, free: Some(why), .. } => {
            format!("carries at least {} to the peer ({why})", rate(*to_peer))
        }
    };
    let down = back.map_or(String::new(), |back| match back.from_peer {
        bits if bits <= 0.0 => "; nothing came back by it".to_owned(),
        bits => format!("; at least {} from the peer", rate(bits)),
    });
    format!("{connection}/{}: {up}{down}\n", there.path)
}

/// What the paths of a connection carry under this load.
fn measure(client: &mut Client, name: &str, load: impl FnOnce() + Send) -> Result<Vec<Carried>> {
    thread::scope(|scope| {
        scope.spawn(load);
        thread::sleep(RAMP);
        let (begin, before) = (Instant::now(), watch::ask(client)?);
        let ticks = Ticks::of(before.pid);
        thread::sleep(SPAN);
        let (seconds, after) = (begin.elapsed().as_secs_f64(), watch::ask(client)?);
        let was_busy = ticks.were_busy_until(&Ticks::of(after.pid));
        let request = Request::Explain { connection: Some(name.to_owned()) };
        let reply = client.request(&request)?;
        let explained = if let Reply::Explanation { mut connections } = reply {
            connections.pop()
        } else {
            let refusal = reply.into_refusal();
            if refusal.kind != ErrorKind::NoSuchConnection {
                bail!(refusal);
            }
            // It has gone meanwhile.
            None
        };
        let [before, after] = [&before, &after]
            .map(|status| connections(status, Some(name)).next().map(|(_, state)| state));
        let (Some(before), Some(after)) = (before, after) else { return Ok(Vec::new()) };
        let explained = explained.unwrap_or_default();
        Ok(carried([before, after], seconds, &explained, was_busy))
    })
}

/// What was carried between two looks at a connection, so many seconds apart, in which this host `was_busy`.
fn carried(
    [before, after]: [&ConnectionState; 2],
    seconds: f64,
    explained: &Explanation,
    was_busy: bool,
) -> Vec<Carried> {
    let of = |path: &PathState| {
        let first = before.paths.iter().find(|other| other.id == path.id)?;
        let limit = explained.paths.iter().find(|other| other.id == path.id).map(|it| it.limit);
        let bits = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / seconds;
        Some(Carried {
            path: path.name.clone(),
            to_peer: bits(path.sent.bytes, first.sent.bytes) * arrived(first, path),
            from_peer: bits(path.received.bytes, first.received.bytes),
            free: match limit {
                _ if was_busy => Some("this host was busy"),
                Some(Limit::Rate | Limit::Loss) => None,
                Some(Limit::Weight) => Some("weights and flows give it no more"),
                _ => Some("it was not full: this host sends no faster"),
            },
        })
    };
    after.paths.iter().filter_map(of).collect()
}

/// The share of datagrams that arrived at the peer in between.
fn arrived(before: &PathState, after: &PathState) -> f64 {
    let (Some(before), Some(after)) = (&before.to_peer, &after.to_peer) else { return 1.0 };
    let [received, lost] =
        [after.received.saturating_sub(before.received), after.lost.saturating_sub(before.lost)];
    if received + lost == 0 { 1.0 } else { received as f64 / (received + lost) as f64 }
}

#[cfg(test)]
mod tests {
    use mpt_control::{Direction, PathExplanation, Traffic};

    use super::*;

    fn state(sent: u64, received: u64, [arrived, lost]: [u64; 2]) -> ConnectionState {
        let path = PathState {
            name: "fibre".into(),
            sent: Traffic { bytes: sent, packets: 0 },
            received: Traffic { bytes: received, packets: 0 },
            to_peer: Some(Direction { received: arrived, lost, ..Direction::default() }),
            ..PathState::default()
        };
        ConnectionState { paths: vec![path], ..ConnectionState::default() }
    }

    fn said(limit: Limit, was_busy: bool) -> String {
        let path = PathExplanation { limit, ..PathExplanation::default() };
        let explained = Explanation { paths: vec![path], ..Explanation::default() };
        let (before, after) =
            (state(1000, 500, [10, 0]), state(10_001_000, 5_000_500, [8010, 2000]));
        let carried = carried([&before, &after], 2.0, &explained, was_busy);
        line("server", &carried[0], Some(&carried[0]))
    }

    #[test]
    fn what_arrives_is_what_a_path_carries_only_if_it_was_full() {
        let up = |words: &str| {
            format!("server/fibre: carries {words}; at least 20.0 Mbit/s from the peer\n")
        };
        for limit in [Limit::Rate, Limit::Loss] {
            assert_eq!(said(limit, false), up("32.0 Mbit/s to the peer"));
            assert_eq!(
                said(limit, true),
                up("at least 32.0 Mbit/s to the peer (this host was busy)")
            );
        }
        for (limit, why) in [
            (Limit::Load, "it was not full: this host sends no faster"),
            (Limit::Weight, "weights and flows give it no more"),
        ] {
            let words = format!("at least 32.0 Mbit/s to the peer ({why})");
            assert_eq!(said(limit, false), up(&words));
        }
    }

    #[test]
    fn a_path_that_took_nothing_has_no_rate() {
        let idle = state(1000, 500, [10, 0]);
        let carried = carried([&idle, &idle], 2.0, &Explanation::default(), false);
        assert_eq!(
            line("server", &carried[0], Some(&carried[0])),
            "server/fibre: took nothing of the load to the peer; nothing came back by it\n"
        );
        assert!(
            !line("server", &carried[0], None).contains(';'),
            "nothing is said of no measurement"
        );
    }
}
