//! What a host has inside: devices, addresses and routes.

use std::fs;
use std::io;
use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use mpt_io::netlink::Netlink;

use super::{Host, Lab};
use crate::topology::{Addressing, LinkSpec, Side, Topology};

/// The interface that every namespace is born with.
const LOOPBACK: &str = "lo";
/// Most links over which one server address is reached; see [`Setup::route_to_server`].
const MAX_SERVER_LINKS: usize = 16;

impl Host {
    /// Brings up loopback and every link's device, in the order of the topology. `open` creates or
    /// finds a device, and returns its index.
    pub(super) fn set_up<E: Send>(
        &self,
        topology: &Topology,
        open: impl Fn(&LinkSpec) -> Result<(E, u32)> + Send,
    ) -> Result<Vec<E>> {
        self.run(|| Setup::begin(self.side, topology)?.links(open))
            .with_context(|| format!("cannot set up host `{}`", self.name()))
    }
}

impl Lab {
    /// Lets the TCP sockets of both hosts hold so many MB (10⁶ bytes) to send, and to receive.
    pub fn set_tcp_buffers(&self, megabytes: u64) -> Result<()> {
        [Side::Left, Side::Right]
            .into_iter()
            .try_for_each(|side| self.host(side).run(|| set_tcp_buffers(megabytes * 1_000_000)))
    }
}

/// A host being set up, by a thread inside it.
struct Setup<'t> {
    side: Side,
    topology: &'t Topology,
    netlink: Netlink,
    loopback: u32,
}

impl<'t> Setup<'t> {
    fn begin(side: Side, topology: &'t Topology) -> Result<Self> {
        let mut netlink = Netlink::open()?;
        let loopback = netlink.link(LOOPBACK)?.context("there is no loopback interface")?.index;
        netlink.set_up(loopback, true)?;
        forget_connections()?;
        Ok(Self { side, topology, netlink, loopback })
    }

    fn links<E>(mut self, open: impl Fn(&LinkSpec) -> Result<(E, u32)>) -> Result<Vec<E>> {
        if self.topology.addressing == Addressing::OneServer {
            let count = self.topology.links.len();
            ensure!(
                count <= MAX_SERVER_LINKS,
                "{count} links to one server address, but at most {MAX_SERVER_LINKS} are possible"
            );
            accept_any_way_in()?;
        }
        let links = self.topology.links.iter().enumerate();
        let end = |(number, link)| {
            let (end, device) = open(link)?;
            self.link(number, link, device)?;
            Ok(end)
        };
        links.map(end).collect()
    }

    fn link(&mut self, number: usize, link: &LinkSpec, device: u32) -> Result<()> {
        self.netlink.set_mtu(device, link.mtu)?;
        // A link-local address would cause additional packets on the link.
        self.netlink.disable_address_generation(device)?;
        self.netlink.set_up(device, true)?;
        match (self.topology.addressing, self.side) {
            (Addressing::PerLink, _) => self.own_address(number, device)?,
            (Addressing::OneServer, Side::Left) => {
                self.own_address(number, device)?;
                self.route_to_server(number, device)?;
            }
            (Addressing::OneServer, Side::Right) => {
                self.server_address(number)?;
                let client = self.topology.known_address(Side::Left, number);
                self.netlink.add_route((client, host_prefix(client)), device, None)?;
            }
        }
        Ok(())
    }

    /// An address for this end of the link alone, with a route to the other.
    fn own_address(&mut self, number: usize, device: u32) -> Result<()> {
        let address = self.topology.address(self.side, number);
        let prefix = if address.is_ipv4() { 24 } else { 64 };
        Ok(self.netlink.add_address(device, address, prefix)?)
    }

    /// The server's address belongs to no link, so it is put on loopback, once per IP version.
    fn server_address(&mut self, number: usize) -> Result<()> {
        let address = self.topology.address(Side::Right, number);
        let known = (0..number).any(|n| self.topology.address(Side::Right, n) == address);
        if known {
            return Ok(());
        }
        Ok(self.netlink.add_address(self.loopback, address, host_prefix(address))?)
    }

    /// A route to the server through every link, for sockets that are bound to the link.
    ///
    /// Only one route of a given metric may lead to the same network, so each link's leads to a
    /// network half as specific as the one before: all contain the server, a socket that is bound
    /// finds the only one through its device, and any other takes the first link.
    fn route_to_server(&mut self, number: usize, device: u32) -> Result<()> {
        let server = self.topology.address(Side::Right, number);
        let wider = u8::try_from(number).expect("at most MAX_SERVER_LINKS links");
        let network = (server, host_prefix(server) - wider);
        Ok(self.netlink.add_route(network, device, None)?)
    }
}

fn host_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Disables TCP's metrics cache. With it, a host reuses the results of earlier connections to the
/// same address (ip-tcp_metrics(8)), and a measurement depends on the previous one.
fn forget_connections() -> Result<()> {
    let file = "/proc/sys/net/ipv4/tcp_no_metrics_save";
    match fs::write(file, "1") {
        // Kernels before 4.15 have one setting for all namespaces, which is not this one's to change.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| format!("cannot write {file}")),
    }
}

/// Lets TCP sockets hold so many bytes to send, and to receive; what they begin with stays as it is.
fn set_tcp_buffers(bytes: u64) -> Result<()> {
    for name in ["tcp_wmem", "tcp_rmem"] {
        let file = format!("/proc/sys/net/ipv4/{name}");
        let before = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        let (least, _) = before.trim().rsplit_once(char::is_whitespace).unwrap_or_default();
        fs::write(&file, format!("{least} {bytes}"))
            .with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// Accepts packets from the server through any link, although the route back takes the first.
///
/// A new namespace has the setting of the machine, and the strict one (RFC 3704) would drop them.
fn accept_any_way_in() -> Result<()> {
    for interface in ["all", "default"] {
        let file = format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter");
        let strict = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        if strict.trim() == "1" {
            fs::write(&file, "0").with_context(|| format!("cannot write {file}"))?;
        }
    }
    Ok(())
}
