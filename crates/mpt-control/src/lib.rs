//! The protocol between the MPT daemon and its clients on the control socket.
//!
//! The daemon listens on a Unix stream socket. A client (the command line, the lab, a script)
//! writes one [`Request`] as a line of JSON and reads one [`Reply`] as a line of JSON, any number
//! of times on one connection. Requests are answered in order.
//!
//! ```text
//! -> {"request":"path","connection":"server","path":"fibre","status":"off"}
//! <- {"reply":"done"}
//! ```
//!
//! Fields may be added to replies, never renamed or given another meaning; a reader ignores unknown
//! fields. Requests are strict: an unknown field is an error, because executing half of a request
//! is worse than refusing it.
//!
//! This crate holds the types ([`Request`], [`Reply`], [`Status`] and its parts), the lines
//! ([`codec`]) and a small blocking [`Client`]. It does not listen: the daemon does.

pub mod codec;

mod client;
mod explanation;
mod message;
mod peer;
mod repair;
mod status;
mod trace;

pub use client::{Client, ClientError, DEFAULT_TIMEOUT};
pub use explanation::{
    Estimate, Explanation, Finding, FlowExplanation, Found, Limit, OrderExplanation,
    PathExplanation, QueueExplanation, RepairExplanation,
};
pub use message::{ErrorKind, PathStatus, Refusal, Reply, Request};
pub use peer::PeerStatus;
pub use repair::{ClassCounters, CopyCounters, RepairStatus, StoreStatus};
pub use status::{
    CommandStatus, ConnectionCounters, ConnectionState, ControlStatus, DeviceCounters, Direction,
    Event, LogStatus, PathState, PeerSettings, Problem, QuotaState, ReorderStatus, Reordering,
    SocketStatus, Status, Traffic, TunnelStatus,
};
pub use trace::{TraceLine, TraceMark, Traced};

/// The default path of the control socket, for the daemon and its clients.
pub const DEFAULT_SOCKET: &str = "/run/mpt/control.sock";
