//! The shipped daemon as a process: found, started, asked and ended.
//!
//! A daemon gets its own private folder, with its configuration, its control socket and its output.
//! It counts as started when it answers on that socket with all its tunnels; if it ends before, the
//! error shows what it printed.

mod find;
pub(crate) mod process;
mod tracer;

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mpt_control::{Client, ClientError, PathStatus, Reply, Request, Status};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::guard;
use crate::lab::Host;
use crate::netns::Namespace;
pub use find::find;
pub(crate) use tracer::Tracer;

/// How long a daemon may take to answer for the first time, on a machine that is busy or stalls.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a running daemon may take to answer: a file with a thousand connections takes a busy machine some
/// seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long a daemon may take to end after SIGTERM before it is killed.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at a daemon that starts or ends: it takes some milliseconds to do so.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// As much of a daemon's log as an error shows, in lines.
const SHOWN_LINES: usize = 30;

/// A running `mpt run`. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    folder: TempDir,
    ended: Option<ExitStatus>,
}

impl Daemon {
    /// Starts `binary` in `host` with this configuration, which must not contain a `[control]`
    /// table, and waits until it answers. `name` is for messages.
    ///
    /// # Errors
    ///
    /// The daemon cannot be started, ends, or does not answer in time; with what it printed.
    pub fn start(host: &Host, name: &str, config_toml: &str, binary: &Path) -> Result<Self> {
        Self::start_by(|command| host.spawn(command), name, config_toml, binary)
    }

    /// As [`start`](Self::start), with the given standard error, to which the daemon's log goes
    /// then, and additional environment variables.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_logging_to(
        stderr: impl Into<Stdio>,
        host: &Host,
        environment: &[(&str, &str)],
        config_toml: &str,
        binary: &Path,
    ) -> Result<Self> {
        let spawn =
            |command: &mut Command| host.spawn(command.stderr(stderr).envs(environment.to_vec()));
        Self::start_by(spawn, host.name(), config_toml, binary)
    }

    /// As [`start`](Self::start), in a given namespace and with additional environment variables.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_in(
        namespace: &Namespace,
        environment: &[(&str, &str)],
        name: &str,
        config_toml: &str,
        binary: &Path,
    ) -> Result<Self> {
        let spawn = |command: &mut Command| namespace.spawn(command.envs(environment.to_vec()));
        Self::start_by(spawn, name, config_toml, binary)
    }

    fn start_by(
        spawn: impl FnOnce(&mut Command) -> io::Result<Child>,
        name: &str,
        config_toml: &str,
        binary: &Path,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("mpt-lab-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let folder = folder.context("cannot make a folder for a daemon")?;
        let config = config_in(folder.path());
        configure(folder.path(), config_toml)?;
        let log = File::create(log_in(folder.path())).context("cannot make a daemon's log")?;
        let child = spawn(
            guard::command(binary)
                .arg("run")
                .arg(&config)
                // A Ctrl-C ends the lab, which then ends its daemons in order.
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(log.try_clone().context("cannot share a daemon's log")?)
                .stderr(log),
        )
        .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut daemon = Self { name: name.to_owned(), child, folder, ended: None };
        daemon.await_ready()?;
        Ok(daemon)
    }

    /// The name given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its control socket.
    pub fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    pub fn log(&self) -> String {
        let text = fs::read(log_in(self.folder.path())).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Its status.
    ///
    /// # Errors
    ///
    /// No sensible answer in time.
    pub fn status(&self) -> Result<Status> {
        let reply = self.request(&Request::Status {})?;
        let Reply::Status { status } = reply else { bail!(self.refused(reply)) };
        Ok(*status)
    }

    /// Sets the administrative status of a path, in any connection.
    ///
    /// # Errors
    ///
    /// No answer in time, or a refusal, such as a path that does not exist.
    pub fn set_path(&self, path: &str, status: PathStatus) -> Result<()> {
        let request = Request::path_status(None::<&str>, path, status);
        let reply = self.request(&request)?;
        let Reply::Done = reply else { bail!(self.refused(reply)) };
        Ok(())
    }

    /// The file it was started with, and reads again when it reloads.
    pub fn config(&self) -> PathBuf {
        config_in(self.folder.path())
    }

    /// Writes another configuration, as at the [start](Self::start), for the next reload.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn configure(&self, config_toml: &str) -> Result<()> {
        configure(self.folder.path(), config_toml)
    }

    /// Requests a change, such as [`Request::Reload`]; returns the daemon's list of changes.
    ///
    /// # Errors
    ///
    /// No answer in time, or a refusal, with its report if there is one.
    pub fn change(&self, request: &Request) -> Result<Vec<String>> {
        match self.request(request)? {
            Reply::Changed { changes } => Ok(changes),
            Reply::Done => Ok(Vec::new()),
            other @ (Reply::Error { .. }
            | Reply::Config { .. }
            | Reply::Explanation { .. }
            | Reply::Status { .. }
            | Reply::Peers { .. }
            | Reply::Trace { .. }
            | Reply::Version { .. }
            | Reply::WebToken { .. }) => bail!(self.refused(other)),
        }
    }

    /// Processor time used since the start, user and system.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.pid()).with_context(|| format!("daemon `{}`", self.name))
    }

    /// The part of it that is not the kernel's.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn user_time(&self) -> Result<Duration> {
        process::user_time(self.pid()).with_context(|| format!("daemon `{}`", self.name))
    }

    /// Memory resident at the moment, in bytes.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        process::resident_bytes(self.pid()).with_context(|| format!("daemon `{}`", self.name))
    }

    /// Whether the process has ended by itself, and how.
    ///
    /// # Errors
    ///
    /// The kernel does not report it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Asks the daemon to end (SIGTERM) and waits for it; kills it if it does not.
    ///
    /// # Errors
    ///
    /// The kernel does not report its exit status.
    pub fn terminate(mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        if let Some(status) = self.wait_until(Instant::now() + END_LIMIT)? {
            return Ok(status);
        }
        self.kill().with_context(|| format!("cannot kill daemon `{}`", self.name))
    }

    /// Sends a signal, if the process still runs.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.try_wait()?.is_none() {
            let pid = i32::try_from(self.pid()).expect("process ids are positive i32");
            kill(Pid::from_raw(pid), signal)
                .with_context(|| format!("cannot send {signal} to daemon `{}`", self.name))?;
        }
        Ok(())
    }

    /// Any request, on a separate connection: a daemon may close idle ones.
    ///
    /// # Errors
    ///
    /// No answer in time. A refusal is an answer.
    pub fn request(&self, request: &Request) -> Result<Reply> {
        let reply = Client::connect_timeout(self.socket(), ANSWER_LIMIT)
            .and_then(|mut client| client.request(request));
        reply.with_context(|| format!("daemon `{}`", self.name))
    }

    /// Traces it to a file with the program `binary`.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub(crate) fn trace(&self, binary: &Path, file: &Path) -> Result<Tracer> {
        Tracer::start(binary, &self.socket(), file)
    }

    fn refused(&self, reply: Reply) -> String {
        let refusal = reply.into_refusal();
        let report = refusal.report.map_or(String::new(), |report| format!("\n{report}"));
        format!("daemon `{}`: {}{report}", self.name, refusal.message)
    }

    fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let problem = match Client::connect(self.socket())
                .and_then(|mut client| client.request(&Request::Status {}))
            {
                Ok(Reply::Status { status }) if status.silent_tunnels.is_empty() => return Ok(()),
                Ok(reply) => format!("it answered {reply:?}"),
                Err(error @ (ClientError::NotRunning { .. } | ClientError::Closed { .. })) => {
                    error.to_string()
                }
                Err(error) => return Err(error).with_context(|| self.failure("is unwell")),
            };
            if let Some(status) = self.try_wait()? {
                bail!(self.failure(&format!("ended while starting, {status}")));
            }
            if Instant::now() >= deadline {
                let limit = START_LIMIT.as_secs();
                bail!(self.failure(&format!("was not ready within {limit} s: {problem}")));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// A message about the daemon that ends with what it printed.
    fn failure(&self, what: &str) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        let shown = if shown.is_empty() { "(nothing)" } else { &shown };
        format!("daemon `{}` {what}; it printed:\n{shown}", self.name)
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<Option<ExitStatus>> {
        loop {
            let status = self.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn kill(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        self.child.kill()?;
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A destructor cannot handle a process that cannot be killed.
        let _ = self.kill();
    }
}

/// Writes the configuration of the daemon that has this folder.
fn configure(folder: &Path, config_toml: &str) -> Result<()> {
    let (config, socket) = (config_in(folder), socket_in(folder));
    let socket = toml::Value::from(socket.display().to_string());
    fs::write(&config, format!("[control]\nsocket = {socket}\n\n{config_toml}"))
        .with_context(|| format!("cannot write {}", config.display()))
}

fn config_in(folder: &Path) -> PathBuf {
    folder.join("mpt.toml")
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

fn log_in(folder: &Path) -> PathBuf {
    folder.join("log")
}
