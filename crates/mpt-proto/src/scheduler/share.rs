//! What a path is entitled to.

use crate::id::PathId;
use crate::pins::Pins;

/// What a usable path is entitled to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'p> {
    pub(crate) path: PathId,
    /// At least 1.
    pub(crate) weight: u16,
    /// Its tier; the least is the best.
    pub(crate) priority: u8,
    pub(crate) pins: &'p Pins,
}
