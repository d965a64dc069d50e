//! A connection as one end has it, in the form of the original's configuration files.
//!
//! The original's `mpt save` writes such a file, and connection create sends it, without the key.

use std::net::IpAddr;
use std::time::Duration;

use mpt_proto::Prefix;

use crate::auth::AuthKind;

mod ini;
mod text;

/// The most paths that a description has.
pub const MAX_PATHS: usize = 20;

/// The most networks that a description has.
pub const MAX_NETWORKS: usize = 20;

/// The most bytes of a name.
pub const MAX_NAME: usize = 127;

/// A connection as one end has it. Local is what is local to that end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name: at most [`MAX_NAME`] visible characters and spaces of ASCII, without those that begin a comment.
    pub name: String,
    /// The own tunnel address.
    pub local: IpAddr,
    /// The own port for data; 0 if the kernel chooses.
    pub local_port: u16,
    /// The own port for commands.
    pub local_command_port: u16,
    /// The peer's tunnel address, of the same IP version.
    pub remote: IpAddr,
    /// The peer's port for data.
    pub remote_port: u16,
    /// The peer's port for commands.
    pub remote_command_port: u16,
    /// The reorder window in packets, at most 10000; 0 if packets are neither numbered nor put in order.
    pub reorder_window: u32,
    /// How long a packet is held at the most, in whole milliseconds.
    pub max_delay: Duration,
    /// How commands are authenticated, without the key.
    pub auth: AuthKind,
    /// Its paths, at least one and at most [`MAX_PATHS`]; each is that of the same place at the other end.
    pub paths: Vec<DescribedPath>,
    /// The networks that are reached by it, at most [`MAX_NETWORKS`].
    pub networks: Vec<DescribedNetwork>,
}

/// A path as one end has it. Its addresses are of one IP version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPath {
    /// The interface: at most 15 letters, digits and any of `.:@_-`.
    pub interface: String,
    /// The own address as the peer sees it.
    pub public: IpAddr,
    /// The own address; unspecified if that is the interface's.
    pub private: IpAddr,
    /// The next hop to the peer; unspecified if it is not given.
    pub gateway: IpAddr,
    /// The peer's address; unspecified if it is not known.
    pub remote: IpAddr,
    /// The interval of keepalives, in whole seconds up to 255; zero if none are sent.
    pub keepalive: Duration,
    /// The path is down when nothing was received for this time, in whole seconds up to 65535; zero if never.
    pub dead_time: Duration,
    /// The weight of what it sends, from 1 to 10000.
    pub weight_out: u16,
    /// The weight of what the peer is to send, from 1 to 10000.
    pub weight_in: u16,
    /// Whether it is down, for any reason.
    pub down: bool,
}

/// Packets from one network to another go by the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedNetwork {
    /// The network of their source.
    pub source: Prefix,
    /// The network of their destination, of the same IP version.
    pub destination: Prefix,
}

/// Why a text is not a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptionError {
    /// It does not begin with five marks of a comment.
    Begin,
    /// It is longer than [`MAX_DESCRIPTION`](crate::MAX_DESCRIPTION).
    Long,
    /// The line of this number, from 1, is neither comment, section, nor key and value; or repeats a section
    /// or key.
    Line(usize),
    /// A key is missing.
    Missing(&'static str),
    /// There is no `[connection]`, or there are other sections than those for its paths and networks.
    Sections,
    /// The value of a key is not in its bounds.
    Value(&'static str),
}

impl std::fmt::Display for DescriptionError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Begin => formatter.write_str("it does not begin with a comment"),
            Self::Long => formatter.write_str("it is too long"),
            Self::Line(number) => write!(formatter, "line {number} cannot be understood"),
            Self::Missing(key) => write!(formatter, "{key} is missing"),
            Self::Sections => {
                formatter.write_str("its sections are not those of its paths and networks")
            }
            Self::Value(key) => write!(formatter, "{key} is not in its bounds"),
        }
    }
}

impl std::error::Error for DescriptionError {}
