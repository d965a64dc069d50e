use super::*;
use crate::framing::datagram::Item;
use crate::framing::extended::tx::{Tx, WirePath};
use crate::tx::repair::Overtaken;
use crate::wire::extended::feedback::Range as Received;
use crate::wire::inner;

const CONNECTION: ConnectionId = ConnectionId(3);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// What sends, and what keeps it.
struct Bench {
    store: Unacknowledged,
    framing: Tx,
    paths: [WirePath; 2],
}

impl Bench {
    fn new() -> Self {
        let paths = [1, 2].map(|id| WirePath { id, next: u32::MAX - 3 });
        Self { store: Unacknowledged::default(), framing: Tx::new(1, false, false), paths }
    }

    /// Sends a packet of so many bytes that begins with an IPv4 header and ends with a mark.
    fn send(&mut self, now: Instant, path: u8, len: usize, mark: u8) {
        let mut packet = vec![0; len];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[len - 1] = mark;
        let inner = inner::parse(&packet).expect("a packet");
        let item = Item::new(&packet, &inner);
        let stamp = self.framing.stamp(now, &item, &mut self.paths[usize::from(path)]);
        let sent = Sent {
            at: now,
            connection: CONNECTION,
            path: PathId(path),
            tos: 0,
            stamp: Stamp::Extended(stamp),
        };
        if self.store.allows(now, len) {
            self.store.put(sent, None, &packet);
        }
    }

    /// The marks of what is lost of a path, where so many of the first were received, then so many were not.
    fn told(&mut self, path: u8, received: u16, missing: u16) -> Vec<u8> {
        let first = u32::MAX - 3;
        let resolved = first.wrapping_add(u32::from(received + missing));
        let mut block = Block { highest: resolved, resolved, ..Block::default() };
        block.below = received + missing;
        assert!(block.ranges.push(Received { missing: 0, received: 1 }));
        assert!(block.ranges.push(Received { missing, received }));
        let mut lost = Vec::new();
        self.store.on_report(CONNECTION, PathId(path), &block, &mut lost, |_, _| ());
        self.marks(&lost)
    }

    fn marks(&self, lost: &[Place]) -> Vec<u8> {
        let packets = lost.iter().filter_map(|place| self.store.get(*place));
        packets.map(|(_, packet)| *packet.last().unwrap()).collect()
    }
}

#[test]
fn what_feedback_tells_to_be_lost_is_given_out_once() {
    let mut bench = Bench::new();
    (0..10).for_each(|mark| bench.send(at(0), 0, 1000, mark));
    (10..13).for_each(|mark| bench.send(at(0), 1, 1000, mark));
    assert_eq!(bench.told(0, 4, 2), [4, 5]);
    assert_eq!(bench.told(0, 4, 2), [], "it is known");
    assert_eq!(bench.told(1, 0, 1), [10], "each path has its own");
    let mut left = Vec::new();
    bench.store.on_left(CONNECTION, PathId(0), &mut left);
    assert_eq!(bench.marks(&left), [6, 7, 8, 9]);
    bench.store.forget(CONNECTION);
    assert_eq!(bench.told(1, 0, 3), []);
    assert_eq!(bench.store.stats().forgotten, 0);
}

#[test]
fn what_was_overtaken_by_much_is_taken_to_be_lost_once() {
    let mut bench = Bench::new();
    (0..10).for_each(|mark| bench.send(at(10 * u64::from(mark)), 0, 1000, mark));
    let mut overtaken = Overtaken::default();
    overtaken.set(0.03, Duration::from_millis(5));
    // Received are the first two, and the last of these; what is missing between them may still come.
    let mut told = |bench: &mut Bench, highest: u32, received: &[(u16, u16)]| {
        let first = u32::MAX - 3;
        let highest = first.wrapping_add(highest);
        let resolved = first.wrapping_add(2);
        let mut block = Block { highest, resolved, below: 2, ..Block::default() };
        for &(missing, received) in received {
            assert!(block.ranges.push(Received { missing, received }));
        }
        let mut late = Vec::new();
        let (path, overtaken) = (PathId(0), &mut overtaken);
        let needless = bench.store.on_missing(CONNECTION, path, &block, overtaken, &mut late);
        late.iter().for_each(|place| bench.store.take_for_lost(*place));
        (bench.marks(&late), needless)
    };
    assert_eq!(told(&mut bench, 4, &[(0, 1), (2, 2)]), (vec![], 0), "20 ms are usual");
    assert_eq!(told(&mut bench, 6, &[(0, 3), (2, 2)]), (vec![2, 3], 0), "sent 40 and 30 ms before");
    assert_eq!(told(&mut bench, 7, &[(0, 4), (2, 2)]), (vec![], 0), "once");
    assert_eq!(told(&mut bench, 8, &[(0, 6), (1, 2)]), (vec![], 1), "one of them was late");
    assert_eq!(bench.told(0, 2, 1), [2], "the other one is lost");
    let mut left = Vec::new();
    bench.store.on_left(CONNECTION, PathId(0), &mut left);
    assert_eq!(bench.marks(&left), [9], "what has arrived is not missed");
}

#[test]
fn nothing_is_overwritten_that_may_still_be_needed() {
    let mut bench = Bench::new();
    // Everything is acknowledged at first, so that the ring stays small, and then nothing.
    for mark in 0..100 {
        bench.send(at(mark), 0, 1400, 0);
        bench.told(0, mark as u16 + 1, 0);
    }
    assert!(bench.store.memory() < 200_000, "{}", bench.store.memory());
    (0..1000).for_each(|mark| bench.send(at(100), 0, 1400, (mark % 250) as u8));
    let mut left = Vec::new();
    bench.store.on_left(CONNECTION, PathId(0), &mut left);
    let expected: Vec<u8> = (0..1000).map(|mark| (mark % 250) as u8).collect();
    assert_eq!(bench.marks(&left), expected);
    assert_eq!(bench.store.stats().forgotten, 0);
}

#[test]
fn bounds_hold_and_what_they_cost_is_counted() {
    let mut bench = Bench::new();
    let packets = 100_000;
    // 1.9 Gbit/s.
    (0..packets).for_each(|packet| bench.send(at(packet / 170), 0, 1400, 1));
    let StoreStats { packets: kept, bytes, forgotten } = bench.store.stats();
    assert!(kept <= MOST as u64 && bytes <= CAPACITY as u64, "{kept}, {bytes}");
    assert!(bytes > CAPACITY as u64 / 2, "{bytes}");
    assert_eq!(kept + forgotten, packets);
    // Small ones: their number is bounded, too.
    (0..packets).for_each(|_| bench.send(at(packets / 170 + 1), 1, 40, 1));
    assert!(bench.store.stats().packets <= MOST as u64);
    assert!(bench.store.memory() < CAPACITY + 8 * MOST * size_of::<Entry>());
}

#[test]
fn nothing_is_kept_while_more_is_sent_than_may_be() {
    let mut store = Unacknowledged::default();
    // What is kept of so many packets per millisecond, in percent.
    let mut kept = |from: u64, to: u64, each: usize| {
        let packets = (from..to).flat_map(|now| (0..each).map(move |_| at(now)));
        let kept = packets.filter(|&now| store.allows(now, 1400)).count();
        100 * kept / ((to - from) as usize * each)
    };
    assert_eq!(kept(0, 500, 150), 100, "1.7 Gbit/s");
    assert!(kept(500, 600, 1000) < 20, "11 Gbit/s, which has to be noticed");
    assert_eq!(kept(600, 1000, 1000), 0);
    assert_eq!(kept(1000, 1062, 150), 0, "it was more a moment ago");
    assert_eq!(kept(1140, 1400, 150), 100);
    assert!(kept(1400, 1500, 1000) < 20);
    assert_eq!(kept(1700, 1710, 150), 100, "after a pause");
}
