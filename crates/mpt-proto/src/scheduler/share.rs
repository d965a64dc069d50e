//! What a path is entitled to.

use crate::id::PathId;
use crate::pins::Pins;

/// What a usable path is entitled to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'p> {
    pub(crate) path: PathId,
    /// At least 1.
    pub(crate) weight: u16,
    /// Whether it is a last resort, and its priority: of the usable paths those of the least tier carry packets.
    pub(crate) tier: (bool, u8),
    pub(crate) pins: &'p Pins,
}
