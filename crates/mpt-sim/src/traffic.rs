//! What hosts send through a tunnel, and how it is judged at the other end.
//!
//! - [`stream`]: numbered packets at a steady rate. The receiver knows which were lost, doubled,
//!   overtaken or altered, and how long the longest silence was.
//! - [`bulk`]: a transfer that takes what it can get, as TCP does, to measure goodput.
//!
//! Both send [`packet`]s, and both are driven from outside, like everything here: they say when
//! they want to act and are told the time.

pub mod bulk;
pub mod packet;
pub mod stream;
