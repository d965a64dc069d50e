//! The congestion control of a program that names none.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use mpt_io::netlink::Netlink;

use crate::lab::Host;

/// Has all connections of `host` to these clients that begin from here on send with a congestion
/// control, by a route to each (`congctl` of `ip-route(8)`), unless a program names another. With
/// Multipath TCP, `clients` are the other host's addresses on all links.
///
/// # Errors
///
/// The kernel does not have that congestion control, or no route to a client.
pub fn send_with(host: &Host, clients: &[IpAddr], congestion: &str) -> Result<()> {
    let replace = || -> Result<()> {
        let mut netlink = Netlink::open()?;
        for &client in clients {
            let client = client.to_canonical();
            let way = netlink.way_to(client)?.with_context(|| format!("{client} is its own"))?;
            let destination = (client, if client.is_ipv4() { 32 } else { 128 });
            netlink.replace_route(destination, way.index, way.via, congestion)?;
        }
        Ok(())
    };
    let name = host.name();
    host.run(replace).with_context(|| format!("host `{name}` cannot send with {congestion}"))
}
