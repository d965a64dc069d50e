//! Why one half of a connection has dropped packets: it counts few of the reasons, and there are ten thousand connections.

use super::{Drop, Drops};

/// A counter for each reason that has come up.
#[derive(Clone, Debug, Default)]
pub(crate) struct FewDrops(Vec<(Drop, u64)>);

impl FewDrops {
    pub(crate) fn add(&mut self, reason: Drop) {
        match self.0.iter_mut().find(|(counted, _)| *counted == reason) {
            Some((_, count)) => *count += 1,
            None => self.0.push((reason, 1)),
        }
    }

    /// A counter for each reason.
    pub(crate) fn all(&self) -> Drops {
        let mut drops = Drops::default();
        self.0.iter().for_each(|(reason, count)| drops.0[*reason as usize] = *count);
        drops
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(Drop, u64)>()
    }
}
