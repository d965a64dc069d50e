//! Two hosts and the links between them, running.
//!
//! [`Lab::start`] makes both namespaces and opens every link's device in each, gives them
//! addresses and routes, and then lets an emulator thread carry packets between them; or, on the
//! other [`Backend`], the kernel. Dropping the lab undoes all of it: the threads end, the devices
//! vanish with their descriptors, and the namespaces with theirs.

mod backend;
pub mod leftovers;
pub mod mptcp;
mod setup;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command};

use anyhow::{Context as _, Result};

use crate::emulator::{Direction, Report, Wire};
use crate::netns::Namespace;
use crate::topology::{Side, Topology};
pub use backend::Backend;

/// Two hosts and the links between them.
#[derive(Debug)]
pub struct Lab {
    // Dropped in this order: nothing carries packets while hosts vanish.
    wires: Vec<Wire>,
    left: Host,
    right: Host,
    topology: Topology,
    backend: Backend,
}

/// A host: a network namespace with the near ends of all links.
#[derive(Debug)]
pub struct Host {
    side: Side,
    namespace: Namespace,
    addresses: Vec<IpAddr>,
}

impl Lab {
    /// Makes the hosts and links, with the emulator.
    ///
    /// # Errors
    ///
    /// What the kernel refuses, with the remedy where one is known; nothing is left behind.
    pub fn start(topology: &Topology) -> Result<Self> {
        Self::start_on(topology, Backend::Emulator)
    }

    /// Makes the hosts and links, of what the caller chooses.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and a [`NetemError`](crate::emulator::netem::NetemError) where
    /// netem is chosen and not available, or unable to do what the topology says.
    pub fn start_on(topology: &Topology, backend: Backend) -> Result<Self> {
        let left = Host::new(Side::Left, topology)?;
        let right = Host::new(Side::Right, topology)?;
        let wires = backend.join(&left, &right, topology)?;
        Ok(Self { wires, left, right, topology: topology.clone(), backend })
    }

    /// What the links are made of.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The host where forward traffic begins.
    pub fn left(&self) -> &Host {
        &self.left
    }

    /// The host where forward traffic ends.
    pub fn right(&self) -> &Host {
        &self.right
    }

    /// One of the hosts.
    pub fn host(&self, side: Side) -> &Host {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// Link number `index`, counted from 0 in the order of the topology.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn link(&self, index: usize) -> &Wire {
        &self.wires[index]
    }

    /// All links in the order of the topology.
    pub fn links(&self) -> &[Wire] {
        &self.wires
    }

    /// What the lab was made from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Cuts or restores every link except one, or all of them: for measuring a link alone.
    pub fn isolate(&self, only: Option<usize>) {
        for (index, wire) in self.wires.iter().enumerate() {
            wire.set_blackout(Direction::Both, only.is_some_and(|only| only != index));
        }
    }

    /// What every link did.
    pub fn reports(&self) -> Vec<Report> {
        self.wires.iter().map(Wire::report).collect()
    }
}

impl Host {
    fn new(side: Side, topology: &Topology) -> Result<Self> {
        let namespace =
            Namespace::new().with_context(|| format!("cannot make host `{}`", side.name()))?;
        let addresses =
            (0..topology.links.len()).map(|link| topology.address(side, link)).collect();
        Ok(Self { side, namespace, addresses })
    }

    /// `left` or `right`.
    pub fn name(&self) -> &'static str {
        self.side.name()
    }

    /// Which of the two it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The host's address on link number `link`.
    ///
    /// # Panics
    ///
    /// If there are fewer links.
    pub fn address(&self, link: usize) -> IpAddr {
        self.addresses[link]
    }

    /// Runs `work` on a fresh thread inside the host; see [`Namespace::run`].
    pub fn run<T, F>(&self, work: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        self.namespace.run(work)
    }

    /// Starts a program inside the host; see [`Namespace::spawn`].
    ///
    /// # Errors
    ///
    /// As [`Command::spawn`].
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.namespace.spawn(command)
    }
}

impl AsFd for Host {
    /// The network namespace.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// The seeds of a link's directions: far apart, even where the lab's seed or the link is the next.
fn seeds(lab: u64, link: usize) -> [u64; 2] {
    let first = mix(lab).wrapping_add(2 * link as u64);
    [mix(first), mix(first.wrapping_add(1))]
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014): every input bit reaches every output bit.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_directions_share_a_seed() {
        let all: BTreeSet<u64> =
            (0..50).flat_map(|lab| (0..64).flat_map(move |link| seeds(lab, link))).collect();
        assert_eq!(all.len(), 50 * 64 * 2);
    }
}
