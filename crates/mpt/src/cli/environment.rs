//! What the environment says of all tunnels, whatever the file does: for measurements and tests; and where systemd has
//! what is to be kept.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use tracing::warn;

use crate::config::{Daemon, Offloads, Settings, Threads};

/// Leaves inner checksums partial if it is `on`: to measure the gain, between two daemons that both
/// have it.
const PARTIAL: &str = "MPT_PARTIAL_CHECKSUMS";

/// What systemd calls the folders of `StateDirectory=` (systemd.exec(5)).
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// The variables that are set.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// The offloads that are switched off, as they were named.
    without: Option<String>,
    threads: Option<Threads>,
    checksum_partial: bool,
    /// The folder that systemd has made for what is to be kept.
    state_dir: Option<PathBuf>,
}

impl Environment {
    /// Reads the variables.
    ///
    /// # Errors
    ///
    /// If one has a value that means nothing.
    pub(super) fn read() -> Result<Self> {
        let environment = Self {
            without: without()?,
            threads: threads()?,
            checksum_partial: checksum_partial()?,
            state_dir: env::var_os(STATE_DIRECTORY).and_then(first_folder),
        };
        if environment.checksum_partial {
            warn!(
                "inner packets have partial checksums; a peer without this setting gets wrong checksums"
            );
        }
        Ok(environment)
    }

    /// Changes the settings of a file accordingly.
    pub(super) fn apply(&self, settings: &mut Settings) {
        let is_default = settings.daemon.state_dir == Daemon::default().state_dir;
        if let Some(folder) = self.state_dir.as_ref().filter(|_| is_default) {
            settings.daemon.state_dir.clone_from(folder);
        }
        for tunnel in &mut settings.tunnels {
            if let Some(list) = &self.without
                && let Ok(offloads) = tunnel.offloads.without(list)
            {
                tunnel.offloads = offloads;
            }
            tunnel.threads = self.threads.unwrap_or(tunnel.threads);
            tunnel.checksum_partial = self.checksum_partial;
        }
    }
}

/// The first of several folders, if it is an absolute path in UTF-8, as the configuration has them.
fn first_folder(folders: OsString) -> Option<PathBuf> {
    let folders = folders.into_string().ok()?;
    let first = folders.split(':').next()?;
    first.starts_with('/').then(|| first.into())
}

fn without() -> Result<Option<String>> {
    let Ok(list) = env::var(Offloads::VARIABLE) else { return Ok(None) };
    let understood = Offloads::ALL.without(&list);
    understood.map_err(|name| {
        anyhow!(
            "{} names `{name}`, but should be `off`, or some of vnet, tso, uso, gso and gro with \
             commas between them",
            Offloads::VARIABLE
        )
    })?;
    Ok(Some(list))
}

fn threads() -> Result<Option<Threads>> {
    let Some(text) = env::var_os(Threads::VARIABLE) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    let threads = number.and_then(Threads::from_number).ok_or_else(|| {
        anyhow!("{} is `{}`, but should be 1 or 2", Threads::VARIABLE, text.display())
    })?;
    Ok(Some(threads))
}

fn checksum_partial() -> Result<bool> {
    match env::var_os(PARTIAL) {
        None => Ok(false),
        Some(text) if text == "off" => Ok(false),
        Some(text) if text == "on" => Ok(true),
        Some(text) => bail!("{PARTIAL} is `{}`, but should be on or off", text.display()),
    }
}
