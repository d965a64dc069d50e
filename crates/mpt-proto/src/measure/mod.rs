//! Measurements by the book of the order in which packets arrive.
//!
//! The sequence numbers are looked at as they come, before the reorder buffer: a connection's as a
//! [`Stream`], of each path that part which came by it as an [`Order`]. Both tell a
//! [`Reordering`], the metrics of RFC 4737 and RFC 5236.
//!
//! What is in order costs a comparison and two additions, and no memory is taken before the first gap.

mod bits;
mod density;
mod order;
mod records;
mod reordering;
mod stream;

pub(crate) use order::Order;
pub use reordering::Reordering;
pub(crate) use stream::{Arrival, Stream};

#[cfg(test)]
mod tests;
