//! `mpt peer`: the clients that a server knows by their keys.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use mpt_control::{Client, PeerStatus, Reply, Request};

use super::change::ask;
use super::socket::SocketOption;
use crate::config::Moment;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, Subcommand)]
pub(super) enum PeerAction {
    /// Add a client: its file is written into the folder of its template
    #[command(after_help = "\
Exit codes: 0 done, 1 the settings are wrong, 2 no daemon answers

Example:
  mpt peer add van --public-key AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= --address 10.9.0.2")]
    Add {
        /// Its name: 1 to 39 letters, digits, `-`, `_` and `.`
        #[arg(value_name = "NAME")]
        peer: String,
        #[command(flatten)]
        settings: PeerSettings,
        /// The template; may be left out if only one has a folder of clients
        #[arg(long, value_name = "TEMPLATE")]
        template: Option<String>,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Remove a client: its file is removed and its connection ends
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such client, 2 no daemon answers

Example:
  mpt peer remove van")]
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        peer: String,
        /// The template; may be left out if only one has a folder of clients
        #[arg(long, value_name = "TEMPLATE")]
        template: Option<String>,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// List the clients, and say who is connected
    #[command(after_help = "\
Exit codes: 0 shown, 2 no daemon answers

Examples:
  mpt peer list
  mpt peer list --json | jq '.[] | {name, connection}'")]
    List {
        /// Print a JSON array instead of a table
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Read the folder of clients again
    #[command(after_help = "\
Exit codes: 0 done, 1 a file is wrong, 2 no daemon answers

Example:
  mpt peer reload")]
    Reload {
        #[command(flatten)]
        socket: SocketOption,
    },
}

#[derive(Debug, Args)]
pub(super) struct PeerSettings {
    /// Its public key, as `mpt pubkey` prints it
    #[arg(long, value_name = "KEY")]
    public_key: String,
    /// A tunnel address of it; at most one of each IP version
    #[arg(long = "address", value_name = "ADDRESS", required = true)]
    addresses: Vec<IpAddr>,
    /// A network behind it
    #[arg(long = "network", value_name = "PREFIX")]
    networks: Vec<String>,
    /// The file, on the server, of a key that only both hosts know
    #[arg(long, value_name = "FILE")]
    preshared_key_file: Option<PathBuf>,
}

/// Adds, removes or lists clients.
pub(super) fn peer(action: &PeerAction) -> Result<Exit> {
    match action {
        PeerAction::Add { peer, settings, template, socket } => {
            let (template, peer) = (template.clone(), peer.clone());
            let settings = text(settings);
            ask(&socket.socket, &Request::PeerAdd { template, peer, settings })
        }
        PeerAction::Remove { peer, template, socket } => {
            let (template, peer) = (template.clone(), peer.clone());
            ask(&socket.socket, &Request::PeerRemove { template, peer })
        }
        PeerAction::List { json, socket } => list(*json, &socket.socket),
        PeerAction::Reload { socket } => ask(&socket.socket, &Request::PeersReload {}),
    }
}

/// The file of a client. The daemon says what is wrong with it.
fn text(settings: &PeerSettings) -> String {
    let quoted = |text: &str| format!("{text:?}");
    let list = |list: &[String]| list.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", ");
    let mut text = format!("public_key = {}\n", quoted(&settings.public_key));
    let addresses: Vec<String> = settings.addresses.iter().map(IpAddr::to_string).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "addresses = [{}]", list(&addresses));
    if !settings.networks.is_empty() {
        let _ = writeln!(text, "networks = [{}]", list(&settings.networks));
    }
    if let Some(file) = &settings.preshared_key_file {
        let _ = writeln!(text, "preshared_key_file = {}", quoted(&file.to_string_lossy()));
    }
    text
}

fn list(json: bool, socket: &Path) -> Result<Exit> {
    let reply = Client::connect(socket)?.request(&Request::Peers {})?;
    let Reply::Peers { peers } = reply else { bail!(reply.into_refusal()) };
    if json {
        return output::print(&(serde_json::to_string(&peers)? + "\n"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    output::print(&table(&peers, Moment(now)))
}

/// A client that is there sends path statuses more often, in seconds: each 2.9 s where paths are paid for by volume.
const SILENT: f64 = 6.0;

fn table(peers: &[PeerStatus], now: Moment) -> String {
    // Moments in UTC are in the order of their texts.
    let now = now.to_string();
    let row = |peer: &PeerStatus| {
        let addresses: Vec<String> = peer.addresses.iter().map(IpAddr::to_string).collect();
        let key = match (&peer.public_key, &peer.invitation_expires) {
            (Some(key), _) => key.clone(),
            (None, Some(expires)) if *expires <= now => format!("invitation expired {expires}"),
            (None, Some(expires)) => format!("invited until {expires}"),
            (None, None) => String::new(),
        };
        let state = match (&peer.connection, peer.heard_seconds) {
            (None, _) => "-".to_owned(),
            (Some(_), Some(ago)) if ago >= SILENT => format!("silent for {ago:.0} s"),
            (Some(_), _) => "connected".to_owned(),
        };
        [peer.name.clone(), state, addresses.join(" "), peer.networks.join(" "), key]
    };
    let header = ["NAME", "STATE", "ADDRESSES", "NETWORKS", "PUBLIC KEY"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(peers.iter().map(row)).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_list_has_a_line_for_each_client() {
        let peer = |name: &str, key: Option<&str>, expires: &str| PeerStatus {
            name: name.into(),
            tunnel: "mpt0".into(),
            template: "client".into(),
            public_key: key.map(str::to_owned),
            addresses: vec![[10, 9, 0, 2].into()],
            networks: Vec::new(),
            invitation_expires: key.is_none().then(|| expires.to_owned()),
            connection: key.map(|_| format!("client-{name}")),
            heard_seconds: key.map(|_| if name == "van" { 5.9 } else { 6.2 }),
        };
        let clients = [
            peer("van", Some("KEY="), ""),
            peer("cab", Some("KEY="), ""),
            peer("bus", None, "2026-11-25T03:00:01Z"),
            peer("hut", None, "2026-11-25T03:00:00Z"),
        ];
        let text = table(&clients, Moment(Duration::from_secs(1_795_575_600)));
        assert_eq!(
            text,
            "NAME  STATE           ADDRESSES  NETWORKS  PUBLIC KEY\n\
             van   connected       10.9.0.2             KEY=\n\
             cab   silent for 6 s  10.9.0.2             KEY=\n\
             bus   -               10.9.0.2             invited until 2026-11-25T03:00:01Z\n\
             hut   -               10.9.0.2             invitation expired 2026-11-25T03:00:00Z\n"
        );
    }
}
