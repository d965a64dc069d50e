//! Plain framing: GRE with nothing of ours but keepalives, and the inferences that this requires.

pub(crate) mod black_hole;
