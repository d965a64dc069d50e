//! Endpoints to measure, and datagrams that arrive at them in a given order, again and again.
//!
//! The micro-benchmarks of this crate measure the time of it, the instruction counts of `mpt` (its
//! bench `instructions`) include this file and count the work, so that both speak of the same.

mod keep;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use mpt_proto::{
    Cipher, Ciphers, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, FramingConfig,
    HostKeys, Instant, KEY_LEN, MAX_WINDOW, Origin, PathConfig, PathStatus, PeerKeys, PeerKind,
    Pins, Prefix, PrivateKey, ReceiveSide, ReorderConfig, SchedulerConfig, Seq, SocketId,
};

pub(crate) use keep::Keep;
use keep::Receiver;

/// Tunnel addresses of the end that sends and the end that receives.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// GRE header with a sequence number, and where that is.
const HEADER_LEN: usize = 8;
const SEQUENCE: usize = 4;

/// Datagrams of 1400 bytes in a super-packet of 64 kB: what one path delivers before another.
pub(crate) const BATCH: u32 = 44;

/// How many numbers one of two paths is ahead in [`Arrivals::skewed`]. With a send batch on top of it the
/// window is just not exceeded.
const SKEW: u32 = MAX_WINDOW - 2 * BATCH - 12;

/// Packets after which [`Arrivals::skewed`] starts again: alternating send batches, as many packets
/// as the window.
pub(crate) const SKEWED_ROUND: u32 = MAX_WINDOW / (2 * BATCH) * (2 * BATCH);

/// The end that sends, by paths of these weights.
pub(crate) fn sender(weights: &[u16]) -> Endpoint {
    endpoint([SENDER, RECEIVER], weights, ReorderConfig::default(), FramingConfig::Plain)
}

/// An endpoint whose tunnel addresses are its own and its peer's. Its paths are up for ever.
pub(crate) fn endpoint(
    [own, peer]: [Ipv4Addr; 2],
    weights: &[u16],
    reorder: ReorderConfig,
    framing: FramingConfig,
) -> Endpoint {
    let path = |(number, &weight): (u8, &u16)| PathConfig {
        socket: SocketId(u16::from(number)),
        remote: remote(number),
        weight,
        weight_from_peer: false,
        rate: None,
        price: 0,
        priority: 0,
        pins: Pins::default(),
        refuses: 0,
        failover: None,
        // In a session, a path carries when a path status has come by it.
        keepalive: (framing != FramingConfig::Plain).then_some(Duration::from_secs(3600)),
        dead_time: None,
        status: PathStatus::Available,
    };
    let is_sealed = framing == FramingConfig::Sealed;
    let private = |host: Ipv4Addr| PrivateKey::new([host.octets()[3]; KEY_LEN]);
    let connection = ConnectionConfig {
        peer_kind: PeerKind::Mpt,
        framing,
        peer: vec![IpAddr::V4(peer)],
        networks: Vec::new(),
        selector: None,
        key: None,
        checksum: false,
        sequence: true,
        scheduler: SchedulerConfig::Weighted,
        peer_keys: is_sealed.then(|| PeerKeys {
            public: private(peer).public(),
            preshared: None,
            invitation: None,
        }),
        thin_acks: true,
        classes: Vec::new(),
        equalise: true,
        compete: true,
        breaker: true,
        repair: true,
        reorder,
        paths: (0..).zip(weights).map(path).collect(),
    };
    let addresses = vec![Prefix::new(IpAddr::V4(own), 24).expect("an IPv4 address has 32 bits")];
    let config = EndpointConfig {
        addresses,
        connections: vec![connection],
        secret: mpt_proto::Secret::new([own.octets()[3]; 16]),
        keys: is_sealed.then(|| {
            let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
            HostKeys::new(private(own), ciphers, [own.octets()[3]; KEY_LEN], Duration::from_secs(1))
        }),
    };
    Endpoint::new(&config, Instant::ZERO).expect("nothing is repeated or out of range")
}

pub(crate) fn remote(path: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, path], 4754))
}

/// A UDP packet of `len` bytes from the sender to the receiver.
pub(crate) fn packet(len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet.extend(SENDER.octets());
    packet.extend(RECEIVER.octets());
    packet.extend((20..len).map(|at| at as u8));
    packet
}

/// By what packets are put in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The numbers of packets, and a configured time.
    Number,
    /// Evidence, as far as plain framing has any: flows are not known.
    Evidence,
}

/// A receiver, and the datagrams of one round on their way to it. A round continues the numbers of the
/// one before.
pub(crate) struct Arrivals {
    receiver: ReceiveSide,
    /// Two rounds of datagrams one behind the other, so that what is held since the last round is still
    /// there.
    datagrams: Vec<u8>,
    /// The length of each of them.
    size: usize,
    order: Vec<Arrival>,
    keep: Keep,
    /// The sequence number with which the round began.
    base: Seq,
    /// How many of the round have arrived.
    index: usize,
    /// Where the round's datagrams begin: at the first or in the middle.
    offset: usize,
    /// How many have ever arrived.
    arrived: u64,
    /// How many must have been held at once, after a round.
    crowd: u64,
}

/// One datagram of a round.
#[derive(Clone, Copy)]
struct Arrival {
    path: u8,
    /// Its number, counted from the first of the round.
    number: u32,
}

impl Arrivals {
    /// `packets`, which are of one length, over and over, in order and by one path.
    pub(crate) fn in_order(packets: &[Vec<u8>], by: By) -> Self {
        let numbers = 0..packets.len() as u32;
        let order = numbers.map(|number| Arrival { path: 0, number }).collect();
        let config = ReorderConfig { evidence: by == By::Evidence, ..ReorderConfig::default() };
        Self::new(1, config, order, &[], packets, Keep::Reference)
    }

    /// `packets`, dealt to two paths alternately; in each round all of one path arrive before the
    /// other's.
    pub(crate) fn striped(packets: &[Vec<u8>]) -> Self {
        let numbers = |path| (u32::from(path)..packets.len() as u32).step_by(2);
        let by_path = |path| numbers(path).map(move |number| Arrival { path, number });
        let order = by_path(0).chain(by_path(1)).collect();
        Self::new(2, ReorderConfig::default(), order, &[], packets, Keep::Reference)
    }

    /// Packets like `packet`, dealt to two paths alternately, one of which is [`SKEW`] numbers
    /// ahead of the other; their send batches arrive alternately. So half of all packets are held
    /// in a buffer of almost the largest window.
    pub(crate) fn skewed(packet: &[u8], keep: Keep, by: By) -> Self {
        let fast = |turn| Arrival { path: 0, number: 2 * turn };
        let slow = |turn| Arrival { path: 1, number: 2 * turn + 1 };
        let mut order = Vec::new();
        for send_batch in (0..SKEWED_ROUND / 2).step_by(BATCH as usize) {
            order.extend((send_batch..send_batch + BATCH).map(|turn| fast(turn + SKEW / 2)));
            order.extend((send_batch..send_batch + BATCH).map(slow));
        }
        let before: Vec<_> = (0..SKEW / 2).map(fast).collect();
        let config = ReorderConfig { evidence: by == By::Evidence, ..Self::LARGEST };
        Self::new(2, config, order, &before, &[packet.to_vec()], keep)
    }

    /// Packets like `packet`, as many as the largest window, in random order by two paths. Both break
    /// their order, so nothing is given up early.
    pub(crate) fn shuffled(packet: &[u8], keep: Keep) -> Self {
        // Behind number 0, because a receiver begins to count with the first number it sees.
        let mut numbers: Vec<u32> = (1..=MAX_WINDOW).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for at in (1..numbers.len()).rev() {
            // Xorshift64 (Marsaglia 2003) and the shuffle of Fisher and Yates.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            numbers.swap(at, (random % (at as u64 + 1)) as usize);
        }
        let arrival = |number| Arrival { path: (number % 2) as u8, number };
        let order = numbers.into_iter().map(arrival).collect();
        let config = ReorderConfig { early_release: false, ..Self::LARGEST };
        Self::new(2, config, order, &[arrival(0)], &[packet.to_vec()], keep)
    }

    /// The largest reorder buffer there is.
    const LARGEST: ReorderConfig = ReorderConfig {
        evidence: false,
        window: MAX_WINDOW,
        max_delay: Duration::from_millis(100),
        early_release: true,
        late: mpt_proto::Late::Deliver,
    };

    /// A receiver at which those of `before` have arrived, and are thus the place for `order`.
    fn new(
        paths: usize,
        config: ReorderConfig,
        order: Vec<Arrival>,
        before: &[Arrival],
        packets: &[Vec<u8>],
        keep: Keep,
    ) -> Self {
        let size = HEADER_LEN + packets[0].len();
        let mut datagrams = Vec::with_capacity(2 * order.len() * size);
        for arrival in order.iter().chain(&order) {
            datagrams.extend([0x10, 0, 0x08, 0, 0, 0, 0, 0]);
            datagrams.extend(&packets[arrival.number as usize % packets.len()]);
        }
        assert_eq!(datagrams.len(), 2 * order.len() * size, "packets of one length");
        let weights = vec![1; paths];
        let receiver = endpoint([RECEIVER, SENDER], &weights, config, FramingConfig::Plain);
        let mut arrivals = Self {
            receiver: receiver.split().1,
            datagrams,
            size,
            order: before.to_vec(),
            keep,
            base: Seq::FIRST,
            index: 0,
            offset: 0,
            arrived: 0,
            crowd: if config.window == MAX_WINDOW { u64::from(SKEW / 2) } else { 0 },
        };
        for _ in before {
            arrivals.arrive(&mut |_| {});
        }
        (arrivals.index, arrivals.offset, arrivals.base) = (0, order.len(), Seq::FIRST);
        arrivals.order = order;
        arrivals
    }

    /// How many arrive in a round.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The next datagram arrives, and what is then next in order is delivered.
    pub(crate) fn arrive(&mut self, deliver: &mut impl FnMut(&[u8])) {
        let (origin, place) = self.next();
        let Self { receiver, datagrams, size, keep, .. } = self;
        let (size, span) = (*size, place * *size..(place + 1) * *size);
        let mut arrivals = receiver.arrivals(origin);
        let opened = arrivals.open(Instant::ZERO, &mut datagrams[span.clone()]);
        let datagrams = &datagrams[..];
        let mut sink = Receiver { keep, datagrams, size, header: HEADER_LEN, place, deliver };
        if let Some(opened) = opened {
            arrivals.receive(Instant::ZERO, &opened, &datagrams[span], &mut sink);
        }
    }

    /// The next datagrams of one path arrive together, as the daemon reads them. Returns how many.
    #[allow(dead_code, reason = "not every benchmark that includes this file is about whole ways")]
    pub(crate) fn arrive_together(&mut self, deliver: &mut impl FnMut(&[u8])) -> usize {
        let rest = &self.order[self.index..];
        let path = rest[0].path;
        let together =
            rest.iter().take(BATCH as usize).take_while(|next| next.path == path).count();
        let (origin, first) = self.next();
        for _ in 1..together {
            self.next();
        }
        let Self { receiver, datagrams, size, keep, .. } = self;
        let size = *size;
        let mut arrivals = receiver.arrivals(origin);
        for place in first..first + together {
            let span = place * size..(place + 1) * size;
            let opened = arrivals.open(Instant::ZERO, &mut datagrams[span.clone()]);
            let datagrams = &datagrams[..];
            let mut sink = Receiver { keep, datagrams, size, header: HEADER_LEN, place, deliver };
            if let Some(opened) = opened {
                arrivals.receive(Instant::ZERO, &opened, &datagrams[span], &mut sink);
            }
        }
        together
    }

    /// Writes the number of the next datagram, and says where that comes from and lies.
    fn next(&mut self) -> (Origin, usize) {
        let Arrival { path, number } = self.order[self.index];
        let place = self.offset + self.index;
        let sequence = self.base.plus(number).value().to_be_bytes();
        self.datagrams[place * self.size + SEQUENCE..][..4].copy_from_slice(&sequence);
        self.arrived += 1;
        self.index += 1;
        if self.index == self.order.len() {
            self.index = 0;
            self.offset = self.order.len() - self.offset;
            self.base = self.base.plus(self.order.len() as u32);
        }
        let socket = SocketId(u16::from(path));
        (Origin { socket, remote: remote(path), tos: 0 }, place)
    }

    /// Checks that what was measured was the work: nothing was dropped, given up or taken for something
    /// else, and of the largest buffer half or more was used.
    ///
    /// # Panics
    ///
    /// If something was.
    pub(crate) fn check(&self) {
        let stats = self.receiver.connection(ConnectionId(0)).stats();
        let reorder = stats.reorder;
        assert_eq!(self.receiver.drops().total() + stats.drops.total(), 0, "{stats:?}");
        assert_eq!(reorder.in_order + reorder.reordered + reorder.held, self.arrived, "{stats:?}");
        let lost = reorder.lost_early_release + reorder.lost_max_delay + reorder.lost_window;
        assert_eq!(lost + reorder.late + reorder.restarts, 0, "{stats:?}");
        assert!(reorder.held_max >= self.crowd, "{stats:?}");
    }
}
