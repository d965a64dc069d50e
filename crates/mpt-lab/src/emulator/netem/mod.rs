//! Links that the kernel emulates: a pair of virtual interfaces with netem at both ends.
//!
//! A host's packets pass netem at its own end of the pair, before they cross. Both ends have the
//! same hardware address and do not use ARP, so that only the hosts' own packets cross.
//! Segmentation and checksums are not left to the interface, and packets that are too long for a
//! frame are segmented before netem, so that loss and delay apply to packets as on a wire.
//!
//! The kernel is faster than the emulator, but supports fewer features; an unsupported profile is
//! refused with the name of the key ([`Unsupported`]). It also reports less: not how late packets
//! were, and one counter for lost packets and those dropped by a full queue.

mod ledger;
mod profile;
mod qdisc;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use mpt_io::ethtool;
use mpt_io::netlink::{self, Netlink};
use mpt_sim::profile::Profile;

use super::{Direction, DirectionReport, Lateness, Report};
use crate::topology::{LinkSpec, Topology};
use ledger::Ledger;
pub use profile::Unsupported;
use qdisc::{Netem, NetemCounters, NetemLoss};

/// Bytes in front of an IP packet in an Ethernet frame.
const ETHERNET_HEADER: u32 = 14;
/// Both ends of every pair: locally administered, for the letters M, P and T.
const HARDWARE_ADDRESS: [u8; 6] = [0x02, 0, 0x4d, 0x50, 0x54, 1];
/// What an interface would do with super-packets and checksums in place of the host, by the kernel's
/// names.
const OFFLOADS: [&str; 4] = [
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-checksum-ip-generic",
];

/// Why links cannot be netem's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetemError {
    /// The kernel has no netem, and cannot load it.
    #[error("netem is not available: modprobe sch_netem")]
    Missing,
    /// The kernel lacks the filter that cuts super-packets for netem.
    #[error("netem needs a token bucket filter, which is not available: modprobe sch_tbf")]
    NoCutter,
    /// The profile of a direction asks for what netem cannot do.
    #[error("link `{link}`, {direction}: {what}")]
    Profile {
        /// The link's name.
        link: String,
        /// `forward` or `backward`.
        direction: &'static str,
        /// The key and why.
        what: Unsupported,
    },
    /// There is an address translator in front of the left host.
    #[error("link `{link}`: `nat` is not possible with netem; use the emulator")]
    Nat {
        /// The link's name.
        link: String,
    },
}

/// One end of a pair, in a host's namespace.
#[derive(Debug)]
pub(crate) struct Plug {
    netlink: Netlink,
    index: u32,
}

/// A link of the kernel's. Its interfaces go with their namespaces.
#[derive(Debug)]
pub(super) struct Cable {
    name: String,
    mtu: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Forward, backward.
    lanes: [Lane; 2],
    record_began: Instant,
    /// Why the link is not what it should be.
    failure: Option<String>,
}

/// One direction: netem at its sender's end.
#[derive(Debug)]
struct Lane {
    plug: Plug,
    profile: Profile,
    cut: bool,
    ledger: Ledger,
}

/// Whether netem can be every link of a topology.
///
/// # Errors
///
/// The first thing that it cannot do. Whether the kernel has netem is not looked at.
pub fn check(topology: &Topology) -> Result<(), NetemError> {
    for link in &topology.links {
        if link.nat {
            return Err(NetemError::Nat { link: link.name.clone() });
        }
        for (direction, profile) in [("forward", &link.forward), ("backward", &link.backward)] {
            profile::netem(profile, link.mtu, None).map_err(|what| NetemError::Profile {
                link: link.name.clone(),
                direction,
                what,
            })?;
        }
    }
    Ok(())
}

impl Plug {
    /// Prepares the calling thread's end of a pair that has been made.
    pub(crate) fn open(link: &LinkSpec) -> Result<Self> {
        let mut netlink = Netlink::open()?;
        let found = netlink.link(&link.name)?;
        let index = found.with_context(|| format!("`{}` was deleted", link.name))?.index;
        netlink.set_point_to_point(index, HARDWARE_ADDRESS)?;
        for feature in OFFLOADS {
            match ethtool::set_feature(&link.name, feature, false) {
                // Nothing to be switched off.
                Err(ethtool::Error::Unknown { .. }) => {}
                result => result?,
            }
        }
        Ok(Self { netlink, index })
    }

    /// The interface's index in its namespace.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Puts netem in the way of what leaves.
    fn add(&mut self, mtu: u32, netem: &Netem) -> Result<()> {
        let missing = |what| {
            move |error| {
                let lacking = matches!(error, netlink::Error::NotFound { .. });
                if lacking { anyhow::Error::from(what) } else { error.into() }
            }
        };
        let cutter = qdisc::add_cutter(&mut self.netlink, self.index, mtu + ETHERNET_HEADER);
        cutter.map_err(missing(NetemError::NoCutter))?;
        let added = netem.add(&mut self.netlink, self.index);
        added.map_err(missing(NetemError::Missing))
    }
}

impl Cable {
    /// Emulates a link between two ends. All chance follows from `seeds`, forward and backward,
    /// where the kernel permits.
    pub(super) fn start(link: &LinkSpec, plugs: [Plug; 2], seeds: [u64; 2]) -> Result<Self> {
        let [left, right] = plugs;
        let lane = |mut plug: Plug, profile: &Profile, seed| -> Result<Lane> {
            plug.add(link.mtu, &profile::netem(profile, link.mtu, Some(seed))?)?;
            Ok(Lane { plug, profile: profile.clone(), cut: false, ledger: Ledger::default() })
        };
        let [forward, backward] = seeds;
        let lanes = [lane(left, &link.forward, forward)?, lane(right, &link.backward, backward)?];
        let state = State { lanes, record_began: Instant::now(), failure: None };
        Ok(Self { name: link.name.clone(), mtu: link.mtu, state: Mutex::new(state) })
    }

    pub(super) fn set_blackout(&self, direction: Direction, cut: bool) {
        self.change(direction, |lane| lane.cut = cut);
    }

    pub(super) fn set_profile(&self, direction: Direction, profile: &Profile) {
        self.change(direction, |lane| lane.profile = profile.clone());
    }

    pub(super) fn restart_record(&self) {
        let mut state = self.state();
        state.record_began = Instant::now();
        state.failure = None;
    }

    pub(super) fn report(&self) -> Report {
        let mut state = self.state();
        let mut failure = state.failure.clone();
        let reports = state.lanes.each_mut().map(|lane| {
            if let Err(error) = lane.count() {
                failure.get_or_insert(format!("cannot read netem's counters: {error:#}"));
            }
            DirectionReport {
                stats: lane.ledger.stats(),
                lateness: Lateness::default(),
                stalls: 0,
                stalled_seconds: 0.0,
                unread: 0,
                untranslated: 0,
                unwritten: 0,
                refused: 0,
            }
        });
        Report::new(&self.name, state.record_began.elapsed(), reports, failure.as_deref())
    }

    /// Changes directions; if the kernel refuses, the report says so from then on.
    fn change(&self, direction: Direction, change: impl Fn(&mut Lane)) {
        let mut state = self.state();
        let State { lanes: [forward, backward], failure, .. } = &mut *state;
        for (lane, other) in [(forward, Direction::Backward), (backward, Direction::Forward)] {
            if direction == other {
                continue;
            }
            let before = (lane.profile.clone(), lane.cut);
            let outcome = lane.count().and_then(|()| {
                change(lane);
                lane.apply(self.mtu)
            });
            if let Err(error) = outcome {
                (lane.profile, lane.cut) = before;
                failure.get_or_insert(format!("netem could not be changed: {error:#}"));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there is left half changed by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn apply(&mut self, mtu: u32) -> Result<()> {
        let mut netem = profile::netem(&self.profile, mtu, None)?;
        if self.cut {
            netem.loss = NetemLoss::Random(1.0);
        }
        Ok(netem.change(&mut self.plug.netlink, self.plug.index)?)
    }

    /// Takes over what netem has counted under the settings in force.
    fn count(&mut self) -> Result<()> {
        let counters = NetemCounters::of(&mut self.plug.netlink, self.plug.index)?;
        let counters = counters.context("the netem qdisc was deleted")?;
        self.ledger.enter(counters, ledger::reason(&self.profile, self.cut));
        Ok(())
    }
}
