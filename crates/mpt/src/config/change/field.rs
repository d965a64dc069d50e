//! The settings that can differ, each with what it takes to change it while it runs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::Effect;
use crate::config::written::Written;
use crate::config::{
    Commands, Connection, Match, Mtu, Offloads, Path, PathStatus, PeerKind, Pins, Prefix, Profile,
    Remote, Reorder, Scheduler, Settings, Threads, Tunnel,
};

/// A value and what it becomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edit<T> {
    /// What it was.
    pub(crate) from: T,
    /// What it becomes.
    pub(crate) to: T,
}

impl<T: Clone + PartialEq> Edit<T> {
    fn between(from: &T, to: &T) -> Option<Self> {
        (from != to).then(|| Self { from: from.clone(), to: to.clone() })
    }
}

/// A list of settings: an enum of their edits, and what can be done with each.
macro_rules! fields {
    (
        $(#[$doc:meta])*
        $name:ident of $owner:ty {
            $($variant:ident($($field:ident).+: $type:ty) $key:literal $effect:ident,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum $name {
            $(
                #[doc = concat!("The `", $key, "`.")]
                $variant(Edit<$type>),
            )+
        }

        impl $name {
            /// What differs between two.
            pub(super) fn between(from: &$owner, to: &$owner) -> Vec<Self> {
                let edits = [
                    $(Edit::between(&from.$($field).+, &to.$($field).+).map(Self::$variant),)+
                ];
                edits.into_iter().flatten().collect()
            }

            /// Makes the change.
            pub(super) fn set(&self, owner: &mut $owner) {
                match self {
                    $(Self::$variant(edit) => owner.$($field).+ = edit.to.clone(),)+
                }
            }

            /// What it takes.
            pub(crate) fn effect(&self) -> Effect {
                match self {
                    $(Self::$variant(_) => Effect::$effect,)+
                }
            }

            /// The key that it has in the file.
            pub(crate) fn key(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $key,)+
                }
            }

            /// The values before and after as a file has them.
            pub(super) fn values(&self) -> (String, String) {
                match self {
                    $(Self::$variant(edit) => (edit.from.written(), edit.to.written()),)+
                }
            }
        }
    };
}

fields! {
    /// A setting of the whole process.
    ProcessField of Settings {
        Socket(control.socket: PathBuf) "control.socket" DaemonRestarted,
        User(daemon.user: Option<String>) "daemon.user" DaemonRestarted,
        Listen(metrics.listen: Option<SocketAddr>) "metrics.listen" InPlace,
    }
}

fields! {
    /// A setting of a tunnel.
    TunnelField of Tunnel {
        Addresses(addresses: Vec<Prefix>) "addresses" TunnelRestarted,
        Mtu(mtu: Mtu) "mtu" InPlace,
        ClampMss(clamp_mss: bool) "clamp_mss" InPlace,
        Offloads(offloads: Offloads) "offloads" TunnelRestarted,
        ChecksumPartial(checksum_partial: bool) "checksum_partial" TunnelRestarted,
        Threads(threads: Threads) "threads" TunnelRestarted,
    }
}

fields! {
    /// A setting of a connection.
    ConnectionField of Connection {
        PeerKind(peer_kind: PeerKind) "peer" ConnectionReplaced,
        Commands(commands: Option<Commands>) "commands" InPlace,
        Peer(peer: Vec<IpAddr>) "peer" ConnectionReplaced,
        Networks(networks: Vec<Prefix>) "networks" InPlace,
        Match(selector: Option<Match>) "match" InPlace,
        LocalPort(local_port: u16) "local_port" ConnectionReplaced,
        RemotePort(remote_port: u16) "remote_port" ConnectionReplaced,
        Profile(policies.profile: Profile) "profile" InPlace,
        Scheduler(policies.scheduler: Scheduler) "scheduler" InPlace,
        Key(policies.key: Option<u32>) "key" ConnectionReplaced,
        Checksum(policies.checksum: bool) "checksum" ConnectionReplaced,
        Sequence(policies.sequence: bool) "sequence" ConnectionReplaced,
        Reorder(policies.reorder: Reorder) "reorder" InPlace,
    }
}

fields! {
    /// A setting of a path.
    PathField of Path {
        Interface(interface: Option<String>) "interface" PathReplaced,
        Local(local: Option<IpAddr>) "local" PathReplaced,
        Remote(remote: Remote) "remote" PathReplaced,
        Weight(weight: u16) "weight" InPlace,
        Priority(priority: u8) "priority" InPlace,
        Keepalive(keepalive: Duration) "keepalive" InPlace,
        DeadTime(dead_time: Duration) "dead_time" InPlace,
        Status(status: PathStatus) "status" InPlace,
        Pins(pins: Pins) "pins" InPlace,
    }
}
