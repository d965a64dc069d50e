//! Peers that are not configured: which are accepted, how many, and at what rate.
//!
//! A keepalive from an origin that no path has, for a tunnel address that nobody configured, is a
//! *connect request* if it fits a template ([`AcceptConfig`]): then the owner is told ([`ConnectRequest`]) and makes a
//! connection, or a further path of one that was made so. Plain framing authenticates nothing, so a host
//! that guesses what a template asks for can send a connect request. What that can cost is bounded here, before anything is made:
//! connections and paths in number, both together in rate, and the requests that are remembered although nobody
//! has answered yet. Everything refused is counted.
//!
//! Where a template permits extended framing a hello is answered, for which nothing is kept, and its confirm is the
//! connect request: it proves that its sender receives at its origin.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use template::{Caller, Template};

pub use template::{AcceptConfig, ConnectRequest};

use crate::demux::address::Origin;
use crate::id::SocketId;
use crate::id::{AcceptId, ConnectionId};
use crate::stats::Drop;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use crate::wire::extended::hello::Hello;
use crate::wire::gre::Datagram;
use crate::wire::keepalive::{FIRST_CONTROL, Keepalive};

/// How many connect requests may wait for an answer; further ones are refused as too fast.
const MAX_PENDING: usize = 256;

/// How long a connect request waits for the connection or path that it asked for. Later connect requests
/// of the same peer are new ones; until then they are the same connect request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which refusals of a template are reported.
const REFUSALS_EVERY: Duration = Duration::from_secs(10);

/// The templates, and the connection requests that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Accepting {
    templates: Vec<Template>,
    /// The tunnel addresses that have connections.
    peers: HashMap<IpAddr, Known>,
    /// The origins whose connect requests wait, at most [`MAX_PENDING`]. Others choose what they are, so
    /// the map's hash has to be one that they cannot foresee.
    pending: HashMap<(SocketId, SocketAddr), Pending>,
    requests: VecDeque<ConnectRequest>,
}

/// A tunnel address that has connections.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// How many.
    connections: u32,
    /// The one that was accepted, if that is what it is, and by which template.
    accepted: Option<(ConnectionId, AcceptId)>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    accept: AcceptId,
    peer: IpAddr,
    until: Instant,
}

impl Accepting {
    /// Other templates than before. One that keeps its number and its rate keeps what is left of that.
    pub(crate) fn set(&mut self, accepts: &[AcceptConfig]) {
        let before = std::mem::take(&mut self.templates);
        let template = |config: &AcceptConfig| {
            let bucket = before
                .iter()
                .find(|old| {
                    (old.config.id, old.config.interval, old.config.burst)
                        == (config.id, config.interval, config.burst)
                })
                .map_or(TokenBucket::new(config.burst, config.interval), |old| old.bucket);
            let of = |known: &&Known| known.accepted.is_some_and(|(_, by)| by == config.id);
            let connections = self.peers.values().filter(of).count();
            Template { config: config.clone(), bucket, connections, quiet_until: Instant::ZERO }
        };
        self.templates = accepts.iter().map(template).collect();
        let templates = &self.templates;
        let is_there = |id| templates.iter().any(|template| template.config.id == id);
        self.pending.retain(|_, pending| is_there(pending.accept));
        self.requests.retain(|request| is_there(request.accept));
    }

    /// Whether there is no template, so that no check is needed.
    pub(crate) fn is_closed(&self) -> bool {
        self.templates.is_empty()
    }

    /// A connection begins.
    pub(crate) fn add(&mut self, id: ConnectionId, peers: &[IpAddr], by: Option<AcceptId>) {
        for peer in peers {
            let known = self.peers.entry(*peer).or_insert(Known { connections: 0, accepted: None });
            known.connections += 1;
            if let Some(by) = by {
                known.accepted = Some((id, by));
            }
        }
        if let Some(template) = by.and_then(|by| self.template(by)) {
            template.connections += 1;
        }
    }

    /// A connection ends.
    pub(crate) fn remove(&mut self, id: ConnectionId, peers: &[IpAddr], by: Option<AcceptId>) {
        for peer in peers {
            if let Some(known) = self.peers.get_mut(peer) {
                known.connections = known.connections.saturating_sub(1);
                known.accepted = known.accepted.filter(|(accepted, _)| *accepted != id);
                if known.connections == 0 {
                    self.peers.remove(peer);
                }
            }
        }
        if let Some(template) = by.and_then(|by| self.template(by)) {
            template.connections = template.connections.saturating_sub(1);
        }
    }

    fn template(&mut self, id: AcceptId) -> Option<&mut Template> {
        self.templates.iter_mut().find(|template| template.config.id == id)
    }

    /// A path has this origin from now on.
    pub(crate) fn claimed(&mut self, socket: SocketId, remote: SocketAddr) {
        self.pending.remove(&(socket, remote));
    }

    /// The next connect request for the caller.
    pub(crate) fn poll_connect_request(&mut self) -> Option<ConnectRequest> {
        self.requests.pop_front()
    }

    /// Handles a datagram from an unknown source, for a tunnel with these own addresses. `paths`
    /// gives the number of paths of a connection. Returns whether it is a connect request.
    ///
    /// # Errors
    ///
    /// Why a connect request is refused.
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        origin: Origin,
        datagram: &Datagram<'_>,
        own: &[IpAddr],
        paths: impl Fn(ConnectionId) -> usize,
    ) -> Result<bool, Drop> {
        let message = datagram.payload;
        let control = message.first().is_some_and(|&first| first >= FIRST_CONTROL);
        let Some(keepalive) = control.then(|| Keepalive::parse(message).ok()).flatten() else {
            return Ok(false);
        };
        let Keepalive { sender, receiver, .. } = keepalive;
        let key = datagram.header.key;
        let caller = Caller { key, peer: sender, own: receiver, has_sessions: false };
        // A peer that says that it stops does not ask to connect.
        if keepalive.report.off {
            return Ok(false);
        }
        self.on_caller(now, origin, caller, own, paths)
    }

    /// Whether a hello for which there is no connection is to be answered. Nothing is kept of it.
    pub(crate) fn invites(&self, origin: Origin, hello: &Hello, own: &[IpAddr]) -> bool {
        let is_unknown = !self.peers.contains_key(&hello.sender);
        is_unknown && self.template_for(origin, Caller::of(hello), own).is_some()
    }

    /// Handles the confirm of such a hello, whose cookie is valid; otherwise like [`Self::on_datagram`].
    ///
    /// # Errors
    ///
    /// Why a connect request is refused.
    pub(crate) fn on_confirm(
        &mut self,
        now: Instant,
        origin: Origin,
        hello: &Hello,
        own: &[IpAddr],
        paths: impl Fn(ConnectionId) -> usize,
    ) -> Result<bool, Drop> {
        self.on_caller(now, origin, Caller::of(hello), own, paths)
    }

    /// The place of the template that somebody fits.
    fn template_for(&self, origin: Origin, caller: Caller, own: &[IpAddr]) -> Option<usize> {
        if !own.contains(&caller.own) || !is_possible(caller.peer, own) {
            return None;
        }
        self.templates.iter().position(|template| template.fits(origin, caller))
    }

    fn on_caller(
        &mut self,
        now: Instant,
        origin: Origin,
        caller: Caller,
        own: &[IpAddr],
        paths: impl Fn(ConnectionId) -> usize,
    ) -> Result<bool, Drop> {
        let peer = caller.peer;
        let Some(place) = self.template_for(origin, caller, own) else { return Ok(false) };
        let known = self.peers.get(&peer).copied();
        let accept = self.templates[place].config.id;
        let connection = match known.map(|known| known.accepted) {
            None => None,
            Some(Some((connection, by))) if by == accept => Some(connection),
            // Where it may come from is for its own settings to say.
            Some(_) => return Ok(false),
        };
        let at = (origin.socket, origin.remote);
        let waits = |pending: &&Pending| now < pending.until;
        if let Some(pending) = self.pending.get(&at).filter(waits) {
            // One origin waits for one answer at a time.
            let again = (pending.peer, pending.accept) == (peer, accept);
            return if again { Ok(true) } else { Err(Drop::AcceptRate) };
        }
        // A peer that one template is about to accept is not accepted by another one, too.
        let elsewhere = |pending: &Pending| pending.peer == peer && pending.accept != accept;
        if self.pending.values().filter(waits).any(elsewhere) {
            return Ok(false);
        }
        let request = ConnectRequest {
            accept,
            socket: origin.socket,
            remote: origin.remote,
            peer,
            refused: None,
        };
        match self.admit(now, place, peer, connection.map(paths)) {
            Ok(()) => {
                self.pending.insert(at, Pending { accept, peer, until: now + PATIENCE });
                self.tell(request);
                Ok(true)
            }
            Err(reason) => {
                let template = &mut self.templates[place];
                if now >= template.quiet_until {
                    template.quiet_until = now + REFUSALS_EVERY;
                    self.tell(ConnectRequest { refused: Some(reason), ..request });
                }
                Err(reason)
            }
        }
    }

    /// Whether one more may come in: a further path of a connection that has `paths`, or a connection.
    fn admit(
        &mut self,
        now: Instant,
        place: usize,
        peer: IpAddr,
        paths: Option<usize>,
    ) -> Result<(), Drop> {
        let Self { templates, peers, pending, .. } = self;
        let Template { config, bucket, connections, .. } = &mut templates[place];
        let (has, max) = match paths {
            Some(paths) => (paths, usize::from(config.max_paths)),
            None => (*connections, usize::from(config.max_connections)),
        };
        // Who waits already counts too, but is looked at only where it matters.
        if has + pending.len() >= max || pending.len() >= MAX_PENDING {
            pending.retain(|_, waiting| now < waiting.until);
            let full = match paths {
                Some(has) => {
                    let waiting = pending.values().filter(|waiting| waiting.peer == peer);
                    has + waiting.count() >= max
                }
                // All the origins of a peer become one connection.
                None => {
                    let waiting = pending.values().filter(|waiting| waiting.accept == config.id);
                    let waiting = waiting.map(|waiting| waiting.peer);
                    let waiting: HashSet<IpAddr> =
                        waiting.filter(|peer| !peers.contains_key(peer)).collect();
                    !waiting.contains(&peer) && has + waiting.len() >= max
                }
            };
            if full {
                return Err(Drop::AcceptFull);
            }
        }
        if pending.len() >= MAX_PENDING {
            return Err(Drop::AcceptRate);
        }
        if bucket.take(now) { Ok(()) } else { Err(Drop::AcceptRate) }
    }

    /// Refusals are bounded by the number of templates, the others by who is pending.
    fn tell(&mut self, request: ConnectRequest) {
        if self.requests.len() < MAX_PENDING {
            self.requests.push_back(request);
        }
    }
}

/// Whether another host of the tunnel can have this address, and know one of ours.
fn is_possible(peer: IpAddr, own: &[IpAddr]) -> bool {
    let of_no_host = peer.is_unspecified()
        || peer.is_multicast()
        || peer.is_loopback()
        || peer == IpAddr::V4(Ipv4Addr::BROADCAST);
    !of_no_host
        && !own.contains(&peer)
        && own.iter().any(|address| address.is_ipv4() == peer.is_ipv4())
}

mod by_key;
mod nearest;
mod template;
#[cfg(test)]
mod tests;
