//! What comes of commands: what a peer says, and what became of what it was told.

use std::net::{IpAddr, SocketAddr};

use mpt_proto::ConnectionId;

use crate::description::Description;
use crate::step::{Code, PathReport};

/// The number of a connection that is to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreateId(pub(crate) u64);

/// A connection that a peer wants to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// By which [`Commands::answer_create`](crate::Commands::answer_create) knows it.
    pub id: CreateId,
    /// Where it came from: somebody who knows the key, if that is not made up.
    pub from: SocketAddr,
    /// The tunnel address that this end is to have. Nobody has checked that it does.
    pub local: IpAddr,
    /// The connection as the peer has it: what is local there is remote here.
    pub description: Description,
}

/// What became of what the peer was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer has answered, but with another authentication than is agreed.
    AuthFailed,
    /// The peer has taken path update of it.
    Done,
    /// The peer will not have it.
    Refused(Code),
    /// It was not told to the end, because something later is to be told of the same path, or too much
    /// waits to be told.
    Superseded,
    /// The peer has not answered.
    Unanswered,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer says that a path is down, or up again.
    Path {
        /// The connection.
        connection: ConnectionId,
        /// The path's local address, as the peer sees it: behind address translation not one of this host.
        local: IpAddr,
        /// The path's remote address.
        remote: IpAddr,
        /// Whether it is down.
        down: bool,
    },
    /// Somebody wants a connection to be created; nobody has one with these tunnel addresses.
    /// [`Commands::answer_create`](crate::Commands::answer_create) is waited for.
    Create(Box<Create>),
    /// What became of what the peer was to be told.
    Told {
        /// The connection.
        connection: ConnectionId,
        /// What it was.
        report: PathReport,
        /// What became of it.
        outcome: Outcome,
    },
}
