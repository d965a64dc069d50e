//! Measurements by the book of what arrives: order, round trip, jitter, loss.
//!
//! The sequence numbers are looked at as they come, before the reorder buffer: a connection's as a
//! [`Stream`], of each path that part which came by it as an [`Order`]. Both tell a
//! [`Reordering`], the metrics of RFC 4737 and RFC 5236. What each path does to time and how much it loses follows
//! from the keepalives of the peer: a [`PathEstimator`], which tells a [`Quality`].
//!
//! What is out of order costs hundreds of instructions, so only so many packets per second are looked at
//! ([`Budget`]).
//! What is in order costs a comparison and two additions, and no memory is taken before the first gap.

mod bits;
mod budget;
mod density;
mod estimator;
mod jitter;
mod loss;
mod order;
mod records;
mod reordering;
mod rtt;
mod stream;

pub(crate) use budget::{Budget, Look};
pub use estimator::{Heard, Quality};
pub(crate) use estimator::{OVERTAKEN, PathEstimator, is_before};
pub(crate) use order::Order;
pub use reordering::Reordering;
pub use rtt::RoundTrip;
pub(crate) use stream::{Arrival, Stream};

#[cfg(test)]
mod tests;
