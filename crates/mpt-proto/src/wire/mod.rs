//! Bytes on the wire: read without copying, written in place.
//!
//! [`gre`] is the header of every datagram of plain framing, [`keepalive`] its one control message,
//! [`extended`] has both for extended framing,
//! [`inner`] the few fields of the inner packet that MPT looks at, [`flow`] those that tell flows
//! apart, [`ecn`] what becomes of congestion marks, [`icmp`] the answer to a packet that is too big,
//! [`mss`] what keeps TCP from sending such,
//! [`checksum`] the sum they share, [`erasure`] the code that brings lost packets back.
//! `docs/protocol.md` is the normative text. Nothing in here keeps state.

pub mod checksum;
pub mod ecn;
pub mod erasure;
pub mod extended;
pub mod flow;
pub mod gre;
pub mod icmp;
pub mod inner;
pub mod keepalive;
pub mod mss;
pub(crate) mod segment;
pub(crate) mod short;
mod upper;
mod weight;
