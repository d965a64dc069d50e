//! Requests of the control socket, and what is answered.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use mpt_control::{ControlStatus, ErrorKind, PathStatus, Reply, Request, TraceMark};

use super::{Daemon, Host, Outcome, ReloadError, find};
use crate::config::{self, FragmentError, LoadError, Path, Place, Settings};
use crate::tunnel::MOST_EXPLAINED;
use crate::web::Token;

/// What a path's weight may be.
const WEIGHTS: RangeInclusive<u16> = 1..=Path::MAX_WEIGHT;

impl<H: Host> Daemon<H> {
    /// Executes a request. `control` is the status of the control socket.
    pub(crate) fn answer(&mut self, request: Request, control: ControlStatus) -> Reply {
        let answer = match request {
            Request::Status {} => Ok(Reply::Status { status: Box::new(self.status(control)) }),
            Request::Version {} => Ok(Reply::Version { version: env!("CARGO_PKG_VERSION").into() }),
            Request::Explain { connection } => self.explain(connection.as_deref()),
            Request::Trace { connection, after } => self.trace(connection.as_deref(), &after),
            Request::Config {} => Ok(Reply::Config { text: config::write(&self.running) }),
            Request::Reload {} => self.answer_reload(),
            Request::Peers {} => Ok(self.list_clients()),
            Request::PeersReload {} => self.reload_clients(),
            Request::PeerAdd { template, peer, settings } => {
                self.add_client(template.as_deref(), &peer, &settings)
            }
            Request::PeerRemove { template, peer } => {
                self.remove_client(template.as_deref(), &peer)
            }
            Request::Path { weight: Some(weight), .. } if !WEIGHTS.contains(&weight) => {
                let (least, most) = (WEIGHTS.start(), WEIGHTS.end());
                let message = format!("a weight is {least} to {most}, not {weight}");
                Err(Reply::error(ErrorKind::BadConfig, message))
            }
            Request::Path { connection, path, status, weight, priority } => {
                let change = |path: &mut Path| {
                    path.status = status.unwrap_or(path.status);
                    path.weight_from_peer &= weight.is_none();
                    path.weight = weight.unwrap_or(path.weight);
                    path.priority = priority.unwrap_or(path.priority);
                };
                self.set_path(connection.as_deref(), &path, weight.is_some(), change)
            }
            Request::PathAdd { connection, settings } => {
                self.add_path(connection.as_deref(), &settings)
            }
            Request::PathRemove { connection, path } => {
                self.remove_path(connection.as_deref(), &path)
            }
            Request::ConnectionAdd { tunnel, settings } => {
                self.add_connection(tunnel.as_deref(), &settings)
            }
            Request::ConnectionRemove { connection } => self.remove_connection(&connection),
            Request::WebToken { renew } => self.web_token(renew),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    /// Why packets went where they went.
    fn explain(&self, name: Option<&str>) -> Result<Reply, Reply> {
        let mut connections = Vec::new();
        for tunnel in &self.tunnels {
            let Some(explained) = self.host.explain(tunnel, name) else {
                return Err(no_answer(self.host.name(tunnel)));
            };
            connections.extend(explained);
        }
        match name {
            Some(name) if connections.is_empty() => Err(self.not_there(name)),
            None if connections.len() > MOST_EXPLAINED => {
                let message = format!("there are more than {MOST_EXPLAINED} connections: name one");
                Err(Reply::error(ErrorKind::NoSuchConnection, message))
            }
            _ => Ok(Reply::Explanation { connections }),
        }
    }

    /// What was traced since the client's marks.
    fn trace(
        &self,
        name: Option<&str>,
        after: &BTreeMap<String, TraceMark>,
    ) -> Result<Reply, Reply> {
        let (mut lines, mut next) = (Vec::new(), BTreeMap::new());
        let mut connections = 0;
        for tunnel in &self.tunnels {
            let tunnel_name = self.host.name(tunnel);
            let Some(answer) = self.host.trace(tunnel, name, after.get(tunnel_name).copied())
            else {
                return Err(no_answer(tunnel_name));
            };
            if answer.too_many {
                let message = format!(
                    "too many paths to be traced at once: name {} connection",
                    if name.is_some() { "another" } else { "a" }
                );
                return Err(Reply::error(ErrorKind::NoSuchConnection, message));
            }
            connections += answer.connections;
            if answer.connections > 0 {
                lines.extend(answer.lines);
                next.insert(tunnel_name.to_owned(), answer.mark);
            }
        }
        match name {
            Some(name) if connections == 0 => Err(self.not_there(name)),
            _ => Ok(Reply::Trace { lines, next }),
        }
    }

    /// Why nothing is known of a connection.
    fn not_there(&self, name: &str) -> Reply {
        match find::connection(&self.running, Some(name)) {
            Err(refusal) => refusal,
            Ok(_) => {
                let message =
                    format!("the tunnel of connection {name} does not run: see `mpt status`");
                Reply::error(ErrorKind::Unavailable, message)
            }
        }
    }

    /// What allows changes by the web page: the same until a new one is wanted or the daemon ends.
    fn web_token(&mut self, renew: bool) -> Result<Reply, Reply> {
        let Some(listen) = &self.running.web.listen else {
            let message = "no web page is served: set `listen` in [web], such as \"127.0.0.1:9480\", and reload";
            return Err(Reply::error(ErrorKind::Unavailable, message));
        };
        let listen = listen.to_string();
        let token = match self.web_token.take().filter(|_| !renew) {
            Some(token) => token,
            None => Token::new().map_err(|error| {
                Reply::error(
                    ErrorKind::Unavailable,
                    format!("there are no random numbers: {error}"),
                )
            })?,
        };
        let token = self.web_token.insert(token).as_str().to_owned();
        Ok(Reply::WebToken { token, listen })
    }

    fn answer_reload(&mut self) -> Result<Reply, Reply> {
        let mut outcome = self.reload().map_err(|error| match error {
            ReloadError::Refused(lines) => {
                let message =
                    format!("{} cannot be run here; nothing was changed", self.file.display());
                Reply::bad_config(message, lines.join("\n") + "\n")
            }
            ReloadError::Load(LoadError::Invalid(report)) => {
                let message = format!("{} is wrong; nothing was changed", self.file.display());
                Reply::bad_config(message, report.render(false))
            }
            ReloadError::Load(error @ LoadError::Unreadable { .. }) => {
                Reply::error(ErrorKind::BadConfig, format!("{error}; nothing was changed"))
            }
        })?;
        for change in &outcome.changes {
            tracing::info!("reload: {change}");
        }
        for (changes, faults) in [self.read_keys(), self.read_clients()] {
            outcome.changes.extend(changes);
            outcome.failures.extend(faults);
        }
        answer(outcome)
    }

    /// Changes a path, perhaps its weight (`weighs`).
    fn set_path(
        &mut self,
        connection: Option<&str>,
        name: &str,
        weighs: bool,
        change: impl Fn(&mut Path),
    ) -> Result<Reply, Reply> {
        // A connection that was accepted is in no file.
        if let Some(connection) = connection
            && self.change_unlisted(connection, name, &change)
        {
            return Ok(said(self.without_weights(connection).filter(|_| weighs)));
        }
        let (connection, name) =
            find::path(&self.running, &self.unlisted_paths(), connection, name)?;
        if !self.change_unlisted(&connection, &name, &change) {
            let mut settings = self.running.clone();
            paths(&mut settings, &connection, |paths| {
                paths.iter_mut().filter(|path| path.name == name).for_each(&change);
            });
            self.commit(settings)?;
        }
        let unweighed = self.without_weights(&connection).filter(|_| weighs);
        Ok(said(self.without_paths(&connection).into_iter().chain(unweighed)))
    }

    /// What to say if weights of a connection mean nothing at present.
    fn without_weights(&self, name: &str) -> Option<String> {
        let mut explained = self
            .tunnels
            .iter()
            .filter_map(|tunnel| self.host.explain(tunnel, Some(name)))
            .flatten();
        let scheduler = explained.next()?.scheduler;
        let ignores = matches!(scheduler.as_str(), "earliest" | "lowest-rtt" | "redundant");
        ignores.then(|| {
            format!(
                "the weight has no effect as long as connection {name} has scheduler {scheduler}, which goes by \
                 measured rates and delays: for weights set `profile = \"classic\"`; to have a path used less, use \
                 `mpt path priority`"
            )
        })
    }

    /// What to say if no path of a configured connection is available any more.
    fn without_paths(&self, name: &str) -> Option<String> {
        let connection = find::connection(&self.running, Some(name)).ok()?;
        let is_off = |path: &Path| path.status == PathStatus::Off;
        let all = !connection.paths.is_empty() && connection.paths.iter().all(is_off);
        all.then(|| {
            format!(
                "connection {name} has no path in service any more: packets to its peer are dropped"
            )
        })
    }

    fn change_unlisted(
        &mut self,
        connection: &str,
        name: &str,
        change: &dyn Fn(&mut Path),
    ) -> bool {
        let Self { host, tunnels, .. } = self;
        tunnels.iter_mut().any(|tunnel| host.change_unlisted(tunnel, connection, name, change))
    }

    /// The paths that no file lists, each after the name of its connection.
    fn unlisted_paths(&self) -> Vec<(String, String)> {
        self.tunnels.iter().flat_map(|tunnel| self.host.unlisted_paths(tunnel)).collect()
    }

    fn add_path(&mut self, connection: Option<&str>, fragment: &str) -> Result<Reply, Reply> {
        let connection = &find::connection(&self.running, connection)?.name;
        let settings = self.add(Place::Path { connection }, fragment, "path add")?;
        self.commit(settings)
    }

    fn add_connection(&mut self, tunnel: Option<&str>, fragment: &str) -> Result<Reply, Reply> {
        let tunnel = find::tunnel(&self.running, tunnel)?;
        let settings = self.add(Place::Connection { tunnel }, fragment, "connection add")?;
        self.commit(settings)
    }

    fn add(&self, place: Place<'_>, fragment: &str, name: &str) -> Result<Settings, Reply> {
        config::with_fragment(&self.running, place, fragment, name).map_err(|error| match error {
            FragmentError::Missing { .. } => {
                Reply::error(ErrorKind::NoSuchConnection, error.to_string())
            }
            FragmentError::Invalid(report) => {
                let message = format!("{name}: invalid settings; nothing was changed");
                Reply::bad_config(message, report.render(false))
            }
        })
    }

    fn remove_path(&mut self, connection: Option<&str>, name: &str) -> Result<Reply, Reply> {
        let unlisted = self.unlisted_paths();
        let (connection, name) = find::path(&self.running, &unlisted, connection, name)?;
        if unlisted.contains(&(connection.clone(), name.clone())) {
            let message = format!(
                "path {name} of connection {connection} is not configured: switch it off with `mpt path \
                 down {name}`; a path that was found by itself goes with `exclude` in the file"
            );
            return Err(Reply::error(ErrorKind::BadConfig, message));
        }
        if find::connection(&self.running, Some(&connection))?.paths.len() == 1 {
            let message = format!(
                "path {name} is the last one of connection {connection}: add another one first, or \
                 remove the connection"
            );
            return Err(Reply::error(ErrorKind::BadConfig, message));
        }
        let mut settings = self.running.clone();
        paths(&mut settings, &connection, |paths| paths.retain(|path| path.name != name));
        self.remove(settings)
    }

    fn remove_connection(&mut self, name: &str) -> Result<Reply, Reply> {
        let Self { host, tunnels, .. } = self;
        if tunnels.iter_mut().any(|tunnel| host.remove_accepted(tunnel, name)) {
            let changes = vec![format!("connection {name}: removed, until the peer reconnects")];
            return answer(Outcome { changes, failures: Vec::new() });
        }
        let name = find::connection(&self.running, Some(name))?.name.clone();
        let mut settings = self.running.clone();
        for tunnel in &mut settings.tunnels {
            tunnel.connections.retain(|connection| connection.name != name);
        }
        self.remove(settings)
    }

    /// Has these settings run, with something less than before.
    fn remove(&mut self, settings: Settings) -> Result<Reply, Reply> {
        if let Err(report) = config::check(&settings, "what would run") {
            let message = "the remaining configuration is invalid; nothing was changed";
            return Err(Reply::bad_config(message, report.render(false)));
        }
        self.commit(settings)
    }

    /// Applies these settings, and reports what changed.
    fn commit(&mut self, settings: Settings) -> Result<Reply, Reply> {
        let changes = config::difference(&self.running, &settings);
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        for change in &changes {
            tracing::info!("by command: {change}");
        }
        let failures = self.change_to(settings);
        answer(Outcome { changes, failures })
    }
}

/// It is done, with these warnings.
fn said(warnings: impl IntoIterator<Item = String>) -> Reply {
    let changes: Vec<_> = warnings.into_iter().collect();
    if changes.is_empty() { Reply::Done } else { Reply::Changed { changes } }
}

fn no_answer(tunnel: &str) -> Reply {
    let message = format!("tunnel {tunnel} did not answer: ask again, or see the log");
    Reply::error(ErrorKind::Unavailable, message)
}

/// Changes the paths of a connection.
fn paths(settings: &mut Settings, connection: &str, change: impl Fn(&mut Vec<Path>)) {
    let connections = settings.tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.connections);
    connections.filter(|other| other.name == connection).for_each(|other| change(&mut other.paths));
}

fn answer(Outcome { changes, failures }: Outcome) -> Result<Reply, Reply> {
    if failures.is_empty() {
        return Ok(Reply::Changed { changes });
    }
    for failure in &failures {
        tracing::error!("{failure}");
    }
    let done = changes.iter().map(|change| format!("done: {change}\n"));
    let failed = failures.iter().map(|failure| format!("not done: {failure}\n"));
    let report: String = done.chain(failed).collect();
    let message = failures.join("; ");
    Err(Reply::Error { kind: ErrorKind::Unavailable, message, report: Some(report) })
}
