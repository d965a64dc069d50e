//! The two daemons of a tunnel, and what they say before and after a measurement.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mpt_control::{ConnectionState, PathState, Status, TunnelStatus};

use crate::cell::configuration::configuration;
use crate::cell::keys::KeyFiles;
use crate::cell::{Direction, Tunnel};
use crate::daemon::{Daemon, Tracer};
use crate::lab::Lab;
use crate::record::{DaemonRecord, PathRecord};
use crate::stop::Stop;
use crate::topology::Side;

/// How long all paths may take to come up and to be measured: keepalives every half second, several of which may be
/// lost on a bad link.
const UP_LIMIT: Duration = Duration::from_secs(20);

/// Between two looks at paths that are coming up.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The framing of a connection that has none yet.
const NO_SESSION: &str = "none";

/// A daemon on either host.
#[derive(Debug)]
pub(crate) struct Pair {
    sender: Daemon,
    receiver: Daemon,
    /// Dropped after the daemons, which read it at a reload.
    _keys: KeyFiles,
}

/// Both daemons at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    sender: State,
    receiver: State,
}

#[derive(Debug)]
struct State {
    status: Status,
    processor: Duration,
    resident: u64,
}

/// Which side sends the traffic, and which receives it.
pub(crate) fn sides(direction: Direction) -> (Side, Side) {
    match direction {
        Direction::Backward => (Side::Right, Side::Left),
        Direction::Forward => (Side::Left, Side::Right),
    }
}

impl Pair {
    /// Starts both daemons and waits until all paths are up on both sides, and no trains of padded beacons are sent by them
    /// any more: a tunnel is there before what is measured begins.
    pub(super) fn start(
        lab: &Lab,
        tunnel: &Tunnel,
        direction: Direction,
        binary: &Path,
        stop: &Stop,
    ) -> Result<Self> {
        let keys = KeyFiles::write()?;
        let start = |side: Side| {
            let text = configuration(lab.topology(), tunnel, side, &keys);
            Daemon::start(lab.host(side), side.name(), &text, binary)
        };
        let (sender, receiver) = sides(direction);
        let (sender, receiver) = (start(sender)?, start(receiver)?);
        let pair = Self { sender, receiver, _keys: keys };
        pair.await_paths(stop)?;
        Ok(pair)
    }

    fn await_paths(&self, stop: &Stop) -> Result<()> {
        let deadline = Instant::now() + UP_LIMIT;
        loop {
            stop.check()?;
            let waiting: Vec<String> = [&self.sender, &self.receiver]
                .into_iter()
                .map(|daemon| Ok(waiting_paths(daemon.name(), &daemon.status()?)))
                .collect::<Result<Vec<_>>>()?
                .concat();
            if waiting.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let limit = UP_LIMIT.as_secs();
                bail!("not all paths came up within {limit} s: {}", waiting.join(", "));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Largest inner packet in bytes that the sending side takes.
    pub(super) fn inner_mtu(&self) -> Result<u64> {
        let status = self.sender.status()?;
        let Some(tunnel) = status.tunnels.first() else {
            bail!("daemon `{}` has no tunnel", self.sender.name());
        };
        Ok(tunnel.mtu)
    }

    /// What both daemons say at this moment.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot { sender: State::of(&self.sender)?, receiver: State::of(&self.receiver)? })
    }

    /// What happened between a snapshot and this moment: the paths of the sending side, and the
    /// daemons, sending side first.
    pub(super) fn since(&self, before: &Snapshot) -> Result<(Vec<PathRecord>, Vec<DaemonRecord>)> {
        let after = self.snapshot()?;
        let paths = paths_between(before, &after);
        let daemon = |daemon: &Daemon, before: &State, after: State| DaemonRecord {
            host: daemon.name().to_owned(),
            processor_seconds: after.processor.saturating_sub(before.processor).as_secs_f64(),
            resident_bytes: after.resident,
            status: after.status,
        };
        let daemons = vec![
            daemon(&self.sender, &before.sender, after.sender),
            daemon(&self.receiver, &before.receiver, after.receiver),
        ];
        Ok((paths, daemons))
    }

    /// Traces the sending side to a file.
    pub(super) fn trace(&self, binary: &Path, file: &Path) -> Result<Tracer> {
        self.sender.trace(binary, file)
    }

    /// Processor time of the daemons so far: left, right.
    pub(super) fn processor(&self) -> Result<[Duration; 2]> {
        let [sender, receiver] = [self.sender.cpu_time()?, self.receiver.cpu_time()?];
        let is_left = self.sender.name() == Side::Left.name();
        Ok(if is_left { [sender, receiver] } else { [receiver, sender] })
    }

    /// Ends both daemons as an operator would. A daemon that ends in an error has lost something.
    pub(super) fn terminate(self) -> Result<()> {
        for daemon in [self.sender, self.receiver] {
            let name = daemon.name().to_owned();
            let status = daemon.terminate()?;
            if !status.success() {
                bail!("daemon `{name}` ended with {status} when asked to end");
            }
        }
        Ok(())
    }
}

impl State {
    fn of(daemon: &Daemon) -> Result<Self> {
        Ok(Self {
            status: daemon.status()?,
            processor: daemon.cpu_time()?,
            resident: daemon.resident_bytes()?,
        })
    }

    /// Those of the first tunnel: a rival may have another one over the same links.
    fn paths(&self) -> impl Iterator<Item = &PathState> {
        let first = self.status.tunnels.first().into_iter();
        first.flat_map(|tunnel| &tunnel.connections).flat_map(|connection| &connection.paths)
    }
}

fn connections(status: &Status) -> impl Iterator<Item = &ConnectionState> {
    status.tunnels.iter().flat_map(|tunnel: &TunnelStatus| &tunnel.connections)
}

/// Paths of a daemon that are not up or being measured by trains, with their state. Before there is a session nobody knows that they
/// will be.
fn waiting_paths(daemon: &str, status: &Status) -> Vec<String> {
    connections(status)
        .flat_map(|connection| connection.paths.iter().map(move |path| (connection, path)))
        .filter_map(|(connection, path)| {
            let stage = path.to_peer.as_ref().and_then(|direction| direction.stage.as_deref());
            let does = match (path.state.as_str(), stage) {
                // Where plain framing is used until there is one, there is a reason for it.
                ("up", _)
                    if connection.framing == NO_SESSION || connection.framing_reason.is_some() =>
                {
                    "without a session"
                }
                ("up", Some("trains")) => "being measured",
                ("up", _) => return None,
                (state, _) => state,
            };
            Some(format!("`{}` of {daemon} is {does}", path.name))
        })
        .collect()
}

fn paths_between(before: &Snapshot, after: &Snapshot) -> Vec<PathRecord> {
    let sent = |snapshot: &Snapshot, name: &str| {
        let mut paths = snapshot.sender.paths();
        paths.find(|path| path.name == name).map_or(0, |path| path.sent.packets)
    };
    let received = |snapshot: &Snapshot, name: &str| {
        let mut paths = snapshot.receiver.paths();
        paths.find(|path| path.name == name).map_or(0, |path| path.received.packets)
    };
    let mut records: Vec<_> = after
        .sender
        .paths()
        .map(|path| PathRecord {
            name: path.name.clone(),
            weight: path.weight,
            state: path.state.clone(),
            sent_packets: path.sent.packets.saturating_sub(sent(before, &path.name)),
            received_packets: received(after, &path.name)
                .saturating_sub(received(before, &path.name)),
            share: 0.0,
        })
        .collect();
    let all: u64 = records.iter().map(|record| record.sent_packets).sum();
    for record in &mut records {
        record.share = record.sent_packets as f64 / all.max(1) as f64;
    }
    records
}

#[cfg(test)]
mod tests {
    use mpt_control::{Direction as Measured, Traffic};

    use super::*;

    #[test]
    fn a_paths_record_is_its_traffic_between_two_times() {
        let before = snapshot([10, 20], [9, 19]);
        let after = snapshot([110, 320], [99, 319]);
        let [one, two] = paths_between(&before, &after).try_into().unwrap();
        assert_eq!((one.name.as_str(), one.sent_packets, one.received_packets), ("p0", 100, 90));
        assert_eq!((two.sent_packets, two.received_packets), (300, 300));
        assert_eq!((one.share, two.share), (0.25, 0.75));
    }

    #[test]
    fn paths_that_are_not_up_are_named() {
        let mut status = snapshot([0, 0], [0, 0]).sender.status;
        assert!(waiting_paths("left", &status).is_empty());
        status.tunnels[0].connections[0].paths[1].state = "probing".into();
        assert_eq!(waiting_paths("left", &status), ["`p1` of left is probing"]);
        let paths = &mut status.tunnels[0].connections[0].paths;
        paths[1].state = "up".into();
        paths[0].to_peer = Some(Measured { stage: Some("trains".into()), ..Measured::default() });
        assert_eq!(waiting_paths("left", &status), ["`p0` of left is being measured"]);
        status.tunnels[0].connections[0].framing = "none".into();
        assert_eq!(waiting_paths("left", &status).len(), 2, "without a session");
        let connection = &mut status.tunnels[0].connections[0];
        connection.framing = "plain".into();
        connection.framing_reason = Some("no session with the peer has begun yet".into());
        assert_eq!(
            waiting_paths("left", &status).len(),
            2,
            "plain framing until there is a session"
        );
    }

    /// A sender that sent, and a receiver that received, these numbers of packets on two paths.
    fn snapshot(sent: [u64; 2], received: [u64; 2]) -> Snapshot {
        let state = |counts: [[u64; 2]; 2]| {
            let path = |index: usize| PathState {
                name: format!("p{index}"),
                state: "up".into(),
                sent: Traffic { packets: counts[0][index], bytes: 0 },
                received: Traffic { packets: counts[1][index], bytes: 0 },
                ..PathState::default()
            };
            let paths = vec![path(0), path(1)];
            let connections = vec![ConnectionState { paths, ..ConnectionState::default() }];
            let tunnels = vec![TunnelStatus { connections, ..TunnelStatus::default() }];
            let status = Status { tunnels, ..Status::default() };
            State { status, processor: Duration::ZERO, resident: 0 }
        };
        Snapshot { sender: state([sent, [7, 7]]), receiver: state([[7, 7], received]) }
    }
}
