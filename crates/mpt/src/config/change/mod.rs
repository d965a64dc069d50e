//! What differs between settings, in steps that can be carried out while they run.
//!
//! [`difference()`] finds the [`Change`]s from old settings to new ones and [`apply()`] makes each
//! in other settings, which may differ from the old ones: a file is read again and only its changes
//! are applied to the running settings. Every change has an [`Change::effect`] and is shown to the
//! operator in one line.
//!
//! Tunnels, connections, templates and paths are identified by their names. Their order has no
//! meaning and is kept, with one exception: of several connections to one peer the first whose
//! `match` fits carries a packet. Where that order differs, a change says so.

mod apply;
mod difference;
mod show;

#[cfg(test)]
pub(crate) use apply::ApplyError;
pub(crate) use apply::apply;
pub(crate) use difference::difference;

use super::edit::{Edit, Effect};
use super::{Accept, Connection, Path, Settings, Tunnel};

/// One step from settings to others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Something of the whole process.
    Process(Edit<Settings>),
    /// Something of the tunnel with this name.
    Tunnel {
        /// Its name.
        tunnel: String,
        /// What.
        change: TunnelChange,
    },
}

/// A step within a tunnel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TunnelChange {
    /// It is new.
    Added(Box<Tunnel>),
    /// It is gone.
    Removed,
    /// A setting of its own.
    Set(Edit<Tunnel>),
    /// Something of the template with this name.
    Accept {
        /// Its name.
        accept: String,
        /// What.
        change: AcceptChange,
    },
    /// Something of the connection with this name.
    Connection {
        /// Its name.
        connection: String,
        /// What.
        change: ConnectionChange,
    },
    /// Its connections come in the order of these names. What it has besides comes after them.
    Order(Vec<String>),
}

/// A change of a template. Its existing connections are not affected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AcceptChange {
    /// It is new.
    Added(Box<Accept>),
    /// It is gone.
    Removed,
    /// It says this now, and differs in these keys.
    Changed {
        /// The whole template.
        to: Box<Accept>,
        /// The keys.
        keys: Vec<String>,
    },
}

/// A step within a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConnectionChange {
    /// It is new.
    Added(Box<Connection>),
    /// It is gone.
    Removed,
    /// A setting of its own.
    Set(Edit<Connection>),
    /// Something of the path with this name.
    Path {
        /// Its name.
        path: String,
        /// What.
        change: PathChange,
    },
}

/// A step that concerns a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathChange {
    /// It is new.
    Added(Box<Path>),
    /// It is gone.
    Removed,
    /// A setting of it.
    Set(Edit<Path>),
}

impl Change {
    /// What it takes to carry it out.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Process(field) => field.effect(),
            Self::Tunnel { change, .. } => change.effect(),
        }
    }

    /// When its turn is among others: what goes makes room for what comes, names and sockets among
    /// it, and the order is that of all in the end.
    fn turn(&self) -> Turn {
        match self {
            Self::Process(_) => Turn::Set,
            Self::Tunnel { change, .. } => change.turn(),
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Remove,
    Set,
    Add,
    Order,
}

impl TunnelChange {
    fn effect(&self) -> Effect {
        match self {
            Self::Added(_) | Self::Removed | Self::Accept { .. } | Self::Order(_) => {
                Effect::InPlace
            }
            Self::Set(field) => field.effect(),
            Self::Connection { change, .. } => match change {
                ConnectionChange::Added(_) | ConnectionChange::Removed => Effect::InPlace,
                ConnectionChange::Set(field) => field.effect(),
                ConnectionChange::Path { change, .. } => match change {
                    PathChange::Added(_) | PathChange::Removed => Effect::InPlace,
                    PathChange::Set(field) => field.effect(),
                },
            },
        }
    }

    fn turn(&self) -> Turn {
        match self {
            Self::Added(_) => Turn::Add,
            Self::Removed => Turn::Remove,
            Self::Set(_) => Turn::Set,
            Self::Order(_) => Turn::Order,
            Self::Accept { change, .. } => match change {
                AcceptChange::Added(_) => Turn::Add,
                AcceptChange::Removed => Turn::Remove,
                AcceptChange::Changed { .. } => Turn::Set,
            },
            Self::Connection { change, .. } => match change {
                ConnectionChange::Added(_) => Turn::Add,
                ConnectionChange::Removed => Turn::Remove,
                ConnectionChange::Set(_) => Turn::Set,
                ConnectionChange::Path { change, .. } => match change {
                    PathChange::Added(_) => Turn::Add,
                    PathChange::Removed => Turn::Remove,
                    PathChange::Set(_) => Turn::Set,
                },
            },
        }
    }
}
