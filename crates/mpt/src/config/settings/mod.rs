//! The table of settings: every key that a configuration file may have, and the values that come of it.
//!
//! Each of its parts is one kind of table, with a key on each line; [`schema`](super::schema) says how to
//! read them. A part of a table that has a parser of its own stands in a module beside this one.

mod accept;
mod client;
mod connection;
mod path;
mod process;
mod tunnel;
mod unlisted;

pub(crate) use accept::Accept;
pub(crate) use client::Client;
pub(crate) use connection::{Connection, Policies};
pub(crate) use path::Path;
pub(crate) use process::{Control, Daemon, Listen, Metrics, Web};
pub(crate) use tunnel::{Mtu, Threads, Tunnel};

pub(super) use connection::{ConnectionRead, PoliciesRead};

use super::classes::Class;
use super::commands;
use super::keys::{Keys, Row, Rows};
use super::offloads::Offloads;
use super::reorder::Reorder;
use super::schema::Tabled as _;
use super::selector;
use super::uplinks::Uplink;

/// A whole configuration file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The control socket.
    pub(crate) control: Control,
    /// The process.
    pub(crate) daemon: Daemon,
    /// The page of metrics.
    pub(crate) metrics: Metrics,
    /// The web page.
    pub(crate) web: Web,
    /// The tunnels, at least one, with distinct names.
    pub(crate) tunnels: Vec<Tunnel>,
}

/// The file itself.
static FILE: Keys = Keys {
    table: "the file",
    rows: &[Rows::Here(&[
        Row::table("control"),
        Row::table("daemon"),
        Row::table("metrics"),
        Row::table("web"),
        Row::table("tunnel"),
    ])],
};

/// All tables, the file itself first. A key that several have is told to belong in the first of these.
pub(super) static ALL: [&Keys; 15] = [
    &FILE,
    &Control::KEYS,
    &Daemon::KEYS,
    &Metrics::KEYS,
    &Web::KEYS,
    &Tunnel::KEYS,
    &Offloads::KEYS,
    &Connection::KEYS,
    &commands::AUTH,
    &Reorder::KEYS,
    &selector::KEYS,
    &Path::KEYS,
    &Uplink::KEYS,
    &Class::KEYS,
    &Accept::KEYS,
];
