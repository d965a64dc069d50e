//! One direction of the tunnel: striping, links, order.

use std::time::Duration;

use mpt_proto::Instant;

use super::datagram::{Datagram, Inner};
use super::order::{Buffer, OrderStats};
use super::plan::{Path, Plan};
use crate::link::Link;
use crate::model::weighted::sending_vector;

/// One direction.
#[derive(Debug)]
pub(super) struct Way {
    vector: Vec<usize>,
    /// The place in the vector.
    place: usize,
    next_number: u64,
    overheads: Vec<usize>,
    links: Vec<Link<Datagram>>,
    buffer: Buffer<Datagram>,
}

impl Way {
    /// Direction 0 is that of the data, 1 that of the acknowledgements.
    pub(super) fn new(plan: &Plan, direction: u64) -> Self {
        let weights: Vec<u16> = plan.paths.iter().map(|path| path.weight).collect();
        let link = |(number, path): (u64, &Path)| {
            let profile = if direction == 0 { &path.there } else { &path.back };
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(number * 2 + direction);
            Link::carrying(profile.clone(), seed)
        };
        Self {
            vector: sending_vector(&weights),
            place: 0,
            next_number: 0,
            overheads: plan.paths.iter().map(|path| path.overhead).collect(),
            links: (0..).zip(&plan.paths).map(link).collect(),
            buffer: Buffer::new(plan.order, plan.paths.len()),
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.links.iter().filter_map(Link::next_due).chain(self.buffer.deadline()).min()
    }

    /// Lets a packet pass before time begins; returns how long it takes.
    pub(super) fn pass(&mut self) -> Duration {
        let Some(&path) = self.vector.get(self.place) else { return Duration::ZERO };
        self.place = (self.place + 1) % self.vector.len();
        self.next_number += 1;
        self.buffer.begin(self.next_number);
        self.links[path].profile().delay
    }

    /// Sends an inner packet of `size` bytes by the next path.
    pub(super) fn send(&mut self, now: Instant, flow: usize, inner: Inner, size: usize) {
        let Some(&path) = self.vector.get(self.place) else { return };
        self.place = (self.place + 1) % self.vector.len();
        let number = self.next_number;
        self.next_number += 1;
        let size = size + self.overheads[path];
        self.links[path].send(now, Datagram { flow, inner, number, size, broken: false });
    }

    /// What comes out at `now`, in its order.
    pub(super) fn receive(&mut self, now: Instant) -> Vec<Datagram> {
        let mut out = Vec::new();
        for (path, link) in self.links.iter_mut().enumerate() {
            while let Some((_, datagram)) = link.receive(now) {
                if !datagram.broken {
                    self.buffer.insert(now, path, datagram.number, datagram, &mut out);
                }
            }
        }
        self.buffer.on_time(now, &mut out);
        out
    }

    pub(super) fn stats(&self) -> &OrderStats {
        self.buffer.stats()
    }
}
