//! What speaks plain framing at the other end, and so what may be said to it and expected of it.
//!
//! | | [`Mpt`](PeerKind::Mpt) | [`Original`](PeerKind::Original) | [`Gre`](PeerKind::Gre) |
//! |---|---|---|---|
//! | inner packets | either IP version | one IP version | either IP version |
//! | key, checksum | as configured | never | as configured |
//! | sequence numbers | as configured | if the own window is above 0 | as configured |
//! | keepalives | with what is known of the path | bare, at a steady pace | none |
//! | a path is up | heard by both | heard | always |

use std::net::IpAddr;

use crate::config::{ConfigError, ConnectionConfig};

/// The kind of a peer: what it understands beside inner packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerKind {
    /// An implementation of `docs/protocol.md`.
    #[default]
    Mpt,
    /// The original MPT (github.com/spyff/mpt): it reads of a keepalive only that it is one, and says
    /// no more with its own.
    Original,
    /// Any endpoint of GRE in UDP (RFC 8086), which knows no control messages at all.
    Gre,
}

impl PeerKind {
    /// The word for the kind in settings and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpt => "mpt",
            Self::Original => "mpt-original",
            Self::Gre => "gre",
        }
    }

    /// Whether keepalives tell more than that their sender is there, and are sent whenever that
    /// changes.
    pub(crate) const fn tells(self) -> bool {
        matches!(self, Self::Mpt)
    }

    /// Says what such a peer would not understand in the settings of connection number `connection`.
    pub(crate) fn check(
        self,
        config: &ConnectionConfig,
        connection: usize,
    ) -> Result<(), ConfigError> {
        let fault = match self {
            Self::Mpt => None,
            Self::Original => unfit_for_original(config),
            Self::Gre => {
                let timed = config
                    .paths
                    .iter()
                    .any(|path| path.keepalive.is_some() || path.dead_time.is_some());
                timed.then_some("a path with a keepalive interval or a dead time")
            }
        };
        match fault {
            Some(fault) => Err(ConfigError::PeerKind { connection, fault }),
            None => Ok(()),
        }
    }
}

fn unfit_for_original(config: &ConnectionConfig) -> Option<&'static str> {
    let [peer] = config.peer[..] else {
        return Some("not exactly one tunnel address of the peer");
    };
    let other_version = |address: IpAddr| address.is_ipv4() != peer.is_ipv4();
    if config.networks.iter().any(|network| other_version(network.address())) {
        Some("a network of another IP version than the peer's tunnel address")
    } else if config.key.is_some() || config.checksum {
        Some("a key or a checksum")
    } else if config.sequence != (config.reorder.window > 0) {
        Some("sequence numbers without a reorder window, or a window without them")
    } else {
        None
    }
}
