//! What is shown: the latest status, and how fast its counters grow.
//!
//! Rates come from the difference of two statuses, divided by the time that passed in the daemon
//! between them, so that neither a slow answer nor a busy terminal distorts them.

use std::collections::{BTreeMap, HashMap};

use mpt_control::{ConnectionState, PathState, Status, TunnelStatus};

/// The latest status and what follows from it and the one before.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The latest status there was.
    pub(crate) status: Status,
    /// How fast it changes, in the order of its tunnels.
    pub(crate) rates: Vec<TunnelRates>,
    /// Why there is no later one, if there is none.
    pub(crate) lost: Option<Lost>,
}

/// The daemon does not answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lost {
    /// What went wrong, for people.
    pub(crate) reason: String,
    /// For how long, in seconds.
    pub(crate) seconds: f64,
}

/// How fast a tunnel's counters grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TunnelRates {
    /// Drops per second before a connection could be found, those of the device included; none
    /// before the second status.
    pub(crate) drops: Option<f64>,
    /// In the order of its connections.
    pub(crate) connections: Vec<ConnectionRates>,
}

/// How fast a connection's counters grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConnectionRates {
    /// None before the second status.
    pub(crate) flow: Option<Flow>,
    /// In the order of its paths.
    pub(crate) paths: Vec<PathRates>,
}

/// How fast a path's counters grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathRates {
    /// None before the second status.
    pub(crate) flow: Option<Flow>,
    /// Its part, 0 to 1, of what the connection sends; none if nothing is sent.
    pub(crate) share: Option<f64>,
}

/// What goes out, comes in and gets lost here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flow {
    /// Bits per second towards the peer: inner packets of a connection, UDP payload of a path.
    pub(crate) sent: f64,
    /// The same from the peer.
    pub(crate) received: f64,
    /// Drops per second, whatever the reason.
    pub(crate) drops: f64,
}

impl Model {
    /// The first status; there are no rates yet.
    pub(crate) fn new(status: Status) -> Self {
        let rates = rates(None, &status);
        Self { status, rates, lost: None }
    }

    /// The next status. One of another process starts a new history.
    pub(crate) fn accept(&mut self, status: Status) {
        self.rates = rates(Some(&self.status), &status);
        self.status = status;
        self.lost = None;
    }

    /// There was no answer. The latest status stays, to be looked at.
    pub(super) fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
    }

    /// The tunnels with their rates.
    pub(crate) fn tunnels(&self) -> impl Iterator<Item = (&TunnelStatus, &TunnelRates)> {
        self.status.tunnels.iter().zip(&self.rates)
    }

    /// The connection of that name with its tunnel and its rates.
    pub(super) fn connection(
        &self,
        tunnel: &str,
        connection: &str,
    ) -> Option<(&TunnelStatus, &ConnectionState, &ConnectionRates)> {
        let (tunnel, rates) = self.tunnels().find(|(status, _)| status.name == tunnel)?;
        let mut connections = tunnel.connections.iter().zip(&rates.connections);
        let (status, rates) = connections.find(|(status, _)| status.name == connection)?;
        Some((tunnel, status, rates))
    }
}

/// The rates between two statuses.
fn rates(before: Option<&Status>, after: &Status) -> Vec<TunnelRates> {
    // A daemon that was restarted counts from zero.
    let before = before.filter(|before| before.pid == after.pid);
    let seconds = before.map_or(0.0, |before| after.uptime_seconds - before.uptime_seconds);
    let before = before.filter(|_| seconds > 0.0);
    let earlier: HashMap<&str, &TunnelStatus> =
        by_name(before.map_or(&[][..], |status| &status.tunnels), |tunnel| &tunnel.name);
    let of = |tunnel: &TunnelStatus| {
        tunnel_rates(earlier.get(tunnel.name.as_str()).copied(), tunnel, seconds)
    };
    after.tunnels.iter().map(of).collect()
}

fn tunnel_rates(before: Option<&TunnelStatus>, after: &TunnelStatus, seconds: f64) -> TunnelRates {
    let dropped = |status: &TunnelStatus| total(&status.drops) + total(&status.device.drops);
    let earlier: HashMap<&str, &ConnectionState> =
        by_name(before.map_or(&[][..], |status| &status.connections), |connection| {
            &connection.name
        });
    let of = |connection: &ConnectionState| {
        connection_rates(earlier.get(connection.name.as_str()).copied(), connection, seconds)
    };
    TunnelRates {
        drops: before.and_then(|before| growth(dropped(before), dropped(after), seconds)),
        connections: after.connections.iter().map(of).collect(),
    }
}

fn connection_rates(
    before: Option<&ConnectionState>,
    after: &ConnectionState,
    seconds: f64,
) -> ConnectionRates {
    let counted = |connection: &ConnectionState| {
        let counters = &connection.counters;
        (counters.transmitted.bytes, counters.received.bytes, total(&connection.drops))
    };
    let earlier: HashMap<&str, &PathState> =
        by_name(before.map_or(&[][..], |status| &status.paths), |path| &path.name);
    let of = |path: &PathState| {
        let before = earlier.get(path.name.as_str()).copied();
        let counted = |path: &PathState| (path.sent.bytes, path.received.bytes, total(&path.drops));
        let flow = before.and_then(|before| flow(counted(before), counted(path), seconds));
        PathRates { flow, share: None }
    };
    let mut paths: Vec<PathRates> = after.paths.iter().map(of).collect();
    let sent: f64 = paths.iter().filter_map(|path| path.flow).map(|flow| flow.sent).sum();
    for path in &mut paths {
        path.share = path.flow.filter(|_| sent > 0.0).map(|flow| flow.sent / sent);
    }
    let flow = before.and_then(|before| flow(counted(before), counted(after), seconds));
    ConnectionRates { flow, paths }
}

/// How fast bytes sent, bytes received and drops grow, if they do.
fn flow(before: (u64, u64, u64), after: (u64, u64, u64), seconds: f64) -> Option<Flow> {
    Some(Flow {
        sent: growth(before.0, after.0, seconds)? * 8.0,
        received: growth(before.1, after.1, seconds)? * 8.0,
        drops: growth(before.2, after.2, seconds)?,
    })
}

/// Growth per second; none of a counter that went back, because it is another one under an old name.
fn growth(before: u64, after: u64, seconds: f64) -> Option<f64> {
    after.checked_sub(before).map(|growth| growth as f64 / seconds)
}

fn total(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

fn by_name<'s, T>(all: &'s [T], name: impl Fn(&'s T) -> &'s String) -> HashMap<&'s str, &'s T> {
    all.iter().map(|one| (name(one).as_str(), one)).collect()
}

#[cfg(test)]
mod tests {
    use mpt_control::{ConnectionCounters, Traffic};

    use super::*;

    #[test]
    fn rates_are_differences_over_the_daemons_own_time() {
        let mut model = Model::new(status(1, 10.0, [("a", 1000), ("b", 5000)]));
        assert_eq!(model.rates[0].connections[0].flow, None);
        model.accept(status(1, 12.0, [("a", 4000), ("b", 6000)]));
        let connection = &model.rates[0].connections[0];
        assert_eq!(connection.flow, Some(Flow { sent: 16_000.0, received: 0.0, drops: 2000.0 }));
        let flows: Vec<f64> = connection.paths.iter().map(|path| path.flow.unwrap().sent).collect();
        assert_eq!(flows, [12_000.0, 4_000.0]);
        let shares: Vec<f64> = connection.paths.iter().map(|path| path.share.unwrap()).collect();
        assert_eq!(shares, [0.75, 0.25]);
        assert_eq!(model.rates[0].drops, Some(0.0));
    }

    #[test]
    fn after_a_counter_reset_there_is_no_rate() {
        let mut model = Model::new(status(1, 10.0, [("a", 1000), ("b", 5000)]));
        model.accept(status(2, 11.0, [("a", 4000), ("b", 6000)]));
        assert_eq!(model.rates[0].connections[0].flow, None, "another process");
        model.accept(status(2, 11.0, [("a", 4000), ("b", 6000)]));
        assert_eq!(model.rates[0].connections[0].flow, None, "no time has passed");
        model.accept(status(2, 12.0, [("a", 5000), ("c", 9000)]));
        let paths = &model.rates[0].connections[0].paths;
        assert_eq!(paths[0].flow.map(|flow| flow.sent), Some(8000.0));
        assert_eq!(paths[1].flow, None, "c was not there");
        model.accept(status(2, 13.0, [("a", 200), ("c", 9000)]));
        let paths = &model.rates[0].connections[0].paths;
        assert_eq!(paths[0].flow, None, "a is another one");
        assert_eq!((paths[1].flow.unwrap().sent, paths[1].share), (0.0, None));
    }

    #[test]
    fn losing_the_daemon_keeps_what_it_said_last() {
        let mut model = Model::new(status(1, 10.0, [("a", 1), ("b", 1)]));
        model.lose(Lost { reason: "gone".into(), seconds: 3.0 });
        assert!(model.connection("mpt0", "server").is_some());
        model.accept(status(1, 20.0, [("a", 1), ("b", 1)]));
        assert_eq!(model.lost, None);
    }

    fn status(pid: u32, uptime_seconds: f64, sent: [(&str, u64); 2]) -> Status {
        let path = |(name, bytes): (&str, u64)| PathState {
            name: name.into(),
            sent: Traffic { packets: 1, bytes },
            ..PathState::default()
        };
        let bytes = sent.iter().map(|(_, bytes)| bytes).sum();
        let connection = ConnectionState {
            name: "server".into(),
            counters: ConnectionCounters {
                transmitted: Traffic { packets: 1, bytes },
                ..ConnectionCounters::default()
            },
            drops: BTreeMap::from([("no_path".into(), bytes)]),
            paths: sent.map(path).into(),
            ..ConnectionState::default()
        };
        let tunnel = TunnelStatus {
            name: "mpt0".into(),
            connections: vec![connection],
            ..TunnelStatus::default()
        };
        Status { pid, uptime_seconds, tunnels: vec![tunnel], ..Status::default() }
    }
}
