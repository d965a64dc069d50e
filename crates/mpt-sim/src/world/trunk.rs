//! A link that several wires share in one direction, such as a modem's uplink or a provider's router.

use mpt_proto::Instant;

use super::wire::{Direction, Wire};
use crate::link::{Carried, Link};
use crate::profile::Profile;

/// A packet that goes over a trunk, and the wire on which it goes on.
#[derive(Clone, Debug)]
struct Tagged {
    wire: usize,
    packet: Vec<u8>,
}

impl Carried for Tagged {
    fn size(&self) -> usize {
        self.packet.size()
    }

    fn invert_bit(&mut self, bit: usize) {
        self.packet.invert_bit(bit);
    }
}

/// What the members' datagrams go over before they enter their own wires.
#[derive(Debug)]
pub(super) struct Trunk {
    link: Link<Tagged>,
    direction: Direction,
    members: Vec<usize>,
}

impl Trunk {
    pub(super) fn new(
        profile: Profile,
        seed: u64,
        direction: Direction,
        members: Vec<usize>,
    ) -> Self {
        Self { link: Link::carrying(profile, seed), direction, members }
    }

    /// Whether the datagrams of a wire in a direction go over it.
    pub(super) fn holds(&self, wire: usize, direction: Direction) -> bool {
        direction == self.direction && self.members.contains(&wire)
    }

    pub(super) fn set_profile(&mut self, now: Instant, profile: Profile) {
        self.link.set_profile(now, profile);
    }

    /// Bytes that wait for the transmitter.
    pub(super) fn backlog(&self, now: Instant) -> u64 {
        self.link.backlog(now)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.link.next_due()
    }

    pub(super) fn send(&mut self, wire: usize, now: Instant, packet: Vec<u8>) {
        self.link.send(now, Tagged { wire, packet });
    }

    /// Passes everything that is due to the wires.
    pub(super) fn forward(&mut self, wires: &mut [Wire], now: Instant) {
        while let Some((_, Tagged { wire, packet })) = self.link.receive(now) {
            wires[wire].send(self.direction, now, packet);
        }
    }
}
