//! What is outstanding, and what is known of each segment of it.

use std::collections::{BTreeSet, VecDeque};

use mpt_proto::Instant;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it was last sent.
    pub(super) sent: Instant,
    /// The number of that transmission.
    pub(super) transmission: u64,
    /// How many segments had been delivered then.
    pub(super) delivered: u64,
    /// The receiver has received it.
    pub(super) arrived: bool,
    /// It is taken for lost, be it sent again or not.
    pub(super) lost: bool,
    /// It was sent again, and that is under way.
    pub(super) again: bool,
    /// It was ever sent again.
    pub(super) ever_again: bool,
}

/// Outstanding segments in order, and counts of what is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// The first outstanding segment.
    first: u64,
    entries: VecDeque<Entry>,
    arrived: u64,
    lost: u64,
    again: u64,
    /// Lost segments that have not been sent again.
    to_send: BTreeSet<u64>,
    /// Transmissions in the order of sending; those overtaken by events are skipped when found.
    by_time: VecDeque<(u64, u64)>,
    transmissions: u64,
    /// One beyond the highest segment that has arrived.
    highest_arrived: u64,
}

impl Scoreboard {
    /// The first outstanding segment: all below are acknowledged.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The next segment to be sent for the first time.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Segments believed to be on the wire.
    pub(super) fn in_flight(&self) -> u64 {
        (self.outstanding() + self.again).saturating_sub(self.arrived + self.lost)
    }

    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn again(&self) -> u64 {
        self.again
    }

    pub(super) fn highest_arrived(&self) -> u64 {
        self.highest_arrived
    }

    pub(super) fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn entry_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The first lost segment that has not been sent again.
    pub(super) fn next_lost(&self) -> Option<u64> {
        self.to_send.first().copied()
    }

    /// Sends a segment for the first time; returns its number.
    pub(super) fn send(&mut self, now: Instant, delivered: u64) -> u64 {
        let number = self.next();
        let transmission = self.transmit(number);
        let (arrived, lost, again, ever_again) = (false, false, false, false);
        self.entries.push_back(Entry {
            sent: now,
            transmission,
            delivered,
            arrived,
            lost,
            again,
            ever_again,
        });
        number
    }

    /// Sends an outstanding segment again.
    pub(super) fn send_again(&mut self, now: Instant, number: u64, delivered: u64) {
        let transmission = self.transmit(number);
        self.to_send.remove(&number);
        let Some(entry) = self.entry_mut(number) else { return };
        let first_time = !entry.again;
        *entry =
            Entry { sent: now, transmission, delivered, again: true, ever_again: true, ..*entry };
        self.again += u64::from(first_time);
    }

    fn transmit(&mut self, number: u64) -> u64 {
        let transmission = self.transmissions;
        self.transmissions += 1;
        self.by_time.push_back((transmission, number));
        transmission
    }

    /// Forgets the first outstanding segment, because it is acknowledged with all before it.
    pub(super) fn acknowledge_first(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.to_send.remove(&self.first);
        self.first += 1;
        self.arrived -= u64::from(entry.arrived);
        self.lost -= u64::from(entry.lost);
        self.again -= u64::from(entry.again);
        Some(entry)
    }

    /// The receiver has a segment beyond a gap; returns what was known before, if that is new.
    pub(super) fn on_arrived(&mut self, number: u64) -> Option<Entry> {
        let before = *self.entry(number).filter(|entry| !entry.arrived)?;
        let entry = self.entry_mut(number)?;
        entry.arrived = true;
        if before.lost {
            entry.lost = false;
            entry.again = false;
            self.lost -= 1;
            self.again -= u64::from(before.again);
            self.to_send.remove(&number);
        }
        self.arrived += 1;
        self.highest_arrived = self.highest_arrived.max(number + 1);
        Some(before)
    }

    /// A repeated transmission turned out needless.
    pub(super) fn on_needless(&mut self, number: u64) {
        let Some(entry) = self.entry_mut(number) else { return };
        let was_under_way = std::mem::take(&mut entry.again);
        let waits = entry.lost && was_under_way;
        self.again -= u64::from(was_under_way);
        if waits {
            self.to_send.insert(number);
        }
    }

    /// Takes a segment for lost, or its repetition.
    pub(super) fn mark_lost(&mut self, number: u64) {
        let Some(entry) = self.entry_mut(number) else { return };
        let (was_lost, was_again) = (entry.lost, entry.again);
        entry.lost = true;
        entry.again = false;
        self.lost += u64::from(!was_lost);
        self.again -= u64::from(was_again);
        self.to_send.insert(number);
    }

    /// Nothing is taken for lost any more.
    pub(super) fn unmark_all(&mut self) {
        for entry in &mut self.entries {
            entry.lost = false;
        }
        self.lost = 0;
        self.to_send.clear();
    }

    /// Outstanding segments that have not arrived.
    pub(super) fn missing(&self) -> Vec<(u64, Entry)> {
        let numbered = (self.first..).zip(&self.entries);
        numbered
            .filter(|(_, entry)| !entry.arrived)
            .map(|(number, entry)| (number, *entry))
            .collect()
    }

    /// Visits, in the order of sending, transmissions that have neither arrived nor are lost, until
    /// `visit` returns false; marks those lost for which it requests it.
    pub(super) fn visit_by_time(&mut self, mut visit: impl FnMut(u64, &Entry) -> Visit) -> u64 {
        let mut marked = 0;
        let mut at = 0;
        while let Some(&(transmission, number)) = self.by_time.get(at) {
            let current = self.entry(number).copied().filter(|entry| {
                entry.transmission == transmission && !entry.arrived && (!entry.lost || entry.again)
            });
            let Some(entry) = current else {
                if at == 0 {
                    self.by_time.pop_front();
                } else {
                    at += 1;
                }
                continue;
            };
            match visit(number, &entry) {
                Visit::Stop => break,
                Visit::Next => at += 1,
                Visit::Lost => {
                    self.mark_lost(number);
                    marked += 1;
                    at += 1;
                }
            }
        }
        marked
    }
}

/// What is to happen with a transmission that was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    /// It is lost; go on.
    Lost,
    /// Go on.
    Next,
    /// Look no further.
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flight_size_follows_from_the_scoreboard() {
        let mut board = Scoreboard::default();
        for _ in 0..6 {
            board.send(Instant::ZERO, 0);
        }
        assert_eq!((board.next(), board.in_flight()), (6, 6));
        assert!(board.on_arrived(3).is_some() && board.on_arrived(3).is_none());
        board.mark_lost(0);
        board.mark_lost(1);
        assert_eq!((board.in_flight(), board.next_lost()), (3, Some(0)));
        board.send_again(Instant::ZERO, 0, 0);
        assert_eq!((board.in_flight(), board.next_lost()), (4, Some(1)));
        assert!(board.on_arrived(1).is_some(), "it was only late");
        assert_eq!((board.in_flight(), board.next_lost()), (4, None));
        while board.first() < 4 {
            board.acknowledge_first();
        }
        assert_eq!((board.in_flight(), board.lost(), board.arrived(), board.again()), (2, 0, 0, 0));
    }

    #[test]
    fn transmissions_are_visited_in_the_order_of_sending() {
        let mut board = Scoreboard::default();
        for _ in 0..4 {
            board.send(Instant::ZERO, 0);
        }
        board.mark_lost(0);
        board.send_again(Instant::ZERO, 0, 0);
        board.on_arrived(2);
        let mut seen = Vec::new();
        let marked = board.visit_by_time(|number, _| {
            seen.push(number);
            if number == 3 { Visit::Lost } else { Visit::Next }
        });
        assert_eq!((seen, marked), (vec![1, 3, 0], 1));
        assert_eq!(board.next_lost(), Some(3));
    }
}
