//! The settings of a template of connections: `[[tunnel.accept]]`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use mpt_proto::PeerKind;

use super::path::{PathRead, local};
use super::{Connection, Path, Policies};
use crate::config::classes::{self, Class};
use crate::config::keys::{Row, Rows};
use crate::config::pins::Pins;
use crate::config::prefix::Prefix;
use crate::config::remote::Remote;
use crate::config::report::Problems;
use crate::config::schema::{Tabled as _, settings};
use crate::config::value::{self, Kind, Value};
use crate::config::writer::Writer;
use crate::config::{address, timers};

settings! {
    /// A template. What it does not say is as in a [`Connection`] and its paths by default.
    Accept "[[tunnel.accept]]", read as AcceptRead, with none: () {
        /// First part of the connections' names, 1 to 24 bytes; the second is the peer's tunnel
        /// address: `vehicle-10.9.0.7`.
        name: String = required(name, "\"vehicle\""), Apart;
        /// Tunnel addresses that may connect, as prefixes; empty if there is a folder.
        peers: Vec<Prefix> = own(
            Rows::Here(&[Row::own(
                "peers",
                "",
                "[\"10.9.0.0/24\"]",
                "Tunnel addresses that may connect, as prefixes; or, as a string, the folder of clients that are known by their keys: one file for each, below.",
            )]),
            |of: &Self, out: &mut Writer, ()| match &of.folder {
                Some(folder) => out.key("peers", folder),
                None => out.key("peers", &of.peers),
            }
        ), InPlace;
        /// The folder of clients that are known by their keys.
        folder ["peers"]: Option<PathBuf> = own(Rows::Here(&[]), |_: &Self, _: &mut Writer, ()| {}),
            InPlace;
        /// Outer source prefixes that may connect, and be a path; empty = any.
        sources: Vec<Prefix> = default(value::list(address::network), Vec::new()), InPlace;
        /// Interface of its socket.
        interface: Option<String> = optional(value::interface, "\"eth1\""), InPlace;
        /// Address of its socket; none: one socket for IPv4 and one for IPv6.
        local: Option<IpAddr> = optional(local, "\"192.0.2.10\""), InPlace;
        /// UDP port of its socket.
        local_port: u16 = default(value::integer(1..=u16::MAX), Connection::DEFAULT_PORT), InPlace;
        /// Most connections at a time.
        max_connections: u16 =
            default(value::integer(1..=Accept::MAX_CONNECTIONS), Accept::DEFAULT_CONNECTIONS), InPlace;
        /// Most new connections and paths per second.
        max_rate: f64 = default(Rate, Accept::DEFAULT_RATE), InPlace;
        /// Most paths per connection.
        max_paths: u8 =
            default(value::integer(1..=Connection::MAX_PATHS as u8), Accept::DEFAULT_PATHS), InPlace;
        /// Silence after which a path, and a connection without paths, is removed; longer than
        /// `dead_time`.
        forget: Duration = default(timers::forget(), timers::FORGET), InPlace;
        /// How the connections treat their packets.
        policies: Policies = own(
            Rows::Of(&Policies::KEYS),
            |of: &Self, out: &mut Writer, ()| of.policies.write(out, PeerKind::Mpt)
        ), Within;
        /// Share of the packets or flows, for every path. Without it each path has the weight that
        /// its peer gives it, 1 if that is an older MPT.
        weight: Option<u16> = optional(value::integer(1..=Path::MAX_WEIGHT), "1", "the peer's"), InPlace;
        /// Priority tier of every path.
        priority: u8 = default(value::integer(0..=u8::MAX), 0), InPlace;
        /// Time between keepalives on every path.
        keepalive: Duration = default(timers::keepalive(), Path::default_keepalive(PeerKind::Mpt)),
            InPlace;
        /// Silence after which a path is down, longer than `keepalive`.
        dead_time: Duration = default(
            timers::dead_time(),
            Path::default_dead_time(keepalive.unwrap_or_default()),
            "3.5 × `keepalive`: 1.75"
        ), InPlace;
        /// In a session: how many milliseconds a path may be silently dead while nothing is sent on it, as in a path of a
        /// connection. The peer's counts if it is longer.
        failover: Option<u16> =
            optional(timers::failover(), "1000", "1000; none with `keepalive` or `dead_time`"), InPlace;
        /// What packets need that is not as usual, as in a [`Connection`].
        classes ["class"]: Vec<Class> = own(
            Rows::Here(&[Row::table("class")]),
            |of: &Self, out: &mut Writer, ()| classes::write(&of.classes, true, out)
        ), InPlace;
    }
}

impl Accept {
    /// Longest name in bytes: what is left of 64, the longest name of a connection, after a hyphen
    /// and 39 bytes, the longest IPv6 address.
    pub(crate) const MAX_NAME: usize = 24;

    /// Most connections by one template whose peers are not known by keys.
    pub(crate) const MAX_CONNECTIONS: u16 = 4096;

    /// Connections at a time unless configured.
    pub(crate) const DEFAULT_CONNECTIONS: u16 = 64;

    /// Slowest rate: one in ten seconds.
    pub(crate) const MIN_RATE: f64 = 0.1;

    /// Fastest rate per second.
    pub(crate) const MAX_RATE: f64 = 1000.0;

    /// Further connections and paths per second unless configured.
    pub(crate) const DEFAULT_RATE: f64 = 5.0;

    /// Paths of one connection unless configured.
    pub(crate) const DEFAULT_PATHS: u8 = 8;

    /// The settings of a path that is made by it, to where the peer connected from; `local` is the
    /// address that it connected to, if that is known. `None` only if a path has settings without a
    /// default that a template does not have.
    pub(crate) fn path(&self, remote: SocketAddr, local: Option<IpAddr>) -> Option<Path> {
        let read = PathRead {
            name: Some(remote.to_string()),
            interface: Some(self.interface.clone()),
            local: Some(self.local.or(local)),
            remote: Some(Remote::Address(remote.ip())),
            weight: Some(self.weight.unwrap_or(1)),
            weight_from_peer: Some(self.weight.is_none()),
            priority: Some(self.priority),
            keepalive: Some(self.keepalive),
            dead_time: Some(self.dead_time),
            failover: Some(self.failover),
            pins: Some(Pins::default()),
            ..Path::defaults(PeerKind::Mpt)
        };
        read.whole()
    }
}

fn name(value: &Value<'_>, problems: &mut Problems) -> Option<String> {
    let name = value::name(value, problems)?;
    if name.len() > Accept::MAX_NAME {
        let help =
            format!("use 1 to {} bytes: the peer's tunnel address is appended", Accept::MAX_NAME);
        problems.push(value.impossible(format!("{} bytes long", name.len())).help(help));
        return None;
    }
    Some(name)
}

/// A rate per second, whole or fractional.
struct Rate;

impl Kind<f64> for Rate {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<f64> {
        let (min, max) = (Accept::MIN_RATE, Accept::MAX_RATE);
        let help = format!("allowed: {min} to {max} per second");
        value::decimal(value, "a number per second", help, problems, |rate| {
            (min..=max).contains(&rate).then_some(rate)
        })
    }

    fn range(&self) -> Option<String> {
        Some(format!("{} .. {}", Accept::MIN_RATE, Accept::MAX_RATE))
    }
}
