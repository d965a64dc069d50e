//! Our daemon, in its namespace.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::case::Case;
use super::command::{Process, output, within};

/// Its files are here, in memory that goes with the process.
pub(super) const FOLDER: &str = "/run/interop";

/// How long it may take to begin or to end, on an emulated processor.
const PATIENCE: Duration = Duration::from_secs(30);

/// Our daemon, which ends with this value.
pub(super) struct Daemon<'a> {
    mpt: &'a Path,
    process: Process,
}

impl<'a> Daemon<'a> {
    /// Starts it, and waits until it answers.
    pub(super) fn start(mpt: &'a Path, case: &Case) -> anyhow::Result<Self> {
        let configuration = format!("{FOLDER}/mpt.toml");
        fs::write(&configuration, case.configuration(&socket()))?;
        let log = fs::File::create(log())?;
        let process = within("mpt", &mpt.to_string_lossy())
            .args(["run", &configuration])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start mpt")?;
        let mut daemon = Self { mpt, process: Process(process) };
        let deadline = Instant::now() + PATIENCE;
        while daemon.status().is_err() {
            if let Some(status) = daemon.process.0.try_wait()? {
                bail!("mpt ended with {status}\n{}", daemon.log());
            }
            ensure!(Instant::now() < deadline, "mpt does not answer\n{}", daemon.log());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }

    fn status(&self) -> anyhow::Result<Value> {
        let socket = socket();
        let status =
            output(Command::new(self.mpt).args(["status", "--json", "--socket", &socket]))?;
        Ok(serde_json::from_str(&status)?)
    }

    /// All drops of tunnel, device, connection and path that are not zero, with their numbers.
    pub(super) fn drops(&self) -> anyhow::Result<Vec<String>> {
        fn collect(value: &Value, drops: &mut Vec<String>) {
            for item in value.as_array().into_iter().flatten() {
                collect(item, drops);
            }
            for (name, field) in value.as_object().into_iter().flatten() {
                match field.as_object() {
                    Some(counters) if name == "drops" => {
                        drops.extend(
                            counters.iter().map(|(reason, count)| format!("{reason} {count}")),
                        );
                    }
                    _ => collect(field, drops),
                }
            }
        }
        let mut drops = Vec::new();
        collect(&self.status()?, &mut drops);
        drops.retain(|drop| !drop.ends_with(" 0"));
        Ok(drops)
    }

    /// What it printed so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(log()).unwrap_or_default()
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        let pid = self.process.0.id().to_string();
        output(Command::new("busybox").args(["kill", "-TERM", &pid]))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.0.try_wait()? {
                ensure!(status.success(), "mpt ended with {status}\n{}", self.log());
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "mpt does not end\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn socket() -> String {
    format!("{FOLDER}/control.sock")
}

fn log() -> String {
    format!("{FOLDER}/mpt.log")
}
