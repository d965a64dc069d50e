//! What the daemon asks of the machine it runs on: tunnels.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use mpt_control::{Explanation, LogStatus, PeerStatus, TraceMark, TunnelStatus};
use mpt_io::poll::{Poll, Waker};

use crate::config::{self, Settings};
use crate::log::LogCounters;
use crate::netmon::NetMonitor;
use crate::tunnel::{Reconciler, TraceAnswer};

/// What runs tunnels: the machine, or a test's substitute.
pub(crate) trait Host {
    /// A running tunnel.
    type Tunnel;

    /// Starts a tunnel.
    ///
    /// # Errors
    ///
    /// If it cannot be started; then nothing of it remains.
    fn start(&mut self, settings: &config::Tunnel) -> anyhow::Result<Self::Tunnel>;

    /// Ends a tunnel.
    fn stop(&mut self, tunnel: Self::Tunnel);

    /// Whether a tunnel can become this without being ended and started again.
    fn can_become(&self, tunnel: &Self::Tunnel, settings: &config::Tunnel) -> bool;

    /// Makes a tunnel what it can become.
    ///
    /// # Errors
    ///
    /// What could not be had; everything else has been done.
    fn change(
        &mut self,
        tunnel: &mut Self::Tunnel,
        settings: &config::Tunnel,
    ) -> anyhow::Result<()>;

    /// Removes a connection that a tunnel has accepted. Returns whether it has one of that name; a
    /// machine without templates has none.
    fn remove_accepted(&mut self, _tunnel: &mut Self::Tunnel, _connection: &str) -> bool {
        false
    }

    /// The paths of a tunnel that no file lists, each after the name of its connection: those that were found
    /// or learned, and those of accepted connections.
    fn unlisted_paths(&self, _tunnel: &Self::Tunnel) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Changes the settings of a path that no file lists. Returns whether a tunnel has one of that name.
    fn change_unlisted(
        &mut self,
        _tunnel: &mut Self::Tunnel,
        _connection: &str,
        _path: &str,
        _change: &dyn Fn(&mut config::Path),
    ) -> bool {
        false
    }

    /// The networks of these settings that cannot be routed into a tunnel, because the host routes them elsewhere,
    /// each with the remedy. A machine without routes has none.
    fn routed_elsewhere(&self, _settings: &Settings) -> Vec<(config::Prefix, String)> {
        Vec::new()
    }

    /// Reads the files of a tunnel's keys again. Returns what has changed, and what is wrong with files.
    fn reload_keys(&mut self, _tunnel: &mut Self::Tunnel) -> (Vec<String>, Vec<String>) {
        (Vec::new(), Vec::new())
    }

    /// Reads the folders of a tunnel's clients again. Returns what has changed, and what is wrong with files; a machine
    /// without templates has none.
    fn reload_clients(&mut self, _tunnel: &mut Self::Tunnel) -> (Vec<String>, Vec<String>) {
        (Vec::new(), Vec::new())
    }

    /// The clients of a tunnel's templates.
    fn clients(&self, _tunnel: &Self::Tunnel) -> Vec<PeerStatus> {
        Vec::new()
    }

    /// What became of the daemon's log; a machine that keeps none has lost nothing of it.
    fn log(&self) -> LogStatus {
        LogStatus::default()
    }

    /// A tunnel's name.
    fn name<'t>(&self, tunnel: &'t Self::Tunnel) -> &'t str;

    /// Its status, or `None` if it did not answer in time.
    fn status(&self, tunnel: &Self::Tunnel) -> Option<TunnelStatus>;

    /// Why packets went where they went, of the connection of this name or of all; `None` if it did not answer in time.
    fn explain(&self, tunnel: &Self::Tunnel, connection: Option<&str>) -> Option<Vec<Explanation>>;

    /// What was traced since a mark, of the connection of this name or of all; `None` if it did not answer in time.
    fn trace(
        &self,
        tunnel: &Self::Tunnel,
        connection: Option<&str>,
        after: Option<TraceMark>,
    ) -> Option<TraceAnswer>;

    /// Why it does not run any more, if it does not.
    fn failure(&self, tunnel: &Self::Tunnel) -> Option<String>;
}

/// The machine.
pub(crate) struct Machine {
    /// What it has.
    pub(crate) netmon: NetMonitor,
    /// When times begin.
    epoch: Instant,
    /// What wakes the main thread.
    main: Waker,
    /// Further descriptors that wake the main thread.
    pub(crate) poll: Rc<Poll>,
    log: LogCounters,
    /// Where what is used of quotas is kept.
    state_dir: PathBuf,
}

impl Machine {
    /// A machine whose tunnels wake `main` when they want attention, and put descriptors that do so
    /// into `poll`. They keep in `state_dir` what they must not forget.
    pub(crate) fn new(
        netmon: NetMonitor,
        main: Waker,
        poll: Poll,
        log: LogCounters,
        state_dir: PathBuf,
    ) -> Self {
        Self { netmon, epoch: Instant::now(), main, poll: Rc::new(poll), log, state_dir }
    }
}

impl Host for Machine {
    type Tunnel = Reconciler;

    fn start(&mut self, settings: &config::Tunnel) -> anyhow::Result<Reconciler> {
        let (main, poll) = (self.main.clone(), Rc::clone(&self.poll));
        Reconciler::start(settings, self.epoch, &mut self.netmon, main, poll, &self.state_dir)
    }

    fn stop(&mut self, tunnel: Reconciler) {
        let name = tunnel.name().to_owned();
        tunnel.stop();
        tracing::info!(tunnel = name, "stopped");
    }

    fn can_become(&self, tunnel: &Reconciler, settings: &config::Tunnel) -> bool {
        match tunnel.can_become(settings) {
            Ok(()) => true,
            Err(reason) => {
                tracing::warn!(
                    tunnel = settings.name,
                    "restarts, with all its connections: {reason}"
                );
                false
            }
        }
    }

    fn change(&mut self, tunnel: &mut Reconciler, settings: &config::Tunnel) -> anyhow::Result<()> {
        tunnel.change_to(settings, &mut self.netmon)
    }

    fn remove_accepted(&mut self, tunnel: &mut Reconciler, connection: &str) -> bool {
        tunnel.remove_accepted(connection)
    }

    fn unlisted_paths(&self, tunnel: &Reconciler) -> Vec<(String, String)> {
        tunnel.unlisted_paths()
    }

    fn change_unlisted(
        &mut self,
        tunnel: &mut Reconciler,
        connection: &str,
        path: &str,
        change: &dyn Fn(&mut config::Path),
    ) -> bool {
        tunnel.change_unlisted(connection, path, change, &mut self.netmon)
    }

    fn routed_elsewhere(&self, settings: &Settings) -> Vec<(config::Prefix, String)> {
        crate::preflight::routed_elsewhere(settings)
    }

    fn reload_keys(&mut self, tunnel: &mut Reconciler) -> (Vec<String>, Vec<String>) {
        tunnel.reload_keys()
    }

    fn reload_clients(&mut self, tunnel: &mut Reconciler) -> (Vec<String>, Vec<String>) {
        tunnel.reload_clients()
    }

    fn clients(&self, tunnel: &Reconciler) -> Vec<PeerStatus> {
        tunnel.clients()
    }

    fn log(&self) -> LogStatus {
        self.log.status()
    }

    fn name<'t>(&self, tunnel: &'t Reconciler) -> &'t str {
        tunnel.name()
    }

    fn status(&self, tunnel: &Reconciler) -> Option<TunnelStatus> {
        tunnel.status()
    }

    fn explain(&self, tunnel: &Reconciler, connection: Option<&str>) -> Option<Vec<Explanation>> {
        tunnel.explain(connection)
    }

    fn trace(
        &self,
        tunnel: &Reconciler,
        connection: Option<&str>,
        after: Option<TraceMark>,
    ) -> Option<TraceAnswer> {
        tunnel.trace(connection, after)
    }

    fn failure(&self, tunnel: &Reconciler) -> Option<String> {
        tunnel.failure()
    }
}
