//! A trace of a daemon while it is measured.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::guard;

/// How long the end may take: two questions to the daemon, and a file to be written.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running `mpt trace`. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Tracer(Child);

impl Tracer {
    /// Traces the daemon that listens on `socket` to a file that is created or overwritten.
    ///
    /// # Errors
    ///
    /// `binary` cannot be started.
    pub(super) fn start(binary: &Path, socket: &Path, file: &Path) -> Result<Self> {
        let mut command = guard::command(binary);
        command.arg("trace").arg("--output").arg(file).arg("--socket").arg(socket);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        child.map(Self).with_context(|| format!("cannot start {}", binary.display()))
    }

    /// Has it write its last line and end.
    ///
    /// # Errors
    ///
    /// It has not written everything; it has said why.
    pub(crate) fn finish(mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("process ids are positive i32"));
        // One that has ended has left its status.
        let _ = kill(pid, Signal::SIGTERM);
        let deadline = Instant::now() + END_LIMIT;
        loop {
            match self.0.try_wait().context("cannot wait for `mpt trace`")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("`mpt trace` ended with {status}"),
                None if Instant::now() >= deadline => bail!("`mpt trace` does not end"),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It fails if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
