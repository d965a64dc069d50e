//! Finding what differs.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{AcceptChange, Change, ConnectionChange, PathChange, TunnelChange};
use crate::config::edit::Edit;
use crate::config::schema::Tabled as _;
use crate::config::{Accept, Connection, Control, Daemon, Metrics, Path, Settings, Tunnel, Web};

/// What leads from `old` to `new`, in an order in which it can be carried out: first goes what goes,
/// last comes what comes.
pub(crate) fn difference(old: &Settings, new: &Settings) -> Vec<Change> {
    let mut changes: Vec<Change> = of_process(old, new).map(Change::Process).collect();
    for (name, tunnels) in pairs(&old.tunnels, &new.tunnels) {
        let steps = match tunnels {
            Pair::Gone => vec![TunnelChange::Removed],
            Pair::Come(tunnel) => vec![TunnelChange::Added(Box::new(tunnel.clone()))],
            Pair::Both(old, new) => within_tunnel(old, new),
        };
        let change = |change| Change::Tunnel { tunnel: name.to_owned(), change };
        changes.extend(steps.into_iter().map(change));
    }
    changes.sort_by_key(Change::turn);
    changes
}

fn of_process(old: &Settings, new: &Settings) -> impl Iterator<Item = Edit<Settings>> {
    let control = Control::edits(&old.control, &new.control).into_iter();
    let daemon = Daemon::edits(&old.daemon, &new.daemon).into_iter();
    let metrics = Metrics::edits(&old.metrics, &new.metrics).into_iter();
    let web = Web::edits(&old.web, &new.web).into_iter();
    control
        .map(|edit| edit.below("control").within(|all: &mut Settings| &mut all.control))
        .chain(daemon.map(|edit| edit.below("daemon").within(|all: &mut Settings| &mut all.daemon)))
        .chain(
            metrics.map(|edit| edit.below("metrics").within(|all: &mut Settings| &mut all.metrics)),
        )
        .chain(web.map(|edit| edit.below("web").within(|all: &mut Settings| &mut all.web)))
}

fn within_tunnel(old: &Tunnel, new: &Tunnel) -> Vec<TunnelChange> {
    let mut changes: Vec<_> = Tunnel::edits(old, new).into_iter().map(TunnelChange::Set).collect();
    for (name, accepts) in pairs(&old.accepts, &new.accepts) {
        let change = match accepts {
            Pair::Gone => AcceptChange::Removed,
            Pair::Come(accept) => AcceptChange::Added(Box::new(accept.clone())),
            Pair::Both(old, new) if old == new => continue,
            Pair::Both(old, new) => {
                let edits = Accept::edits(old, new);
                let keys = edits.iter().map(|edit| edit.key().to_owned()).collect();
                AcceptChange::Changed { to: Box::new(new.clone()), keys }
            }
        };
        changes.push(TunnelChange::Accept { accept: name.to_owned(), change });
    }
    for (name, connections) in pairs(&old.connections, &new.connections) {
        let steps = match connections {
            Pair::Gone => vec![ConnectionChange::Removed],
            Pair::Come(connection) => vec![ConnectionChange::Added(Box::new(connection.clone()))],
            Pair::Both(old, new) => within_connection(old, new),
        };
        let change = |change| TunnelChange::Connection { connection: name.to_owned(), change };
        changes.extend(steps.into_iter().map(change));
    }
    if order_differs(&old.connections, &new.connections) {
        let names = new.connections.iter().map(|connection| connection.name.clone());
        changes.push(TunnelChange::Order(names.collect()));
    }
    changes
}

fn within_connection(old: &Connection, new: &Connection) -> Vec<ConnectionChange> {
    let mut changes: Vec<_> =
        Connection::edits(old, new).into_iter().map(ConnectionChange::Set).collect();
    for (name, paths) in pairs(&old.paths, &new.paths) {
        let steps = match paths {
            Pair::Gone => vec![PathChange::Removed],
            Pair::Come(path) => vec![PathChange::Added(Box::new(path.clone()))],
            Pair::Both(old, new) => {
                Path::edits(old, new).into_iter().map(PathChange::Set).collect()
            }
        };
        let change = |change| ConnectionChange::Path { path: name.to_owned(), change };
        changes.extend(steps.into_iter().map(change));
    }
    changes
}

/// Whether the connections to some peer come in another order once all other changes are made: the
/// old ones in the order they had, and those that are new behind them.
fn order_differs(old: &[Connection], new: &[Connection]) -> bool {
    let places: HashMap<&str, usize> = old.iter().map(Named::name).zip(0..).collect();
    let place =
        |connection: &Connection| places.get(connection.name()).map_or(usize::MAX, |place| *place);
    let mut last: HashMap<&[IpAddr], usize> = HashMap::new();
    new.iter().any(|connection| {
        let (here, before) = (place(connection), last.get(&connection.peer[..]).copied());
        last.insert(&connection.peer, here);
        before.is_some_and(|before| before > here)
    })
}

/// What is there before and after under one name.
enum Pair<'s, T> {
    Gone,
    Come(&'s T),
    Both(&'s T, &'s T),
}

/// All names of both sides, those of the old first.
fn pairs<'s, T: Named>(old: &'s [T], new: &'s [T]) -> Vec<(&'s str, Pair<'s, T>)> {
    let by_name = |things: &'s [T]| -> HashMap<&'s str, &'s T> {
        things.iter().map(|thing| (thing.name(), thing)).collect()
    };
    let (old_by_name, new_by_name) = (by_name(old), by_name(new));
    let old = old.iter().map(|thing| match new_by_name.get(thing.name()) {
        Some(new) => (thing.name(), Pair::Both(thing, *new)),
        None => (thing.name(), Pair::Gone),
    });
    let come = new.iter().filter(|thing| !old_by_name.contains_key(thing.name()));
    old.chain(come.map(|thing| (thing.name(), Pair::Come(thing)))).collect()
}

/// What is known by its name.
pub(super) trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

impl Named for Tunnel {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Accept {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Connection {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Path {
    fn name(&self) -> &str {
        &self.name
    }
}
