//! What hosts send through a tunnel, and how it is judged at the other end.
//!
//! - [`stream`]: numbered packets at a steady rate. The receiver determines which were lost,
//!   duplicated, overtaken or modified, and the longest gap.
//! - [`bulk`]: a greedy transfer like TCP's, to measure goodput.
//!
//! Both send [`packet`]s, and both are driven by the caller, like everything here: they return
//! their next deadline and take the time as argument.

pub mod bulk;
pub mod packet;
pub mod stream;
