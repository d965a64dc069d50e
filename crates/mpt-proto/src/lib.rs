//! The MPT protocol, without I/O.

mod time;

pub use time::Instant;
