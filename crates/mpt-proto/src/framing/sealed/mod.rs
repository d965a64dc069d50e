//! Sealed framing: extended framing in which everything is authenticated, and encrypted but for the header (section 9
//! of `docs/protocol.md`).
//!
//! [`handshake`] agrees on keys by [`noise`]; [`cookie`] bounds what that costs a host. [`cipher`] seals and opens
//! datagrams in place, [`replay`] has each accepted once. The keys of one handshake are an [`epoch`]; [`tx`] seals with
//! those of the transmit half.

pub(crate) mod cipher;
pub(crate) mod cookie;
pub(crate) mod epoch;
pub(crate) mod handshake;
pub(crate) mod hash;
pub(crate) mod noise;
pub(crate) mod replay;
pub(crate) mod tx;
