//! As much of HTTP/1.1 (RFC 9110, RFC 9112) as pages on a loopback address need.
//!
//! [`Decoder`] finds requests in what a client of the bounded [`server`](crate::server) sends, [`Response`] is
//! what is answered. [`quality`] reads `Accept`.

mod accept;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use accept::quality;
#[cfg(test)]
pub(crate) use request::MAX_HEAD;
pub(crate) use request::{Decoder, Fault, Method, Request};
pub(crate) use response::Response;
