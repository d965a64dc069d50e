//! `mpt peer`: the clients that a server knows by their keys.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Result, bail};
use mpt_control::{Client, PeerStatus, Reply, Request};

use super::change::ask;
use super::line::{PeerAction, PeerSettings};
use crate::exit::Exit;
use crate::output;

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
    output::print(&table(&peers))
}

fn table(peers: &[PeerStatus]) -> String {
    let row = |peer: &PeerStatus| {
        let addresses: Vec<String> = peer.addresses.iter().map(IpAddr::to_string).collect();
        let key = match (&peer.public_key, &peer.invitation_expires) {
            (Some(key), _) => key.clone(),
            (None, Some(expires)) => format!("invited until {expires}"),
            (None, None) => String::new(),
        };
        let state = if peer.connection.is_some() { "connected" } else { "-" };
        [peer.name.clone(), state.to_owned(), addresses.join(" "), peer.networks.join(" "), key]
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
    use super::*;

    #[test]
    fn a_list_has_a_line_for_each_client() {
        let peer = |name: &str, key: Option<&str>| PeerStatus {
            name: name.into(),
            tunnel: "mpt0".into(),
            template: "client".into(),
            public_key: key.map(str::to_owned),
            addresses: vec![[10, 9, 0, 2].into()],
            networks: Vec::new(),
            invitation_expires: key.is_none().then(|| "2026-11-25T03:00:00Z".into()),
            connection: key.map(|_| format!("client-{name}")),
        };
        let text = table(&[peer("van", Some("KEY=")), peer("bus", None)]);
        assert_eq!(
            text,
            "NAME  STATE      ADDRESSES  NETWORKS  PUBLIC KEY\n\
             van   connected  10.9.0.2             KEY=\n\
             bus   -          10.9.0.2             invited until 2026-11-25T03:00:00Z\n"
        );
    }
}
