//! Networks that do not exist: links, address translators and hosts in virtual time.
//!
//! Everything here is a value with methods; there is no clock, no socket and no thread. Time comes
//! in as [`mpt_proto::Instant`], chance as a seed, and the same calls with the same seed give the
//! same result bit by bit. So a test that fails once fails again.
//!
//! - [`profile`]: the properties of a wire (rate, queue, delay, jitter, loss ...), also as TOML.
//! - [`link`]: one direction of such a wire, for whole packets. The lab runs the same model in real
//!   time.
//! - [`loss`]: the random and the bursty loss process.
//! - [`nat`]: a source NAT that can drop its mappings on command.
//! - [`udp`]: datagrams as the IP packets that links carry.
//! - [`tcp`]: Linux's TCP without payload, and [`transfer`]: such a flow through a tunnel over
//!   links, to predict what a host will measure.
//! - [`traffic`]: streams of numbered packets with an evaluation, and a TCP-like transfer.
//! - [`world`]: hosts that run the real core, connected by wires, under one virtual clock.
//! - [`model`]: plain reference models that the real core is compared with.

pub mod link;
pub mod loss;
pub mod model;
pub mod nat;
pub mod profile;
pub mod tcp;
pub mod traffic;
pub mod transfer;
pub mod udp;
pub mod world;
