//! The weight of one path: the configured one, or the one that the peer wants (`docs/protocol.md`
//! section 5.2.1).

use std::num::NonZeroU16;

use crate::config::PathConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathWeight {
    configured: u16,
    /// Whether the one that the peer announces takes its place.
    from_peer: bool,
    announced: Option<NonZeroU16>,
}

impl PathWeight {
    pub(super) fn new(config: &PathConfig) -> Self {
        Self { configured: config.weight, from_peer: config.weight_from_peer, announced: None }
    }

    /// The same path with other settings. What the peer announced is known still.
    pub(super) fn configured_as(self, config: &PathConfig) -> Self {
        Self { announced: self.announced, ..Self::new(config) }
    }

    /// The path as the peer announces its weight now.
    pub(super) fn announced_as(self, announced: Option<NonZeroU16>) -> Self {
        Self { announced, ..self }
    }

    /// The weight by which packets are shared out, at least 1.
    pub(super) fn in_force(self) -> u16 {
        self.announced.filter(|_| self.from_peer).map_or(self.configured, NonZeroU16::get)
    }

    /// The weight announced to the peer; none if the peer decides itself.
    pub(super) fn to_announce(self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.configured).filter(|_| !self.from_peer)
    }
}
