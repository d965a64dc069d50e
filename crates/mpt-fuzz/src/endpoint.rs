//! Two endpoints, and whatever can happen to them and between them.
//!
//! The first bytes are settings, the others operations: packets offered, datagrams that arrive, get
//! lost, arrive twice, late or damaged, forged datagrams and packets, hosts that restart, time that
//! passes, and changes of every kind: connections and paths added and removed, at either host and
//! without the other's knowledge; also changes of unknown ones, and with delayed updates between
//! the two sides. After each operation the invariants of `mpt-proto` are checked:
//!
//! - every packet and datagram that entered was sent, delivered, is held, or was counted as a drop;
//! - each delivered packet is a complete packet of the peer, and, without tampering, one that was
//!   sent; none is delivered twice, and none after a later one if late packets are dropped;
//! - no more is held than the windows, and the sink's count of it is the endpoint's, also when its
//!   connection was removed;
//! - packets use the connection that a plain search finds, and paths that are up;
//! - all due work is done: the next deadline is in the future;
//! - in a session, also: numbers without gaps or repetitions, no datagram that is neither counted nor a message of
//!   the session, no more bytes to an unproven origin than came from it, and memory within bounds.
//!
//! A byte of the settings says whether the connection uses plain or extended framing, or negotiates it, and whether
//! the second host learns its paths. Then the first host is behind a translator.

mod accounts;
mod changes;
mod host;
mod inbox;
mod network;
mod packet;
mod plan;
mod sequences;
mod sessions;
mod settings;

use std::time::Duration;

use mpt_proto::wire::extended::is_extended;
use mpt_proto::{Change, ConnectionId, Instant, PathId};

use crate::input::Input;
use host::Host;
use network::{Flying, Network};
use settings::{CONNECTIONS, Settings, status};

/// Takes settings and operations, see the module's documentation.
pub fn endpoint(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(Settings::read(&mut input));
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        world.operate(&mut input);
        world.hosts.iter().for_each(Host::check);
    }
}

/// More would only make one input slow; many short ones find more.
const MAX_OPERATIONS: usize = 4096;

/// The most datagrams on their way. Further ones take the place of the oldest.
const MAX_IN_FLIGHT: usize = 256;

struct World {
    now: Instant,
    settings: Settings,
    hosts: [Host; 2],
    network: Network,
    in_flight: Vec<Flying>,
    /// The number of the next packet.
    number: u64,
}

impl World {
    fn new(settings: Settings) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let hosts = [0, 1].map(|number| Host::new(&settings, number, 0, now));
        let (network, in_flight) = (Network::default(), Vec::new());
        let mut world = Self { now, settings, hosts, network, in_flight, number: 0 };
        world.poll();
        world
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        let host = usize::from(choice >> 7);
        if choice & 0x40 != 0 {
            self.change(host, choice & 0x3f, input);
            return self.poll();
        }
        if choice & 0x20 != 0 && self.settings.has_sessions() {
            self.disturb_session(host, choice, input);
            return self.poll();
        }
        match choice & 0x1f {
            0..=7 => self.send(host, input),
            8 => self.deliver_all(),
            9..=12 => {
                if let Some(datagram) = self.take(0) {
                    self.deliver(&datagram);
                }
            }
            13 => {
                if let Some(datagram) = self.take_any(input) {
                    self.deliver(&datagram);
                }
            }
            14 => drop(self.take_any(input)),
            15 => {
                let copy = self.any(input).cloned();
                copy.into_iter().for_each(|copy| self.launch(copy));
            }
            16 => self.damage(input),
            17 => self.forge(host, input),
            18 => {
                let origin = self.settings.origin(1 - host, input);
                self.hosts[host].receive(self.now, origin, input.bytes());
            }
            19 => drop(self.hosts[host].offer(self.now, input.bytes())),
            20..=22 => self.pass(Duration::from_millis(u64::from(input.byte()))),
            23 => self.pass(Duration::from_millis(20 * u64::from(input.byte()))),
            24 => self.pass(Duration::from_micros(u64::from(input.byte()))),
            25 => {
                let (connection, path) = (ConnectionId(0), first_path(&self.settings, input));
                let change = Change::SetStatus { connection, path, status: status(input) };
                self.apply(host, change);
            }
            26 => {
                let (connection, path) = (ConnectionId(0), first_path(&self.settings, input));
                let change = Change::SetFits { connection, path, fits: input.flag() };
                self.apply(host, change);
            }
            27 => self.pass(Duration::from_secs(u64::from(input.byte()))),
            28 => self.hosts[host].inbox.set_room(input.byte()),
            29 => {
                if input.byte() == 0xff {
                    self.hosts[host].close(self.now);
                }
            }
            30 => self.restart(host, input),
            _ => self.converse(),
        }
        self.poll();
    }

    /// Offers a packet to a host that was never sent before.
    fn send(&mut self, host: usize, input: &mut Input<'_>) {
        let shape = input.byte();
        let packet = packet::numbered(host, self.number, shape);
        if let Some(sent) = self.hosts[host].offer(self.now, &packet) {
            let inbox = &mut self.hosts[1 - host].inbox;
            inbox.on_sent(self.number, sent.connection);
            if self.settings.has_sessions() && !is_extended(&sent.bytes) {
                // What was sent before a session is delivered in it whatever its number.
                inbox.distrust(self.number);
            }
            self.launch(Flying { from: host, sent });
        }
        self.number += 1;
    }

    fn launch(&mut self, datagram: Flying) {
        if self.in_flight.len() == MAX_IN_FLIGHT {
            self.in_flight.remove(0);
        }
        self.in_flight.push(datagram);
    }

    fn any(&mut self, input: &mut Input<'_>) -> Option<&mut Flying> {
        let place = input.index(self.in_flight.len());
        self.in_flight.get_mut(place)
    }

    fn take_any(&mut self, input: &mut Input<'_>) -> Option<Flying> {
        let place = input.index(self.in_flight.len());
        self.take(place)
    }

    fn take(&mut self, place: usize) -> Option<Flying> {
        (place < self.in_flight.len()).then(|| self.in_flight.remove(place))
    }

    fn deliver(&mut self, datagram: &Flying) {
        if let Some(origin) = self.network.arrive(datagram) {
            self.hosts[1 - datagram.from].receive(self.now, origin, &datagram.sent.bytes);
        }
    }

    fn deliver_all(&mut self) {
        for datagram in std::mem::take(&mut self.in_flight) {
            self.deliver(&datagram);
        }
    }

    /// Changes a datagram on its way: a bit, its length, or the marks of its outer header.
    fn damage(&mut self, input: &mut Input<'_>) {
        let Some(datagram) = self.any(input) else { return };
        let (how, value) = (input.byte(), input.byte());
        let place = usize::from(input.byte());
        let (number, bytes) = (sessions::number_in(&datagram.sent.bytes), &mut datagram.sent.bytes);
        match how % 4 {
            0 => datagram.sent.tos = value,
            1 => bytes.truncate(place),
            2 => bytes.push(value),
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= value;
                }
            }
        }
        // What is padded or marked still has the same packet in it, and only once.
        if let (1 | 3, Some(number)) = (how % 4, number) {
            let to = 1 - datagram.from;
            self.hosts[to].inbox.distrust(number);
        }
    }

    /// Has a host receive a datagram that its peer might have sent, with any sequence number.
    fn forge(&mut self, host: usize, input: &mut Input<'_>) {
        let connection = ConnectionId(0);
        let expected = self.hosts[host].expected(connection);
        let sequence = match input.byte() % 3 {
            0 => expected.wrapping_add(u32::from(input.byte())),
            1 => expected.wrapping_add(u32::from(input.word())).wrapping_sub(0x8000),
            _ => input.long(),
        };
        let shape = input.byte();
        let packet = packet::numbered(1 - host, self.number, shape);
        let bytes = match self.settings.has_sessions() {
            true => self.packet_of_session(host, sequence, &packet, input),
            false => Some(self.settings.datagram(connection, sequence, &packet)),
        };
        let Some(bytes) = bytes else { return };
        // What it does to the order is what a peer that errs could do.
        self.hosts[host].inbox.distrust_order(connection);
        self.hosts[host].inbox.distrust(self.number);
        self.number += 1;
        let origin = self.network.origin(1 - host, connection, self.settings.lane(input), 0);
        self.hosts[host].receive(self.now, origin, &bytes);
    }

    /// A host forgets everything.
    fn restart(&mut self, host: usize, input: &mut Input<'_>) {
        if input.byte() & 3 == 0 {
            self.hosts[host].restart(&self.settings, self.now);
            for connection in (0..CONNECTIONS as u16).map(ConnectionId) {
                self.hosts[1 - host].inbox.distrust_order(connection);
            }
        }
    }

    /// Lets time pass, with everything that is due on the way done when it is due.
    fn pass(&mut self, time: Duration) {
        const MAX_STOPS: usize = 64;
        let end = self.now + time;
        for _ in 0..MAX_STOPS {
            let next = self.hosts.iter().filter_map(Host::deadline).min();
            let Some(next) = next.filter(|next| *next < end) else { break };
            self.now = next.max(self.now);
            self.due();
        }
        self.now = end;
        self.due();
    }

    fn due(&mut self) {
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        self.poll();
        for host in &self.hosts {
            host.check_deadline(self.now);
        }
    }

    /// Puts what the hosts themselves have to send on its way.
    fn poll(&mut self) {
        for from in [0, 1] {
            for sent in self.hosts[from].poll(self.now) {
                self.launch(Flying { from, sent });
            }
        }
    }

    /// Everything arrives, until no host has anything to send.
    fn converse(&mut self) {
        // The longest conversation is the search for an MTU, of three probes and their answers for each size.
        const MAX_ROUNDS: usize = 64;
        for _ in 0..MAX_ROUNDS {
            if self.in_flight.is_empty() {
                return;
            }
            self.deliver_all();
            self.poll();
        }
        panic!("the hosts never come to an end");
    }
}

/// One of the paths that there are from the beginning.
fn first_path(settings: &Settings, input: &mut Input<'_>) -> PathId {
    PathId(settings.lane(input))
}
