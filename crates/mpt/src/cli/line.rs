//! What the command line may be: the list of commands and their help. The options of a command that has many of them, or
//! commands of its own, are where it is run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::change::ConnectionAction;
use super::host::HostAction;
use super::path::PathAction;
use super::peer::PeerAction;
use super::socket::SocketOption;
use super::web::WebAction;
use super::{import, init, invite, join, leave, status, trace};

/// The configuration of the service.
const DEFAULT_FILE: &str = "/etc/mpt/mpt.toml";

const EXAMPLES: &str = "\
Examples:
  mpt init --server vpn.example.org
                               make this host a server, and
  mpt invite van               print an invitation for a client, which runs
  mpt join 'mpt:…'             to use all its uplinks, and `mpt leave` to undo it
  mpt check                    report errors of /etc/mpt/mpt.toml and of this host
  mpt run                      run its tunnels until TERM or INT
  mpt genkey                   print a key, with which a tunnel is sealed
  mpt status                   show tunnels, connections, paths and drops
  mpt status --watch           show them live
  mpt status --json | jq .     as JSON for programs
  mpt doctor                   find out why a connection does not work
  mpt explain                  say why packets went where they went
  mpt trace -o trace.jsonl     write what paths do over time
  mpt path down fibre          take a path out of service
  mpt path up server fibre     and back into service, with its connection
  mpt reload                   apply the changes of the configuration file
  mpt web token                print the address of the web page, for changes
  mpt import /opt/mpt          convert the configuration files of the original MPT

Exit codes:
  0  done
  1  negative result: `check` found a problem, there is no such path
  2  wrong usage or failure: no daemon, no permission, a file that cannot be read";

/// The multipath tunnel: one IP tunnel over several network paths at once.
#[derive(Debug, Parser)]
#[command(name = "mpt", version, after_help = EXAMPLES)]
pub(super) struct Line {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// In the order of the help: what a new operator needs first, what is done once last.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make this host a server that clients can be invited to
    ///
    /// Writes a private key, a configuration with a private network that nobody here uses, and has systemd run the
    /// daemon. Existing files are never overwritten. `mpt leave` undoes all of it.
    #[command(after_help = "\
Exit codes: 0 done, 1 this host is a server or client already, 2 failure

Examples:
  mpt init --server vpn.example.org
  mpt init --server 203.0.113.5:4755 --internet
  mpt init --server vpn.example.org --address 10.66.0.1/16 --address fd00:66::1/64")]
    Init(init::Init),
    /// Print an invitation for a client: one line, and a QR code on a terminal
    ///
    /// The first who comes with the line is let in once, until it expires. The client gets the next free tunnel addresses. A
    /// client that has not come yet can be invited again; only the latest line counts.
    #[command(after_help = "\
Exit codes: 0 done, 2 failure: no server here, the client has joined already

Examples:
  mpt invite van
  mpt invite van --expires 7d --json | jq -r .line")]
    Invite(invite::Invite),
    /// Join a server by an invitation, with all uplinks of this host
    ///
    /// Makes a private key, writes a configuration, and has systemd run the daemon; without systemd, or with
    /// another folder, the daemon runs as long as this command. On a terminal it then shows the live view.
    #[command(after_help = "\
Exit codes: 0 joined, 1 the server did not answer, the invitation has expired, or this host has
            joined already, 2 failure: the line is damaged, no permission

Examples:
  mpt join 'mpt:AQ…'
  mpt join 'mpt:AQ…' --everything --exclude 'docker*'
  mpt invite van | ssh van mpt join -")]
    Join(join::Join),
    /// Undo `mpt init` or `mpt join`
    ///
    /// Ends the daemon, restores routes, rules and resolver, and removes the service and all files, also after a
    /// crash.
    #[command(after_help = "\
Exit codes: 0 done, 1 there is nothing to leave, or a server has clients, 2 a part cannot be undone

Examples:
  mpt leave
  mpt leave --force            on a server that has clients")]
    Leave(leave::Leave),
    /// List, add or remove the clients that a server knows by their keys
    #[command(after_help = "\
Examples:
  mpt peer list
  mpt peer add van --public-key AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= --address 10.9.0.2
  mpt peer remove van")]
    Peer {
        #[command(subcommand)]
        action: PeerAction,
    },
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
        /// Show more: profiles, the order of arrivals, sizes of batches
        #[arg(long, conflicts_with_all = ["json", "watch"])]
        verbose: bool,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Find out why a connection does not work, and say what to change
    ///
    /// Waits up to six seconds for the peer while the running daemon tells apart what arrives, what is answered and what
    /// ICMP says; resolves names; checks networks, addresses and MTUs of this host; says of each path what left and what
    /// came back, and what it loses; compares the settings of both ends, as far as the peer tells its own; and sends
    /// packets through the tunnel, small ones and as large as it takes. With --rate it also loads the tunnel for three
    /// seconds each way, and shows what of that arrives by each path, and whether the path was full. What comes from the
    /// peer are echo replies, so no more than arrives there.
    #[command(after_help = "\
Exit codes: 0 all is well, 1 something is to be changed, or there is no such connection, 2 no daemon answers

Examples:
  sudo mpt doctor
  sudo mpt doctor server
  sudo mpt doctor server --rate        at both ends, where one way is faster than the other")]
    Doctor {
        /// The connection; all if it is left out
        #[arg(value_name = "CONNECTION")]
        connection: Option<String>,
        /// The configuration file, where the daemon does not say what runs
        #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// Measure what the paths carry each way, by loads of three seconds
        #[arg(long)]
        rate: bool,
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
    /// Change a path while the daemon runs
    #[command(after_help = "\
Examples:
  mpt path down fibre                   out of service, without losing a packet
  mpt path up server fibre              and back, with its connection
  mpt path priority lte --to 1          on standby while a path with priority 0 is up
  mpt path weight lte --to 30           where packets go by weights
  mpt path add 'name = \"lte\"' 'interface = \"wwan0\"' 'remote = \"203.0.113.5\"'")]
    Path {
        #[command(subcommand)]
        action: PathAction,
    },
    /// Add or remove a connection while the daemon runs
    #[command(after_help = "\
Examples:
  mpt connection add branch.toml
  mpt connection remove branch")]
    Connection {
        #[command(subcommand)]
        action: ConnectionAction,
    },
    /// Check a configuration file, and whether this host can run it
    ///
    /// Changes nothing and needs no privilege. Each error of the file is reported on standard error
    /// with its place and remedy. If there are none, missing host requirements are printed, with
    /// their effect and the command that fixes them. An error there would prevent `mpt run` from
    /// starting as this user; a warning says what will not work. What only root can
    /// see, such as keys and the firewall, is only checked as root.
    #[command(after_help = "\
Exit codes: 0 the file can be run, 1 it has problems or the host lacks something, 2 it cannot be read

Examples:
  sudo mpt check /etc/mpt/mpt.toml
  mpt check --file-only /etc/mpt/mpt.toml      the same on every host")]
    Check {
        /// The configuration file (TOML)
        #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// Check only the file, not this host
        #[arg(long)]
        file_only: bool,
    },
    /// Run the tunnels of a configuration file
    ///
    /// Opens the TUN devices and sockets, installs addresses and routes, listens on the control
    /// socket, logs that it is ready, and runs until TERM or INT. Then it removes all of these. It
    /// needs the capability CAP_NET_ADMIN.
    #[command(after_help = "\
The log goes to standard error. MPT_LOG sets its level: error, warn, info (default), debug, trace.

Exit codes: 0 ended by TERM or INT, 2 the file is wrong, or the daemon cannot start

Examples:
  mpt run /etc/mpt/mpt.toml
  MPT_LOG=debug mpt run /etc/mpt/mpt.toml")]
    Run {
        /// The configuration file (TOML)
        #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
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
    /// Print the running configuration as a file
    ///
    /// The file as it was last read, with later changes made by command. Accepted connections are
    /// not included.
    #[command(after_help = "\
Exit codes: 0 printed, 2 no daemon answers

Example:
  mpt config > new.toml && mv new.toml /etc/mpt/mpt.toml    store changes made by command;
                                      (umask 077; ...) if the file contains a key")]
    Config {
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Allow changes by the web page
    #[command(after_help = "\
Examples:
  xdg-open \"$(sudo mpt web token)\"
  mpt web token --renew                 and the one before is worth nothing any more")]
    Web {
        #[command(subcommand)]
        action: WebAction,
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
    /// Print a new private key
    ///
    /// For `private_key_file`. Nobody else may read the file: write it with `umask 077`. Pre-shared keys
    /// (`preshared_key_file`) are made the same way.
    #[command(after_help = "\
Exit codes: 0 printed, 2 failure

Examples:
  (umask 077; mpt genkey > /etc/mpt/private.key)
  (umask 077; mpt genkey | tee private.key) | mpt pubkey")]
    Genkey,
    /// Print the public key of a private key
    ///
    /// Reads the private key from standard input. The public key is for `public_key` at the other host.
    #[command(after_help = "\
Exit codes: 0 printed, 2 what is read is no private key

Example:
  mpt pubkey < /etc/mpt/private.key")]
    Pubkey,
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
    /// Print completions for a shell
    ///
    /// For installations without the package, which has them.
    #[command(after_help = "\
Exit codes: 0 printed

Examples:
  mpt completions bash > /etc/bash_completion.d/mpt
  mpt completions zsh > \"${fpath[1]}/_mpt\"
  mpt completions fish > ~/.config/fish/completions/mpt.fish")]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write all of them
    ///
    /// For installations without the package, which has them. There is a page for each command, and mpt.toml for
    /// the configuration.
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such page, 2 a file cannot be written

Examples:
  mpt man | man -l -                           mpt(1)
  mpt man path-weight | man -l -
  mpt man mpt.toml | man -l -                  what a configuration may say
  mpt man --output /usr/local/share/man")]
    Man {
        /// The page, such as `status`
        #[arg(value_name = "PAGE", conflicts_with = "output")]
        page: Option<String>,
        /// Write all pages into this folder, in `man1` and `man5`
        #[arg(short, long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
    /// What holds on this host as long as the daemon of `init` or `join` runs
    ///
    /// The resolver of a client that was joined with --everything, and forwarding and masquerading of a server
    /// with --internet. systemd and `mpt join` run this by themselves.
    #[command(hide = true)]
    Host {
        #[command(subcommand)]
        action: HostAction,
    },
    /// Print the version
    Version,
}
