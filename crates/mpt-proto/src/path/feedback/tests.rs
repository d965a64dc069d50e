use super::*;

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// The peer's clock is ahead of ours by so many microseconds.
const OFFSET: u32 = u32::MAX - 1_000_000;

/// How long a datagram takes to the peer, how long the peer waits, and how long feedback takes, in microseconds.
const THERE: u64 = 30_000;
const HELD: u64 = 2_000;
const BACK: u64 = 10_000;

/// A path to a peer that sends feedback.
#[derive(Default)]
struct Path {
    feedback: PathFeedback,
    number: u16,
    block: Block,
}

impl Path {
    /// At `sent` of our clock the last of `received` more datagrams of 1000 bytes is sent, one per millisecond; so many
    /// more were lost.
    fn feed(&mut self, sent: u64, received: u32, lost: i32) -> bool {
        let arrived = OFFSET.wrapping_add((sent + THERE) as u32);
        let block = &mut self.block;
        block.highest = block.highest.wrapping_add(received).wrapping_add_signed(lost);
        block.highest_sent = sent as u32;
        block.highest_arrived = arrived;
        block.received = block.received.wrapping_add(received);
        block.received_bytes += u64::from(received) * 1000;
        block.lost = block.lost.wrapping_add_signed(lost);
        block.first_arrived = arrived.wrapping_sub((received - 1) * 1000);
        block.bytes_after_first = (received - 1) * 1000;
        block.delay_min = OFFSET.wrapping_add(THERE as u32);
        block.delay_deviation = 500;
        self.number = self.number.wrapping_add(1);
        self.tell(sent)
    }

    /// The same again.
    fn tell(&mut self, sent: u64) -> bool {
        let written = self.block.highest_arrived.wrapping_add(HELD as u32);
        let header = Header { number: self.number, written };
        let now = at(sent + THERE + HELD + BACK);
        self.feedback.on_feedback(now, header, &self.block, self.block.highest, false)
    }
}

#[test]
fn counts_and_times_are_those_of_the_peer() {
    let mut path = Path { number: u16::MAX - 3, ..Path::default() };
    path.block.received = u32::MAX - 30;
    path.feedback.last =
        Some((path.number, Counters { received: u32::MAX - 30, ..Counters::default() }));
    for n in 1..=10 {
        assert!(path.feed(n * 100_000, 9, 1));
    }
    let feedback = &path.feedback;
    assert_eq!((feedback.received(), feedback.lost()), (90, 10));
    assert_eq!(feedback.loss_recent(), Some(0.1));
    assert_eq!(feedback.delivery_rate(at(1_100_000)), Some(1_000_000));
    let round_trip = feedback.round_trip().unwrap();
    assert_eq!(round_trip.latest, Duration::from_micros(THERE + BACK));
    let delay = feedback.delay().unwrap();
    assert_eq!(delay.mean.wrapping_sub(OFFSET), THERE as u32);
    assert_eq!(delay.deviation, Duration::from_micros(500));
}

#[test]
fn losses_that_came_after_all_are_taken_back() {
    let mut path = Path::default();
    path.feed(0, 90, 10);
    path.feed(100_000, 20, -10);
    assert_eq!((path.feedback.lost(), path.feedback.received()), (0, 110));
    assert_eq!(path.feedback.loss_recent(), Some(0.0));
}

#[test]
fn a_loss_is_told_for_ten_seconds_also_of_a_path_that_is_idle() {
    let mut path = Path::default();
    assert_eq!(path.feedback.loss_lately(at(0)), None);
    path.feed(0, 50, 50);
    assert_eq!(path.feedback.loss_lately(at(9_000_000)), Some(0.5));
    assert_eq!(path.feedback.loss_lately(at(11_000_000)), None);
    assert_eq!(path.feedback.loss_recent(), Some(0.5), "the scheduler remembers it");
    // What comes after a pause is told without what was before it.
    path.feed(60_000_000, 9, 1);
    assert_eq!(path.feedback.loss_lately(at(61_000_000)), Some(0.1));
    for second in 61..80 {
        path.feed(second * 1_000_000, 10, 0);
    }
    assert_eq!(path.feedback.loss_lately(at(80_000_000)), Some(0.0));
}

#[test]
fn older_feedback_is_ignored() {
    let mut path = Path { number: u16::MAX - 1, ..Path::default() };
    assert!(path.feed(0, 10, 0));
    assert!(path.feed(100_000, 10, 0), "its number wraps");
    assert_eq!(path.number, 0);
    assert!(!path.tell(100_000), "twice");
    path.number = u16::MAX;
    assert!(!path.tell(100_000), "overtaken");
    assert_eq!(path.feedback.received(), 20);
}

#[test]
fn feedback_is_overtaken_if_later_feedback_has_told_as_much() {
    let mut path = Path { number: u16::MAX, ..Path::default() };
    path.feed(0, 10, 0);
    let first = (Header { number: path.number, written: 0 }, path.block);
    path.feed(10_000, 10, 0);
    let second = (Header { number: path.number, written: 0 }, path.block);
    let is_overtaken =
        |(header, block): &(Header, Block)| path.feedback.is_overtaken(*header, block);
    assert!(is_overtaken(&first));
    assert!(!is_overtaken(&second), "it is the last one");
    let more = Block { received: 21, ..second.1 };
    assert!(!is_overtaken(&(first.0, more)), "it cannot tell more");
}

#[test]
fn feedback_that_cannot_be_true_is_ignored() {
    let mut path = Path::default();
    path.feed(0, 10, 0);
    let header = Header { number: 2, written: 0 };
    let mut block = Block { highest: 11, ..path.block };
    assert!(!path.feedback.on_feedback(at(1_000_000), header, &block, 10, false), "never sent");
    assert!(path.feedback.on_feedback(at(1_000_000), header, &block, 11, false));
    block.received -= 1;
    let header = Header { number: 3, ..header };
    assert!(
        !path.feedback.on_feedback(at(1_000_000), header, &block, 11, false),
        "fewer than before"
    );
}

#[test]
fn times_are_taken_once() {
    let mut path = Path::default();
    path.feed(0, 10, 0);
    let before = path.feedback.round_trip();
    // Only datagrams from behind have arrived since.
    path.block.received += 2;
    path.number += 1;
    assert!(path.tell(500_000));
    assert_eq!(path.feedback.round_trip(), before);
    assert_eq!(path.feedback.received(), 12);
}

#[test]
fn the_recent_share_forgets() {
    let mut path = Path::default();
    for n in 0..400 {
        let lost = if n < 100 { 10 } else { 0 };
        path.feed(n * 100_000, 10, lost);
    }
    assert_eq!(path.feedback.lost(), 1000);
    assert_eq!(path.feedback.loss_recent(), Some(0.0));
}

#[test]
fn the_rate_is_the_highest_of_ten_seconds() {
    let mut path = Path::default();
    path.feed(0, 100, 0);
    assert_eq!(path.feedback.delivery_rate(at(50_000)), Some(1_000_000));
    // Half as fast from here on.
    for n in 1..=200 {
        path.feed(n * 100_000, 100, 0);
        path.block.bytes_after_first /= 2;
        path.number += 1;
        path.block.highest += 1;
        path.tell(n * 100_000);
    }
    let rate = path.feedback.delivery_rate(at(20_100_000));
    assert_eq!(rate, Some(1_000_000));
    for n in 201..=320 {
        path.block.highest += 1;
        path.block.received += 1;
        path.number += 1;
        path.tell(n * 100_000);
    }
    assert_eq!(path.feedback.delivery_rate(at(32_100_000)), Some(500_000));
    assert_eq!(path.feedback.delivery_rate(at(60_000_000)), None, "long ago");
    path.block.highest += 1;
    path.block.bytes_after_first /= 2;
    path.number += 1;
    path.tell(60_000_000);
    assert_eq!(path.feedback.delivery_rate(at(60_000_000)), Some(250_000));
    // What comes at once has no rate.
    let mut path = Path::default();
    path.feed(0, 1, 0);
    assert_eq!(path.feedback.delivery_rate(at(0)), None);
}

#[test]
fn paths_are_compared_without_a_common_clock() {
    let (mut fast, mut slow) = (Path::default(), Path::default());
    fast.feed(0, 10, 0);
    slow.feed(0, 10, 0);
    let skew = |slow: &Path, fast: &Path| {
        let [slow, fast] = [slow, fast].map(|path| path.feedback.delay().unwrap());
        [slow.mean.wrapping_sub(fast.mean), slow.least.wrapping_sub(fast.least)]
    };
    assert_eq!(skew(&slow, &fast), [0, 0]);
    let mut block = slow.block;
    block.delay_min = block.delay_min.wrapping_add(45_000);
    for number in 2..100 {
        let header = Header { number, written: 0 };
        block.received += 1;
        slow.feedback.on_feedback(at(1_000_000), header, &block, block.highest, false);
    }
    // A copy says nothing more.
    let copy = Block { delay_min: 0, ..block };
    slow.feedback.on_feedback(
        at(1_000_000),
        Header { number: 100, written: 0 },
        &copy,
        block.highest,
        false,
    );
    let skew = skew(&slow, &fast);
    assert!(skew.iter().all(|skew| (44_990..=45_000).contains(skew)), "{skew:?}");
}

#[test]
fn a_train_waits_for_itself_which_is_no_delay_of_the_path() {
    let mut path = Path::default();
    path.feed(0, 10, 0);
    let before = path.feedback.delay().unwrap();
    let block = Block { delay_mean: 9000, delay_deviation: 5000, highest: 50, ..path.block };
    let header = Header { number: 2, written: 0 };
    assert!(path.feedback.on_feedback(at(1_000_000), header, &block, 50, true));
    let after = path.feedback.delay().unwrap();
    assert!(after.mean.wrapping_sub(before.mean).cast_signed() <= 0, "{before:?} {after:?}");
    assert!(after.deviation <= before.deviation, "{before:?} {after:?}");
}

#[test]
fn what_the_hosts_dropped_themselves_is_no_loss_of_the_path() {
    let mut path = Path::default();
    path.block.overflows = 1000;
    path.feed(0, 100, 0);
    path.feedback.on_dropped(3);
    path.feed(100_000, 100, 2);
    assert_eq!((path.feedback.lost(), path.feedback.has_loss()), (0, false));
    path.feed(200_000, 100, 5);
    assert_eq!((path.feedback.lost(), path.feedback.has_loss()), (4, true), "one was refused");
    path.block.overflows += 10;
    path.feed(300_000, 100, 10);
    assert_eq!((path.feedback.lost(), path.feedback.has_loss()), (4, false), "no room at the peer");
    path.feed(400_000, 100, 1);
    assert_eq!(path.feedback.lost(), 5);
}

#[test]
fn delays_are_of_all_that_has_arrived_only_if_no_feedback_is_missing() {
    let mut path = Path::default();
    path.feed(0, 9, 0);
    assert!(path.feed(100_000, 9, 1));
    assert_eq!(path.feedback.meant(), 9);
    path.number += 2;
    path.block.received += 20;
    path.block.received_bytes += 20_000;
    path.block.bytes_after_first = 0;
    assert!(path.tell(200_000));
    assert_eq!(path.feedback.meant(), 1, "19 are those of feedback that has not come");
}
