//! How the original puts packets in order, with all its peculiarities.
//!
//! Numbers are compared as they are, so a packet is behind or far ahead as 32 bits say. One that is
//! behind is late, unless its number is 50 or less: then the peer must have started again. One that is
//! far ahead takes everything with it. Nothing is known of paths: behind a gap all wait for the delay.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The highest number by which a restart of the peer is recognised.
const FIRST: u32 = 50;

#[derive(Debug)]
pub(super) struct Reorder {
    window: u32,
    delay: Duration,
    next: u32,
    held: BTreeMap<u32, Held>,
    /// Of each path, where in its memory of `window` packets the next one goes.
    places: Vec<u32>,
    /// Packets that came too late.
    pub(super) late: u64,
    /// Restarts of the peer, or what looked like one.
    pub(super) restarts: u64,
}

#[derive(Debug)]
struct Held {
    since: Instant,
    /// The path and the place in its memory.
    memory: (usize, u32),
    packet: Vec<u8>,
}

impl Reorder {
    pub(super) fn new(window: u32, delay: Duration, paths: usize) -> Self {
        let (held, places) = (BTreeMap::new(), vec![0; paths]);
        Self { window, delay, next: 0, held, places, late: 0, restarts: 0 }
    }

    /// Takes in a packet. What can be delivered goes to `out`.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        path: usize,
        number: u32,
        packet: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) {
        if number < self.next && number > FIRST {
            self.late += 1;
            return;
        }
        let is_behind = number < self.next;
        if is_behind || number >= self.next.wrapping_add(self.window) {
            self.restarts += u64::from(is_behind);
            self.deliver_all(out);
            self.next = number;
        }
        if self.held.contains_key(&number) {
            self.deliver_all(out);
            return;
        }
        let place = &mut self.places[path];
        let memory = (path, *place);
        *place = (*place + 1) % self.window;
        let following = (path, *place);
        self.held.insert(number, Held { since: now, memory, packet: packet.to_vec() });
        self.deliver_run(out);
        if self.held.values().any(|held| held.memory == following) {
            self.deliver_all(out);
        }
    }

    /// The timer: nothing is held longer than the delay, and nothing before it.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let expired = |held: &Held| now.duration_since(held.since) > self.delay;
        let newest = self.held.iter().rev().find(|(_, held)| expired(held));
        let Some((&newest, _)) = newest else { return };
        let held = std::mem::take(&mut self.held).into_iter();
        let (due, rest) = held.partition(|&(number, _)| number <= newest);
        self.held = due;
        self.deliver_all(out);
        self.held = rest;
        self.deliver_run(out);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn deliver_run(&mut self, out: &mut Vec<Vec<u8>>) {
        while let Some(held) = self.held.remove(&self.next) {
            out.push(held.packet);
            self.next = self.next.wrapping_add(1);
        }
    }

    fn deliver_all(&mut self, out: &mut Vec<Vec<u8>>) {
        for (number, held) in std::mem::take(&mut self.held) {
            out.push(held.packet);
            self.next = number.wrapping_add(1);
        }
    }
}

/// What the document says of each rule.
pub(super) fn rules() {
    let start = Instant::now();
    let delay = Duration::from_millis(300);
    // The numbers of which packets are delivered at once, as each comes over the path.
    let deliver = |reorder: &mut Reorder, now, path, number: u32| -> Vec<u32> {
        let mut out = Vec::new();
        reorder.receive(now, path, number, &number.to_be_bytes(), &mut out);
        out.iter().map(|packet| u32::from_be_bytes(packet[..].try_into().expect("4"))).collect()
    };
    let new = |next, window| Reorder { next, ..Reorder::new(window, delay, 2) };
    let none: &[u32] = &[];

    let mut reorder = new(0, 100);
    assert_eq!(deliver(&mut reorder, start, 0, 0), [0]);
    assert_eq!(deliver(&mut reorder, start, 1, 2), none);
    assert_eq!(deliver(&mut reorder, start, 0, 1), [1, 2], "in order");
    assert_eq!(deliver(&mut reorder, start, 0, 5), none);
    assert_eq!(deliver(&mut reorder, start, 0, 5), [5], "a copy of what is held");

    let mut reorder = new(1000, 100);
    assert_eq!((deliver(&mut reorder, start, 0, 51), reorder.late), (vec![], 1), "late");
    assert_eq!(deliver(&mut reorder, start, 0, 1001), none);
    assert_eq!((deliver(&mut reorder, start, 0, 50), reorder.restarts), (vec![1001, 50], 1));
    assert_eq!(deliver(&mut reorder, start, 0, 51), [51], "the peer has started again");
    assert_eq!(deliver(&mut reorder, start, 0, 151), none, "just within");
    assert_eq!(deliver(&mut reorder, start, 0, 152), [151, 152], "too big");

    let mut reorder = new(u32::MAX - 9, 100);
    assert_eq!(deliver(&mut reorder, start, 0, u32::MAX), [u32::MAX], "no order before the wrap");

    let mut reorder = new(0, 3);
    assert_eq!(deliver(&mut reorder, start, 0, 2), none);
    assert_eq!(deliver(&mut reorder, start, 0, 0), [0]);
    assert_eq!(deliver(&mut reorder, start, 0, 3), [2, 3], "the path's memory is full");

    let mut reorder = new(0, 100);
    let (soon, later) = (start + delay / 2, start + delay + delay / 4);
    assert_eq!(deliver(&mut reorder, start, 0, 3), none);
    assert_eq!(deliver(&mut reorder, soon, 0, 1), none);
    assert_eq!(deliver(&mut reorder, soon, 0, 4), none);
    assert_eq!(deliver(&mut reorder, soon, 0, 7), none);
    let mut out = Vec::new();
    reorder.tick(soon, &mut out);
    assert!(out.is_empty());
    reorder.tick(later, &mut out);
    let expected = [1, 3, 4].map(|number: u32| number.to_be_bytes().to_vec());
    assert_eq!(out, expected, "up to the expired one, and the run behind it");
    assert!(!reorder.is_empty());
}
