//! Changes as the operator sees them: one line each.

use std::fmt::{self, Display as _};

use super::{AcceptChange, Change, ConnectionChange, PathChange, TunnelChange};
use crate::config::edit::Effect;

/// `connection server: path lte: weight 1 -> 3`, and what it takes if that is more than nothing.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(field) => field.fmt(f)?,
            Self::Tunnel { tunnel, change } => in_tunnel(f, tunnel, change)?,
        }
        match self.effect() {
            Effect::InPlace => Ok(()),
            Effect::PathReplaced => f.write_str(" (the path is created again)"),
            Effect::ConnectionReplaced => f.write_str(" (its sequence numbers restart)"),
            Effect::TunnelRestarted => f.write_str(" (restarts the tunnel)"),
            Effect::DaemonRestarted => f.write_str(" (takes effect when the daemon is restarted)"),
        }
    }
}

fn in_tunnel(f: &mut fmt::Formatter<'_>, tunnel: &str, change: &TunnelChange) -> fmt::Result {
    match change {
        TunnelChange::Added(_) => write!(f, "tunnel {tunnel}: added"),
        TunnelChange::Removed => write!(f, "tunnel {tunnel}: removed"),
        TunnelChange::Set(field) => {
            write!(f, "tunnel {tunnel}: ")?;
            field.fmt(f)
        }
        TunnelChange::Accept { accept, change } => match change {
            AcceptChange::Added(_) => write!(f, "template {accept}: added to tunnel {tunnel}"),
            AcceptChange::Removed => write!(f, "template {accept}: removed"),
            AcceptChange::Changed { keys, .. } => {
                let keys = keys.join(", ");
                write!(f, "template {accept}: {keys} changed, for new connections only")
            }
        },
        TunnelChange::Connection { connection, change } => {
            write!(f, "connection {connection}: ")?;
            match change {
                ConnectionChange::Added(_) => write!(f, "added to tunnel {tunnel}"),
                ConnectionChange::Removed => f.write_str("removed"),
                ConnectionChange::Set(field) => field.fmt(f),
                ConnectionChange::Path { path, change } => {
                    write!(f, "path {path}: ")?;
                    match change {
                        PathChange::Added(_) => f.write_str("added"),
                        PathChange::Removed => f.write_str("removed"),
                        PathChange::Set(field) => field.fmt(f),
                    }
                }
            }
        }
        TunnelChange::Order(names) => {
            write!(f, "tunnel {tunnel}: connections in the order {}", names.join(", "))
        }
    }
}
