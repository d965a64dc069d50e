//! Beacon: paths that have become idle, and up to what number nothing is outstanding on them.
//!
//! ```text
//! offset  0        1..4       4..
//!       | blocks | reserved | a block for each path |
//!         block: path id | reserved (3) | covered global sequence (4) | path sequence (4)
//! ```

use std::time::Duration;

use super::fields::{Reader, Writer};
use crate::sequence::Seq;
use crate::stats::Drop;

/// How long after the last data on a path its beacons are sent.
pub const AFTER: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(25)];

/// The most blocks of a beacon.
pub const MAX_BLOCKS: usize = 64;

const LEAD_LEN: usize = 4;
const BLOCK_LEN: usize = 12;

/// The length of a beacon with so many blocks.
pub const fn len(blocks: usize) -> usize {
    LEAD_LEN + BLOCK_LEN * blocks
}

/// Up to what number nothing is outstanding on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// The path id, in the sender's numbering.
    pub path: u8,
    /// The last global sequence that was given to any path; [`Self::NOTHING`] if none was in this session.
    pub covered: Seq,
    /// The last path sequence before the beacon: up to `covered`, nothing but copies was sent on the path after it.
    pub path_sequence: u32,
}

impl Beacon {
    /// The global sequence before the first one.
    pub const NOTHING: Seq = Seq::FIRST.minus(1);
}

/// Writes a beacon with 1 to [`MAX_BLOCKS`] blocks.
///
/// # Panics
///
/// If there are more or fewer blocks, or `message` is shorter than [`len`] of them.
pub fn emit(blocks: &[Beacon], message: &mut [u8]) {
    assert!((1..=MAX_BLOCKS).contains(&blocks.len()), "a beacon has 1 to 64 blocks");
    let mut to = Writer::new(message);
    to.u8(blocks.len() as u8).reserved(3);
    for block in blocks {
        to.u8(block.path).reserved(3).u32(block.covered.value()).u32(block.path_sequence);
    }
}

/// Reads a beacon.
///
/// # Errors
///
/// [`Drop::ControlLength`] if it does not have 1 to 64 blocks, or ends inside one of them.
pub fn parse(message: &[u8]) -> Result<Beacons<'_>, Drop> {
    let mut from = Reader::new(message);
    let count = usize::from(from.u8()?);
    from.bytes(LEAD_LEN - 1)?;
    if !(1..=MAX_BLOCKS).contains(&count) {
        return Err(Drop::ControlLength);
    }
    Ok(Beacons(Reader::new(from.bytes(BLOCK_LEN * count)?)))
}

/// The blocks of a beacon.
#[derive(Clone, Debug)]
pub struct Beacons<'m>(Reader<'m>);

impl Beacons<'_> {
    fn read(&mut self) -> Result<Beacon, Drop> {
        let path = self.0.u8()?;
        self.0.bytes(3)?;
        Ok(Beacon { path, covered: Seq::new(self.0.u32()?), path_sequence: self.0.u32()? })
    }
}

impl Iterator for Beacons<'_> {
    type Item = Beacon;

    fn next(&mut self) -> Option<Beacon> {
        self.read().ok()
    }
}
