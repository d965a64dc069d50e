//! Which daemon a command asks.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(super) struct SocketOption {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = mpt_control::DEFAULT_SOCKET)]
    pub(super) socket: PathBuf,
}
