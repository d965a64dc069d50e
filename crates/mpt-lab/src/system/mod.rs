//! What is measured: the ways to get traffic from one host to the other over all links.
//!
//! A [`System`] is an entry in the table of an experiment. `Running` is one that was started on the
//! hosts of a lab; it gives the destination address of the traffic, and the cost. All systems of a
//! cell run one after the other on the same links.
//!
//! | name | what |
//! |---|---|
//! | `classic` | two daemons configured as the experiment's `[tunnel]` says |
//! | `mpt` | two daemons with the same weights and keepalives, extended framing, and order by evidence |
//! | `adaptive` | two daemons that are told keys and the links' addresses, and nothing else: sealed |
//! | `adaptive-extended` | the same without keys: extended framing |
//! | `oracle` | as `adaptive`, told the rate of each link too |
//! | `mptcp` | Multipath TCP of the kernel (RFC 8684), one subflow per link |
//! | external | whatever a script starts on both hosts: see [`external`] |

pub mod external;
mod pair;
mod running;

use serde::Serialize;

use crate::cell::{Cell, Direction, Framing, Kind, Profile, Rival, Scheduler, Tunnel};
use crate::results::SystemEntry;
pub use external::External;
pub(crate) use pair::sides;
pub(crate) use running::{Running, Unavailable};

/// A system under test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum System {
    /// MPT that measures what it needs, sealed.
    Adaptive,
    /// The same in extended framing.
    AdaptiveExtended,
    /// MPT with the settings of the experiment.
    Classic,
    /// MPT with its own.
    Mpt,
    /// The kernel's Multipath TCP.
    Mptcp,
    /// Adaptive MPT that is told the links' rates.
    Oracle,
    /// Another program, started by a script.
    External(External),
}

/// The share of a link's rate that the oracle tells, so that no queue stands before the link.
const ORACLE: f64 = 0.99;

/// Nothing but addresses, and keys if it is sealed. What is said here beside that is what the shipped defaults come to, for the ideal and the
/// prediction.
fn adaptive(cell: &Cell, framing: Framing) -> Tunnel {
    Tunnel {
        weights: vec![1; cell.topology.links.len()],
        shipped: true,
        framing,
        scheduler: Scheduler::Earliest,
        inner: cell.tunnel.inner,
        mtu: cell.tunnel.mtu,
        ..Tunnel::default()
    }
}

impl System {
    /// The names of those that need no script.
    pub const NAMES: [&'static str; 6] =
        ["adaptive", "adaptive-extended", "classic", "mpt", "mptcp", "oracle"];

    /// The one of that name, if it needs no script.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [
            Self::Adaptive,
            Self::AdaptiveExtended,
            Self::Classic,
            Self::Mpt,
            Self::Mptcp,
            Self::Oracle,
        ];
        all.into_iter().find(|system| system.name() == name)
    }

    /// Its name in files and records.
    pub fn name(&self) -> &str {
        match self {
            Self::Adaptive => "adaptive",
            Self::AdaptiveExtended => "adaptive-extended",
            Self::Classic => "classic",
            Self::External(external) => &external.name,
            Self::Mpt => "mpt",
            Self::Mptcp => "mptcp",
            Self::Oracle => "oracle",
        }
    }

    /// What reports say about it.
    pub fn entry(&self) -> SystemEntry {
        let title = match self {
            Self::Adaptive => "MPT adaptive",
            Self::AdaptiveExtended => "MPT adaptive, not sealed",
            Self::Classic => "MPT classic",
            Self::External(external) => &external.name,
            Self::Mpt => "MPT",
            Self::Mptcp => "kernel MPTCP",
            Self::Oracle => "MPT adaptive, rates given",
        };
        SystemEntry { name: self.name().into(), title: title.into() }
    }

    /// Its name, and the weights that somebody has to type in for it: `mpt, weights 40:20`.
    pub fn settings(&self, cell: &Cell) -> String {
        let name = self.name();
        let weights = cell.tunnel.weights.iter().map(u32::to_string).collect::<Vec<_>>().join(":");
        match self {
            Self::Classic | Self::Mpt => format!("{name}, weights {weights}"),
            Self::Adaptive
            | Self::AdaptiveExtended
            | Self::External(_)
            | Self::Mptcp
            | Self::Oracle => name.to_owned(),
        }
    }

    /// Whether it takes nothing but the links from an experiment's file, so that it can be measured in each.
    pub fn configures_itself(&self) -> bool {
        matches!(self, Self::Adaptive | Self::AdaptiveExtended | Self::Oracle)
    }

    /// Whether a quick run measures it.
    pub fn is_quick(&self) -> bool {
        match self {
            Self::Adaptive | Self::Classic | Self::Mptcp => true,
            Self::AdaptiveExtended | Self::External(_) | Self::Mpt | Self::Oracle => false,
        }
    }

    /// Whether it consists of daemons, which need their program.
    pub fn has_daemons(&self) -> bool {
        match self {
            Self::Adaptive | Self::AdaptiveExtended | Self::Classic | Self::Mpt | Self::Oracle => {
                true
            }
            Self::External(_) | Self::Mptcp => false,
        }
    }

    /// How its daemons are configured in a cell; `None` if it has none.
    pub fn tunnel(&self, cell: &Cell) -> Option<Tunnel> {
        let rival = cell.traffic.rival == Some(Rival::Tunnel);
        let tunnel = match self {
            Self::Classic => Some(cell.tunnel.clone()),
            Self::Mpt => Some(Tunnel {
                profile: Profile::Auto,
                framing: Framing::Extended,
                reorder: None,
                ..cell.tunnel.clone()
            }),
            Self::Adaptive => Some(adaptive(cell, Framing::Sealed)),
            Self::AdaptiveExtended => Some(adaptive(cell, Framing::Extended)),
            Self::Oracle => Some(Tunnel { rates: Some(ORACLE), ..adaptive(cell, Framing::Sealed) }),
            Self::External(_) | Self::Mptcp => None,
        }?;
        Some(Tunnel { rival, ..tunnel })
    }

    /// Why it cannot carry this cell's traffic; `None` if it can.
    pub fn unfit(&self, cell: &Cell) -> Option<String> {
        let tcp_alone = matches!(self, Self::Mptcp);
        let forward = cell.traffic.direction == Direction::Forward;
        match cell.traffic.kind {
            Kind::Ftp if tcp_alone && forward => {
                Some("here, connections of Multipath TCP lead to the right host".into())
            }
            Kind::Tcp if tcp_alone && !forward => {
                Some("here, connections of Multipath TCP begin at the left host".into())
            }
            Kind::Ftp | Kind::Tcp => None,
            Kind::Calls | Kind::Media | Kind::Ping | Kind::Quic | Kind::Udp if tcp_alone => {
                Some("Multipath TCP carries only TCP".into())
            }
            Kind::Calls | Kind::Media | Kind::Ping | Kind::Quic | Kind::Udp => None,
        }
    }
}
