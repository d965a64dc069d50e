//! Hosts that run the real core, joined by wires, under one virtual clock.
//!
//! A [`World`] is driven in stretches: [`World::run_until`] lets time pass, and between two
//! stretches a test does to it what life does to networks: cuts a wire in one direction, restarts
//! a host, has a translator forget, offers traffic. Nothing waits in real time. The next moment is
//! the earliest at which a link delivers, a core's deadline comes, or a source sends; at each
//! moment trunks and links come first, then deadlines, then sources, each in the order they were made.
//!
//! Everything random comes from the world's one seed, and [`World::digest`] condenses all that went
//! over any wire or was delivered: two runs are the same if their digests are.

mod command;
mod digest;
mod host;
mod id;
mod inbox;
mod load;
pub mod pair;
mod pause;
mod trunk;
mod view;
mod wire;

use std::net::SocketAddr;

use mpt_proto::{ConfigError, Endpoint, Event, Instant, Origin, SocketId};

use crate::link::Link;
use crate::profile::Profile;
use crate::traffic::packet::Packet;
use crate::udp;
use digest::Digest;
use host::Host;
pub use host::{HostConfig, HostStats};
pub use id::{BulkId, HostId, StreamId, TrunkId, WireId};
use load::{By, Claim, Load};
use trunk::Trunk;
use wire::Wire;
pub use wire::{Direction, End};

/// This many consecutive steps without progress of time indicate an endless loop.
const MOST_STEPS_AT_ONCE: u32 = 1_000_000;

/// Hosts, wires, traffic and a clock.
#[derive(Debug)]
pub struct World {
    seed: u64,
    now: Instant,
    hosts: Vec<Host>,
    wires: Vec<Wire>,
    trunks: Vec<Trunk>,
    load: Load,
    events: Vec<(Instant, HostId, Event)>,
    digest: Digest,
}

// --- making it ---

impl World {
    /// An empty world at [`Instant::ZERO`].
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            hosts: Vec::new(),
            wires: Vec::new(),
            trunks: Vec::new(),
            load: Load::default(),
            events: Vec::new(),
            digest: Digest::default(),
        }
    }

    /// Adds a host whose core starts now; what it has to say it says when time passes next, so
    /// that there is time to add its wires.
    ///
    /// # Errors
    ///
    /// What the core finds wrong with the settings.
    pub fn add_host(&mut self, config: HostConfig) -> Result<HostId, ConfigError> {
        let endpoint = Endpoint::new(&config.endpoint, self.now)?;
        self.hosts.push(Host::new(config, endpoint));
        Ok(HostId(self.hosts.len() - 1))
    }

    /// Joins two ends by a wire with a profile for each direction. A datagram goes by the first
    /// wire whose ends have its source and destination address.
    pub fn add_wire(&mut self, a: End, b: End, there: Profile, back: Profile) -> WireId {
        let number = self.wires.len() as u64;
        let link = |profile, direction| {
            // Neighbouring seeds give unrelated sequences: the generator is seeded by a hash.
            Link::new(
                profile,
                self.seed.wrapping_mul(1_000_003).wrapping_add(number * 2 + direction),
            )
        };
        let links = [link(there, 0), link(back, 1)];
        self.wires.push(Wire::new(a, b, links));
        WireId(self.wires.len() - 1)
    }

    /// Has some wires share a link in one direction: their datagrams go over that before they enter their own.
    pub fn add_trunk(
        &mut self,
        wires: &[WireId],
        direction: Direction,
        profile: Profile,
    ) -> TrunkId {
        // Far from the seeds of the wires.
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_sub(1 + self.trunks.len() as u64);
        let members = wires.iter().map(|wire| wire.0).collect();
        self.trunks.push(Trunk::new(profile, seed, direction, members));
        TrunkId(self.trunks.len() - 1)
    }
}

// --- letting time pass ---

impl World {
    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets everything happen that happens up to `end`, that moment included.
    ///
    /// # Panics
    ///
    /// If a core asks to be woken at a time that has passed, or anything else keeps time from
    /// passing.
    pub fn run_until(&mut self, end: Instant) {
        let mut steps = 0;
        while let Some(moment) = self.next_moment().filter(|&moment| moment <= end) {
            steps = if moment > self.now { 0 } else { steps + 1 };
            assert!(
                steps < MOST_STEPS_AT_ONCE,
                "time stands still at {:?}, seed {}",
                self.now,
                self.seed
            );
            self.now = self.now.max(moment);
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Lets `duration` pass.
    pub fn run_for(&mut self, duration: std::time::Duration) {
        self.run_until(self.now + duration);
    }

    fn next_moment(&self) -> Option<Instant> {
        let links = self.wires.iter().filter_map(Wire::next_due);
        let hosts = self.hosts.iter().filter_map(Host::deadline);
        let trunks = self.trunks.iter().filter_map(Trunk::next_due);
        links.chain(trunks).chain(hosts).chain(self.load.next_due()).min()
    }

    fn step(&mut self) {
        for trunk in &mut self.trunks {
            trunk.forward(&mut self.wires, self.now);
        }
        for wire in 0..self.wires.len() {
            let is_plain = self.load.is_plain(wire);
            for direction in Direction::BOTH {
                while let Some(packet) = self.wires[wire].receive(direction, self.now) {
                    if is_plain {
                        self.arrive_plain(wire, direction, &packet);
                    } else {
                        self.arrive(self.wires[wire].destination(direction), &packet);
                    }
                }
            }
        }
        for host in (0..self.hosts.len()).map(HostId) {
            if self.hosts[host.0].deadline().is_some_and(|at| at <= self.now) {
                self.resume(host);
                self.hosts[host.0].handle_timeout(self.now);
                self.flush(host);
                let next = self.hosts[host.0].deadline();
                assert!(
                    next.is_none_or(|at| at > self.now),
                    "the core of {host:?} leaves a deadline unserved at {:?}, seed {}",
                    self.now,
                    self.seed
                );
            }
        }
        while let Some((by, packet)) = self.load.poll(self.now) {
            match by {
                By::Tunnel(host) => self.send_inner(host, &packet),
                By::Wire(wire) => self.put_on_wire(wire, Direction::There, packet),
            }
        }
    }
}

// --- how packets move ---

impl World {
    /// A packet has come off a wire.
    fn arrive(&mut self, host: HostId, packet: &[u8]) {
        let parsed = udp::parse(packet);
        let receiver = &mut self.hosts[host.0];
        let Some((remote, local, datagram)) = parsed else {
            receiver.stats_mut().unreadable += 1;
            return;
        };
        let Some(socket) = receiver.socket(local) else {
            receiver.stats_mut().no_socket += 1;
            return;
        };
        receiver.handle_datagram(self.now, Origin { socket, remote, tos: 0 }, datagram);
        self.flush(host);
    }

    /// A pause of a host is over, if it was in one: it reads what has waited.
    fn resume(&mut self, host: HostId) {
        let Some(mut pause) = self.hosts[host.0].take_pause() else { return };
        loop {
            let batch = pause.take_batch(self.now);
            if batch.is_empty() {
                break;
            }
            self.hosts[host.0].handle_batch(self.now, batch);
            self.flush(host);
        }
        while let Some(packet) = pause.take_inner() {
            self.send_inner(host, &packet);
        }
    }

    /// Takes from a host's core what it has to say: datagrams, events, delivered packets. In a pause it says nothing.
    fn flush(&mut self, host: HostId) {
        if self.hosts[host.0].is_paused() {
            return;
        }
        self.hosts[host.0].learn(self.now);
        while let Some((socket, remote, datagram)) = self.hosts[host.0].poll_transmit(self.now) {
            self.send_datagram(host, socket, remote, &datagram);
        }
        while let Some(event) = self.hosts[host.0].poll_event() {
            self.events.push((self.now, host, event));
        }
        for packet in self.hosts[host.0].take_delivered() {
            self.digest.add(self.now, u64::MAX - host.0 as u64, &packet);
            self.deliver(host, packet);
        }
    }

    /// An inner packet has come out of a host's core.
    fn deliver(&mut self, host: HostId, bytes: Vec<u8>) {
        let answer = match Packet::parse(&bytes) {
            Some(packet) => self.load.on_packet(self.now, host, &packet, bytes.len()),
            None => Claim::Nobody,
        };
        match answer {
            Claim::Nobody => self.hosts[host.0].on_unclaimed(bytes),
            Claim::Taken => {}
            Claim::Answered(answer) => self.send_inner(host, &answer),
        }
    }

    /// Puts a datagram on the wire it belongs on.
    fn send_datagram(
        &mut self,
        host: HostId,
        socket: SocketId,
        remote: SocketAddr,
        datagram: &[u8],
    ) {
        let sender = &mut self.hosts[host.0];
        let (local, checksum) = sender.origin(socket);
        let way = |(number, wire): (usize, &Wire)| {
            Some((number, wire.direction(host, local.ip(), remote.ip())?))
        };
        let found = self.wires.iter().enumerate().find_map(way);
        let packet = udp::emit(local, remote, datagram, checksum);
        match (found, packet) {
            (Some((number, direction)), Some(packet)) => {
                self.put_on_wire(number, direction, packet);
            }
            _ => sender.stats_mut().no_wire += 1,
        }
    }

    /// A packet goes by a wire, over the link that this shares with others, if it does.
    fn put_on_wire(&mut self, number: usize, direction: Direction, packet: Vec<u8>) {
        let place = number as u64 * 2 + direction as u64;
        self.digest.add(self.now, place, &packet);
        let mut trunks = self.trunks.iter_mut();
        match trunks.find(|trunk| trunk.holds(number, direction)) {
            Some(trunk) => trunk.send(number, self.now, packet),
            None => self.wires[number].send(direction, self.now, packet),
        }
    }

    /// A packet has come off a wire that carries no tunnel.
    fn arrive_plain(&mut self, wire: usize, direction: Direction, bytes: &[u8]) {
        let host = self.wires[wire].destination(direction);
        let Some(packet) = Packet::parse(bytes) else { return };
        let answer = self.load.on_packet(self.now, host, &packet, bytes.len());
        if let Claim::Answered(answer) = answer {
            self.put_on_wire(wire, direction.reversed(), answer);
        }
    }
}
