//! A system that was started on the hosts of a lab.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::System;
use super::external::Scripts;
use super::pair::{self, Pair};
use crate::cell::configuration::inner_address;
use crate::cell::ideal::Framing;
use crate::cell::{Cell, Direction, Tunnel};
use crate::daemon::Tracer;
use crate::emulator::Report;
use crate::lab::mptcp::{self, Mptcp};
use crate::lab::{Host, Lab};
use crate::record::{DaemonRecord, PathRecord};
use crate::stop::Stop;
use crate::topology::Side;
use crate::traffic::tcp::Transport;

/// A link that carried less than one part in this many was not used; SYNs and probes may continue.
const SHARE: u64 = 1000;

/// A system at work. What it made is gone when it is dropped.
#[derive(Debug)]
pub(crate) enum Running {
    /// Two daemons, how they are configured, and their inner MTU.
    Tunnel(Pair, Box<Tunnel>, u32),
    /// The kernel's own.
    Mptcp(Mptcp),
    /// Two scripts.
    Scripts(#[expect(dead_code, reason = "it is held until it is to end")] Scripts),
}

/// Why a system cannot run here; everything else can be measured all the same.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unavailable(pub(crate) String);

/// What a system said of itself before a measurement.
#[derive(Debug)]
pub(crate) struct Snapshot(Option<pair::Snapshot>);

impl Running {
    /// Starts a system and waits until all its paths carry packets.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] inside, if this machine does not support it; any other error is a failure.
    pub(crate) fn start(
        system: &System,
        lab: &Lab,
        cell: &Cell,
        binary: &Path,
        stop: &Stop,
    ) -> Result<Self> {
        match system {
            System::Adaptive
            | System::AdaptiveExtended
            | System::Classic
            | System::Mpt
            | System::Oracle => {
                let tunnel = system.tunnel(cell).context("a system of daemons has a tunnel")?;
                let pair = Pair::start(lab, &tunnel, cell.traffic.direction, binary, stop)?;
                let mtu = u32::try_from(pair.inner_mtu()?);
                let mtu = mtu.context("the daemon reports an impossible inner MTU")?;
                Ok(Self::Tunnel(pair, Box::new(tunnel), mtu))
            }
            System::Mptcp => match mptcp::allow(lab) {
                Ok(mptcp) => Ok(Self::Mptcp(mptcp)),
                Err(mptcp::Refusal::Unavailable(why)) => Err(Unavailable(why).into()),
                Err(mptcp::Refusal::Failed(error)) => Err(error),
            },
            System::External(external) => {
                Ok(Self::Scripts(Scripts::start(external, lab, cell, stop)?))
            }
        }
    }

    /// The address of a host that traffic has to be sent to. Connections of Multipath TCP go to the
    /// right host.
    pub(crate) fn address(&self, side: Side, cell: &Cell) -> IpAddr {
        match self {
            Self::Mptcp(mptcp) => mptcp.remote(),
            Self::Scripts(_) | Self::Tunnel(..) => inner_address(side, cell.tunnel.inner),
        }
    }

    /// The addresses of a host from which connections to the other may come.
    pub(crate) fn receivers(&self, host: &Host, cell: &Cell) -> Vec<IpAddr> {
        match self {
            Self::Mptcp(_) => {
                (0..cell.topology.links.len()).map(|link| host.address(link)).collect()
            }
            Self::Scripts(_) | Self::Tunnel(..) => {
                vec![inner_address(host.side(), cell.tunnel.inner)]
            }
        }
    }

    /// How Multipath TCP was allowed, if it was.
    pub(crate) fn mptcp(&self) -> Option<&Mptcp> {
        match self {
            Self::Mptcp(mptcp) => Some(mptcp),
            Self::Scripts(_) | Self::Tunnel(..) => None,
        }
    }

    /// The protocol of streams.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Mptcp(_) => Transport::Mptcp,
            Self::Scripts(_) | Self::Tunnel(..) => Transport::Tcp,
        }
    }

    /// What it puts around the payload; `None` if that is not known.
    pub(crate) fn framing(&self) -> Option<Framing<'_>> {
        match self {
            Self::Mptcp(_) => Some(Framing::Mptcp),
            Self::Scripts(_) => None,
            Self::Tunnel(_, tunnel, mtu) => Some(Framing::Tunnel(tunnel, *mtu)),
        }
    }

    /// What it says at this moment.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        match self {
            Self::Mptcp(_) | Self::Scripts(_) => Ok(Snapshot(None)),
            Self::Tunnel(pair, ..) => Ok(Snapshot(Some(pair.snapshot()?))),
        }
    }

    /// Traces what the sending side does to a file; `None` if that is no daemon of ours.
    pub(crate) fn trace(&self, binary: &Path, file: &Path) -> Result<Option<Tracer>> {
        match self {
            Self::Tunnel(pair, ..) => Ok(Some(pair.trace(binary, file)?)),
            Self::Mptcp(_) | Self::Scripts(_) => Ok(None),
        }
    }

    /// What happened since a snapshot: paths and daemons, sending side first, if it has any.
    pub(crate) fn since(&self, before: &Snapshot) -> Result<(Vec<PathRecord>, Vec<DaemonRecord>)> {
        match (self, &before.0) {
            (Self::Tunnel(pair, ..), Some(before)) => pair.since(before),
            (Self::Mptcp(_) | Self::Scripts(_) | Self::Tunnel(..), _) => {
                Ok((Vec::new(), Vec::new()))
            }
        }
    }

    /// Processor time of both daemons so far, left and right; none if there are none.
    pub(crate) fn processor(&self) -> Result<Option<[Duration; 2]>> {
        match self {
            Self::Tunnel(pair, ..) => Ok(Some(pair.processor()?)),
            Self::Mptcp(_) | Self::Scripts(_) => Ok(None),
        }
    }

    /// Largest inner packet in bytes, if there is a tunnel.
    pub(crate) fn inner_mtu(&self) -> Option<u32> {
        match self {
            Self::Tunnel(_, _, mtu) => Some(*mtu),
            Self::Mptcp(_) | Self::Scripts(_) => None,
        }
    }

    /// Notes about its figures.
    pub(crate) fn remarks(&self) -> Vec<String> {
        match self {
            Self::Mptcp(mptcp) if mptcp.left_out() > 0 => {
                vec![format!(
                    "MPTCP uses {} links of {}",
                    mptcp.links(),
                    mptcp.links() + mptcp.left_out()
                )]
            }
            Self::Mptcp(_) | Self::Scripts(_) | Self::Tunnel(..) => Vec::new(),
        }
    }

    /// Links that it should have used and has not, from what they did before and until its end: MPTCP
    /// that fell back to TCP, or whose further subflows never came up.
    pub(crate) fn unused(
        &self,
        after: &[Report],
        before: &[Report],
        direction: Direction,
    ) -> Vec<String> {
        let Self::Mptcp(mptcp) = self else { return Vec::new() };
        let delivered = |report: &Report| match direction {
            Direction::Backward => report.backward.stats.delivered.bytes,
            Direction::Forward => report.forward.stats.delivered.bytes,
        };
        let links = after.iter().zip(before).take(mptcp.links());
        let carried: Vec<_> = links
            .map(|(after, before)| (&after.link, delivered(after) - delivered(before)))
            .collect();
        let all: u64 = carried.iter().map(|(_, bytes)| bytes).sum();
        let idle = carried.into_iter().filter(|&(_, bytes)| bytes * SHARE < all);
        idle.map(|(link, _)| format!("MPTCP did not use link {link}")).collect()
    }

    /// Ends it as an operator would.
    pub(crate) fn terminate(self) -> Result<()> {
        match self {
            Self::Tunnel(pair, ..) => pair.terminate(),
            Self::Mptcp(_) | Self::Scripts(_) => Ok(()),
        }
    }
}
