//! What the transmit half of a connection takes of memory.

use super::connection::TransmitHalf;
use super::stages::Paced;
use crate::time::Instant;

impl TransmitHalf {
    /// Bytes of memory that it takes, its own size included.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.paths.memory()
            + self.paths.iter().map(|(_, path)| path.memory()).sum::<usize>()
            + self.scheduler.memory()
            + self.framing.memory()
            + self.repair.memory()
            + self.drops.memory()
            + self.paced.as_ref().map_or(0, |paced| size_of::<Paced>() + paced.memory())
    }

    /// Gives back what an idle connection does not need. To be called now and then, also while nothing is sent.
    pub(super) fn give_back_memory(&mut self, now: Instant) {
        let waits = self.paced.as_ref().is_some_and(|paced| !paced.store.is_empty());
        let begins = self.rest.begins(now, self.sent.packets, waits);
        if self.rest.goes_on() {
            // Feedback about keepalives needs memory, too, and so do keys that are replaced.
            self.framing.rest();
            self.paths.iter_mut().for_each(|(_, path)| path.rate.rest());
        }
        if begins {
            self.scheduler.rest();
            self.repair.rest();
            self.paced.iter_mut().for_each(|paced| paced.rest());
        }
    }
}
