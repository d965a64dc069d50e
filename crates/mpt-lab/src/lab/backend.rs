//! What the links of a lab are made of.

use std::fmt;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use mpt_io::netlink::Netlink;
use serde::{Deserialize, Serialize};

use super::{Host, seeds};
use crate::emulator::netem::{self, NetemError};
use crate::emulator::{End, Plug, Wire};
use crate::topology::{LinkSpec, Side, Topology};

/// How long the kernel may take to notice that both ends of a pair are on.
const RUNNING_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What the links of a lab are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Pairs of TUN devices and the lab's own emulator, on every kernel.
    #[default]
    Emulator,
    /// Pairs of virtual interfaces and the kernel's netem, where it has `sch_netem` and `sch_tbf`.
    Netem,
}

impl Backend {
    /// The name in records: `emulator` or `netem`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emulator => "emulator",
            Self::Netem => "netem",
        }
    }

    /// Whether every link of the topology can be made of this. Whether the kernel has netem is only
    /// known when the lab starts.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be, by its key.
    pub fn check(self, topology: &Topology) -> Result<(), NetemError> {
        match self {
            Self::Emulator => Ok(()),
            Self::Netem => netem::check(topology),
        }
    }

    /// Gives the hosts what they have inside, and joins them.
    pub(super) fn join(self, left: &Host, right: &Host, topology: &Topology) -> Result<Vec<Wire>> {
        self.check(topology)?;
        match self {
            Self::Emulator => emulate(left, right, topology),
            Self::Netem => plug(left, right, topology),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn emulate(left: &Host, right: &Host, topology: &Topology) -> Result<Vec<Wire>> {
    let ends = |host: &Host| {
        host.set_up(topology, |link| {
            let end = End::open(&link.name)?;
            let index = end.index();
            Ok((end, index))
        })
    };
    let (near, far) = (ends(left)?, ends(right)?);
    let wires = topology.links.iter().zip(near.into_iter().zip(far)).enumerate();
    let wire = |(index, (link, (near, far))): (_, (&LinkSpec, _))| {
        let nat = link.nat.then(|| topology.known_address(Side::Left, index));
        Wire::start(link, near, far, nat, seeds(topology.seed, index))
    };
    wires.map(wire).collect()
}

fn plug(left: &Host, right: &Host, topology: &Topology) -> Result<Vec<Wire>> {
    left.run(|| -> Result<()> {
        let mut netlink = Netlink::open()?;
        for link in &topology.links {
            netlink.add_veth(&link.name, &link.name, Some(right.as_fd()))?;
        }
        Ok(())
    })
    .context("cannot join the hosts")?;
    let ends = |host: &Host| {
        host.set_up(topology, |link| {
            let plug = Plug::open(link)?;
            let index = plug.index();
            Ok((plug, index))
        })
    };
    let (near, far) = (ends(left)?, ends(right)?);
    for host in [left, right] {
        host.run(|| await_running(topology))?;
    }
    let wires = topology.links.iter().zip(near.into_iter().zip(far)).enumerate();
    let wire =
        |(index, (link, (near, far)))| Wire::plug(link, [near, far], seeds(topology.seed, index));
    wires.map(wire).collect()
}

/// Until the kernel has noticed that both ends are on, it drops what is sent.
fn await_running(topology: &Topology) -> Result<()> {
    let mut netlink = Netlink::open()?;
    let deadline = Instant::now() + RUNNING_LIMIT;
    for link in &topology.links {
        while !netlink.link(&link.name)?.is_some_and(|link| link.running) {
            ensure!(Instant::now() < deadline, "interface `{}` does not come up", link.name);
            thread::sleep(LOOK_EVERY);
        }
    }
    Ok(())
}
