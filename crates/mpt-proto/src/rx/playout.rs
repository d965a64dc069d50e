//! Packets of bulk flows that wait until all of their flow have taken equally long, whichever path they came by: the
//! sender wants it (flag E; see `tx/equalise.rs`).
//!
//! It is the last thing on the way of a packet: it is in order already.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::sink::{Held, Sink};
use crate::stats::Traffic;
use crate::time::Instant;

/// Nothing waits longer, whatever the peer says.
const LONGEST: Duration = Duration::from_millis(400);

/// As many packets wait at most: 300 ms of 500 Mbit/s.
const MOST: usize = 16_384;

/// Packets leave up to so much early, so that one wake-up serves several.
const GATHER: Duration = Duration::from_micros(500);

/// The packets that wait, and how long they do.
#[derive(Debug, Default)]
pub(super) struct PlayOut {
    /// How much longer than the least of the fastest path packets are to take, and when that was said, by the clock of
    /// the peer in microseconds.
    equal: Option<NonZeroU32>,
    told: Option<u32>,
    /// The present, and until when the packet waits that is being received.
    now: Instant,
    current: Option<Instant>,
    /// In the order in which they leave.
    waiting: VecDeque<(Instant, Held)>,
    /// The same of the packets that wait for others first, by their numbers.
    held: Vec<Option<Instant>>,
}

impl PlayOut {
    /// Bytes of memory apart from its own size, and from the packets.
    pub(super) fn memory(&self) -> usize {
        self.waiting.capacity() * size_of::<(Instant, Held)>()
            + self.held.capacity() * size_of::<Option<Instant>>()
    }

    /// Gives back memory. No packet is held by the order.
    pub(super) fn shrink(&mut self) {
        self.held = Vec::new();
        self.waiting.shrink_to(0);
    }

    /// The peer said at `sent` of its clock what it wants.
    pub(super) fn set(&mut self, sent: u32, equal: Option<NonZeroU32>) {
        let is_newer = |told: u32| sent.wrapping_sub(told).cast_signed() > 0;
        if self.told.is_none_or(is_newer) {
            (self.told, self.equal) = (Some(sent), equal);
        }
    }

    /// How much longer than the least of the fastest path a packet with the flag is to take.
    pub(super) fn equal(&self) -> Option<Duration> {
        self.equal.map(|equal| Duration::from_micros(equal.get().into()))
    }

    /// The next packet is to wait for so long, and behind those that wait if it has the flag; `None` if it has not.
    pub(super) fn begin(&mut self, now: Instant, wait: Option<Duration>) {
        self.current = wait.map(|wait| now + wait.min(LONGEST));
        self.now = now;
    }

    /// When the first leaves.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// Lets those go whose time it is.
    pub(super) fn release(&mut self, now: Instant, sink: &mut impl Sink, delivered: &mut Traffic) {
        self.now = now;
        while let Some(&(_, held)) = self.waiting.front().filter(|(due, _)| *due <= now + GATHER) {
            self.waiting.pop_front();
            delivered.add(sink.deliver_held(held));
        }
    }

    /// Lets all go, and wants nothing more: the session is another, or the connection ends.
    pub(super) fn end(&mut self, sink: &mut impl Sink, delivered: &mut Traffic) {
        for (_, held) in self.waiting.drain(..) {
            delivered.add(sink.deliver_held(held));
        }
        *self = Self::default();
    }

    /// Whether a packet that is due then waits at all.
    fn waits(&self, due: Instant) -> bool {
        due > self.now + GATHER || !self.waiting.is_empty()
    }

    fn push(&mut self, due: Instant, held: Held) {
        let last = self.waiting.back().map(|(last, _)| *last);
        self.waiting.push_back((last.map_or(due, |last| due.max(last)), held));
    }
}

/// Has what is in order wait where it is to, and counts what is delivered on its way to the sink.
pub(super) struct Delivery<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) delivered: &'a mut Traffic,
    pub(super) play_out: &'a mut PlayOut,
}

/// The delivery of a receive half into a sink.
macro_rules! delivery {
    ($half:expr, $sink:expr) => {
        crate::rx::playout::Delivery {
            sink: &mut *$sink,
            delivered: &mut $half.delivered,
            play_out: &mut $half.play_out,
        }
    };
}
pub(super) use delivery;

impl<S: Sink> Delivery<'_, S> {
    #[cold]
    fn play_out(&mut self, due: Instant, packet: &[u8]) {
        if self.play_out.waiting.len() < MOST
            && let Some(held) = self.sink.hold(packet)
        {
            return self.play_out.push(due, held);
        }
        // There is no room. Those that wait were sent before.
        for (_, held) in self.play_out.waiting.drain(..) {
            self.delivered.add(self.sink.deliver_held(held));
        }
        self.delivered.add(packet.len());
        self.sink.deliver(packet);
    }
}

impl<S: Sink> Sink for Delivery<'_, S> {
    #[inline]
    fn deliver(&mut self, packet: &[u8]) {
        if let Some(due) = self.play_out.current.filter(|due| self.play_out.waits(*due)) {
            return self.play_out(due, packet);
        }
        self.delivered.add(packet.len());
        self.sink.deliver(packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        let held = self.sink.hold(packet)?;
        let (index, current) = (held.0 as usize, self.play_out.current);
        if current.is_some() && self.play_out.held.len() <= index {
            self.play_out.held.resize(index + 1, None);
        }
        if let Some(due) = self.play_out.held.get_mut(index) {
            *due = current;
        }
        Some(held)
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let due = self.play_out.held.get_mut(held.0 as usize).and_then(Option::take);
        if let Some(due) = due.filter(|due| self.play_out.waits(*due)) {
            self.play_out.push(due, held);
            return 0;
        }
        let len = self.sink.deliver_held(held);
        self.delivered.add(len);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets by their only byte, as they were delivered.
    #[derive(Default)]
    struct Got {
        got: Vec<u8>,
        held: Vec<u8>,
        is_full: bool,
    }

    impl Sink for Got {
        fn deliver(&mut self, packet: &[u8]) {
            self.got.extend_from_slice(packet);
        }

        fn hold(&mut self, packet: &[u8]) -> Option<Held> {
            if self.is_full {
                return None;
            }
            self.held.extend_from_slice(packet);
            Some(Held(self.held.len() as u32 - 1))
        }

        fn deliver_held(&mut self, held: Held) -> usize {
            self.got.push(self.held[held.0 as usize]);
            1
        }
    }

    #[derive(Default)]
    struct Half {
        play_out: PlayOut,
        delivered: Traffic,
        sink: Got,
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    impl Half {
        /// A packet comes that is in order, or is held by the order, and is to wait for so long if it has the flag.
        fn arrive(&mut self, now: u64, wait: Option<u64>, packet: u8, in_order: bool) -> Held {
            self.play_out.begin(at(now), wait.map(Duration::from_millis));
            let mut out = delivery!(self, &mut self.sink);
            if !in_order {
                return out.hold(&[packet]).expect("room");
            }
            out.deliver(&[packet]);
            Held(u32::MAX)
        }

        fn pass(&mut self, now: u64) -> &[u8] {
            self.play_out.release(at(now), &mut self.sink, &mut self.delivered);
            &self.sink.got
        }
    }

    #[test]
    fn packets_wait_for_their_time_and_others_do_not() {
        let mut half = Half::default();
        half.arrive(0, Some(50), 1, true);
        half.arrive(1, None, 2, true);
        half.arrive(2, Some(0), 3, true);
        assert_eq!(half.sink.got, [2], "3 is of a flow of which 1 waits");
        assert_eq!(half.play_out.deadline(), Some(at(50)));
        assert_eq!(half.pass(49), [2]);
        assert_eq!(half.pass(50), [2, 1, 3]);
        assert_eq!((half.delivered.packets, half.play_out.deadline()), (3, None));
        half.arrive(60, Some(0), 4, true);
        assert_eq!(half.sink.got, [2, 1, 3, 4]);
    }

    #[test]
    fn what_was_held_by_the_order_waits_for_its_own_time() {
        let mut half = Half::default();
        let held = half.arrive(0, Some(50), 2, false);
        half.arrive(30, Some(10), 1, true);
        delivery!(half, &mut half.sink).deliver_held(held);
        assert_eq!(half.pass(45), [1]);
        assert_eq!(half.pass(50), [1, 2]);
        let held = half.arrive(60, None, 3, false);
        assert_eq!(delivery!(half, &mut half.sink).deliver_held(held), 1, "it has no time");
    }

    #[test]
    fn without_room_and_at_the_end_all_leave_in_order() {
        let mut half = Half::default();
        half.arrive(0, Some(50), 1, true);
        half.sink.is_full = true;
        half.arrive(1, Some(50), 2, true);
        assert_eq!(half.sink.got, [1, 2]);
        half.sink.is_full = false;
        half.arrive(2, Some(9999), 3, true);
        assert_eq!(half.play_out.deadline(), Some(at(2) + LONGEST));
        half.play_out.end(&mut half.sink, &mut half.delivered);
        assert_eq!((half.sink.got, half.delivered.packets), (vec![1, 2, 3], 3));
    }

    #[test]
    fn the_newest_word_of_the_peer_counts() {
        let mut play_out = PlayOut::default();
        play_out.set(u32::MAX, NonZeroU32::new(7000));
        play_out.set(5, NonZeroU32::new(9000));
        play_out.set(u32::MAX - 1, None);
        assert_eq!(play_out.equal(), Some(Duration::from_millis(9)));
    }
}
