//! Commands that change what runs: `mpt reload`, `mpt connection add|remove`; and `mpt config`, which
//! prints what it has come to.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use mpt_control::{Client, ErrorKind, Reply, Request};

use super::socket::SocketOption;
use crate::exit::Exit;
use crate::output;

/// Largest settings that are read from a file or standard input, in bytes.
const MAX_SETTINGS: u64 = 32 << 10;

#[derive(Debug, Subcommand)]
pub(super) enum ConnectionAction {
    /// Add a connection to a tunnel
    ///
    /// The settings are those of [[tunnel.connection]] in the configuration file, read from a file or
    /// from standard input, with the paths below `[[path]]`. The configuration file is not changed.
    #[command(after_help = "\
Exit codes: 0 done, 1 the settings are wrong, 2 no daemon answers

Example:
  mpt connection add - <<END
  name = \"branch\"
  peer = [\"10.9.0.3\"]
  [[path]]
  name = \"fibre\"
  remote = \"203.0.113.7\"
  END")]
    Add {
        /// The tunnel; may be left out if there is only one
        #[arg(long, value_name = "TUNNEL")]
        tunnel: Option<String>,
        /// A file with the settings, or - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Remove a connection and its paths; the file is not changed
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such connection, 2 no daemon answers

Example:
  mpt connection remove branch")]
    Remove {
        /// The connection's name
        #[arg(value_name = "CONNECTION")]
        connection: String,
        #[command(flatten)]
        socket: SocketOption,
    },
}

/// Has the daemon read its file again.
pub(super) fn reload(socket: &Path) -> Result<Exit> {
    ask(socket, &Request::Reload {})
}

/// Prints the settings that run.
pub(super) fn config(socket: &Path) -> Result<Exit> {
    ask(socket, &Request::Config {})
}

/// Adds or removes a connection.
pub(super) fn connection(action: &ConnectionAction) -> Result<Exit> {
    match action {
        ConnectionAction::Add { tunnel, file, socket } => {
            let (tunnel, settings) = (tunnel.clone(), read(file)?);
            ask(&socket.socket, &Request::ConnectionAdd { tunnel, settings })
        }
        ConnectionAction::Remove { connection, socket } => {
            let connection = connection.clone();
            ask(&socket.socket, &Request::ConnectionRemove { connection })
        }
    }
}

/// Asks the daemon for a change, and says what came of it.
pub(super) fn ask(socket: &Path, request: &Request) -> Result<Exit> {
    let refusal = match Client::connect(socket)?.request(request)? {
        Reply::Done => return Ok(Exit::Done),
        Reply::Changed { changes } if changes.is_empty() => {
            return output::print("nothing has changed\n");
        }
        Reply::Changed { changes } => return output::print(&(changes.join("\n") + "\n")),
        Reply::Config { text } => return output::print(&text),
        other @ (Reply::Error { .. }
        | Reply::Explanation { .. }
        | Reply::Peers { .. }
        | Reply::Status { .. }
        | Reply::Trace { .. }
        | Reply::Version { .. }
        | Reply::WebToken { .. }) => other.into_refusal(),
    };
    if let Some(report) = &refusal.report {
        // As `mpt check` shows it; the message comes last, in sight.
        let _ = std::io::stderr().write_all(report.as_bytes());
    }
    match refusal.kind {
        ErrorKind::NoSuchPath
        | ErrorKind::NoSuchConnection
        | ErrorKind::NoSuchPeer
        | ErrorKind::AmbiguousPath
        | ErrorKind::BadConfig => {
            output::complain(refusal);
            Ok(Exit::Negative)
        }
        ErrorKind::BadRequest
        | ErrorKind::Busy
        | ErrorKind::NotAllowed
        | ErrorKind::Unavailable
        | ErrorKind::Other => bail!(refusal),
    }
}

fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    let what = || format!("cannot read {}", file.display());
    let taken = if file.as_os_str() == "-" {
        std::io::stdin().take(MAX_SETTINGS + 1).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(file).with_context(what)?;
        file.take(MAX_SETTINGS + 1).read_to_string(&mut text)
    };
    if taken.with_context(what)? as u64 > MAX_SETTINGS {
        bail!("{} is larger than {MAX_SETTINGS} bytes: is it a connection?", file.display());
    }
    Ok(text)
}
