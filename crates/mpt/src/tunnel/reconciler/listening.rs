//! The sockets of peers that come from anywhere: one for each IP version that this host has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mpt_io::udp;
use mpt_proto::SocketId;

use super::path::{AGAIN, Setter};
use super::socket::Key;

/// Where such peers are received.
pub(super) struct Listening<'s> {
    pub(super) interface: Option<&'s str>,
    pub(super) local: Option<IpAddr>,
    pub(super) port: u16,
}

impl Setter<'_> {
    /// Opens the sockets that are missing among `open`, and those whose interface is another one by now.
    ///
    /// # Errors
    ///
    /// If there is none in the end, or another program has the port. A host may lack one IP version.
    pub(super) fn listen(self, at: &Listening<'_>, open: &mut Vec<SocketId>) -> anyhow::Result<()> {
        let Self { sockets, handle, offloads, netmon, now, again } = self;
        let mut failure = None;
        let mut step = |step| handle.step(step);
        for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
            if at.local.is_some_and(|local| local.is_ipv4() != any.is_ipv4()) {
                continue;
            }
            // The kernel notifies when the missing item appears.
            let Ok(way) = netmon.way_from(at.interface, at.local, any) else { continue };
            let bound = at.interface.map(str::to_owned).zip(way.bound);
            let key = Key::new(at.local, any, at.port, bound);
            let version = |id: &&SocketId| {
                sockets.key(**id).is_some_and(|key| key.local.is_ipv4() == any.is_ipv4())
            };
            let before = open.iter().find(version).copied();
            if before.is_some_and(|id| sockets.key(id) == Some(&key)) {
                continue;
            }
            match sockets.take(now, &key, offloads, &mut step) {
                Ok(id) => {
                    if let Some(before) = before {
                        open.retain(|other| *other != before);
                        sockets.give_back(now, before);
                    }
                    open.push(id);
                }
                Err(error) => {
                    let soon = now + AGAIN;
                    *again = Some(again.map_or(soon, |at| at.min(soon)));
                    failure = Some(error);
                }
            }
        }
        let is_taken = |error: &anyhow::Error| {
            matches!(error.downcast_ref(), Some(udp::OpenError::AddressInUse { .. }))
        };
        match failure.filter(|error| open.is_empty() || is_taken(error)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
