//! `mpt`: the multipath tunnel for Linux, daemon and command line in one program.
//!
//! `cli` turns the command line into one of a few commands; `config` turns a file into settings;
//! `daemon` knows which run, and keeps them so while the host changes (`netmon`); `tunnel` carries
//! packets, a thread or two for each; `control` answers clients on a Unix socket, `metrics` and `web` serve pages over
//! `http`, all with the bounded `server`; `output` is how
//! everything looks on a terminal, `watch` how it looks live. `preflight` says what this machine lacks,
//! `import` what files of an original MPT mean here, `privilege` leaves the daemon no right that it does not need, and `service` tells who started it
//! how it fares. `setup` makes a host a server or a client and undoes that. `keys` reads the files of keys. `log` writes
//! what all of them log, and `manual` makes manual pages.
//!
//! It is a library so that the configuration can be fuzzed, not to be built upon: all there is to call
//! is [`run`].

mod cli;
mod clients;
mod config;
mod control;
mod daemon;
mod exit;
mod http;
mod import;
mod keys;
mod log;
mod manual;
mod mark;
mod metrics;
mod netmon;
mod output;
mod preflight;
mod privilege;
mod quota;
mod random;
mod server;
mod service;
mod setup;
mod tunnel;
mod watch;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

/// Does what a command line says, the program's name first, and returns what to exit with: 0 done, 1 the
/// answer is no, 2 failure. Results go to standard output, complaints to standard error.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli::run(args).into()
}

#[doc(hidden)]
pub use config::{Accepted, Refused, check_text};

/// What `mpt import` makes of a file of an interface and one of a connection: a configuration and whether
/// it is taken, or nothing if they are refused. For fuzzing.
#[doc(hidden)]
pub fn import_text(interface: &str, connection: &str, both_mpt: bool) -> Option<(String, bool)> {
    use mpt_original::import::{Peer, Source, Sources};

    let source = |name: &str, text: &str| Source { name: name.into(), text: text.into() };
    let files = vec![source("interface.conf", interface), source("connection.conf", connection)];
    let sources = Sources { files, unread: Vec::new() };
    let peer = if both_mpt { Peer::Mpt } else { Peer::Original };
    let (imported, verdict) = import::import(&sources, peer, "mpt.toml").ok()?;
    Some((imported.text, verdict.is_ok()))
}

/// All manual pages by the names of their files, such as `mpt-status.1`.
///
/// # Errors
///
/// If the guide, which has the settings, has not what is expected of it.
#[doc(hidden)]
pub fn manual_pages() -> anyhow::Result<Vec<(String, String)>> {
    manual::pages()
}

/// The definition of the command line, from which manual pages and completions are made.
#[doc(hidden)]
pub fn command_line() -> clap::Command {
    cli::definition()
}
