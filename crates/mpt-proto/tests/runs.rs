//! While much is sent in a session, packets take their paths in runs that leave as one super-datagram each.

use std::time::Duration;

use mpt_proto::{Change, PathId, PathStatus, SchedulerConfig};

use crate::pair::{CONNECTION, Pair, Sent, Settings, packet};

/// As many packets as one super-datagram of 64 KiB has, and their length with a header of 24 bytes.
const RUN: usize = 44;
const FULL: usize = 1448;

/// What is read from an interface at once.
const BURST: u32 = 188;

/// The time between two wake-ups in which 8 Gbit/s are sent, and 1 Gbit/s.
const FAST: Duration = Duration::from_micros(275);
const SLOW: Duration = Duration::from_micros(2200);

/// What the left host sends in a wake-up: packets of these lengths, numbered from `first` on.
fn wake_up(
    pair: &mut Pair,
    every: Duration,
    first: u32,
    lengths: impl IntoIterator<Item = usize>,
) -> Vec<Sent> {
    pair.now += every;
    let Pair { now, left, .. } = pair;
    let packets = (first..).zip(lengths).map(|(number, len)| {
        let mut packet = packet(1, number);
        packet.resize(len, 0);
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet
    });
    let sent = packets.map(|packet| left.send(*now, &packet).expect("a path is up")).collect();
    // Statuses and beacons are lost.
    left.keepalives(*now);
    sent
}

/// Wake-ups with full packets, for 20 ms, of which nothing is looked at.
fn warm_up(pair: &mut Pair, every: Duration) {
    warm_up_with(pair, every, BURST);
}

/// The same, with so many packets in each.
fn warm_up_with(pair: &mut Pair, every: Duration, count: u32) {
    let until = pair.now + Duration::from_millis(20);
    while pair.now < until {
        wake_up(pair, every, 0, full(count));
    }
}

fn full(count: u32) -> impl Iterator<Item = usize> {
    (0..count).map(|_| FULL)
}

/// The packets in a row that take one path: how many, and which path.
fn runs(sent: &[Sent]) -> Vec<(usize, u8)> {
    sent.chunk_by(|one, other| one.path == other.path)
        .map(|run| (run.len(), run[0].path.0))
        .collect()
}

#[test]
fn paths_take_turns_in_super_datagrams_while_much_is_sent_in_a_session() {
    let mut pair = Pair::in_session(&Settings::default());
    warm_up(&mut pair, FAST);
    let sent = wake_up(&mut pair, FAST, 0, full(BURST));
    let lengths: Vec<_> = runs(&sent).iter().map(|(len, _)| *len).collect();
    assert_eq!(lengths, [RUN, RUN, RUN, RUN, 12]);

    let singly = |pair: &mut Pair, every, why: &str| {
        warm_up(pair, every);
        let sent = wake_up(pair, every, 0, full(BURST));
        assert!(runs(&sent).iter().all(|(len, _)| *len == 1), "{why}: {:?}", runs(&sent));
    };
    singly(&mut pair, SLOW, "each path carries little");
    singly(&mut Pair::up(&Settings::default()), FAST, "plain framing");
}

#[test]
fn a_shorter_packet_ends_a_run_and_a_longer_one_begins_another() {
    let mut pair = Pair::in_session(&Settings::default());
    // So many that both paths have had as much.
    warm_up_with(&mut pair, FAST, 4 * RUN as u32);
    let blocks = [FULL, FULL, 1000, FULL, FULL, FULL, FULL, FULL, 900, 900, FULL];
    let sent = wake_up(&mut pair, FAST, 0, blocks);
    // Where one path follows itself two runs look like one.
    let other = |path: PathId| PathId(1 - path.0);
    let taken: Vec<_> = sent.iter().map(|sent| sent.path).collect();
    assert!(taken[..3].iter().all(|path| *path == taken[0]), "{taken:?}");
    assert!(taken[3..9].iter().all(|path| *path == other(taken[0])), "{taken:?}");
    assert_eq!(taken[9], taken[0], "it has had three packets less");
}

#[test]
fn paths_that_are_chosen_by_earliest_arrival_take_turns_in_runs_too() {
    // 5 Gbit/s, which neither path holds back if both carry more than 4.
    let every = Duration::from_micros(440);
    for (gbps, expected) in [(10, RUN), (3, 1)] {
        let mut pair = Pair::in_session_with(&Settings::default(), |connection| {
            connection.scheduler = SchedulerConfig::Earliest;
            connection.paths.iter_mut().for_each(|path| path.rate = Some(gbps * 125_000_000));
        });
        warm_up(&mut pair, every);
        let sent = wake_up(&mut pair, every, 0, full(4 * RUN as u32));
        let longest = runs(&sent).into_iter().map(|(len, _)| len).max();
        assert_eq!(longest, Some(expected), "{:?}", runs(&sent));
    }
}

#[test]
fn shares_are_those_of_the_weights() {
    for weights in [vec![1, 1], vec![2, 3], vec![1, 1, 1]] {
        let settings = Settings { weights: weights.clone(), ..Settings::default() };
        let mut pair = Pair::in_session(&settings);
        let mut had = vec![0_usize; weights.len()];
        for number in 0..200 {
            // Runs of all lengths.
            let count = number * 7 % BURST;
            let sent = wake_up(&mut pair, FAST / 3, 0, full(count));
            sent.iter().for_each(|sent| had[sent.path.0 as usize] += 1);
            let (all, sum) =
                (had.iter().sum::<usize>() as f64, f64::from(weights.iter().sum::<u16>()));
            for (had, weight) in had.iter().zip(&weights) {
                let off = *had as f64 - all * f64::from(*weight) / sum;
                let most = RUN * (weights.len() - 1) + weights.len();
                assert!(off.abs() <= most as f64, "{off} of {all} packets with {weights:?}");
            }
        }
    }
}

#[test]
fn a_path_that_is_switched_off_ends_its_run() {
    let mut pair = Pair::in_session(&Settings::default());
    warm_up(&mut pair, FAST);
    let path = wake_up(&mut pair, FAST, 0, full(3))[0].path;
    let Pair { now, left, .. } = &mut pair;
    left.change(*now, &Change::SetStatus { connection: CONNECTION, path, status: PathStatus::Off });
    let sent = wake_up(&mut pair, Duration::ZERO, 0, full(3));
    assert!(sent.iter().all(|sent| sent.path != path), "{:?}", runs(&sent));
}

/// As the daemon does, the path of the first packet comes last.
#[test]
fn runs_arrive_in_order_whichever_path_comes_first() {
    let mut pair = Pair::in_session(&Settings::default());
    let mut expected = 0;
    for _ in 0..100 {
        let sent = wake_up(&mut pair, FAST, expected, full(BURST));
        expected += BURST;
        for path in [1, 0].map(PathId) {
            let Pair { now, right, .. } = &mut pair;
            sent.iter().filter(|sent| sent.path == path).for_each(|sent| right.receive(*now, sent));
        }
        pair.exchange(|_, _| true);
    }
    assert!(pair.right.numbers().into_iter().eq(0..expected));
    assert_eq!(pair.right.dropped_in_all(), 0);
    let reorder = pair.right.endpoint.connection(CONNECTION).stats().reorder;
    assert_eq!(reorder.late, 0);
}
