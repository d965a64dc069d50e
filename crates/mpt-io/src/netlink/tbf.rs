//! The kernel's token bucket filter (`tc-tbf(8)`): what leaves through an interface is held back to
//! a rate.
//!
//! The bucket fills at the rate up to its size, a frame leaves when the bucket holds its length, and
//! meanwhile those behind it wait in a queue. Lengths count with the Ethernet header, but without what
//! only a wire has (preamble, checksum and gap). A super-packet counts as the packets that it
//! stands for; one that is longer than the bucket is cut into them at the queue's entry.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, Nla, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::{Error, Netlink};

const KIND: &str = "tbf";

/// Options, from `linux/pkt_sched.h`.
const PARAMETERS: u16 = 1;
const RATE: u16 = 4;
const BURST: u16 = 6;

/// Bytes of `struct tc_ratespec` and, with two of them, of `struct tc_tbf_qopt`.
const RATE_SPEC: usize = 12;
const PARAMETERS_LEN: usize = 2 * RATE_SPEC + 12;
/// Places in `struct tc_tbf_qopt`: the link layer and the rate of the first rate, the queue's limit, the
/// bucket's size.
const LINK_LAYER_AT: usize = 1;
const RATE_AT: usize = 8;
const LIMIT_AT: usize = 2 * RATE_SPEC;
const BUCKET_AT: usize = LIMIT_AT + 4;
/// `TC_LINKLAYER_ETHERNET`: lengths are used unchanged. Other values need a table of lengths.
const ETHERNET: u8 = 1;
/// Nanoseconds per unit of the kernel's value for the time that a bucket takes to fill
/// (`PSCHED_SHIFT` in `net/pkt_sched.h`).
const TICK: u64 = 64;

/// How an interface is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bytes per second, at least 1.
    pub rate: u64,
    /// Bytes that may leave at once after a pause: the size of the bucket. Should be at least a frame
    /// of the interface's MTU, as what is longer and cannot be cut is dropped.
    pub burst: u32,
    /// Bytes that may wait; what comes then is dropped.
    pub queue: u32,
}

impl Netlink {
    /// Holds an interface back. It goes with the interface. Its handle is `1:`, so another queueing
    /// discipline can take the place of its queue, at `1:1`.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if it has a rate limit already; [`Error::NotFound`] for a
    /// kernel without `CONFIG_NET_SCH_TBF`.
    pub fn add_token_bucket(&mut self, index: u32, bucket: TokenBucket) -> Result<(), Error> {
        let mut message = root(index);
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes.push(TcAttribute::Kind(KIND.to_owned()));
        message.attributes.push(TcAttribute::Options(bucket.options()));
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        let action = format!("hold interface {index} back to {} bytes per second", bucket.rate);
        self.request(message, NLM_F_CREATE | NLM_F_EXCL, &action).map(drop)
    }

    /// How an interface is held back; `None` if it is not, or in another way.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if there is no such interface.
    pub fn token_bucket(&mut self, index: u32) -> Result<Option<TokenBucket>, Error> {
        let message = RouteNetlinkMessage::GetQueueDiscipline(root(index));
        let action = format!("read how interface {index} is held back");
        // The kernel sends it as a notification of the change; the requester gets it by requesting
        // an echo (`rtnetlink_send` in `net/core/rtnetlink.c`).
        let answers = self.request(message, NLM_F_ECHO, &action)?;
        Ok(answers.iter().find_map(|answer| {
            let RouteNetlinkMessage::NewQueueDiscipline(found) = answer else { return None };
            TokenBucket::read(found)
        }))
    }
}

/// About the queue through which all leaves.
fn root(index: u32) -> TcMessage {
    // Indices are positive and count up from 1.
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    message
}

impl TokenBucket {
    fn options(self) -> Vec<TcOption> {
        let mut parameters = vec![0; PARAMETERS_LEN];
        parameters[LINK_LAYER_AT] = ETHERNET;
        let small = u32::try_from(self.rate).unwrap_or(u32::MAX);
        parameters[RATE_AT..][..4].copy_from_slice(&small.to_ne_bytes());
        parameters[LIMIT_AT..][..4].copy_from_slice(&self.queue.to_ne_bytes());
        [
            (PARAMETERS, parameters),
            (RATE, self.rate.to_ne_bytes().into()),
            (BURST, self.burst.to_ne_bytes().into()),
        ]
        .map(|(kind, value)| TcOption::Other(DefaultNla::new(kind, value)))
        .into()
    }

    fn read(message: &TcMessage) -> Option<Self> {
        let is_kind = |attribute: &_| matches!(attribute, TcAttribute::Kind(kind) if kind == KIND);
        message.attributes.iter().find(|attribute| is_kind(attribute))?;
        let options = message.attributes.iter().find_map(|attribute| {
            let TcAttribute::Options(options) = attribute else { return None };
            // For a type that the library does not support, all options are one attribute.
            options.first()
        })?;
        let mut bytes = vec![0; options.value_len()];
        options.emit_value(&mut bytes);
        let value = |kind| {
            let option =
                NlasIterator::new(&bytes).flatten().find(|option| option.kind() == kind)?;
            Some(option.value().to_vec())
        };
        let parameters = value(PARAMETERS)?;
        let number = |at: usize| {
            let bytes = parameters.get(at..at + 4)?;
            bytes.try_into().ok().map(u32::from_ne_bytes)
        };
        // The kernel sends this attribute if 32 bits are not sufficient.
        let large = value(RATE).and_then(|value| value.try_into().ok().map(u64::from_ne_bytes));
        let rate = large.or_else(|| number(RATE_AT).map(u64::from))?;
        let fills = u128::from(number(BUCKET_AT)?) * u128::from(TICK);
        let burst = fills * u128::from(rate) / 1_000_000_000;
        Some(Self { rate, burst: burst.try_into().ok()?, queue: number(LIMIT_AT)? })
    }
}
