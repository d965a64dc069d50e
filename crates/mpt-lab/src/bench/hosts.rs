//! Two hosts and bare pairs of virtual interfaces between them.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mpt_io::netlink::Netlink;

use super::subject::Wire;
use crate::netns::Namespace;
use crate::topology::{Side, Topology};

/// The interface that every namespace is born with.
const LOOPBACK: &str = "lo";
/// How long the kernel may take to notice that both ends of a pair are on.
const RUNNING_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Two hosts and the pairs between them. All of it vanishes with the value.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) left: Namespace,
    pub(super) right: Namespace,
    topology: Topology,
}

/// What was sent over a link. A super-packet that crosses in one piece counts as one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) packets: u64,
    /// With the Ethernet header of each packet.
    pub(super) bytes: u64,
}

impl Hosts {
    /// Makes the hosts and, for each link of the topology, a pair of interfaces of its name,
    /// addressed as the topology says. Of the links' profiles nothing is used.
    pub(super) fn start(wire: Wire, topology: &Topology) -> Result<Self> {
        let hosts =
            Self { left: Namespace::new()?, right: Namespace::new()?, topology: topology.clone() };
        hosts.left.run(|| hosts.plug()).context("cannot join two hosts")?;
        for side in [Side::Left, Side::Right] {
            let set_up = hosts.namespace(side).run(|| hosts.set_up(side, wire));
            set_up.with_context(|| format!("cannot set up host `{}`", side.name()))?;
        }
        for side in [Side::Left, Side::Right] {
            hosts.namespace(side).run(|| hosts.await_running())?;
        }
        Ok(hosts)
    }

    pub(super) fn namespace(&self, side: Side) -> &Namespace {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// How many pairs there are.
    pub(super) fn links(&self) -> usize {
        self.topology.links.len()
    }

    /// The address of a host on a link, counted from 0.
    pub(super) fn address(&self, side: Side, link: usize) -> IpAddr {
        self.topology.address(side, link)
    }

    /// The name of a link's interface in either host.
    pub(super) fn interface(&self, link: usize) -> &str {
        &self.topology.links[link].name
    }

    /// What the left host sent over each link so far.
    pub(super) fn sent(&self) -> Result<Vec<Sent>> {
        let read = |netlink: &mut Netlink, name: &str| -> Result<Sent> {
            let link = find(netlink, name)?;
            Ok(Sent { packets: link.tx_packets, bytes: link.tx_bytes })
        };
        self.left.run(|| {
            let mut netlink = Netlink::open()?;
            self.topology.links.iter().map(|link| read(&mut netlink, &link.name)).collect()
        })
    }

    /// Makes the pairs, from within the left host.
    fn plug(&self) -> Result<()> {
        let mut netlink = Netlink::open()?;
        for link in &self.topology.links {
            netlink.add_veth(&link.name, &link.name, Some(self.right.as_fd()))?;
        }
        Ok(())
    }

    fn set_up(&self, side: Side, wire: Wire) -> Result<()> {
        let mut netlink = Netlink::open()?;
        let loopback = find(&mut netlink, LOOPBACK)?.index;
        netlink.set_up(loopback, true)?;
        for (number, link) in self.topology.links.iter().enumerate() {
            let index = find(&mut netlink, &link.name)?.index;
            // A link-local address would cause additional packets.
            netlink.disable_address_generation(index)?;
            wire.apply(&mut netlink, &link.name, index)?;
            netlink.set_up(index, true)?;
            netlink.add_address(index, self.topology.address(side, number), 24)?;
        }
        Ok(())
    }

    /// Until the kernel has noticed that both ends are on, it drops what is sent.
    fn await_running(&self) -> Result<()> {
        let mut netlink = Netlink::open()?;
        let deadline = Instant::now() + RUNNING_LIMIT;
        for link in &self.topology.links {
            while !find(&mut netlink, &link.name)?.running {
                ensure!(Instant::now() < deadline, "interface `{}` does not come up", link.name);
                thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }
}

/// An interface that must be there.
pub(super) fn find(netlink: &mut Netlink, name: &str) -> Result<mpt_io::netlink::Link> {
    netlink.link(name)?.with_context(|| format!("interface `{name}` was deleted"))
}
