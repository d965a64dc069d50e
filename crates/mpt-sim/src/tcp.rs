//! TCP as Linux does it, without a byte of payload.
//!
//! [`crate::traffic::bulk`] is a transfer over the real core, every packet of it real. To predict
//! what a Linux host will measure, it is too simple and too slow; the result depends on how the
//! kernel distinguishes reordering from loss and how it undoes a wrong decision. So here segments
//! are numbers, and the rules are the kernel's:
//!
//! - [`cubic`]: CUBIC (RFC 9438) with HyStart, and Reno;
//! - [`sender`]: the scoreboard of selective acknowledgements (RFC 2018, RFC 2883), RACK's time-based
//!   loss detection with its adaptive reordering window (RFC 8985), proportional rate reduction (RFC
//!   6937), the retransmission timeout (RFC 6298, with Linux's floor of 200 ms), the tail loss probe
//!   (RFC 8985 section 7), F-RTO (RFC 5682), and undo by time stamps and duplicate reports (RFC 3522,
//!   RFC 3708);
//! - [`receiver`]: delayed acknowledgements (RFC 1122, RFC 5681), three ranges per acknowledgement.
//!
//! Both ends protect themselves against wrapped sequence numbers (RFC 7323 section 5), which under
//! reordering does harm: see `OLD`.
//!
//! Sizes are in segments; a segment is what fills the inner MTU. There is no handshake: the connection
//! exists, and its round-trip time is known from it.

pub mod cubic;
mod ranges;
pub mod receiver;
mod round_trip;
mod scoreboard;
pub mod sender;

/// A segment on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number, from 0.
    pub number: u64,
    /// When it was sent, in milliseconds of the sender's clock: the time stamp of RFC 7323.
    pub stamp: u64,
    /// The time stamp of the receiver that it echoes.
    pub echo: u64,
}

/// Segments from the first number, included, to the second, excluded.
pub type Range = (u64, u64);

/// An acknowledgement on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Every segment below this has arrived.
    pub next: u64,
    /// When it was sent, in milliseconds of the receiver's clock.
    pub stamp: u64,
    /// The time stamp of the segment that made the receiver's picture what it is (RFC 7323 section 4.3).
    pub echo: u64,
    /// A segment that had arrived before (RFC 2883).
    pub duplicate: Option<u64>,
    /// What has arrived beyond `next`, the most recent first.
    pub ranges: [Option<Range>; MOST_RANGES],
}

/// What comes with a time stamp older by more milliseconds than one that came in order is taken for a relic
/// of an earlier connection and dropped (RFC 7323 section 5, and Linux's TCP_PAWS_WINDOW). Reordering by
/// more makes the kernel drop good segments.
const OLD: u64 = 1;

/// Ranges of a TCP header with time stamps.
pub const MOST_RANGES: usize = 3;

impl Acknowledgement {
    /// Bytes of its TCP options beside the time stamps: each range takes 8, the option 2, aligned to 4.
    pub fn option_bytes(&self) -> usize {
        let ranges = self.ranges.iter().flatten().count() + usize::from(self.duplicate.is_some());
        if ranges == 0 { 0 } else { 4 + 8 * ranges.min(MOST_RANGES) }
    }
}
