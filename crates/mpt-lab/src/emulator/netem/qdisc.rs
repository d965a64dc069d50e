//! The kernel's network emulator (`tc-netem(8)`): what leaves through an interface is lost,
//! duplicated, corrupted, delayed and slowed down as a real network would.
//!
//! netem takes what it is handed for one packet, also a super-packet, and would lose 64 KiB at a
//! time. So it does not stand at an interface's root, but below a token bucket filter of practically
//! infinite rate whose bucket holds one frame: that one cuts what is longer.

mod normal;

use std::time::Duration;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use mpt_io::netlink::{Error, Netlink, TokenBucket};

const KIND: &str = "netem";
/// The only class of the filter at the root, and netem below it.
const BELOW_ROOT: TcHandle = TcHandle { major: 1, minor: 1 };
const NETEM: TcHandle = TcHandle { major: 2, minor: 0 };
/// Bytes per second at the root: a frame of 1514 bytes takes 1.5 ns.
const UNLIMITED: u64 = 1_000_000_000_000;
/// Bytes that may wait at the root as long as there is no netem, which takes the queue's place: many
/// super-packets.
const CUTTER_QUEUE: u32 = 16 << 20;

/// `TCA_OPTIONS`, from `linux/rtnetlink.h`.
const OPTIONS: u16 = 2;
/// Attributes of netem, from `linux/pkt_sched.h`.
const DELAY_DISTRIBUTION: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const RATE_64: u16 = 8;
const LATENCY_64: u16 = 10;
const JITTER_64: u16 = 11;
const SEED: u16 = 14;
/// Within [`LOSS`]: the Gilbert-Elliott model.
const LOSS_GILBERT_ELLIOTT: u16 = 2;
/// Nanoseconds in the unit of the older, 32-bit times (`PSCHED_SHIFT` in `net/pkt_sched.h`).
const TICK: u128 = 64;

/// What happens to packets that leave. Every probability lies in 0..=1; what lies outside acts as the
/// nearest bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Netem {
    /// Packets that may wait or be on the way; what comes then is dropped. 0 drops everything.
    pub(super) limit: u32,
    /// Added to each packet's time.
    pub(super) delay: Duration,
    /// Standard deviation of the normally distributed part of the delay. Without a rate packets
    /// overtake each other by it, with one they never do.
    pub(super) jitter: Duration,
    /// Loss.
    pub(super) loss: NetemLoss,
    /// Probability that a packet is sent twice.
    pub(super) duplicate: f64,
    /// Probability that one bit of a frame is inverted, its Ethernet header included.
    pub(super) corrupt: f64,
    /// Probability that a packet is sent at once, ahead of those that wait.
    pub(super) reorder: f64,
    /// Bytes per second; `None` is infinitely fast.
    pub(super) rate: Option<u64>,
    /// Bytes that each packet counts more than the length of its frame, or fewer, for the rate.
    pub(super) overhead: i32,
    /// From which chance follows, on Linux 6.7 and later; `None` leaves it to the kernel.
    pub(super) seed: Option<u64>,
}

/// How netem loses packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NetemLoss {
    /// Each with this probability.
    Random(f64),
    /// In bursts, by the Gilbert-Elliott chain.
    GilbertElliott {
        /// From good to bad.
        p: f64,
        /// From bad to good.
        r: f64,
        /// That a packet survives the bad state.
        h: f64,
        /// That a packet survives the good state.
        k: f64,
    },
}

impl Default for NetemLoss {
    fn default() -> Self {
        Self::Random(0.0)
    }
}

/// What netem has done since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NetemCounters {
    /// Packets that have left, copies included.
    pub(super) packets: u64,
    /// Their bytes, with Ethernet headers.
    pub(super) bytes: u64,
    /// Packets lost, or dropped because of the limit: the kernel does not distinguish them.
    pub(super) dropped: u64,
    /// Packets that wait or are on the way.
    pub(super) waiting: u64,
    /// Their bytes, with Ethernet headers.
    pub(super) waiting_bytes: u64,
    /// Packets sent ahead of others.
    pub(super) reordered: u64,
}

/// Has super-packets that leave through an interface cut into packets of at most `frame` bytes, Ethernet
/// header included. [`Netem::add`] needs it.
///
/// # Errors
///
/// See [`Error`]; [`Error::Exists`] if the interface has a queueing discipline already. Without `sch_tbf`
/// the kernel says [`Error::NotFound`].
pub(super) fn add_cutter(netlink: &mut Netlink, index: u32, frame: u32) -> Result<(), Error> {
    let bucket = TokenBucket { rate: UNLIMITED, burst: frame, queue: CUTTER_QUEUE };
    netlink.add_token_bucket(index, bucket)
}

impl Netem {
    /// Emulates a network behind an interface that has a [cutter](add_cutter). It goes with the interface.
    ///
    /// # Errors
    ///
    /// See [`Error`]. Without `sch_netem` the kernel says [`Error::NotFound`].
    pub(super) fn add(&self, netlink: &mut Netlink, index: u32) -> Result<(), Error> {
        self.put(netlink, index, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Changes what [`add`](Self::add) has set. Packets on the way keep their times.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub(super) fn change(&self, netlink: &mut Netlink, index: u32) -> Result<(), Error> {
        self.put(netlink, index, 0)
    }

    fn put(&self, netlink: &mut Netlink, index: u32, flags: u16) -> Result<(), Error> {
        let message = RouteNetlinkMessage::NewQueueDiscipline(self.message(index));
        let action = format!("emulate a network at interface {index}");
        netlink.request(message, flags, &action).map(drop)
    }
}

impl Netem {
    fn message(&self, index: u32) -> TcMessage {
        let mut message = about(index, BELOW_ROOT, NETEM);
        message.attributes.push(TcAttribute::Kind(KIND.to_owned()));
        // A structure and then attributes, which the library has no name for.
        message.attributes.push(TcAttribute::Other(DefaultNla::new(OPTIONS, self.options())));
        message
    }

    /// `struct tc_netem_qopt`, then attributes.
    fn options(&self) -> Vec<u8> {
        let random = match self.loss {
            NetemLoss::Random(p) => p,
            NetemLoss::GilbertElliott { .. } => 0.0,
        };
        let ticks = |time: Duration| u32::try_from(time.as_nanos() / TICK).unwrap_or(u32::MAX);
        let gap = u32::from(self.reorder > 0.0);
        let words = [
            ticks(self.delay),
            self.limit,
            chance(random),
            gap,
            chance(self.duplicate),
            ticks(self.jitter),
        ];
        let mut options: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        put(&mut options, LATENCY_64, &nanos(self.delay).to_ne_bytes());
        put(&mut options, JITTER_64, &nanos(self.jitter).to_ne_bytes());
        if !self.jitter.is_zero() {
            put(&mut options, DELAY_DISTRIBUTION, &normal::table());
        }
        // Attributes that are not sent keep their value: zeros must be sent too when netem is
        // changed.
        for (kind, p) in [(REORDER, self.reorder), (CORRUPT, self.corrupt)] {
            // The second number would correlate one packet's fate with the last one's.
            put(&mut options, kind, &[chance(p), 0].map(u32::to_ne_bytes).concat());
        }
        if let NetemLoss::GilbertElliott { p, r, h, k } = self.loss {
            // The kernel wants the chance of being lost in the good state, but of surviving the bad.
            let model = [p, r, h, 1.0 - k].map(|p| chance(p).to_ne_bytes()).concat();
            let mut nested = Vec::new();
            put(&mut nested, LOSS_GILBERT_ELLIOTT, &model);
            put(&mut options, LOSS, &nested);
        }
        let rate = self.rate.unwrap_or(0);
        if rate > u32::MAX.into() {
            put(&mut options, RATE_64, &rate.to_ne_bytes());
        }
        let small = u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes();
        // The last two are about ATM cells.
        let none = [0; 4];
        put(&mut options, RATE, &[small, self.overhead.to_ne_bytes(), none, none].concat());
        if let Some(seed) = self.seed {
            put(&mut options, SEED, &seed.to_ne_bytes());
        }
        options
    }
}

impl NetemCounters {
    /// What netem has done at an interface; `None` if there is none.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if there is no such interface.
    pub(super) fn of(netlink: &mut Netlink, index: u32) -> Result<Option<Self>, Error> {
        let message = about(index, BELOW_ROOT, TcHandle::UNSPEC);
        let message = RouteNetlinkMessage::GetQueueDiscipline(message);
        let action = format!("read what netem did at interface {index}");
        // The kernel answers who asks only by an echo; see `Netlink::token_bucket`.
        let answers = netlink.request(message, NLM_F_ECHO, &action)?;
        Ok(answers.iter().find_map(|answer| {
            let RouteNetlinkMessage::NewQueueDiscipline(found) = answer else { return None };
            Self::read(found)
        }))
    }

    fn read(message: &TcMessage) -> Option<Self> {
        let is_netem = |attribute: &_| matches!(attribute, TcAttribute::Kind(kind) if kind == KIND);
        message.attributes.iter().find(|attribute| is_netem(attribute))?;
        let mut counters = Self::default();
        for attribute in &message.attributes {
            let TcAttribute::Stats2(parts) = attribute else { continue };
            for part in parts {
                if let TcStats2::Basic(basic) = part {
                    counters.packets = basic.packets.into();
                    counters.bytes = basic.bytes;
                } else if let TcStats2::Queue(queue) = part {
                    counters.dropped = queue.drops.into();
                    counters.waiting = queue.qlen.into();
                    counters.waiting_bytes = queue.backlog.into();
                    counters.reordered = queue.requeues.into();
                }
            }
        }
        Some(counters)
    }
}

/// About a queueing discipline below `parent`.
fn about(index: u32, parent: TcHandle, handle: TcHandle) -> TcMessage {
    // Indices are positive and count up from 1.
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = parent;
    message.header.handle = handle;
    message
}

/// A probability as the kernel compares it with 32 random bits.
fn chance(p: f64) -> u32 {
    // Casts saturate.
    (p * f64::from(u32::MAX)).round() as u32
}

/// Appends an attribute: length, kind, value, padding.
fn put(options: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(4 + value.len()).expect("the longest attribute is a table of 8 KiB");
    options.extend(len.to_ne_bytes());
    options.extend(kind.to_ne_bytes());
    options.extend(value);
    options.resize(options.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests;
