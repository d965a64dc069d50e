//! The quotas of a tunnel: what its paths carry is counted, and the core is told what they cost because of it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mpt_control::{Explanation, QuotaState, TunnelStatus};
use mpt_proto::{ConnectionId, PathId};

use super::Reconciler;
use super::connection::{Connection, Path};
use crate::config;
use crate::quota::{self, Key, Meters, Use};
use crate::tunnel::SYNC;
use crate::tunnel::command::Command;
use crate::tunnel::op::{TunnelOp, Volume};

/// How often it is looked what paths have carried: a link of 1 Gbit/s carries half a gigabyte meanwhile.
const EVERY: Duration = Duration::from_secs(5);

/// The counts of a tunnel, and what they were made of.
#[derive(Debug)]
pub(super) struct Quotas {
    file: PathBuf,
    /// None as long as no path has a quota.
    meters: Option<Meters>,
    /// What each path had carried when it was last looked at, since it was added.
    seen: HashMap<(ConnectionId, PathId), u64>,
    /// When to look next; `None` if no path has a quota.
    due: Option<Instant>,
    /// How much is used, by the names of connection and path.
    uses: HashMap<(String, String), (Use, Option<String>)>,
}

impl Quotas {
    /// Those that a file keeps the counts of.
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, meters: None, seen: HashMap::new(), due: None, uses: HashMap::new() }
    }

    /// When it is to be looked what paths have carried.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

impl Reconciler {
    /// Looks at what paths have carried if it is time.
    pub(super) fn look_at_quotas(&mut self, now: Instant) {
        if self.quotas.due.is_some_and(|due| due <= now) {
            self.quotas.due = Some(now + EVERY);
            self.count_volumes(now);
            self.charge_for_quotas(now);
            self.save_quotas(now, false);
        }
    }

    /// Has paths cost what their quotas make of it, also new ones.
    pub(super) fn charge_for_quotas(&mut self, now: Instant) {
        let Self { connections, quotas, handle, .. } = self;
        quotas.uses.clear();
        let clock = quota::now();
        for (name, connection) in connections.iter_mut() {
            let id = connection.id;
            for path in connection.paths.values_mut() {
                let surcharge = match path.settings.quota {
                    None => mpt_proto::Surcharge::default(),
                    Some(wanted) => {
                        let meters =
                            quotas.meters.get_or_insert_with(|| Meters::load(quotas.file.clone()));
                        let (key, day) = (key(name, &path.settings), path.settings.quota_day);
                        let found = meters.look(&key, wanted, day, clock);
                        let shared = match key {
                            Key::Interface { interface, .. } => Some(interface),
                            Key::Path { .. } => None,
                        };
                        let place = (name.clone(), path.settings.name.clone());
                        quotas.uses.insert(place, (found, shared));
                        found.surcharge()
                    }
                };
                if std::mem::replace(&mut path.surcharge, surcharge) != surcharge {
                    let (connection, path) = (id, path.id);
                    handle.step(TunnelOp::SetSurcharge { connection, path, surcharge });
                }
            }
        }
        let due = quotas.due.unwrap_or(now + EVERY);
        quotas.due = Some(due).filter(|_| !quotas.uses.is_empty());
    }

    /// Counts what paths have carried, before some of these go.
    pub(super) fn count_before_removal(&mut self, connection: &str, goes: impl Fn(&Path) -> bool) {
        let has_quota = |connection: &Connection| {
            connection.paths.values().any(|path| path.settings.quota.is_some() && goes(path))
        };
        if self.connections.get(connection).is_some_and(has_quota) {
            self.count_volumes(Instant::now());
        }
    }

    /// Counts all that has not been counted, and has it written: the tunnel ends.
    pub(super) fn end_quotas(&mut self, now: Instant) {
        if self.quotas.meters.is_some() {
            self.count_volumes(now);
            self.save_quotas(now, true);
        }
    }

    fn save_quotas(&mut self, now: Instant, ends: bool) {
        if let Some(meters) = &mut self.quotas.meters {
            meters.save(now, ends);
        }
    }

    fn count_volumes(&mut self, now: Instant) {
        // Threads that do not answer in time are asked again.
        let Some(volumes) = self.handle.ask_within(SYNC, Command::Volumes) else { return };
        let Self { connections, quotas, .. } = self;
        let Some(meters) = &mut quotas.meters else { return };
        let before = std::mem::take(&mut quotas.seen);
        for Volume { connection, path, bytes, .. } in volumes {
            quotas.seen.insert((connection, path), bytes);
            let before = before.get(&(connection, path)).copied().unwrap_or_default();
            // A path that takes the number of one that has gone begins at zero.
            let more = bytes.checked_sub(before).unwrap_or(bytes);
            let owner = connections.iter().find(|(_, other)| other.id == connection);
            let owned = owner.and_then(|(name, owner)| {
                let path = owner.paths.values().find(|other| other.id == path)?;
                Some(key(name, &path.settings))
            });
            if let Some(key) = owned {
                meters.count(&key, more, now);
            }
        }
    }

    /// Adds how much of quotas is used.
    pub(super) fn put_quotas(&self, status: &mut TunnelStatus) {
        for connection in &mut status.connections {
            for path in &mut connection.paths {
                path.quota = self.quota_state(&connection.name, &path.name);
            }
        }
    }

    /// The same to what explains where packets went.
    pub(super) fn explain_quotas(&self, explanations: &mut [Explanation]) {
        for explanation in explanations {
            for path in &mut explanation.paths {
                path.quota = self.quota_state(&explanation.connection, &path.name);
            }
        }
    }

    fn quota_state(&self, connection: &str, path: &str) -> Option<QuotaState> {
        if self.quotas.uses.is_empty() {
            return None;
        }
        let (found, interface) = self.quotas.uses.get(&(connection.to_owned(), path.to_owned()))?;
        let surcharge = found.surcharge();
        Some(QuotaState {
            bytes: found.quota,
            used: found.used,
            interface: interface.clone(),
            ends: found.month.map(|month| month.end),
            seconds_left: found.month.map(|month| month.end.saturating_sub(found.now)),
            surcharge_ms: surcharge.price.into(),
            used_up: surcharge.last_resort,
        })
    }
}

/// What a path is counted with: those by an interface that were found by themselves together.
fn key(connection: &str, path: &config::Path) -> Key {
    let connection = connection.to_owned();
    match (&path.interface, path.found) {
        (Some(interface), Some(_)) => Key::Interface { connection, interface: interface.clone() },
        _ => Key::Path { connection, path: path.name.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Found, Quota};

    fn connection(text: &str) -> config::Connection {
        let text = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n[[tunnel.connection]]\n\
             name = 'server'\npeer = ['10.9.0.2']\n{text}"
        );
        let settings = config::judge(&text, "test").unwrap_or_else(|error| panic!("{error}"));
        settings.tunnels.into_iter().next().unwrap().connections.remove(0)
    }

    #[test]
    fn the_paths_by_an_interface_are_counted_together_and_others_alone() {
        let found = connection(
            "remote = 'server.example.org'\n[tunnel.connection.interface.wwan0]\n\
             quota = '5 GB'\nquota_day = 7\n",
        );
        let paths = [Found::V4, Found::V6].map(|version| found.found_path("wwan0", version));
        let [v4, v6] = paths.map(Option::unwrap);
        assert_ne!(v4.name, v6.name);
        assert_eq!(key("server", &v4), key("server", &v6));
        assert_ne!(key("server", &v4), key("other", &v4));
        assert_eq!((v6.quota, v6.quota_day), (Some(Quota::of(5_000_000_000)), 7));
        assert_eq!(found.found_path("eth0", Found::V4).unwrap().quota, None);

        let path = |name| {
            format!(
                "[[tunnel.connection.path]]\nname = '{name}'\ninterface = 'wwan0'\n\
                 remote = '203.0.113.5'\nquota = '5 GB'\n"
            )
        };
        let configured = connection(&path("lte"));
        let lte = key("server", &configured.paths[0]);
        assert_eq!(lte, Key::Path { connection: "server".into(), path: "lte".into() });
    }
}
