//! The daemon's mind: which tunnels run with which settings, and how both change.
//!
//! There are two sets of settings. One is the file as it was last read, the other is what runs, which
//! commands may have changed since. A reload finds what the file says now and did not say before, and
//! carries out only that; so what was done by command stays unless the file has something new to say
//! about it.
//!
//! The running settings are changed first, as a whole, and only if they are consistent. Then every
//! tunnel is reconciled with them ([`Host`]). A part that fails at that moment, such as a route
//! that another program holds, is reported and retried.
//!
//! A tunnel that fails while it runs ends alone, and is started again as soon as possible. The
//! other tunnels are not affected.

mod clients;
mod find;
mod host;
mod request;
#[cfg(test)]
mod tests;
mod web;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mpt_control::{ControlStatus, Status};

pub(crate) use host::{Host, Machine};
pub(crate) use web::Behind;

use crate::config::{self, Effect, LoadError, Settings};
use crate::web::Token;

/// The tunnels and their settings.
pub(crate) struct Daemon<H: Host> {
    host: H,
    file: PathBuf,
    /// What the environment says, whatever the file does.
    environment: Box<dyn Fn(&mut Settings)>,
    /// What the file said when it was last read.
    loaded: Settings,
    /// What runs.
    running: Settings,
    tunnels: Vec<H::Tunnel>,
    /// Why tunnels that are wanted do not run, by name.
    failed: BTreeMap<String, String>,
    ready: Instant,
    /// When that was last tried which could not be had.
    tried: Instant,
    /// What allows changes by the web page; none before somebody has asked for it.
    web_token: Option<Token>,
}

/// How soon a tunnel that could not be started is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// What a change of settings came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// What changed, in words.
    changes: Vec<String>,
    /// What could not be had.
    failures: Vec<String>,
}

/// Why a file is not taken over.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The host stands against it, in these lines.
    #[error("the host stands against it")]
    Refused(Vec<String>),
}

impl<H: Host> Daemon<H> {
    /// Starts all tunnels of `settings`, which were read from `file` and changed by `environment`, or
    /// none of them.
    ///
    /// # Errors
    ///
    /// Which tunnel cannot be started, and why.
    pub(crate) fn start(
        mut host: H,
        file: PathBuf,
        settings: Settings,
        environment: Box<dyn Fn(&mut Settings)>,
    ) -> anyhow::Result<Self> {
        let mut tunnels = Vec::new();
        for tunnel in &settings.tunnels {
            match host.start(tunnel) {
                Ok(started) => tunnels.push(started),
                Err(error) => {
                    tunnels.into_iter().for_each(|tunnel| host.stop(tunnel));
                    return Err(error.context(format!("cannot start tunnel `{}`", tunnel.name)));
                }
            }
        }
        let (loaded, running) = (settings.clone(), settings);
        Ok(Self {
            host,
            file,
            environment,
            loaded,
            running,
            tunnels,
            failed: BTreeMap::new(),
            ready: Instant::now(),
            tried: Instant::now(),
            web_token: None,
        })
    }

    /// The host on which the tunnels run.
    pub(crate) fn host(&mut self) -> (&mut H, &mut [H::Tunnel]) {
        (&mut self.host, &mut self.tunnels)
    }

    /// The settings that run.
    pub(crate) fn settings(&self) -> &Settings {
        &self.running
    }

    /// Ends all tunnels.
    pub(crate) fn stop(self) {
        let Self { mut host, tunnels, .. } = self;
        tunnels.into_iter().for_each(|tunnel| host.stop(tunnel));
    }

    /// Ends the tunnels that have failed, and only those. [`retry`](Self::retry) starts them again.
    pub(crate) fn end_failed(&mut self, now: Instant) {
        let Self { host, tunnels, failed, tried, .. } = self;
        let reasons: Vec<_> = tunnels.iter().map(|tunnel| host.failure(tunnel)).collect();
        for (place, reason) in reasons.into_iter().enumerate().rev() {
            let Some(reason) = reason else { continue };
            let tunnel = tunnels.remove(place);
            let name = host.name(&tunnel).to_owned();
            tracing::error!(
                tunnel = name,
                "failed: {reason}; it is ended and started again in {} s, the other tunnels go on",
                AGAIN.as_secs()
            );
            host.stop(tunnel);
            failed.insert(name, reason);
            *tried = now;
        }
    }

    /// The complete status. `control` is the status of the control socket.
    pub(crate) fn status(&self, control: ControlStatus) -> Status {
        let mut status = Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_seconds: self.ready.elapsed().as_secs_f64(),
            control,
            log: self.host.log(),
            ..Status::default()
        };
        for tunnel in &self.tunnels {
            match self.host.status(tunnel) {
                Some(answer) => status.tunnels.push(answer),
                None => status.silent_tunnels.push(self.host.name(tunnel).into()),
            }
        }
        let answered = |name: &str| {
            let mut names = status.tunnels.iter().map(|tunnel| &tunnel.name);
            names.any(|other| other == name)
                || status.silent_tunnels.iter().any(|other| other == name)
        };
        let wanted = self.running.tunnels.iter().map(|tunnel| &tunnel.name);
        let missing: Vec<String> = wanted.filter(|name| !answered(name)).cloned().collect();
        status.silent_tunnels.extend(missing);
        status.failed_tunnels.clone_from(&self.failed);
        status
    }

    /// Reads the file again and carries out what has changed in it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is wrong, or `mpt run` would not start with it. Then nothing has changed.
    fn reload(&mut self) -> Result<Outcome, ReloadError> {
        let mut new = config::load(&self.file)?;
        (self.environment)(&mut new);
        self.refuse_routed_elsewhere(&new)?;
        let mut running = self.running.clone();
        let mut outcome = Outcome::default();
        for change in config::difference(&self.loaded, &new) {
            if change.effect() == Effect::DaemonRestarted {
                // What was to be changed before, and had to wait for a restart, may have been taken back.
                let mut wanted = running.clone();
                let applied = config::apply(&mut wanted, &change).is_ok();
                if !applied || !config::difference(&running, &wanted).is_empty() {
                    outcome.failures.push(change.to_string());
                }
            } else if let Err(error) = config::apply(&mut running, &change) {
                outcome.failures.push(format!("{change}: {error}"));
            }
        }
        // What was done by command may not fit together with what the file says now. Then the file has
        // the last word about all.
        if config::check(&running, "what would run").is_err() {
            running = Settings { control: running.control, daemon: running.daemon, ..new.clone() };
            outcome.changes.push("changes made by command are undone".into());
        }
        let changes = config::difference(&self.running, &running);
        outcome.changes.splice(0..0, changes.iter().map(ToString::to_string));
        self.loaded = new;
        outcome.failures.extend(self.change_to(running));
        Ok(outcome)
    }

    /// Refuses networks that the host routes elsewhere, as a start does, unless they are among those that run.
    fn refuse_routed_elsewhere(&self, new: &Settings) -> Result<(), ReloadError> {
        let runs = |network: &config::Prefix| {
            let tunnels = self.running.tunnels.iter();
            tunnels.flat_map(crate::tunnel::routed_networks).any(|other| other == *network)
        };
        let taken = self.host.routed_elsewhere(new).into_iter();
        let refused: Vec<String> =
            taken.filter(|(network, _)| !runs(network)).map(|(_, why)| why).collect();
        if refused.is_empty() { Ok(()) } else { Err(ReloadError::Refused(refused)) }
    }

    /// Retries failed parts, some seconds after the last attempt.
    pub(crate) fn retry(&mut self, now: Instant) {
        let Self { host, tunnels, running, .. } = self;
        let runs = |name: &str| tunnels.iter().any(|tunnel| host.name(tunnel) == name);
        let missing = running.tunnels.iter().any(|tunnel| !runs(&tunnel.name));
        if missing && now >= self.tried + AGAIN {
            self.tried = now;
            for failure in self.change_to(self.running.clone()) {
                tracing::warn!("{failure}; retrying in {} s", AGAIN.as_secs());
            }
        }
    }

    /// Has these settings run. Returns what could not be had.
    fn change_to(&mut self, settings: Settings) -> Vec<String> {
        let mut failures = Vec::new();
        let Self { host, tunnels, failed, .. } = self;
        let wanted = |name: &str| settings.tunnels.iter().any(|tunnel| tunnel.name == name);
        let gone = tunnels.extract_if(.., |tunnel| !wanted(host.name(tunnel)));
        let gone: Vec<H::Tunnel> = gone.collect();
        gone.into_iter().for_each(|tunnel| host.stop(tunnel));
        failed.retain(|name, _| wanted(name));
        for wanted in &settings.tunnels {
            let place = tunnels.iter().position(|tunnel| host.name(tunnel) == wanted.name);
            let result = match place {
                Some(place) if host.can_become(&tunnels[place], wanted) => {
                    host.change(&mut tunnels[place], wanted)
                }
                place => {
                    place
                        .map(|place| tunnels.remove(place))
                        .into_iter()
                        .for_each(|tunnel| host.stop(tunnel));
                    let started = host.start(wanted).map(|tunnel| tunnels.push(tunnel));
                    let failure = started.as_ref().err().map(|error| format!("{error:#}"));
                    match failure {
                        Some(reason) => drop(failed.insert(wanted.name.clone(), reason)),
                        None if failed.remove(&wanted.name).is_some() => {
                            tracing::info!(tunnel = wanted.name, "runs again");
                        }
                        None => {}
                    }
                    started
                }
            };
            if let Err(error) = result {
                failures.push(format!("tunnel {}: {error:#}", wanted.name));
            }
        }
        let order = |name: &str| settings.tunnels.iter().position(|tunnel| tunnel.name == name);
        tunnels.sort_by_key(|tunnel| order(host.name(tunnel)));
        self.running = settings;
        failures
    }
}
