//! What is told of a connection, apart from its paths, in the [`settings`](crate::wire::extended::settings) of path statuses.

use std::num::NonZeroU16;

use crate::config::ReorderConfig;

/// What is told of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) reorder: ReorderConfig,
    /// The MTU of the tunnel, and whether it is configured.
    pub(super) mtu: (Option<NonZeroU16>, bool),
}
