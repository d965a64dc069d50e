//! Inner packets of a connection none of whose paths can be used: dropped, and answered by ICMP.
//!
//! A sender that is told gives up at once, or tries elsewhere, and does not wait for its own timeouts. Paths that fail
//! are often back within moments, so nothing is said before some time has passed. The answer comes from the packet's
//! destination, as that to packets which are [too big](super::too_big).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use mpt_proto::wire::{icmp, inner};
use mpt_proto::{ConnectionId, Instant, TokenBucket};

/// So long packets are dropped without an answer.
const SILENT: Duration = Duration::from_secs(2);

/// Answers in a burst, and how often one more.
const BURST: u32 = 50;
const INTERVAL: Duration = Duration::from_millis(1);

/// The connections without a path, and the answers.
pub(super) struct Dark {
    /// Since when no path can be used.
    since: HashMap<ConnectionId, Instant>,
    answers: TokenBucket,
}

impl Default for Dark {
    fn default() -> Self {
        Self { since: HashMap::new(), answers: TokenBucket::new(BURST, INTERVAL) }
    }
}

impl Dark {
    /// The paths of a connection have changed: one of them can be used, or none, or the connection is gone.
    pub(super) fn note(&mut self, now: Instant, connection: ConnectionId, usable: bool) {
        if usable {
            self.since.remove(&connection);
        } else {
            self.since.entry(connection).or_insert(now);
        }
    }

    /// A packet of this connection is dropped. Sends its sender an ICMP message if that is due, by calling `write`
    /// with it. Returns whether that was done.
    #[cold]
    pub(super) fn answer(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        packet: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> bool {
        // A connection may never have had a path, or have lost it by a command.
        let since = *self.since.entry(connection).or_insert(now);
        if now.since(since) < SILENT {
            return false;
        }
        let mut place = [0; icmp::MAX_LEN];
        let Some(inner) = inner::parse(packet) else { return false };
        let len = icmp::unreachable(packet, inner.destination, &mut place);
        len.is_some_and(|len| self.answers.take(now) && write(&place[..len]).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn senders_are_told_after_a_while_and_not_too_often() {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64).udp(7, 9);
        builder.write(&mut packet, &[0; 100]).unwrap();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let (mut dark, mut told) = (Dark::default(), Vec::new());
        let mut answer = |dark: &mut Dark, millis, connection| {
            dark.answer(at(millis), ConnectionId(connection), &packet, |answer| {
                told = answer.to_vec();
                Ok(())
            })
        };
        assert!(
            !answer(&mut dark, 0, 0) && !answer(&mut dark, 1999, 0),
            "it may be back in a moment"
        );
        assert!(!answer(&mut dark, 1999, 1), "each connection has its own time");
        assert!(answer(&mut dark, 2000, 0));
        let answered = (0..1000).filter(|_| answer(&mut dark, 2000, 0)).count();
        assert!(answered < BURST as usize);
        dark.note(at(8000), ConnectionId(0), true);
        assert!(!answer(&mut dark, 9000, 0), "a path was up meanwhile");
        dark.note(at(20_000), ConnectionId(0), true);
        dark.note(at(20_000), ConnectionId(0), false);
        dark.note(at(21_000), ConnectionId(0), false);
        assert!(answer(&mut dark, 22_000, 0), "a single packet is enough");
        assert_eq!(told[20..22], [3, 1], "host unreachable");
        assert_eq!((&told[12..16], &told[16..20]), (&[10, 9, 0, 2][..], &[10, 9, 0, 1][..]));
    }
}
