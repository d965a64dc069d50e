//! `[general]` of `interface.conf`: the commands.

use super::document::Document;
use super::ledger::{Findings, Given, Ledger, empty_section};
use super::target::Peer;

/// The original's default port for commands, at either end.
pub(super) const DEFAULT_COMMAND_PORT: i64 = 65050;

/// Settings of `[general]` for the connections.
#[derive(Debug)]
pub(super) struct General {
    /// The UDP port of the command protocol.
    pub(super) command_port: Given<i64>,
    /// Whether the peer may create connections.
    pub(super) accept_remote: Given<i64>,
    pub(super) tunnel_count: Given<i64>,
    pub(super) asides: Vec<String>,
}

/// Reads `[general]`.
pub(super) fn read(document: &mut Document, peer: Peer, findings: &mut Findings) -> General {
    let section = document.take("general").unwrap_or_else(|| empty_section("general", document));
    let mut ledger = Ledger::open(&document.label, section);
    let tunnels = "the original has one tunnel at least";
    let tunnel_count = ledger.number("tunnel_num", 1, 1..=i64::from(u32::MAX), tunnels);
    if peer == Peer::Mpt {
        ledger.aside("cmdport_local", "both ends are to run `mpt`, which has no such protocol");
    }
    let accept_remote = ledger.number("accept_remote", 0, 0..=1, "the original knows 0 and 1");
    let peers_create = accept_remote.value == 1;
    let why = "no peer can create connections here";
    match peer {
        Peer::Original if peers_create => {
            let why = format!(
                "{why}: its `mpt create` requests are refused, logged and counted; write the \
                 connections into this file"
            );
            ledger.warn(&accept_remote.note, &why);
        }
        Peer::Mpt if peers_create => {
            let why = format!("{why}: for peers that run `mpt` use a [[tunnel.accept]]");
            ledger.refuse(&accept_remote.note, &why);
        }
        Peer::Mpt if !accept_remote.missing => {
            ledger.comment(format!("{}: {why}", accept_remote.note));
        }
        Peer::Original | Peer::Mpt => {}
    }
    let command_port = ledger.port("cmdport_local", DEFAULT_COMMAND_PORT);
    ledger.aside("cmd_timeout", "commands reach the daemon over a socket of its own, not by UDP");
    ledger.aside("interface_num", "the original only checks whether it is negative");
    General { command_port, accept_remote, tunnel_count, asides: ledger.close(findings) }
}
