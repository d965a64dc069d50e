//! A subject brought up between two hosts, ready to be used.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mpt_io::netlink::{Error, Netlink, Vxlan};
use mpt_io::udp;

use super::hosts::{Hosts, find};
use super::ideal;
use super::kernel_wireguard;
use super::processors::Processors;
use super::subject::{Mode, Subject, Wire};
use super::wireguard::{Place, WireguardGo};
use crate::cell::configuration::{configuration, inner_address};
use crate::cell::keys::KeyFiles;
use crate::cell::{Cell, Scheduler, Tunnel};
use crate::daemon::Daemon;
use crate::experiment::Experiment;
use crate::lab::mptcp::{self, Refusal, is_unsupported};
use crate::netns::Namespace;
use crate::topology::{IpVersion, Side, Topology};
use crate::traffic::tcp::Transport;

/// How long the paths of a tunnel may take to come up: two rounds of keepalives, on a machine that
/// stalls.
const UP_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const VXLAN: &str = "vxlan0";

/// A subject that runs, and the hosts it runs between. Dropping it undoes everything.
#[derive(Debug)]
pub(super) struct Ready {
    // Dropped in this order: a daemon has nothing to do in a host that is gone.
    /// The left host's first.
    daemons: Vec<Daemon>,
    wireguard: Vec<WireguardGo>,
    /// Of the daemons.
    keys: KeyFiles,
    pub(super) hosts: Hosts,
    pub(super) wire: Wire,
    /// The right host's address for traffic of the left one.
    pub(super) remote: IpAddr,
    /// The transport protocol that streams use.
    pub(super) transport: Transport,
    /// Whether the subject leaves links idle that it does not need.
    pub(super) chooses: bool,
}

/// This machine lacks something. Everything else can be measured all the same.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lacking {
    #[error("this kernel has no {what}: {why}")]
    Kernel { what: &'static str, why: String },
    #[error("no {name} runs here: {why}")]
    Program { name: &'static str, why: String },
}

impl Ready {
    /// Brings up a subject; `binary` is the daemon's.
    ///
    /// # Errors
    ///
    /// [`Lacking`] inside, if the kernel does not support it or a program is absent; any other error is a failure.
    pub(super) fn bring_up(subject: Subject, wire: Wire, binary: &Path) -> Result<Self> {
        let cell = cell(subject.links());
        let hosts = Hosts::start(wire, &cell.topology)?;
        let remote = hosts.address(Side::Right, 0);
        let mut ready = Self {
            daemons: Vec::new(),
            wireguard: Vec::new(),
            keys: KeyFiles::write()?,
            hosts,
            wire,
            remote,
            transport: Transport::Tcp,
            chooses: false,
        };
        match subject {
            Subject::Raw => {}
            Subject::Mptcp => ready.allow_mptcp(&cell.topology)?,
            Subject::Vxlan => ready.start_vxlan()?,
            Subject::Wireguard => ready.start_wireguard()?,
            Subject::WireguardGo => ready.start_wireguard_go()?,
            Subject::Mpt { mode, .. } => {
                ready.chooses = mode.scheduler() == Scheduler::Earliest;
                ready.start_daemons(&cell, mode, binary)?;
            }
        }
        Ok(ready)
    }

    /// Goodput in bits per second of TCP that fills the wires; `None` if they have no rate.
    pub(super) fn ideal(&self) -> Result<Option<f64>> {
        let Some(rate) = self.wire.rate() else { return Ok(None) };
        let remote = SocketAddr::new(self.remote, 0);
        let mtu = self.hosts.left.run(|| udp::route_mtu(None, None, None, remote));
        let mtu = mtu.context("cannot read the MTU of the subject")?;
        Ok(Some(ideal::goodput(rate, self.hosts.links(), mtu)))
    }

    /// Processor time of the daemons, or of another tunnel's programs, so far; `None` where there are none.
    pub(super) fn daemon_time(&self) -> Result<Option<Duration>> {
        let others = self.wireguard.iter().map(WireguardGo::cpu_time);
        let times = self.daemons.iter().map(Daemon::cpu_time).chain(others);
        let times = times.collect::<Result<Vec<_>>>()?;
        Ok((!times.is_empty()).then(|| times.iter().sum()))
    }

    /// Binds the programs of each host to its processors.
    pub(super) fn pin(&self, processors: &Processors) -> Result<()> {
        self.programs().try_for_each(|(side, program)| processors.pin_process(program, side))
    }

    /// Takes that back.
    pub(super) fn release(&self, processors: &Processors) -> Result<()> {
        self.programs().try_for_each(|(_, program)| processors.release_process(program))
    }

    /// The process ids of the programs, and the hosts they run on.
    fn programs(&self) -> impl Iterator<Item = (Side, u32)> {
        let daemons =
            [Side::Left, Side::Right].into_iter().zip(self.daemons.iter().map(Daemon::pid));
        let others = self.wireguard.iter().map(|end| (end.side(), end.pid()));
        daemons.chain(others)
    }

    /// Resident memory of the largest of them, in bytes.
    pub(super) fn resident_bytes(&self) -> Result<Option<u64>> {
        let others = self.wireguard.iter().map(WireguardGo::resident_bytes);
        let sizes = self.daemons.iter().map(Daemon::resident_bytes).chain(others);
        Ok(sizes.collect::<Result<Vec<_>>>()?.into_iter().max())
    }

    /// One connection, one subflow per wire.
    fn allow_mptcp(&mut self, topology: &Topology) -> Result<()> {
        match mptcp::allow_between(topology, |side| self.hosts.namespace(side)) {
            Ok(_) => {}
            Err(Refusal::Unavailable(why)) => {
                return Err(Lacking::Kernel { what: "MPTCP", why }.into());
            }
            Err(Refusal::Failed(error)) => return Err(error),
        }
        self.transport = Transport::Mptcp;
        Ok(())
    }

    fn start_vxlan(&mut self) -> Result<()> {
        for (side, other) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
            let namespace = self.hosts.namespace(side);
            namespace.run(|| -> Result<()> {
                let mut netlink = Netlink::open()?;
                let over = find(&mut netlink, self.hosts.interface(0))?.index;
                let [local, remote] = [side, other].map(|side| self.hosts.address(side, 0));
                let end = Vxlan { id: 1, local, remote, over };
                netlink.add_vxlan(VXLAN, &end).map_err(|error| lacking("VXLAN", error))?;
                let index = find(&mut netlink, VXLAN)?.index;
                netlink.disable_address_generation(index)?;
                netlink.set_up(index, true)?;
                Ok(netlink.add_address(index, tunnel_address(side), 24)?)
            })?;
        }
        self.remote = tunnel_address(Side::Right);
        Ok(())
    }

    fn start_wireguard(&mut self) -> Result<()> {
        kernel_wireguard::start_both(self.places()).map_err(|error| {
            match error.downcast::<Error>() {
                Ok(error) => lacking("WireGuard", error),
                Err(error) => error,
            }
        })?;
        self.remote = tunnel_address(Side::Right);
        Ok(())
    }

    /// Where the ends of a tunnel between the hosts' first addresses are.
    fn places(&self) -> [(&Namespace, Place); 2] {
        [Side::Left, Side::Right].map(|side| {
            let (inner, outer) = (tunnel_address(side), self.hosts.address(side, 0));
            (self.hosts.namespace(side), Place { side, inner, outer })
        })
    }

    fn start_wireguard_go(&mut self) -> Result<()> {
        self.wireguard = WireguardGo::start_both(self.places())?;
        self.remote = tunnel_address(Side::Right);
        Ok(())
    }

    fn start_daemons(&mut self, cell: &Cell, mode: Mode, binary: &Path) -> Result<()> {
        for side in [Side::Left, Side::Right] {
            let (framing, scheduler) = (mode.framing(), mode.scheduler());
            let tunnel = Tunnel { framing, scheduler, ..cell.tunnel.clone() };
            let text = configuration(&cell.topology, &tunnel, side, &self.keys);
            let namespace = self.hosts.namespace(side);
            let daemon =
                Daemon::start_in(namespace, mode.environment(), side.name(), &text, binary)?;
            self.daemons.push(daemon);
        }
        self.remote = inner_address(Side::Right, IpVersion::V4);
        let deadline = Instant::now() + UP_LIMIT;
        for daemon in &self.daemons {
            while !all_up(daemon)? {
                if Instant::now() > deadline {
                    let limit = UP_LIMIT.as_secs();
                    bail!(
                        "daemon `{}`: not all paths were up within {limit} s; it printed:\n{}",
                        daemon.name(),
                        daemon.log()
                    );
                }
                thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }
}

/// Whether every path of a daemon is up.
fn all_up(daemon: &Daemon) -> Result<bool> {
    let status = daemon.status()?;
    let connections = status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    Ok(connections.flat_map(|connection| &connection.paths).all(|path| path.state == "up"))
}

/// A tunnel over this many links, with the daemon's defaults.
fn cell(links: usize) -> Cell {
    let links: String = (0..links).map(|link| format!("[[link]]\nname = 'pair{link}'\n")).collect();
    let file = Experiment::parse("the benchmark", &format!("title = 'benchmark'\n{links}"));
    let mut cells = file.expect("links that only have a name make an experiment").cells;
    cells.remove(0)
}

/// A host's address inside the kernel's own tunnel.
fn tunnel_address(side: Side) -> IpAddr {
    match side {
        Side::Left => Ipv4Addr::new(10, 8, 0, 1).into(),
        Side::Right => Ipv4Addr::new(10, 8, 0, 2).into(),
    }
}

/// Distinguishes missing kernel support from failures.
pub(super) fn lacking(what: &'static str, error: Error) -> anyhow::Error {
    let unsupported = match &error {
        Error::NotFound { .. } => true,
        Error::Refused { source, .. } => is_unsupported(source),
        Error::Exists { .. } | Error::Name(_) | Error::Permission { .. } => false,
    };
    if unsupported { Lacking::Kernel { what, why: error.to_string() }.into() } else { error.into() }
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::errno::Errno;

    use super::*;

    #[test]
    fn the_experiment_has_equal_weights() {
        let cell = cell(12);
        assert_eq!(cell.topology.links.len(), 12);
        assert_eq!(cell.tunnel.weights, vec![1; 12]);
    }

    #[test]
    fn only_what_the_kernel_lacks_is_skipped() {
        let refused = |errno: Errno| Error::Refused {
            action: "try".into(),
            source: io::Error::from(errno),
            explanation: None,
        };
        let is_lacking = |error| lacking("it", error).downcast_ref::<Lacking>().is_some();
        assert!(is_lacking(refused(Errno::EOPNOTSUPP)));
        assert!(is_lacking(Error::NotFound { action: "try".into() }));
        assert!(!is_lacking(refused(Errno::EINVAL)));
        assert!(!is_lacking(Error::Permission { action: "try".into() }));
    }
}
