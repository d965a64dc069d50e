//! What a caller does not fit, for the people who configure both.

use std::net::IpAddr;

use super::{AcceptConfig, Accepting, Caller, Template, is_possible};
use crate::demux::address::Origin;
use crate::id::AcceptId;
use crate::mismatch::Misfit;

impl Accepting {
    /// What of the nearest template somebody does not fit who names these tunnel addresses, his own first, and this
    /// key, and asks in extended framing or not. `None` if there is no template at this socket.
    pub(crate) fn misfit(
        &self,
        origin: Origin,
        (peer, own, key, has_sessions): (IpAddr, IpAddr, Option<u32>, bool),
        locals: &[IpAddr],
    ) -> Option<(AcceptId, Misfit)> {
        let caller = Caller { key, peer, own, has_sessions };
        let here = |template: &&Template| template.config.sockets.contains(&origin.socket);
        let of = |template: &Template| {
            let AcceptConfig { id, peers, key, by_keepalive, by_hello, .. } = &template.config;
            let may_ask = if has_sessions { *by_hello } else { *by_keepalive };
            let (rank, why) = if !template.config.admits(origin.remote.ip()) {
                (0, Misfit::Source)
            } else if *key != caller.key {
                (1, Misfit::Key(caller.key))
            } else if !locals.contains(&own) {
                (2, Misfit::Own(own))
            } else if !peers.iter().any(|it| it.contains(peer)) || !is_possible(peer, locals) {
                (3, Misfit::Peer(peer))
            } else if !may_ask {
                (4, Misfit::Framing)
            } else {
                (5, Misfit::Taken(peer))
            };
            (rank, *id, why)
        };
        let misfits = self.templates.iter().filter(here).map(of);
        misfits.max_by_key(|(rank, ..)| *rank).map(|(_, id, why)| (id, why))
    }

    /// Whether a template does not accept this outer address, wherever its sender would belong otherwise.
    pub(crate) fn refuses(&self, accept: AcceptId, remote: IpAddr) -> bool {
        let template = self.templates.iter().find(|template| template.config.id == accept);
        template.is_some_and(|template| !template.config.admits(remote))
    }
}
