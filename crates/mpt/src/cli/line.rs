//! What the command line may be.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::{import, status, trace};

const EXAMPLES: &str = "\
Examples:
  mpt check /etc/mpt/mpt.toml  report errors of a configuration and of this host
  mpt run /etc/mpt/mpt.toml    run its tunnels until TERM or INT
  mpt genkey                   print a key, with which a tunnel is sealed
  mpt status                   show tunnels, connections, paths and drops
  mpt status --watch           show them live
  mpt status --json | jq .     as JSON for programs
  mpt explain                  say why packets went where they went
  mpt trace -o trace.jsonl     write what paths do over time
  mpt path down fibre          take a path out of service
  mpt path up server fibre     and back into service, with its connection
  mpt reload                   apply the changes of the configuration file
  mpt import /opt/mpt          convert the configuration files of the original MPT

Exit codes:
  0  done
  1  negative result: `check` found a problem, there is no such path
  2  wrong usage or failure: no daemon, no permission, a file that cannot be read";

/// The multipath tunnel: one IP tunnel over several network paths at once.
#[derive(Debug, Parser)]
#[command(name = "mpt", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(super) struct Line {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the tunnels of a configuration file
    ///
    /// Opens the TUN devices and sockets, installs addresses and routes, listens on the control
    /// socket, logs that it is ready, and runs until TERM or INT. Then it removes all of these. It
    /// needs the capability CAP_NET_ADMIN.
    #[command(after_help = "\
The log goes to standard error. MPT_LOG sets its level: error, warn, info (default), debug, trace.

Examples:
  mpt run /etc/mpt/mpt.toml
  MPT_LOG=debug mpt run /etc/mpt/mpt.toml")]
    Run {
        /// The configuration file (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Check a configuration file, and whether this host can run it
    ///
    /// Changes nothing and needs no privilege. Each error of the file is reported on standard error
    /// with its place and remedy. If there are none, missing host requirements are printed, with
    /// their effect and the command that fixes them. An error there would prevent `mpt run` from
    /// starting as this user; a warning says what will not work. Checks that need root, such as of
    /// the firewall, are only done as root.
    #[command(after_help = "\
Exit codes: 0 the file can be run, 1 it has problems or the host lacks something, 2 it cannot be read

Examples:
  sudo mpt check /etc/mpt/mpt.toml
  mpt check --file-only /etc/mpt/mpt.toml      the same on every host")]
    Check {
        /// The configuration file (TOML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Check only the file, not this host
        #[arg(long)]
        file_only: bool,
    },
    /// Print a new private key
    ///
    /// For `private_key_file`. Nobody else may read the file: write it with `umask 077`. Pre-shared keys
    /// (`preshared_key_file`) are made the same way.
    #[command(after_help = "\
Examples:
  (umask 077; mpt genkey > /etc/mpt/private.key)
  mpt genkey | tee private.key | mpt pubkey")]
    Genkey,
    /// Print the public key of a private key
    ///
    /// Reads the private key from standard input. The public key is for `public_key` at the other host.
    #[command(after_help = "\
Example:
  mpt pubkey < /etc/mpt/private.key")]
    Pubkey,
    /// Show the status of the running daemon
    ///
    /// Tunnels, connections and paths with their states and counters, drops by reason, and socket
    /// buffers that are smaller than requested. With --watch a live view, with rates and the latest
    /// events, until `q`; `?` shows the keys.
    #[command(after_help = "\
Exit codes: 0 shown, 2 no daemon answers

Examples:
  mpt status
  mpt status --watch
  mpt status --json | jq '.tunnels[].connections[].paths[] | {name, state}'
  mpt status --watch --interval 10 --json >> status.jsonl")]
    Status {
        /// Live view; with --json print a line per interval
        #[arg(long)]
        watch: bool,
        /// Interval of the live view, 0.1 to 3600 seconds
        #[arg(
            long, value_name = "SECONDS", default_value = "1", requires = "watch",
            value_parser = status::interval
        )]
        interval: Duration,
        /// Print one JSON object instead of tables
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Say in words why packets went where they went
    ///
    /// For the last seconds: what each path carried and what kept it from carrying more, what is known of its
    /// rate, delay, queue and loss and was found out lately, what waits in front of the paths, and the order of
    /// what came from the peer. It is about what this host sends; ask at the peer for the other direction.
    #[command(after_help = "\
Exit codes: 0 shown, 1 there is no such connection, 2 no daemon answers

Examples:
  mpt explain
  mpt explain server
  mpt explain --json | jq '.[].paths[] | {name, share, limit}'")]
    Explain {
        /// The connection; all if it is left out
        #[arg(value_name = "CONNECTION")]
        connection: Option<String>,
        /// Print a JSON array instead of words
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Print the running configuration as a file
    ///
    /// The file as it was last read, with later changes made by command. Accepted connections are
    /// not included.
    #[command(after_help = "\
Exit codes: 0 printed, 2 no daemon answers

Example:
  mpt config > /etc/mpt/mpt.toml    store changes made by command")]
    Config {
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Add or remove a connection while the daemon runs
    Connection {
        #[command(subcommand)]
        action: ConnectionAction,
    },
    /// Convert the configuration files of the original MPT
    ///
    /// Reads interface.conf and the files of connections, in the format with sections and in the
    /// positional format of earlier packages, with one value per line. Each setting in the output
    /// has a comment with its source; settings without a counterpart, and changed ones, are written
    /// as comments with the reason. Only the output file is written, and no privilege is needed.
    #[command(after_help = "\
Exit codes: 0 done, 1 done, but the result has errors to fix, 2 the files cannot be imported

Examples:
  mpt import --check /opt/mpt                  report the result, and write nothing
  mpt import /opt/mpt -o /etc/mpt/mpt.toml     for peers that still run the original
  mpt import --peer mpt --stdout interface.conf connections/a.conf")]
    Import(import::Import),
    /// Change a path while the daemon runs
    Path {
        #[command(subcommand)]
        action: PathAction,
    },
    /// Read the configuration file again and apply its changes
    ///
    /// Unchanged settings are not touched: no packet is lost and no sequence numbers restart. HUP
    /// has the same effect. If the file has errors, nothing is changed.
    #[command(after_help = "\
Exit codes: 0 done, 1 the file is wrong, 2 a change could not be applied, or no daemon answers

Example:
  mpt reload")]
    Reload {
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Write what paths and queues do over time as JSON lines
    ///
    /// Twenty times per second a line for each path and one for the queue in front of the paths; a line for what
    /// is found out of a path and for each event. The daemon samples only as long as this command runs. A disk
    /// that is full ends this command, not the daemon.
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such connection, 2 no daemon answers, or the file cannot be written

Examples:
  mpt trace --output trace.jsonl --seconds 60
  mpt trace server | jq 'select(.kind == \"path\") | [.at_seconds, .name, .estimate.rate]'")]
    Trace {
        #[command(flatten)]
        options: trace::Options,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
pub(super) enum PathAction {
    /// Put the path into service
    Up(PathName),
    /// Take the path out of service: no inner packets, no keepalives
    Down(PathName),
    /// Change the path's share of the packets
    Weight {
        #[command(flatten)]
        path: PathName,
        /// Its share relative to the other paths', 1 to 10000
        #[arg(long = "to", value_name = "WEIGHT", value_parser = clap::value_parser!(u16).range(1..=10_000))]
        weight: u16,
    },
    /// Change the path's priority
    Priority {
        #[command(flatten)]
        path: PathName,
        /// Of the paths that are up, those with the lowest number carry packets, 0 to 255
        #[arg(long = "to", value_name = "PRIORITY")]
        priority: u8,
    },
    /// Add a path to a connection
    ///
    /// The settings are those of [[tunnel.connection.path]] in the configuration file, each as one
    /// argument. The file is not changed.
    #[command(after_help = "\
Exit codes: 0 done, 1 the settings are wrong, 2 no daemon answers

Examples:
  mpt path add 'name = \"lte\"' 'interface = \"wwan0\"' 'remote = \"203.0.113.5\"'
  mpt path add --connection server 'name = \"lte\"' 'remote = \"203.0.113.5\"' 'weight = 3'")]
    Add {
        /// The connection; may be left out if there is only one
        #[arg(long, value_name = "CONNECTION")]
        connection: Option<String>,
        /// KEY = VALUE as in the configuration file
        #[arg(value_name = "SETTING", required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Remove a path; the file is not changed
    Remove(PathName),
}

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
    Remove {
        /// The connection's name
        #[arg(value_name = "CONNECTION")]
        connection: String,
        #[command(flatten)]
        socket: SocketOption,
    },
}

#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
Exit codes: 0 done, 1 there is no such path, 2 no daemon answers

Examples:
  mpt path down fibre            if only one connection has a path `fibre`
  mpt path down server fibre     if several have one"
)]
pub(super) struct PathName {
    /// The connection; may be left out if only one has such a path
    #[arg(value_name = "CONNECTION")]
    pub(super) connection: Option<String>,
    /// The path's name in the configuration
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    #[command(flatten)]
    pub(super) socket: SocketOption,
}

#[derive(Debug, Args)]
pub(super) struct SocketOption {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = mpt_control::DEFAULT_SOCKET)]
    pub(super) socket: PathBuf,
}
