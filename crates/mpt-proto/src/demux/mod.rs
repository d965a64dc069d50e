//! Whose datagram is this: the connection and path of a source address and key ([`address`]), or a request
//! to connect from a peer that nobody configured ([`accept`]).

pub(crate) mod accept;
pub(crate) mod address;
