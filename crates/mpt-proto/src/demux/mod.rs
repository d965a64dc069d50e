//! Demultiplexing: the connection and path of a source address and key ([`address`]), or a connect
//! request of a peer that is not configured ([`accept`]).

pub(crate) mod accept;
pub(crate) mod address;
pub(crate) mod candidate;
