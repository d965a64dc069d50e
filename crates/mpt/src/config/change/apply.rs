//! Making changes.

use thiserror::Error;

use super::difference::Named;
use super::{AcceptChange, Change, ConnectionChange, PathChange, TunnelChange};
use crate::config::{Connection, Settings, Tunnel};

/// Why a change cannot be made in settings: they differ from those that it was found in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ApplyError {
    /// What should come is there.
    #[error("{0} is there already")]
    Exists(String),
    /// What should change or go is not there.
    #[error("{0} is not there")]
    Missing(String),
}

/// Makes one change.
///
/// What runs may differ from the settings in which the change was found, by what was done by
/// command. Such things stay, except where the change is about the very same setting: then it has
/// the last word. Whether the whole still fits together is for [`check`](crate::config::check) to
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
                TunnelChange::Added(tunnel) => add(&mut settings.tunnels, tunnel, what)?,
                TunnelChange::Removed => remove(&mut settings.tunnels, name, what)?,
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
                AcceptChange::Added(accept) => add(accepts, accept, what)?,
                AcceptChange::Removed => remove(accepts, name, what)?,
                AcceptChange::Changed(edit) => *find(accepts, name, what)? = edit.to.clone(),
            }
        }
        TunnelChange::Connection { connection: name, change } => {
            let what = || format!("connection {name}");
            let connections = &mut tunnel.connections;
            match change {
                ConnectionChange::Added(connection) => add(connections, connection, what)?,
                ConnectionChange::Removed => remove(connections, name, what)?,
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
        PathChange::Added(path) => add(&mut connection.paths, path, what),
        PathChange::Removed => remove(&mut connection.paths, name, what),
        PathChange::Set(field) => {
            field.set(find(&mut connection.paths, name, what)?);
            Ok(())
        }
    }
}

fn add<T: Named + Clone>(
    things: &mut Vec<T>,
    thing: &T,
    what: impl Fn() -> String,
) -> Result<(), ApplyError> {
    if things.iter().any(|other| other.name() == thing.name()) {
        return Err(ApplyError::Exists(what()));
    }
    things.push(thing.clone());
    Ok(())
}

fn remove<T: Named>(
    things: &mut Vec<T>,
    name: &str,
    what: impl Fn() -> String,
) -> Result<(), ApplyError> {
    let place = things.iter().position(|thing| thing.name() == name);
    things.remove(place.ok_or_else(|| ApplyError::Missing(what()))?);
    Ok(())
}

fn find<'s, T: Named>(
    things: &'s mut [T],
    name: &str,
    what: impl Fn() -> String,
) -> Result<&'s mut T, ApplyError> {
    let found = things.iter_mut().find(|thing| thing.name() == name);
    found.ok_or_else(|| ApplyError::Missing(what()))
}
