//! Plain reference models of the core's two algorithms, written to be obviously right.
//!
//! They are slow, remember everything, and speak in plain numbers: a packet is its place in the
//! sender's order (a `u64` that never wraps), a path its index, time nanoseconds. So a test of the
//! core can translate in one line, wrap-around included, and compare step by step.
//!
//! - [`reorder`]: what the receiver delivers, and when.
//! - [`weighted`]: which path the sender picks.

pub mod reorder;
pub mod weighted;
