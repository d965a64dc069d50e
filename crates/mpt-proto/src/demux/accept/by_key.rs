//! Whether a template accepts a client that is known by its key.

use std::net::IpAddr;

use super::{Accepting, Template, is_possible};
use crate::demux::address::Origin;
use crate::id::AcceptId;

impl Accepting {
    /// Whether a client with this tunnel address, which knows this host by `own_address`, may begin a handshake by a template.
    pub(crate) fn may_begin(
        &self,
        accept: AcceptId,
        origin: Origin,
        (peer, own_address, key): (IpAddr, IpAddr, Option<u32>),
        own: &[IpAddr],
    ) -> bool {
        let template = self.templates.iter().find(|template| template.config.id == accept);
        let is_open = |template: &Template| {
            let config = &template.config;
            config.key == key
                && config.sockets.contains(&origin.socket)
                && config.admits(origin.remote.ip())
        };
        template.is_some_and(is_open) && own.contains(&own_address) && is_possible(peer, own)
    }
}
