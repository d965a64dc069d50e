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

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use mpt_proto::{AcceptId, ConnectRequest, ConnectionId};

use super::Reconciler;
use super::accepting::{Accepted, MAX_TEMPLATES, Template, connection};
use super::arrived::{Arrived, Heard, Means};
use super::listening::Listening;
use super::path::Setter;
use crate::clients::Clients;
use crate::config::{self, Accept};
use crate::netmon::NetMonitor;
use crate::tunnel::Handle;
use crate::tunnel::core::core_connection;
use crate::tunnel::op::TunnelOp;

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
        outcome = outcome.and(self.reconcile_clients(now));
        self.save_clients(now);
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
            let template = Template { id, settings, sockets: Vec::new(), clients: None };
            accepting.templates.insert(accept.name.clone(), template);
        }
        let Some(template) = accepting.templates.get_mut(&accept.name) else { return Ok(()) };
        template.settings.clone_from(accept);
        let Accept { interface, local, local_port, .. } = accept;
        let listening =
            Listening { interface: interface.as_deref(), local: *local, port: *local_port };
        Setter { sockets, handle, offloads, netmon, now, again }
            .listen(&listening, &mut template.sockets)
            .with_context(|| format!("template {}", accept.name))
    }

    fn remove_template(&mut self, name: &str, now: Instant) {
        let Some(mut template) = self.accepting.templates.remove(name) else { return };
        if let Some(clients) = template.clients.take() {
            clients_gone(&self.handle, &clients);
        }
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
            let id = ConnectionId(number);
            let accepted = Accepted {
                template: settings.name.clone(),
                client: None,
                settings: connection(settings, name.clone(), request),
                paths: Arrived::new(id, settings.forget),
            };
            handle.step(TunnelOp::AddConnection {
                id,
                settings: Arc::new(accepted.settings.clone()),
                accepted_by: Some((template.id, settings.name.clone())),
                core: Arc::new(core_connection(&accepted.settings, &[])),
            });
            accepting.connections.insert(name.clone(), accepted);
        }
        let Some(accepted) = accepting.connections.get_mut(&name) else { return };
        let mut means = Means { handle, sockets, now };
        // What came in by another socket is the same peer by a later way.
        accepted.paths.remove(request.remote, &mut means);
        if accepted.paths.len() >= usize::from(settings.max_paths) {
            return;
        }
        let Some(path) = settings.path(request.remote, local) else { return };
        let ConnectRequest { remote, socket, .. } = *request;
        let path = accepted.paths.add(&accepted.settings, remote, path, socket, &mut means);
        let Some(path) = path else { return };
        tracing::info!(connection = name, path, "accepted");
        self.look_soon(now);
    }

    /// Removes paths that were not heard for long, and connections without paths.
    pub(super) fn forget_accepted(&mut self, heard: &Heard, now: Instant) {
        let Self { accepting, sockets, handle, .. } = self;
        let mut means = Means { handle, sockets, now };
        let mut over = Vec::new();
        for (name, accepted) in &mut accepting.connections {
            accepted.paths.forget_silent(name, heard, &mut means);
            if accepted.paths.len() == 0 {
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

    pub(super) fn remove_accepted_at(&mut self, name: &str, now: Instant) {
        let Some(accepted) = self.accepting.connections.remove(name) else { return };
        let id = accepted.paths.id();
        self.handle.step(TunnelOp::RemoveConnection { id });
        accepted.paths.end(&mut self.sockets, now);
        self.numbers.give_back(now, id.0);
        tracing::info!(connection = name, "removed");
    }
}

/// The clients of a template that goes are strangers.
fn clients_gone(handle: &Handle, clients: &Clients) {
    let remove = clients.core().into_iter().map(|client| client.id).collect();
    handle.step(TunnelOp::ChangeClients { add: Vec::new(), remove });
}
