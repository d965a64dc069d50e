//! A source address translator, as stands between most homes and the Internet.
//!
//! It follows RFC 4787 where that leaves no choice: a mapping belongs to an inside address and port
//! whatever the destination (REQ-1), is refreshed by what goes out (REQ-6) and is forgotten
//! after a while (REQ-5). Who may use a mapping from outside is a choice: [`Filtering`].
//! [`Nat::rebind`] makes it forget at once, as a reboot or a provider's nightly disconnection does.
//!
//! It works on addresses and ports; [`packet`] applies it to whole IP packets.

pub mod packet;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::Instant;

/// The first port that is given out; those below are reserved (RFC 4787 REQ-3).
const FIRST_PORT: u16 = 1024;

/// The most remotes that one mapping accepts; beyond that the lowest address is removed.
const MAX_REMOTES: usize = 1024;

/// A protocol with ports. Each has its own port space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP. Its connections are not followed; their mappings end by time as well.
    Tcp,
    /// UDP.
    Udp,
}

/// Who may send to a mapping from outside (RFC 4787 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// Any host that was sent to, from any of its ports.
    Address,
    /// Exactly the address and port that was sent to: the commonest and strictest.
    #[default]
    AddressAndPort,
    /// Any remote.
    EndpointIndependent,
}

/// Why a translator lets a packet not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NatDrop {
    /// Every port is in use.
    Exhausted,
    /// The mapping exists, but not for this sender.
    Filtered,
    /// Too short, a fragment, or neither UDP nor TCP.
    Untranslatable,
    /// There is no mapping at this address and port.
    Unmapped,
    /// The translator has no outside address of this IP version.
    Version,
}

/// A source address translator with one outside address.
#[derive(Clone, Debug)]
pub struct Nat {
    outside: IpAddr,
    filtering: Filtering,
    timeout: Duration,
    /// Whether a mapping takes the inside port where that is free.
    preserves_ports: bool,
    next_port: u16,
    /// By the port outside.
    mappings: BTreeMap<(Protocol, u16), Mapping>,
    /// The port outside, by the address inside.
    ports: BTreeMap<(Protocol, SocketAddr), u16>,
}

#[derive(Clone, Debug)]
struct Mapping {
    inside: SocketAddr,
    used: Instant,
    remotes: BTreeSet<SocketAddr>,
}

impl Nat {
    /// How long an unused mapping lasts: the least that RFC 4787 REQ-5 allows for UDP.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// A translator without mappings whose outside address is `outside`.
    pub fn new(outside: IpAddr) -> Self {
        Self {
            outside,
            filtering: Filtering::default(),
            timeout: Self::DEFAULT_TIMEOUT,
            preserves_ports: false,
            next_port: FIRST_PORT,
            mappings: BTreeMap::new(),
            ports: BTreeMap::new(),
        }
    }

    /// The same translator with another filter.
    #[must_use]
    pub fn with_filtering(mut self, filtering: Filtering) -> Self {
        self.filtering = filtering;
        self
    }

    /// The same translator with another life time of unused mappings.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same NAT with port preservation for the first user of a port, as in most home routers
    /// (RFC 4787 section 4.2.1), until it [rebinds](Self::rebind).
    #[must_use]
    pub fn with_preserved_ports(mut self) -> Self {
        self.preserves_ports = true;
        self
    }

    /// Its outside address.
    pub fn outside(&self) -> IpAddr {
        self.outside
    }

    /// The outside source of a packet from `inside` to `remote`.
    ///
    /// # Errors
    ///
    /// [`NatDrop::Exhausted`] or [`NatDrop::Version`].
    pub fn outbound(
        &mut self,
        now: Instant,
        protocol: Protocol,
        inside: SocketAddr,
        remote: SocketAddr,
    ) -> Result<SocketAddr, NatDrop> {
        if inside.is_ipv4() != self.outside.is_ipv4() {
            return Err(NatDrop::Version);
        }
        let port = match self.live_port(now, protocol, inside) {
            Some(port) => port,
            None => self.map(now, protocol, inside)?,
        };
        if let Some(mapping) = self.mappings.get_mut(&(protocol, port)) {
            mapping.used = now;
            if self.filtering != Filtering::EndpointIndependent {
                mapping.remotes.insert(remote);
                if mapping.remotes.len() > MAX_REMOTES {
                    mapping.remotes.pop_first();
                }
            }
        }
        Ok(SocketAddr::new(self.outside, port))
    }

    /// The inside destination of a packet from `remote` to `outside`.
    ///
    /// # Errors
    ///
    /// [`NatDrop::Unmapped`] or [`NatDrop::Filtered`].
    pub fn inbound(
        &mut self,
        now: Instant,
        protocol: Protocol,
        outside: SocketAddr,
        remote: SocketAddr,
    ) -> Result<SocketAddr, NatDrop> {
        let key = (protocol, outside.port());
        let mapping = self.mappings.get(&key).filter(|mapping| {
            outside.ip() == self.outside && now.since(mapping.used) < self.timeout
        });
        let mapping = mapping.ok_or(NatDrop::Unmapped)?;
        let admitted = match self.filtering {
            Filtering::Address => mapping.remotes.iter().any(|known| known.ip() == remote.ip()),
            Filtering::AddressAndPort => mapping.remotes.contains(&remote),
            Filtering::EndpointIndependent => true,
        };
        if admitted { Ok(mapping.inside) } else { Err(NatDrop::Filtered) }
    }

    /// Forgets every mapping. What goes out next appears from other ports.
    pub fn rebind(&mut self) {
        self.mappings.clear();
        self.ports.clear();
        self.preserves_ports = false;
    }

    /// Forgets every mapping and appears from another address from now on.
    pub fn rebind_to(&mut self, outside: IpAddr) {
        self.rebind();
        self.outside = outside;
    }

    /// The port of the mapping for `inside`, unless it has timed out.
    fn live_port(&self, now: Instant, protocol: Protocol, inside: SocketAddr) -> Option<u16> {
        let port = *self.ports.get(&(protocol, inside))?;
        let used = self.mappings.get(&(protocol, port))?.used;
        (now.since(used) < self.timeout).then_some(port)
    }

    /// Creates a mapping on the inside port, if ports are preserved and it is free; if not, on the
    /// next free port, so that ports are reused late.
    fn map(
        &mut self,
        now: Instant,
        protocol: Protocol,
        inside: SocketAddr,
    ) -> Result<u16, NatDrop> {
        let mut preserved = self.preserves_ports.then_some(inside.port());
        for _ in FIRST_PORT..=u16::MAX {
            let port = preserved.take().filter(|&port| port >= FIRST_PORT);
            let port = port.unwrap_or_else(|| self.take_next_port());
            let held = self.mappings.get(&(protocol, port));
            if held.is_some_and(|mapping| now.since(mapping.used) < self.timeout) {
                continue;
            }
            let fresh = Mapping { inside, used: now, remotes: BTreeSet::new() };
            if let Some(expired) = self.mappings.insert((protocol, port), fresh)
                && self.ports.get(&(protocol, expired.inside)) == Some(&port)
            {
                self.ports.remove(&(protocol, expired.inside));
            }
            if let Some(previous) = self.ports.insert((protocol, inside), port) {
                // This inside's own mapping had timed out elsewhere.
                self.mappings.remove(&(protocol, previous));
            }
            return Ok(port);
        }
        Err(NatDrop::Exhausted)
    }

    fn take_next_port(&mut self) -> u16 {
        let next = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        std::mem::replace(&mut self.next_port, next)
    }
}

#[cfg(test)]
mod tests;
