//! When one direction of a connection is idle, and so gives back the memory that it needs while there are packets: most
//! of ten thousand clients are idle.

use std::time::Duration;

use crate::time::Instant;

/// A direction in which no packet has gone for so long is idle. Nothing that is missing still comes, and what is given
/// back takes some microseconds to allocate again.
const AFTER: Duration = Duration::from_secs(5);

/// Since when nothing came or went.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// How many packets had been delivered, or sent, by then.
    packets: u64,
    since: Instant,
    is_over: bool,
}

impl Rest {
    /// So many packets have been delivered, or sent, and others are held or not. Returns whether the connection has just become
    /// idle.
    pub(crate) fn begins(&mut self, now: Instant, packets: u64, is_holding: bool) -> bool {
        if packets != self.packets || is_holding {
            *self = Self { packets, since: now, is_over: false };
        }
        let begins = !self.is_over && now.since(self.since) >= AFTER;
        self.is_over |= begins;
        begins
    }

    /// Whether the connection is idle, and has been when this was last asked.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_once_after_five_seconds_without_packets() {
        let mut rest = Rest::default();
        let mut begins = |seconds, packets, is_holding| {
            rest.begins(Instant::ZERO + Duration::from_secs(seconds), packets, is_holding)
        };
        assert!(!begins(10, 7, false) && !begins(14, 7, false));
        assert!(begins(15, 7, false) && !begins(99, 7, false), "once");
        assert!(!begins(100, 8, false) && !begins(104, 8, true) && !begins(108, 8, false));
        assert!(begins(109, 8, false));
    }
}
