//! Paths that a connection learns from its peer, which is configured with its tunnel addresses and nothing
//! else. The core finds out where the peer is and that it can be reached there; here the path is made, or
//! moved ([`mpt_proto::PathRequest`]).

use std::net::IpAddr;
use std::time::Instant;

use anyhow::Context as _;
use mpt_proto::{MAX_PATHS, PathRequest};

use super::Reconciler;
use super::arrived::{Arrived, Heard, Learned, Means, next_look};
use super::listening::Listening;
use super::path::Setter;
use crate::config;
use crate::netmon::NetMonitor;
use crate::tunnel::command::Command;

impl Reconciler {
    /// Has a connection listen for its peer if it learns its paths.
    ///
    /// # Errors
    ///
    /// If it can have none of its sockets.
    pub(super) fn reconcile_learning(
        &mut self,
        wanted: &config::Connection,
        offloads: config::Offloads,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let Some(running) = self.connections.get(&wanted.name) else { return Ok(()) };
        if !wanted.learns_paths() {
            return Ok(());
        }
        let id = running.id;
        if !self.learned.contains_key(&wanted.name) {
            self.close_unused_sockets(now);
        }
        let Self { learned, sockets, handle, again, .. } = self;
        let learned = learned.entry(wanted.name.clone()).or_insert_with(|| Learned {
            settings: wanted.clone(),
            sockets: Vec::new(),
            paths: Arrived::new(id, wanted.forget),
        });
        learned.paths.forget = wanted.forget;
        if learned.settings != *wanted {
            learned.settings.clone_from(wanted);
            learned.paths.follow(&learned.settings, handle);
        }
        let listening = Listening { interface: None, local: None, port: wanted.local_port };
        Setter { sockets, handle, offloads, netmon, now, again }
            .listen(&listening, &mut learned.sockets)
            .with_context(|| format!("connection {}", wanted.name))
    }

    /// A connection goes, or has other paths from now on.
    pub(super) fn stop_learning(&mut self, name: &str, now: Instant) {
        let Some(learned) = self.learned.remove(name) else { return };
        let Self { sockets, handle, .. } = self;
        let mut paths = learned.paths;
        paths.clear(&mut Means { handle, sockets, now });
        learned.sockets.into_iter().for_each(|socket| sockets.give_back(now, socket));
        self.close_unused_sockets(now);
    }

    /// Has the ports of sockets that nobody uses be free: a socket of every address or interface and one of a
    /// single one exclude each other.
    fn close_unused_sockets(&mut self, now: Instant) {
        let handle = &self.handle;
        self.sockets.close_idle(now, &mut |step| handle.step(step));
        handle.await_steps();
    }

    /// The peer of a connection is where no path of it leads. Configured paths stay where they are.
    pub(super) fn on_path_request(
        &mut self,
        request: &PathRequest,
        local: Option<IpAddr>,
        now: Instant,
    ) {
        let &PathRequest { connection: id, socket, remote, moved } = request;
        let Self { accepting, learned, sockets, handle, .. } = self;
        // It can have gone since.
        if sockets.key(socket).is_none() {
            return;
        }
        let mut means = Means { handle, sockets, now };
        let mut all_learned = learned.values_mut();
        let mut all_accepted = accepting.connections.values_mut();
        let (connection, paths, settings, max) =
            if let Some(learned) = all_learned.find(|learned| learned.paths.id() == id) {
                let settings = learned.settings.learned_path(remote, local);
                (&learned.settings, &mut learned.paths, settings, MAX_PATHS)
            } else if let Some(accepted) = all_accepted.find(|accepted| accepted.paths.id() == id) {
                let Some(template) = accepting.templates.get(&accepted.template) else { return };
                // The tunnel says so, as a problem of the connection.
                if !template.admits(remote.ip()) {
                    return;
                }
                let settings = template.settings.path(remote, local);
                let max = usize::from(template.settings.max_paths);
                (&accepted.settings, &mut accepted.paths, settings, max)
            } else {
                return;
            };
        let (name, Some(settings)) = (&connection.name, settings) else { return };
        if paths.has(remote, socket) {
            return;
        }
        let local = settings.local;
        if let Some(moved) = moved
            && let Some((path, to)) =
                paths.relocate(connection, moved, remote, local, socket, &mut means)
        {
            tracing::info!(connection = name, path, to, "the path has moved");
        } else {
            // What led there by another socket is the same peer by an earlier way.
            paths.remove(remote, &mut means);
            if paths.len() >= max {
                if paths.may_warn(now) {
                    tracing::warn!(
                        connection = name,
                        "no path to {remote}: the connection has its maximum of {max}"
                    );
                }
                return;
            }
            let added = paths.add(connection, remote, settings, socket, &mut means);
            let Some(path) = added else { return };
            tracing::info!(connection = name, path, "learned");
        }
        self.look_soon(now);
    }

    /// Looks for silent paths again after a while, if there are any that can be forgotten.
    pub(super) fn look_soon(&mut self, now: Instant) {
        // An accepted connection goes with its last path, and so also if it has none.
        let accepted = self.accepting.connections.values().map(|accepted| &accepted.paths);
        let learned = self.learned.values().map(|learned| &learned.paths);
        let paths = accepted.chain(learned.filter(|paths| paths.len() > 0));
        let look = paths.map(|paths| paths.forget).min();
        let look = look.map(|forget| next_look(now, forget));
        self.look = self.look.into_iter().chain(look).min();
    }

    /// Removes paths that were not heard for long, and accepted connections that have none.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        if self.look.is_none_or(|at| now < at) {
            return;
        }
        self.look = None;
        if let Some(heard) = self.handle.ask(Command::LastHeard) {
            let heard: Heard = heard
                .into_iter()
                .map(|heard| ((heard.connection, heard.path), heard.ago))
                .collect();
            let Self { learned, sockets, handle, .. } = self;
            let mut means = Means { handle, sockets, now };
            for (name, learned) in learned {
                learned.paths.forget_silent(name, &heard, &mut means);
            }
            self.forget_accepted(&heard, now);
        }
        self.look_soon(now);
    }

    /// The names of the paths that no file lists, each with its connection.
    pub(crate) fn unlisted_paths(&self) -> Vec<(String, String)> {
        let found = self.settings.connections.iter().flat_map(|connection| {
            self.uplinks.names(connection).map(|path| (connection.name.clone(), path))
        });
        let learned = self.learned.iter().flat_map(|(name, learned)| {
            learned.paths.names().map(|path| (name.clone(), path.to_owned()))
        });
        let accepted = self.accepting.connections.iter().flat_map(|(name, accepted)| {
            accepted.paths.names().map(|path| (name.clone(), path.to_owned()))
        });
        found.chain(learned).chain(accepted).collect()
    }

    /// Changes the status, weight or priority of a path that no file lists. That lasts as long as the path.
    /// Returns whether there is one of that name.
    pub(crate) fn change_unlisted(
        &mut self,
        connection: &str,
        path: &str,
        change: &dyn Fn(&mut config::Path),
        netmon: &mut NetMonitor,
    ) -> bool {
        let Self { accepting, learned, handle, uplinks, settings, .. } = self;
        let done = if let Some(accepted) = accepting.connections.get_mut(connection) {
            accepted.paths.change(&accepted.settings, path, change, handle)
        } else if let Some(learned) = learned.get_mut(connection) {
            learned.paths.change(&learned.settings, path, change, handle)
        } else if let Some(owner) =
            settings.connections.iter().find(|owner| owner.name == connection)
            && uplinks.change(owner, path, change)
        {
            self.reconcile_paths(netmon, Instant::now());
            true
        } else {
            false
        };
        self.handle.wake_if_stepped();
        done
    }
}
