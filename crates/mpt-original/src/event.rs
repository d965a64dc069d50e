//! Events: what a peer reports or requests, and how our reports to it ended.

use std::net::{IpAddr, SocketAddr};

use mpt_proto::ConnectionId;

use crate::description::Description;
use crate::step::{Code, PathReport};

/// The number of a request for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreateId(pub(crate) u64);

/// A request of a peer for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Identifies it in [`Commands::answer_create`](crate::Commands::answer_create).
    pub id: CreateId,
    /// Its source, which has one of the keys unless the address is spoofed.
    pub from: SocketAddr,
    /// The tunnel address that the peer expects here. It is not checked.
    pub local: IpAddr,
    /// The connection as the peer has it: its local addresses are the remote ones here.
    pub description: Description,
}

/// How a report to the peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer answered, but with wrong authentication.
    AuthFailed,
    /// The peer acknowledged it.
    Done,
    /// The peer refused it.
    Refused(Code),
    /// It was dropped: there is a later report of the same path, or there are too many reports.
    Superseded,
    /// The peer did not answer.
    Unanswered,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer reports that a path is down, or up again.
    Path {
        /// The connection.
        connection: ConnectionId,
        /// The path's local address, as the peer sees it: behind NAT not an address of this host.
        local: IpAddr,
        /// The path's remote address.
        remote: IpAddr,
        /// Whether it is down.
        down: bool,
    },
    /// A peer requests a connection, and there is none with these tunnel addresses. The request waits for
    /// [`Commands::answer_create`](crate::Commands::answer_create).
    Create(Box<Create>),
    /// A report to the peer ended.
    Told {
        /// The connection.
        connection: ConnectionId,
        /// The report.
        report: PathReport,
        /// How it ended.
        outcome: Outcome,
    },
}
