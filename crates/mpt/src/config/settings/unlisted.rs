//! The settings of paths that no file lists: those that are found by themselves, and those that a connection
//! learns from its peer.

use std::net::{IpAddr, SocketAddr};

use mpt_proto::PeerKind;

use super::accept::Accept;
use super::connection::Connection;
use super::path::{Path, PathRead};
use crate::config::pins::Pins;
use crate::config::remote::Remote;
use crate::config::schema::Tabled as _;
use crate::config::uplinks::{Found, Interfaces};

impl Connection {
    /// Whether its paths are learned from the peer.
    pub(crate) fn learns_paths(&self) -> bool {
        self.remote.is_none() && self.paths.is_empty()
    }

    /// Whether this interface may have a path that is found by itself.
    pub(crate) fn may_use(&self, interface: &str) -> bool {
        let excluded = self.exclude.iter().any(|pattern| pattern.matches(interface));
        self.interfaces.allow(interface) && !excluded
    }

    /// The settings of the path by this interface; `None` if the connection says no `remote`. It is called
    /// after the interface; where both IP versions may lead to the peer, the IPv6 path has `-v6` besides.
    pub(crate) fn found_path(&self, interface: &str, found: Found) -> Option<Path> {
        let remote = self.remote.clone()?;
        let both = remote.address().is_none();
        let suffix = if both && found == Found::V6 { "-v6" } else { "" };
        let said = self.uplinks.iter().find(|said| said.interface == interface);
        let read = PathRead {
            name: Some(format!("{interface}{suffix}")),
            interface: Some(Some(interface.to_owned())),
            remote: Some(remote),
            weight: Some(said.map_or(1, |said| said.weight)),
            priority: Some(said.map_or(0, |said| said.priority)),
            metered: Some(said.is_some_and(|said| said.metered)),
            price: Some(said.and_then(|said| said.price)),
            quota: Some(said.and_then(|said| said.quota)),
            quota_day: Some(said.map_or(1, |said| said.quota_day)),
            failover: Some(said.and_then(|said| said.failover).or(self.failover)),
            found: Some(Some(found)),
            ..self.unlisted_path()
        };
        read.whole()
    }

    /// The settings of a path that the peer has from `remote` to `local`, as far as that is known.
    pub(crate) fn learned_path(&self, remote: SocketAddr, local: Option<IpAddr>) -> Option<Path> {
        let read = PathRead {
            name: Some(remote.to_string()),
            local: Some(local),
            remote: Some(Remote::Address(remote.ip())),
            weight_from_peer: Some(true),
            ..self.unlisted_path()
        };
        read.whole()
    }

    /// What all paths have that the file does not list.
    fn unlisted_path(&self) -> PathRead {
        let keepalive = self.keepalive.unwrap_or(Path::default_keepalive(self.peer_kind));
        let dead_time = self.dead_time.unwrap_or(Path::default_dead_time(keepalive));
        PathRead {
            keepalive: Some(keepalive),
            dead_time: Some(dead_time),
            failover: Some(self.failover),
            pins: Some(Pins::default()),
            ..Path::defaults(self.peer_kind)
        }
    }
}

impl Accept {
    /// The settings of a connection to `peer`, whose first path is from `remote_port`.
    pub(crate) fn connection(&self, name: String, peer: IpAddr, remote_port: u16) -> Connection {
        Connection {
            name,
            peer_kind: PeerKind::Mpt,
            commands: None,
            peer: vec![peer],
            public_key: None,
            preshared_key_file: None,
            invitation_file: None,
            networks: Vec::new(),
            selector: None,
            local_port: self.local_port,
            remote_port,
            policies: self.policies,
            remote: None,
            interfaces: Interfaces::Auto,
            exclude: Vec::new(),
            keepalive: Some(self.keepalive),
            dead_time: Some(self.dead_time),
            failover: self.failover,
            forget: self.forget,
            uplinks: Vec::new(),
            classes: self.classes.clone(),
            paths: Vec::new(),
        }
    }
}
