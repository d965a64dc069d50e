//! What the MPT daemon and its visitors say to each other on the control socket.
//!
//! The daemon listens on a Unix stream socket. A visitor (the command line, the laboratory, a
//! script) writes one [`Request`] as a line of JSON and reads one [`Reply`] as a line of JSON, as
//! often as it likes on one connection. Requests are answered in their order.
//!
//! ```text
//! -> {"request":"path","connection":"server","path":"fibre","status":"off"}
//! <- {"reply":"done"}
//! ```
//!
//! Fields may be added to replies, never renamed or given another meaning; a reader ignores what it
//! does not know. Requests are strict: a field that the daemon does not know is an error, because
//! ignoring half of an order is worse than refusing it.
//!
//! This crate holds the types ([`Request`], [`Reply`], [`Status`] and its parts), the lines
//! ([`codec`]) and a small blocking [`Client`]. It does not listen: the daemon does.

pub mod codec;

mod client;
mod message;
mod status;

pub use client::{Client, ClientError, DEFAULT_TIMEOUT};
pub use message::{ErrorKind, PathStatus, Reply, Request};
pub use status::{
    CommandStatus, ConnectionCounters, ConnectionState, ControlStatus, DeviceCounters, Event,
    LogStatus, PathState, ReorderStatus, Reordering, SocketStatus, Status, Traffic, TunnelStatus,
};

/// Where the daemon listens unless its configuration names another place, and where a visitor looks
/// unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/mpt/control.sock";
