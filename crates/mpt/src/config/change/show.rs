//! Changes as the operator sees them: one line each.

use std::fmt;

use super::{AcceptChange, Change, ConnectionChange, Effect, PathChange, TunnelChange};
use crate::config::Accept;

/// `connection server: path lte: weight 1 -> 3`, and what it takes if that is more than nothing.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(field) => edit(f, field.key(), field.values())?,
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
            edit(f, field.key(), field.values())
        }
        TunnelChange::Accept { accept, change } => match change {
            AcceptChange::Added(_) => write!(f, "template {accept}: added to tunnel {tunnel}"),
            AcceptChange::Removed => write!(f, "template {accept}: removed"),
            AcceptChange::Changed(edit) => {
                let keys = different_keys(&edit.from, &edit.to).join(", ");
                write!(f, "template {accept}: {keys} changed, for new connections only")
            }
        },
        TunnelChange::Connection { connection, change } => {
            write!(f, "connection {connection}: ")?;
            match change {
                ConnectionChange::Added(_) => write!(f, "added to tunnel {tunnel}"),
                ConnectionChange::Removed => f.write_str("removed"),
                ConnectionChange::Set(field) => edit(f, field.key(), field.values()),
                ConnectionChange::Path { path, change } => {
                    write!(f, "path {path}: ")?;
                    match change {
                        PathChange::Added(_) => f.write_str("added"),
                        PathChange::Removed => f.write_str("removed"),
                        PathChange::Set(field) => edit(f, field.key(), field.values()),
                    }
                }
            }
        }
        TunnelChange::Order(names) => {
            write!(f, "tunnel {tunnel}: connections in the order {}", names.join(", "))
        }
    }
}

fn edit(f: &mut fmt::Formatter<'_>, key: &str, (from, to): (String, String)) -> fmt::Result {
    write!(f, "{key} {from} -> {to}")
}

/// The keys about which two templates differ.
fn different_keys(from: &Accept, to: &Accept) -> Vec<&'static str> {
    let (before, after) = (from.policies, to.policies);
    let keys = [
        ("peers", from.peers != to.peers),
        ("sources", from.sources != to.sources),
        ("interface", from.interface != to.interface),
        ("local", from.local != to.local),
        ("local_port", from.local_port != to.local_port),
        ("max_connections", from.max_connections != to.max_connections),
        ("max_rate", from.max_rate != to.max_rate),
        ("max_paths", from.max_paths != to.max_paths),
        ("forget", from.forget != to.forget),
        ("profile", before.profile != after.profile),
        ("scheduler", before.scheduler != after.scheduler),
        ("key", before.key != after.key),
        ("checksum", before.checksum != after.checksum),
        ("sequence", before.sequence != after.sequence),
        ("reorder", before.reorder != after.reorder),
        ("weight", from.weight != to.weight),
        ("priority", from.priority != to.priority),
        ("keepalive", from.keepalive != to.keepalive),
        ("dead_time", from.dead_time != to.dead_time),
    ];
    keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}
