//! Clients that a template knows by their keys: their files, and their connections from the first handshake on.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_control::PeerStatus;
use mpt_proto::{ClientId, ClientRequest, ConnectionId};

use super::Reconciler;
use super::accepting::{Accepted, Template};
use super::arrived::{Arrived, Means};
use super::path::AGAIN;
use crate::clients::{Changes, Clients};
use crate::config::{self, Client, Prefix};
use crate::tunnel::command::Command;
use crate::tunnel::core::core_connection;
use crate::tunnel::op::TunnelOp;

impl Reconciler {
    /// Brings the clients of the templates in line with the settings, where a template has another folder than before.
    ///
    /// # Errors
    ///
    /// If a folder cannot be read.
    pub(super) fn reconcile_clients(&mut self, now: Instant) -> anyhow::Result<()> {
        let templates = self.accepting.templates.iter();
        let changed = templates.filter(|(_, template)| {
            let running = template.clients.as_ref().map(Clients::folder);
            running != template.settings.folder.as_deref()
        });
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        let mut outcome = Ok(());
        for name in changed {
            let Some(template) = self.accepting.templates.get_mut(&name) else { continue };
            if let Some(before) = template.clients.take() {
                let remove = before.core().into_iter().map(|client| client.id).collect();
                self.carry_out(&Changes { remove, ..Changes::default() }, now);
            }
            let Some(template) = self.accepting.templates.get_mut(&name) else { continue };
            let Some(folder) = &template.settings.folder else { continue };
            template.clients = Some(Clients::new(folder, template.id));
            match self.reload_clients_of(&name, now) {
                Ok(Changes { add, faults, .. }) => {
                    tracing::info!(template = name, clients = add.len(), "knows its clients");
                    faults.iter().for_each(|fault| tracing::error!(template = name, "{fault}"));
                }
                Err(error) => {
                    // To be tried again.
                    if let Some(template) = self.accepting.templates.get_mut(&name) {
                        template.clients = None;
                    }
                    outcome = outcome.and(Err(error).with_context(|| format!("template {name}")));
                }
            }
        }
        outcome
    }

    /// Reads the folders of clients again. Returns what has changed, and what is wrong with files.
    pub(crate) fn reload_clients(&mut self) -> (Vec<String>, Vec<String>) {
        let now = Instant::now();
        let templates = self.accepting.templates.iter();
        let names = templates.filter(|(_, template)| template.clients.is_some());
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        let (mut lines, mut faults) = (Vec::new(), Vec::new());
        for name in names {
            match self.reload_clients_of(&name, now) {
                Ok(changes) => {
                    lines.extend(changes.lines);
                    faults.extend(changes.faults);
                }
                Err(error) => faults.push(format!("template {name}: {error:#}")),
            }
        }
        if let Err(error) = self.reconcile_routes() {
            tracing::warn!(tunnel = self.settings.name, "{error:#}");
        }
        // The caller may rely on it.
        self.handle.await_steps();
        (lines, faults)
    }

    fn reload_clients_of(&mut self, name: &str, now: Instant) -> anyhow::Result<Changes> {
        let others = self.claimed(name);
        let Some(template) = self.accepting.templates.get_mut(name) else {
            return Ok(Changes::default());
        };
        let Some(clients) = &mut template.clients else { return Ok(Changes::default()) };
        let changes = clients.reload(&mut self.accepting.next_client, &others)?;
        self.carry_out(&changes, now);
        Ok(changes)
    }

    /// The inner addresses that clients of a template cannot have, and whose they are.
    fn claimed(&self, template: &str) -> Vec<(Prefix, String)> {
        let host = |addr: IpAddr| Prefix { addr, len: Prefix::max_len(addr) };
        let own = self.settings.addresses.iter();
        let own = own.map(|own| (host(own.addr), "this host".to_owned()));
        let connections = self.connections.values().flat_map(|connection| {
            let settings = &connection.settings;
            let networks = settings.networks.iter().filter(|network| !network.is_default());
            let claims = settings.peer.iter().map(|peer| host(*peer)).chain(networks.copied());
            claims.map(|claim| (claim, format!("connection {}", settings.name)))
        });
        let others = self.accepting.templates.iter().filter(|(name, _)| *name != template);
        let others = others.filter_map(|(_, other)| other.clients.as_ref());
        own.chain(connections).chain(others.flat_map(Clients::claims)).collect()
    }

    /// Tells the threads of changes, and ends the connections of those who are gone.
    fn carry_out(&mut self, changes: &Changes, now: Instant) {
        let Changes { add, remove, .. } = changes;
        if !add.is_empty() || !remove.is_empty() {
            self.handle.step(TunnelOp::ChangeClients { add: add.clone(), remove: remove.clone() });
        }
        self.end_connections_of(remove, now);
    }

    fn end_connections_of(&mut self, clients: &HashSet<ClientId>, now: Instant) {
        let connections = self.accepting.connections.iter();
        let of = |accepted: &Accepted| accepted.client.is_some_and(|id| clients.contains(&id));
        let gone = connections.filter(|(_, accepted)| of(accepted));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        gone.iter().for_each(|name| self.remove_accepted_at(name, now));
    }

    /// A client begins a handshake: it gets a connection, and is answered.
    pub(super) fn on_client_request(
        &mut self,
        request: &ClientRequest,
        local: Option<IpAddr>,
        now: Instant,
    ) {
        let Self { accepting, numbers, sockets, handle, .. } = self;
        let mut templates = accepting.templates.values_mut();
        // It can have gone since; so can the socket.
        let template = templates.find(|template| template.id == request.accept);
        let Some(template) = template.filter(|it| it.sockets.contains(&request.socket)) else {
            return;
        };
        let Template { id, settings, clients: Some(clients), .. } = template else { return };
        if request.invited {
            clients.pin(request.client, request.key);
        }
        let Some((client, of)) = clients.get(request.client) else { return };
        if request.invited {
            tracing::info!(client, key = %request.key, "has used its invitation");
        }
        if !of.addresses.contains(&request.peer) {
            tracing::warn!(
                client,
                "says that its tunnel address is {}, which is not among `addresses` in its file",
                request.peer
            );
            return;
        }
        let name = format!("{}-{client}", settings.name);
        if accepting.connections.contains_key(&name) {
            return;
        }
        let connection = connection(settings, name.clone(), request, of);
        let Some(path) = settings.path(request.remote, local) else { return };
        let Some(number) = numbers.take(now) else {
            tracing::warn!(client, "no connection: the tunnel has its maximum of connections");
            return;
        };
        let connection_id = ConnectionId(number);
        handle.step(TunnelOp::AddConnection {
            id: connection_id,
            settings: Arc::new(connection.clone()),
            accepted_by: Some((*id, settings.name.clone())),
            core: Arc::new(core_connection(&connection, &[&connection])),
        });
        let mut accepted = Accepted {
            template: settings.name.clone(),
            client: Some(request.client),
            paths: Arrived::new(connection_id, settings.forget),
            settings: connection,
        };
        let mut means = Means { handle, sockets, now };
        let ClientRequest { remote, socket, .. } = *request;
        let path = accepted.paths.add(&accepted.settings, remote, path, socket, &mut means);
        accepting.connections.insert(name.clone(), accepted);
        tracing::info!(connection = name, path, "accepted");
        self.save_clients(now);
        self.look_soon(now);
    }

    /// Writes the files of clients that have used their invitations.
    pub(super) fn save_clients(&mut self, now: Instant) {
        let clients = self.accepting.templates.values_mut().filter_map(|it| it.clients.as_mut());
        for clients in clients.filter(|clients| clients.has_unsaved()) {
            for failure in clients.save() {
                tracing::error!(
                    "a client has used its invitation, but its file does not say so: {failure}; trying again in {} s",
                    AGAIN.as_secs()
                );
                let soon = now + AGAIN;
                self.again = Some(self.again.map_or(soon, |at| at.min(soon)));
            }
        }
    }

    /// The clients of all templates.
    pub(crate) fn clients(&self) -> Vec<PeerStatus> {
        let templates = self.accepting.templates.iter();
        let templates = templates.filter_map(|(name, it)| Some((name, it.clients.as_ref()?)));
        let mut heard: HashMap<ConnectionId, Duration> = HashMap::new();
        for path in self.handle.ask(Command::LastHeard).into_iter().flatten() {
            let Some(ago) = path.ago else { continue };
            heard.entry(path.connection).and_modify(|it| *it = ago.min(*it)).or_insert(ago);
        }
        let status = |template: &str, name: &str, client: &Client| {
            let connection = format!("{template}-{name}");
            let accepted = self.accepting.connections.get(&connection);
            let ago = accepted.and_then(|accepted| heard.get(&accepted.paths.id()));
            PeerStatus {
                name: name.to_owned(),
                tunnel: self.settings.name.clone(),
                template: template.to_owned(),
                public_key: client.public_key.map(|key| key.to_string()),
                addresses: client.addresses.clone(),
                networks: client.networks.iter().map(ToString::to_string).collect(),
                invitation_expires: client.invitation_expires.map(|at| at.to_string()),
                connection: accepted.map(|_| connection),
                heard_seconds: ago.map(Duration::as_secs_f64),
            }
        };
        let all = templates.flat_map(|(template, clients)| {
            clients.iter().map(move |(name, client)| status(template, name, client))
        });
        all.collect()
    }
}

/// The settings of a client's connection.
fn connection(
    accept: &config::Accept,
    name: String,
    request: &ClientRequest,
    client: &Client,
) -> config::Connection {
    config::Connection {
        peer: client.addresses.clone(),
        networks: client.networks.clone(),
        public_key: Some(request.key),
        preshared_key_file: client.preshared_key_file.clone(),
        ..accept.connection(name, request.peer, request.remote.port())
    }
}
