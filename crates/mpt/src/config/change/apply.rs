//! Making changes.

use thiserror::Error;

use super::difference::Named;
use super::{AcceptChange, Change, ConnectionChange, PathChange, TunnelChange};
use crate::config::{Connection, Settings, Tunnel};

/// Why a change cannot be applied to settings: its subject does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} does not exist")]
pub(crate) struct ApplyError(pub(in crate::config) String);

/// Makes one change.
///
/// What runs may differ from the settings in which the change was found, by what was done by
/// command. Such things stay, except where the change is about the very same setting: then it has
/// the last word. What comes takes the place of what has its name, and what goes may have gone. Whether the whole still fits together is for [`check`](crate::config::check) to
/// say.
///
/// # Errors
///
/// See [`ApplyError`]. Nothing has been changed then.
pub(crate) fn apply(settings: &mut Settings, change: &Change) -> Result<(), ApplyError> {
    match change {
        Change::Process(field) => field.set(settings),
        Change::Tunnel { tunnel: name, change } => {
            let what = || format!("tunnel {name}");
            match change {
                TunnelChange::Added(tunnel) => add(&mut settings.tunnels, tunnel),
                TunnelChange::Removed => remove(&mut settings.tunnels, name),
                TunnelChange::Set(_)
                | TunnelChange::Accept { .. }
                | TunnelChange::Connection { .. }
                | TunnelChange::Order(_) => {
                    apply_to_tunnel(find(&mut settings.tunnels, name, what)?, change)?;
                }
            }
        }
    }
    Ok(())
}

fn apply_to_tunnel(tunnel: &mut Tunnel, change: &TunnelChange) -> Result<(), ApplyError> {
    match change {
        TunnelChange::Added(_) | TunnelChange::Removed => {}
        TunnelChange::Set(field) => field.set(tunnel),
        TunnelChange::Accept { accept: name, change } => {
            let what = || format!("template {name}");
            let accepts = &mut tunnel.accepts;
            match change {
                AcceptChange::Added(accept) => add(accepts, accept),
                AcceptChange::Removed => remove(accepts, name),
                AcceptChange::Changed { to, .. } => find(accepts, name, what)?.clone_from(to),
            }
        }
        TunnelChange::Connection { connection: name, change } => {
            let what = || format!("connection {name}");
            let connections = &mut tunnel.connections;
            match change {
                ConnectionChange::Added(connection) => add(connections, connection),
                ConnectionChange::Removed => remove(connections, name),
                ConnectionChange::Set(field) => field.set(find(connections, name, what)?),
                ConnectionChange::Path { path, change } => {
                    apply_to_path(find(connections, name, what)?, path, change)?;
                }
            }
        }
        TunnelChange::Order(names) => tunnel.connections.sort_by_cached_key(|connection| {
            names.iter().position(|name| *name == connection.name).unwrap_or(usize::MAX)
        }),
    }
    Ok(())
}

fn apply_to_path(
    connection: &mut Connection,
    name: &str,
    change: &PathChange,
) -> Result<(), ApplyError> {
    let owner = connection.name.clone();
    let what = || format!("path {name} of connection {owner}");
    match change {
        PathChange::Added(path) => add(&mut connection.paths, path),
        PathChange::Removed => remove(&mut connection.paths, name),
        PathChange::Set(field) => field.set(find(&mut connection.paths, name, what)?),
    }
    Ok(())
}

fn add<T: Named + Clone>(things: &mut Vec<T>, thing: &T) {
    match things.iter_mut().find(|other| other.name() == thing.name()) {
        Some(other) => other.clone_from(thing),
        None => things.push(thing.clone()),
    }
}

fn remove<T: Named>(things: &mut Vec<T>, name: &str) {
    things.retain(|thing| thing.name() != name);
}

fn find<'s, T: Named>(
    things: &'s mut [T],
    name: &str,
    what: impl Fn() -> String,
) -> Result<&'s mut T, ApplyError> {
    let found = things.iter_mut().find(|thing| thing.name() == name);
    found.ok_or_else(|| ApplyError(what()))
}
