//! The requirements of a lab on this machine, and the command that fixes what is missing.
//!
//! Everything is tried rather than looked up if that has no side effects: namespaces are made and a
//! TUN device is opened by a child process ([`probe`]), because a process that enters a user
//! namespace cannot leave it.

mod check;

use std::fmt;
use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use mpt_io::tun::{Device, Offloads, Options};
use serde::Serialize;

use crate::netns::Namespace;
use crate::privilege::{self, Privilege};
pub use check::check;

/// One requirement of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// The command that fixes it; `None` if nothing is missing, or if no command can fix it.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, ok: true, found: found.into(), remedy: None }
    }

    fn lacking(what: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, ok: false, found: found.into(), remedy: Some(remedy.into()) }
    }
}

impl fmt::Display for Finding {
    /// One line, or two with a remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.ok { "ok" } else { "lacking" };
        write!(f, "{verdict:<8} {:<18} {}", self.what, self.found)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "\n         {:<18} fix with: {remedy}", "")?;
        }
        Ok(())
    }
}

/// Does the first steps of a lab: enters its namespaces, creates a host and opens a device in it.
/// For a child process only, before any thread starts.
///
/// # Errors
///
/// The first thing that is not possible, in one line.
pub fn probe() -> Result<Privilege> {
    let privilege = privilege::enter()?;
    let host = Namespace::new()?;
    host.run(|| {
        Device::open(&Options { name: "probe".into(), queue_len: None, offloads: Offloads::NONE })
    })
    .context("cannot make a TUN device in a namespace")?;
    Ok(privilege)
}

/// Runs `command`, which calls [`probe`], and returns its complaint, if any.
fn try_in_child(command: &mut Command) -> io::Result<Result<(), String>> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(Err(if text.is_empty() { output.status.to_string() } else { text }))
}
