//! A wire between two hosts: a link for each direction, and maybe a translator before one end.

use std::net::IpAddr;

use mpt_proto::Instant;

use super::id::HostId;
use crate::link::Link;
use crate::nat::Nat;

/// Where a wire ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// At which host.
    pub host: HostId,
    /// The outer address the host has there. A host may have one address at several wires.
    pub address: IpAddr,
}

/// One of the two directions of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From end `a` to end `b`.
    There,
    /// From end `b` to end `a`.
    Back,
}

impl Direction {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::There, Self::Back];

    /// The other one.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::There => Self::Back,
            Self::Back => Self::There,
        }
    }
}

#[derive(Debug)]
pub(super) struct Wire {
    a: End,
    b: End,
    links: [Link; 2],
    /// Stands between end `a` and the wire.
    pub(super) nat: Option<Nat>,
    pub(super) nat_drops: u64,
}

impl Wire {
    pub(super) fn new(a: End, b: End, links: [Link; 2]) -> Self {
        Self { a, b, links, nat: None, nat_drops: 0 }
    }

    pub(super) fn link(&self, direction: Direction) -> &Link {
        &self.links[direction as usize]
    }

    pub(super) fn link_mut(&mut self, direction: Direction) -> &mut Link {
        &mut self.links[direction as usize]
    }

    /// In which direction a packet from `source` at `host` to `destination` goes, if this is its
    /// wire.
    pub(super) fn direction(
        &self,
        host: HostId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Direction> {
        let seen_from_b = self.nat.as_ref().map_or(self.a.address, Nat::outside);
        if (host, source, destination) == (self.a.host, self.a.address, self.b.address) {
            Some(Direction::There)
        } else if (host, source, destination) == (self.b.host, self.b.address, seen_from_b) {
            Some(Direction::Back)
        } else {
            None
        }
    }

    /// The host at which a direction ends.
    pub(super) fn destination(&self, direction: Direction) -> HostId {
        match direction {
            Direction::There => self.b.host,
            Direction::Back => self.a.host,
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.links.iter().filter_map(Link::next_due).min()
    }

    pub(super) fn send(&mut self, direction: Direction, now: Instant, mut packet: Vec<u8>) {
        if let (Direction::There, Some(nat)) = (direction, &mut self.nat)
            && nat.outbound_packet(now, &mut packet).is_err()
        {
            self.nat_drops += 1;
            return;
        }
        self.link_mut(direction).send(now, packet);
    }

    /// The next packet that is due and that the translator lets pass.
    pub(super) fn receive(&mut self, direction: Direction, now: Instant) -> Option<Vec<u8>> {
        loop {
            let (_, mut packet) = self.link_mut(direction).receive(now)?;
            if let (Direction::Back, Some(nat)) = (direction, &mut self.nat)
                && nat.inbound_packet(now, &mut packet).is_err()
            {
                self.nat_drops += 1;
                continue;
            }
            return Some(packet);
        }
    }
}
