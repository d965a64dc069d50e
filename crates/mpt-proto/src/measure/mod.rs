//! Reordering of what arrives, by RFC 4737 and RFC 5236, for people to read: nothing is decided by it.
//!
//! Sequence numbers are examined as they arrive, before the reorder buffer: those of the connection as a
//! [`Stream`], those that came by one path as an [`Order`]. Both give a [`Reordering`].
//!
//! A packet out of order costs hundreds of instructions, so only a limited number of packets per second is
//! examined ([`Budget`]). A packet in order costs a comparison and two additions, and no memory is
//! allocated before the first gap.

mod bits;
mod budget;
mod density;
mod order;
mod packed;
mod records;
mod reordering;
mod stream;

pub(crate) use budget::{Budget, Look};
pub(crate) use order::Order;
pub use reordering::Reordering;
pub(crate) use stream::{Arrival, Stream};

#[cfg(test)]
mod tests;
