//! Plain framing: GRE in UDP with keepalives (sections 3 to 7 of `docs/protocol.md`), and the
//! inferences that it requires because its header contains so little.

pub(crate) mod arrived;
pub(crate) mod black_hole;
pub(crate) mod path;
pub(crate) mod rx;
pub(crate) mod tx;
