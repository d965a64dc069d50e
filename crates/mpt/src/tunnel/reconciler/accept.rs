//! Peers that are not configured: their connections and paths, from the connect request until they
//! are forgotten.
//!
//! The receive side decides who asks to connect and whether there is room ([`mpt_proto::ConnectRequest`]). Here what they
//! want is made, by a template: a connection called after the template and the peer's tunnel address
//! (`vehicle-10.9.0.7`), with a path called after where it came from (`203.0.113.7:4754`); or a further path
//! of that connection. A peer whose address or port changes comes from elsewhere, so it gets a further path,
//! and the other one falls silent. What is silent for long enough is removed, and a connection with its
//! last path.
//!
//! Accepted connections are no part of the settings: no file mentions them and none is written with them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpt_proto::{AcceptId, ConnectRequest, ConnectionId, MAX_PATHS, PathId, SocketId};

use super::Reconciler;
use super::accepting::{Accepted, MAX_TEMPLATES, Path, Template, connection};
use super::numbers::Numbers;
use super::path::AGAIN;
use super::socket::Key;
use crate::config::{self, Accept};
use crate::netmon::NetMonitor;
use crate::tunnel::command::Command;
use crate::tunnel::core::core_connection;
use crate::tunnel::op::TunnelOp;

/// How long a path may stay of which nothing was ever heard but the connect request, which may be forged; or its dead
/// time, if that is more.
const TRIAL: Duration = Duration::from_secs(10);

impl Reconciler {
    /// Brings the templates in line with the settings. With a template, or its sockets, all
    /// connections accepted by it are removed.
    ///
    /// # Errors
    ///
    /// If a template can have none of its sockets.
    pub(super) fn reconcile_templates(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let place = |accept: &Accept| (accept.interface.clone(), accept.local, accept.local_port);
        let wanted = |name: &str| settings.accepts.iter().find(|accept| accept.name == name);
        let templates = self.accepting.templates.iter();
        let gone = templates.filter(|(name, template)| {
            wanted(name).is_none_or(|new| place(new) != place(&template.settings))
        });
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        gone.into_iter().for_each(|name| self.remove_template(&name, now));
        let mut outcome = Ok(());
        for accept in &settings.accepts {
            outcome = outcome.and(self.reconcile_template(accept, settings.offloads, netmon, now));
        }
        let templates = self.accepting.templates.values();
        let accepts: Vec<_> = templates.map(|t| (t.core(), t.settings.name.clone())).collect();
        if accepts != self.accepting.told {
            self.accepting.told.clone_from(&accepts);
            self.handle.step(TunnelOp::SetAccepts { accepts });
        }
        outcome
    }

    fn reconcile_template(
        &mut self,
        accept: &Accept,
        offloads: config::Offloads,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let Self { accepting, sockets, handle, again, .. } = self;
        if !accepting.templates.contains_key(&accept.name) {
            let Some(number) = accepting.numbers.take(now) else {
                anyhow::bail!("a tunnel has at most {MAX_TEMPLATES} templates");
            };
            let (id, settings) = (AcceptId(number), accept.clone());
            let template = Template { id, settings, sockets: Vec::new() };
            accepting.templates.insert(accept.name.clone(), template);
        }
        let Some(template) = accepting.templates.get_mut(&accept.name) else { return Ok(()) };
        template.settings.clone_from(accept);
        let mut failure = None;
        let mut step = |step| handle.step(step);
        for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
            if accept.local.is_some_and(|local| local.is_ipv4() != any.is_ipv4()) {
                continue;
            }
            let interface = accept.interface.as_deref();
            // The kernel notifies when the missing item appears.
            let Ok(way) = netmon.way_from(interface, accept.local, any) else { continue };
            let bound = accept.interface.clone().zip(way.bound);
            let key = Key::new(accept.local, any, accept.local_port, bound);
            let version = |id: &&SocketId| {
                sockets.key(**id).is_some_and(|key| key.local.is_ipv4() == any.is_ipv4())
            };
            let before = template.sockets.iter().find(version).copied();
            if before.is_some_and(|id| sockets.key(id) == Some(&key)) {
                continue;
            }
            match sockets.take(now, &key, offloads, &mut step) {
                Ok(id) => {
                    if let Some(before) = before {
                        template.sockets.retain(|other| *other != before);
                        sockets.give_back(now, before);
                    }
                    template.sockets.push(id);
                }
                Err(error) => {
                    let soon = now + AGAIN;
                    *again = Some(again.map_or(soon, |at| at.min(soon)));
                    failure = Some(error.context(format!("template {}", accept.name)));
                }
            }
        }
        // A host may lack one IP version.
        match failure.filter(|_| template.sockets.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn remove_template(&mut self, name: &str, now: Instant) {
        let Some(template) = self.accepting.templates.remove(name) else { return };
        let of = |accepted: &Accepted| accepted.template == name;
        let connections = self.accepting.connections.iter();
        let gone: Vec<String> = connections
            .filter(|(_, accepted)| of(accepted))
            .map(|(connection, _)| connection.clone())
            .collect();
        gone.into_iter().for_each(|connection| self.remove_accepted_at(&connection, now));
        template.sockets.into_iter().for_each(|socket| self.sockets.give_back(now, socket));
        self.accepting.numbers.give_back(now, template.id.0);
    }

    /// A peer is accepted.
    pub(super) fn on_connect_request(
        &mut self,
        request: &ConnectRequest,
        local: Option<IpAddr>,
        now: Instant,
    ) {
        let Self { accepting, numbers, sockets, handle, .. } = self;
        let mut templates = accepting.templates.values();
        // It can have gone since; so can the socket.
        let Some(template) = templates.find(|template| template.id == request.accept) else {
            return;
        };
        if !template.sockets.contains(&request.socket) {
            return;
        }
        // It may have been configured while the connect request was on its way.
        if self.connections.values().any(|other| other.settings.peer.contains(&request.peer)) {
            return;
        }
        let settings = &template.settings;
        let name = format!("{}-{}", settings.name, request.peer);
        if !accepting.connections.contains_key(&name) {
            let Some(number) = numbers.take(now) else { return };
            let accepted = Accepted {
                id: ConnectionId(number),
                template: settings.name.clone(),
                settings: connection(settings, name.clone(), request),
                forget: settings.forget,
                numbers: Numbers::below(MAX_PATHS as u16),
                paths: BTreeMap::new(),
            };
            handle.step(TunnelOp::AddConnection {
                id: accepted.id,
                settings: Arc::new(accepted.settings.clone()),
                accepted_by: Some((template.id, settings.name.clone())),
                core: Arc::new(core_connection(&accepted.settings, &[])),
            });
            accepting.connections.insert(name.clone(), accepted);
        }
        let Some(accepted) = accepting.connections.get_mut(&name) else { return };
        let connection = accepted.id;
        // What came in by another socket is the same peer by a later way.
        if let Some(path) = accepted.paths.remove(&request.remote) {
            handle.step(TunnelOp::RemovePath { connection, path: path.id });
            sockets.give_back(now, path.socket);
            accepted.numbers.give_back(now, u16::from(path.id.0));
        }
        if accepted.paths.len() >= usize::from(settings.max_paths) {
            return;
        }
        let Some(path_settings) = settings.path(request.remote, local) else { return };
        let Some(number) = accepted.numbers.take(now) else { return };
        let path = Path {
            id: PathId(number as u8),
            settings: path_settings,
            socket: request.socket,
            since: now,
            absence: None,
        };
        sockets.share(request.socket);
        let place = path.place(&accepted.settings, request.remote);
        handle.step(TunnelOp::AddPath { connection, path: path.id, place });
        tracing::info!(connection = name, path = path.settings.name, "accepted");
        accepted.paths.insert(request.remote, path);
        let look = accepting.next_look(now);
        accepting.look = accepting.look.into_iter().chain(look).min();
    }

    /// Removes what was not heard for long.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        if self.accepting.look.is_none_or(|at| now < at) {
            return;
        }
        self.accepting.look = self.accepting.next_look(now);
        let Some(heard) = self.handle.ask(Command::LastHeard) else { return };
        let heard: BTreeMap<_, _> =
            heard.into_iter().map(|heard| ((heard.connection, heard.path), heard.ago)).collect();
        let Self { accepting, sockets, handle, .. } = self;
        let mut over = Vec::new();
        for (name, accepted) in &mut accepting.connections {
            let Accepted { id, forget, numbers, paths, .. } = accepted;
            let connection = *id;
            let is_silent = |path: &Path| {
                let since = path.absence.as_ref().map_or(path.since, |(_, since)| *since);
                let ago = heard.get(&(connection, path.id)).copied().flatten();
                let silent = now.saturating_duration_since(since);
                match ago {
                    _ if path.absence.is_some() => silent >= *forget,
                    Some(ago) => ago.min(silent) >= *forget,
                    None => silent >= TRIAL.max(path.settings.dead_time).min(*forget),
                }
            };
            let gone: Vec<SocketAddr> = paths
                .iter()
                .filter(|(_, path)| is_silent(path))
                .map(|(remote, _)| *remote)
                .collect();
            for path in gone.iter().filter_map(|remote| paths.remove(remote)) {
                tracing::info!(connection = name, path = path.settings.name, "forgotten: silent");
                handle.step(TunnelOp::RemovePath { connection, path: path.id });
                sockets.give_back(now, path.socket);
                numbers.give_back(now, u16::from(path.id.0));
            }
            if paths.is_empty() {
                over.push(name.clone());
            }
        }
        for name in &over {
            self.remove_accepted_at(name, now);
        }
        if !over.is_empty()
            && let Err(error) = self.reconcile_routes()
        {
            tracing::warn!(tunnel = self.settings.name, "{error:#}");
        }
        self.accepting.look = self.accepting.next_look(now);
    }

    /// Looks at what the accepted paths need of this host.
    pub(super) fn reconcile_accepted(&mut self, netmon: &mut NetMonitor, now: Instant) {
        let Self { accepting, handle, .. } = self;
        for accepted in accepting.connections.values_mut() {
            let connection = accepted.id;
            for (remote, path) in &mut accepted.paths {
                let absence = netmon.way(&path.settings, remote.ip()).err();
                if absence.as_ref() == path.absence.as_ref().map(|(absence, _)| absence) {
                    continue;
                }
                let since = path.absence.take().map_or(now, |(_, since)| since);
                path.absence = absence.clone().map(|absence| (absence, since));
                let well = netmon.last_well();
                handle.step(TunnelOp::SetAbsence { connection, path: path.id, absence, well });
            }
        }
    }

    /// Removes an accepted connection at the operator's request. Its peer is accepted again if it
    /// continues to send connect requests. Returns whether there is one of that name.
    pub(crate) fn remove_accepted(&mut self, name: &str) -> bool {
        let is_there = self.accepting.connections.contains_key(name);
        if is_there {
            self.remove_accepted_at(name, Instant::now());
            if let Err(error) = self.reconcile_routes() {
                tracing::warn!(tunnel = self.settings.name, "{error:#}");
            }
            self.handle.wake_if_stepped();
        }
        is_there
    }

    /// Removes the connections that were accepted and whose peer is configured by now.
    pub(super) fn remove_claimed(&mut self, configured: &[config::Connection], now: Instant) {
        let is_claimed = |accepted: &&config::Connection| {
            let mut others = configured.iter().flat_map(|other| &other.peer);
            others.any(|peer| accepted.peer.contains(peer))
        };
        let accepted = self.accepting.connections().filter(is_claimed);
        let claimed: Vec<String> = accepted.map(|accepted| accepted.name.clone()).collect();
        claimed.iter().for_each(|name| self.remove_accepted_at(name, now));
    }

    fn remove_accepted_at(&mut self, name: &str, now: Instant) {
        let Some(accepted) = self.accepting.connections.remove(name) else { return };
        self.handle.step(TunnelOp::RemoveConnection { id: accepted.id });
        for path in accepted.paths.into_values() {
            self.sockets.give_back(now, path.socket);
        }
        self.numbers.give_back(now, accepted.id.0);
        tracing::info!(connection = name, "removed");
    }

    /// Changes the settings of a path that was accepted: its status, weight and priority. They last as
    /// long as the path. Returns whether there is one of that name.
    pub(crate) fn change_accepted(
        &mut self,
        connection: &str,
        path: &str,
        change: &dyn Fn(&mut config::Path),
    ) -> bool {
        let Some(accepted) = self.accepting.connections.get_mut(connection) else { return false };
        let mut paths = accepted.paths.iter_mut();
        let Some((remote, path)) = paths.find(|(_, other)| other.settings.name == path) else {
            return false;
        };
        change(&mut path.settings);
        let place = path.place(&accepted.settings, *remote);
        self.handle.step(TunnelOp::SetPath { connection: accepted.id, path: path.id, place });
        self.handle.wake_if_stepped();
        true
    }
}
