//! Settings as a configuration file: what would have to be written to get them.
//!
//! Reading the result gives the same settings. What is as it would be anyway is left out, so that
//! it looks as if a person had written it. The one thing that no file can say,
//! [`Tunnel::checksum_partial`](super::Tunnel::checksum_partial), is lost.

use std::fmt::Write as _;

use super::written::Written;
use super::{
    Accept, Auth, Commands, Connection, Control, Match, Mtu, Offloads, Path, PathStatus, PeerKind,
    Policies, Profile, Reorder, Scheduler, Settings, Threads, Tunnel,
};

/// The settings as the text of a file.
pub(crate) fn write(settings: &Settings) -> String {
    let mut out = Writer::default();
    let control = &settings.control;
    if *control != Control::default() {
        out.header("[control]");
        out.key("socket", &control.socket);
    }
    if let Some(user) = &settings.daemon.user {
        out.header("[daemon]");
        out.key("user", user);
    }
    if let Some(listen) = &settings.metrics.listen {
        out.header("[metrics]");
        out.key("listen", listen);
    }
    for tunnel in &settings.tunnels {
        out.tunnel(tunnel);
    }
    out.text
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn header(&mut self, header: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(header);
        self.text.push('\n');
    }

    fn key(&mut self, key: &str, value: &(impl Written + ?Sized)) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{key} = {}", value.written());
    }

    /// The key unless its value is the default.
    fn unless<T: Written + PartialEq>(&mut self, key: &str, value: &T, default: &T) {
        if value != default {
            self.key(key, value);
        }
    }

    fn some<T: Written>(&mut self, key: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.key(key, value);
        }
    }

    /// An inline table of these keys, unless there is none.
    fn inline(&mut self, key: &str, entries: &[(&str, String)]) {
        if !entries.is_empty() {
            let _ = writeln!(self.text, "{key} = {}", inline(entries));
        }
    }

    fn tunnel(&mut self, tunnel: &Tunnel) {
        self.header("[[tunnel]]");
        self.key("name", &tunnel.name);
        self.key("addresses", &tunnel.addresses[..]);
        self.unless("mtu", &tunnel.mtu, &Mtu::Auto);
        self.unless("clamp_mss", &tunnel.clamp_mss, &false);
        let off = tunnel.offloads.by_key().into_iter().filter(|(_, on)| !on);
        let off: Vec<_> = off.map(|(key, on)| (key, on.written())).collect();
        self.inline("offloads", &off);
        self.unless("threads", &tunnel.threads, &Threads::default());
        for connection in &tunnel.connections {
            self.connection(connection);
        }
        for accept in &tunnel.accepts {
            self.accept(accept);
        }
    }

    fn connection(&mut self, connection: &Connection) {
        self.header("[[tunnel.connection]]");
        self.key("name", &connection.name);
        let &Connection { peer_kind, ref commands, .. } = connection;
        if peer_kind == PeerKind::Mpt {
            self.key("peer", &connection.peer[..]);
        } else {
            self.key("peer", peer_kind.name());
            self.key("peer_addresses", &connection.peer[..]);
        }
        self.unless("networks", &connection.networks, &Vec::new());
        if let Some(selector) = &connection.selector {
            self.inline("match", &selector_entries(selector));
        }
        self.unless("local_port", &connection.local_port, &Connection::DEFAULT_PORT);
        self.unless("remote_port", &connection.remote_port, &Connection::DEFAULT_PORT);
        if let Some(commands) = commands {
            self.commands(commands);
        }
        self.policies(connection.policies, peer_kind);
        for path in &connection.paths {
            self.path(path, peer_kind);
        }
    }

    fn commands(&mut self, commands: &Commands) {
        let default = Commands::DEFAULT_PORT;
        self.unless("command_port", &commands.port, &default);
        self.unless("remote_command_port", &commands.remote_port, &default);
        if commands.auth != Auth::None {
            self.inline("auth", &auth_entries(&commands.auth));
        }
        self.unless("accept_create", &commands.accept_create, &false);
    }

    fn policies(&mut self, policies: Policies, peer_kind: PeerKind) {
        let Policies { profile, scheduler, key, checksum, sequence, reorder } = policies;
        self.unless("profile", &profile, &Profile::Auto);
        self.unless("scheduler", &scheduler, &Scheduler::Weighted);
        self.some("key", &key);
        self.unless("checksum", &checksum, &false);
        // Towards an original MPT it follows from the window.
        if peer_kind != PeerKind::Original {
            self.unless("sequence", &sequence, &(peer_kind == PeerKind::Mpt));
        }
        let default = Reorder::default_for(scheduler, peer_kind).entries();
        let entries = reorder.entries().into_iter().zip(default);
        let entries = entries.filter(|(entry, default)| entry != default);
        self.inline("reorder", &entries.map(|(entry, _)| entry).collect::<Vec<_>>());
    }

    fn path(&mut self, path: &Path, peer_kind: PeerKind) {
        self.header("[[tunnel.connection.path]]");
        self.key("name", &path.name);
        self.some("interface", &path.interface);
        self.some("local", &path.local);
        self.key("remote", &path.remote);
        self.unless("weight", &path.weight, &1);
        self.unless("priority", &path.priority, &0);
        self.unless("keepalive", &path.keepalive, &Path::default_keepalive(peer_kind));
        let dead_time = Path::default_dead_time(path.keepalive);
        self.unless("dead_time", &path.dead_time, &dead_time);
        self.unless("status", &path.status, &PathStatus::Available);
        for (key, ports) in path.pins.lists() {
            if !ports.is_empty() {
                self.key(key, ports);
            }
        }
    }

    fn accept(&mut self, accept: &Accept) {
        self.header("[[tunnel.accept]]");
        self.key("name", &accept.name);
        self.key("peers", &accept.peers[..]);
        self.unless("sources", &accept.sources, &Vec::new());
        self.some("interface", &accept.interface);
        self.some("local", &accept.local);
        self.unless("local_port", &accept.local_port, &Connection::DEFAULT_PORT);
        self.unless("max_connections", &accept.max_connections, &Accept::DEFAULT_CONNECTIONS);
        self.unless("max_rate", &accept.max_rate, &Accept::DEFAULT_RATE);
        self.unless("max_paths", &accept.max_paths, &Accept::DEFAULT_PATHS);
        self.unless("forget", &accept.forget, &Accept::DEFAULT_FORGET);
        self.policies(accept.policies, PeerKind::Mpt);
        self.some("weight", &accept.weight);
        self.unless("priority", &accept.priority, &0);
        self.unless("keepalive", &accept.keepalive, &Path::default_keepalive(PeerKind::Mpt));
        let dead_time = Path::default_dead_time(accept.keepalive);
        self.unless("dead_time", &accept.dead_time, &dead_time);
    }
}

fn selector_entries(selector: &Match) -> Vec<(&'static str, String)> {
    let protocol = selector.protocol.map(|number| match Match::protocol_name(number) {
        Some(name) => name.written(),
        None => number.written(),
    });
    let ports = (!selector.ports.is_empty()).then(|| selector.ports.written());
    [("protocol", protocol), ("ports", ports)]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn auth_entries(auth: &Auth) -> Vec<(&'static str, String)> {
    let key = match auth {
        Auth::None | Auth::Random => None,
        Auth::Sha256(secret) => Some(("key", secret.text().written())),
    };
    [("type", auth.name().written())].into_iter().chain(key).collect()
}

/// As it is shown. What is secret of it stands in the file only.
impl Written for Option<Commands> {
    fn written(&self) -> String {
        let Some(Commands { port, remote_port, auth, accept_create }) = self else {
            return "none".to_owned();
        };
        inline(&[
            ("command_port", port.written()),
            ("remote_command_port", remote_port.written()),
            ("auth", auth.name().written()),
            ("accept_create", accept_create.written()),
        ])
    }
}

impl Written for Match {
    fn written(&self) -> String {
        inline(&selector_entries(self))
    }
}

impl Written for Offloads {
    fn written(&self) -> String {
        inline(&self.by_key().map(|(key, on)| (key, on.written())))
    }
}

impl Written for Reorder {
    fn written(&self) -> String {
        inline(&self.entries())
    }
}

fn inline(entries: &[(&str, String)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", entries.join(", "))
}
