//! Rests from datagrams of strangers: those that belong to no connection.
//!
//! Somebody who sends more slowly than this host receives wakes it up for every datagram, and a wake-up costs more than the
//! datagram, which is dropped. Packets of peers are worth that. So after several wake-ups in quick succession that brought
//! nothing but datagrams of strangers, the next ones gather for a moment in the socket's buffer, and are dropped together.
//! That ends with the first datagram of a peer, which has waited for that moment at the most.

use std::time::Duration;

use mpt_proto::Instant;

/// After so many wake-ups within [`WITHIN`] there is a rest: from 20,000 of them per second on.
const WAKE_UPS: u32 = 8;
const WITHIN: Duration = Duration::from_micros(400);

/// How long that is. The kernel may add 50 µs.
const REST: Duration = Duration::from_micros(100);

/// A rest in which fewer datagrams have gathered was not worth it.
const WORTH: usize = 4;

/// What the wake-ups brought lately.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// Wake-ups since then that brought nothing but datagrams of strangers.
    wake_ups: u32,
    since: Instant,
    /// Datagrams of this wake-up.
    of_strangers: usize,
    of_peers: usize,
    /// Whether a rest came before this wake-up.
    rested: bool,
}

impl Strangers {
    /// Datagrams arrived, of which so many are of peers.
    pub(super) fn note(&mut self, datagrams: usize, of_peers: usize) {
        self.of_strangers += datagrams - of_peers;
        self.of_peers += of_peers;
    }

    /// How long to rest after this wake-up, if at all.
    pub(super) fn rest(&mut self, now: Instant) -> Option<Duration> {
        let (of_strangers, of_peers) = (self.of_strangers, self.of_peers);
        (self.of_strangers, self.of_peers) = (0, 0);
        if of_peers > 0 {
            (self.wake_ups, self.rested) = (0, false);
        }
        if of_peers > 0 || of_strangers == 0 {
            return None;
        }
        if self.rested {
            self.rested = of_strangers >= WORTH;
        } else {
            if self.wake_ups == 0 || now.since(self.since) > WITHIN {
                (self.wake_ups, self.since) = (0, now);
            }
            self.wake_ups += 1;
            self.rested = self.wake_ups >= WAKE_UPS;
        }
        if self.rested {
            self.wake_ups = 0;
        }
        self.rested.then_some(REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// The rest after a wake-up at this time, with so many datagrams of strangers and of peers.
    fn wake_up(strangers: &mut Strangers, micros: u64, count: usize, peers: usize) -> bool {
        strangers.note(count + peers, peers);
        strangers.rest(at(micros)).is_some()
    }

    /// After a wake-up every 10 µs by strangers, whether there was a rest after the last one.
    fn flooded() -> Strangers {
        let mut strangers = Strangers::default();
        let rests: Vec<bool> =
            (0..8).map(|count| wake_up(&mut strangers, 10 * count, 1, 0)).collect();
        assert_eq!(rests.iter().position(|rest| *rest), Some(7), "{rests:?}");
        strangers
    }

    #[test]
    fn a_flood_is_rested_from_as_long_as_it_lasts() {
        let mut strangers = flooded();
        assert!(wake_up(&mut strangers, 200, 20, 0));
        assert!(!wake_up(&mut strangers, 210, 0, 0), "a timer, or a packet to be sent");
        assert!(wake_up(&mut strangers, 400, 4, 0));
        assert!(!wake_up(&mut strangers, 600, 3, 0), "hardly anybody came");
        assert!(!wake_up(&mut strangers, 800, 20, 0));
    }

    #[test]
    fn a_peer_ends_the_rests() {
        let mut strangers = flooded();
        assert!(!wake_up(&mut strangers, 200, 20, 1));
        for count in 0..7 {
            assert!(!wake_up(&mut strangers, 210 + 10 * count, 1, 0));
        }
        assert!(!wake_up(&mut strangers, 290, 1, 1));
        assert!(!wake_up(&mut strangers, 300, 1, 0));
    }

    #[test]
    fn strangers_who_come_one_by_one_do_not_delay_anything() {
        let mut strangers = Strangers::default();
        for count in 0..1000 {
            assert!(!wake_up(&mut strangers, 60 * count, 1, 0), "{count}");
        }
    }
}
