use super::*;
use crate::framing::plain;

const CONNECTION: ConnectionId = ConnectionId(3);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn sent(at: Instant, path: u8, number: u32) -> Sent {
    let stamp = Stamp::Plain(plain::tx::Stamp::numbered(number));
    Sent { at, connection: CONNECTION, path: PathId(path), tos: 0, stamp }
}

/// A unique packet.
fn packet(number: u32, len: usize) -> Vec<u8> {
    number.to_be_bytes().into_iter().cycle().take(len).collect()
}

/// The numbers of the retransmissions. Each must have the packet that it was kept with.
fn again(recent: &mut RetransmitBuffer) -> Vec<u32> {
    let next = || {
        let (place, sent) = recent.take_next()?;
        let Stamp::Plain(stamp) = sent.stamp else { panic!("{:?}", sent.stamp) };
        let number = stamp.number()?;
        let kept = recent.packet(place);
        assert_eq!(kept, packet(number, kept.len()), "{number}");
        Some(number)
    };
    std::iter::from_fn(next).collect()
}

/// All since then is in doubt, whenever the newest was sent.
fn since(millis: u64) -> LossWindow {
    const LATE: u64 = 1_000_000;
    LossWindow { now: at(LATE), reach: Duration::from_millis(LATE - millis) }
}

#[test]
fn datagrams_sent_on_the_lost_path_are_retransmitted_once_in_order() {
    let mut recent = RetransmitBuffer::default();
    for number in 0..20 {
        let now = at(u64::from(number));
        recent.put(sent(now, (number % 2) as u8, number), &packet(number, 100));
    }
    recent.put(Sent { connection: ConnectionId(4), ..sent(at(20), 1, 20) }, &packet(20, 100));
    recent.send_again(CONNECTION, PathId(1), since(15));
    recent.send_again(CONNECTION, PathId(1), since(11));
    assert_eq!(again(&mut recent), [15, 17, 19, 11, 13]);
    recent.send_again(CONNECTION, PathId(2), since(0));
    assert_eq!(again(&mut recent), [0; 0]);
}

#[test]
fn a_retransmission_belongs_to_the_path_that_it_was_last_sent_on() {
    let mut recent = RetransmitBuffer::default();
    recent.put(sent(at(0), 0, 7), &packet(7, 100));
    recent.send_again(CONNECTION, PathId(0), since(0));
    let (place, _) = recent.take_next().expect("it is to be sent again");
    recent.set_path(place, PathId(1));
    recent.send_again(CONNECTION, PathId(0), since(0));
    assert_eq!(again(&mut recent), [0; 0]);
    recent.send_again(CONNECTION, PathId(1), since(0));
    assert_eq!(again(&mut recent), [7]);
    recent.send_again(CONNECTION, PathId(1), since(0));
    assert_eq!(again(&mut recent), [0; 0], "twice is enough");
}

#[test]
fn another_connection_of_the_same_number_is_another_one() {
    let mut recent = RetransmitBuffer::default();
    (0..4).for_each(|number| recent.put(sent(at(0), 0, number), &packet(number, 100)));
    recent.put(Sent { connection: ConnectionId(4), ..sent(at(0), 0, 4) }, &packet(4, 100));
    recent.send_again(CONNECTION, PathId(0), since(0));
    recent.forget(CONNECTION);
    recent.put(sent(at(0), 0, 5), &packet(5, 100));
    assert_eq!(again(&mut recent), [0; 0]);
    recent.send_again(CONNECTION, PathId(0), since(0));
    recent.send_again(ConnectionId(4), PathId(0), since(0));
    assert_eq!(again(&mut recent), [5, 4]);
}

#[test]
fn the_ring_wraps_and_keeps_the_latest_whole() {
    let mut recent = RetransmitBuffer::default();
    // Lengths without a common measure with the capacity, so that the seam is met everywhere.
    let len = |number: u32| 1000 + number as usize % 479;
    let mut first_kept = 0;
    for number in 0..9000 {
        recent.put(sent(at(0), 0, number), &packet(number, len(number)));
        if number % 999 == 0 {
            recent.send_again(CONNECTION, PathId(0), since(0));
            let again = again(&mut recent);
            recent.entries.iter_mut().for_each(|entry| entry.times = 0);
            let first = again[0];
            assert!(again.into_iter().eq(first..=number), "the latest without a gap");
            // Of the capacity, one packet at the seam and one that is overwritten are missing at the most.
            let missing = CAPACITY.saturating_sub((first..=number).map(len).sum());
            assert!(first == 0 || missing < 2 * 1479, "{missing}");
            first_kept = first;
        }
    }
    assert_eq!(recent.bytes.len(), CAPACITY);
    assert!(first_kept > 5000);
}

#[test]
fn small_packets_are_kept_up_to_their_number() {
    let mut recent = RetransmitBuffer::default();
    let number = 3 * MOST as u32;
    (0..number).for_each(|number| recent.put(sent(at(0), 0, number), &packet(number, 20)));
    recent.send_again(CONNECTION, PathId(0), since(0));
    assert!(again(&mut recent).into_iter().eq(number - MOST as u32..number));
}

#[test]
fn retransmission_of_few_packets_needs_little_memory() {
    let mut recent = RetransmitBuffer::default();
    assert_eq!(recent.memory(), 0);
    for number in 0..5000_u32 {
        let now = at(100 * u64::from(number));
        recent.put(sent(now, 0, number), &packet(number, 1400));
    }
    assert_eq!(recent.bytes.len(), LEAST);
    recent.send_again(CONNECTION, PathId(0), since(100 * 4990));
    assert!(again(&mut recent).into_iter().eq(4990..5000));
}

#[test]
fn overwritten_packets_are_skipped() {
    let mut recent = RetransmitBuffer::default();
    (0..10).for_each(|number| recent.put(sent(at(0), 0, number), &packet(number, 1000)));
    recent.send_again(CONNECTION, PathId(0), since(0));
    let further = (CAPACITY / 1000) as u32 - 4;
    (10..10 + further).for_each(|number| recent.put(sent(at(0), 1, number), &packet(number, 1000)));
    let again = again(&mut recent);
    assert!(!again.is_empty() && again.len() < 10, "{again:?}");
    assert_eq!(again.last(), Some(&9));
}

#[test]
fn the_bytes_kept_per_second_are_limited() {
    let mut allowance = Allowance::default();
    let packets =
        |allowance: &mut Allowance, now| (0..100_000).filter(|_| allowance.take(now, 1400)).count();
    let most = Allowance::BYTES / 1400;
    assert_eq!(packets(&mut allowance, at(0)), most);
    assert_eq!(packets(&mut allowance, at(999)), 0);
    assert_eq!(packets(&mut allowance, at(1000)), most);
}

#[test]
fn the_loss_window_is_derived_from_measurements_within_bounds() {
    let ms = Duration::from_millis;
    let since = |now, unnoticed, round_trip| LossWindow::new(now, unnoticed, round_trip).since(now);
    let since_at_10_s = |unnoticed, round_trip| since(at(10_000), unnoticed, round_trip);
    assert_eq!(since_at_10_s(ms(4), Some(ms(30))), at(10_000 - 4 - 30 - 5));
    assert_eq!(since_at_10_s(ms(4), Some(ms(1))), at(10_000 - 4 - 10 - 5), "the least");
    assert_eq!(since_at_10_s(ms(4), Some(ms(2000))), at(10_000 - 4 - 100 - 5), "the most");
    assert_eq!(since_at_10_s(ms(4), None), at(10_000 - 4 - 50 - 5), "unknown");
    assert_eq!(since_at_10_s(Duration::MAX, None), at(10_000 - 1500), "no end");
    assert_eq!(since(at(3), ms(4), None), Instant::ZERO, "the beginning");
}

#[test]
fn a_stalled_host_learns_of_a_loss_late() {
    let doubt = LossWindow::new(at(10_000), Duration::ZERO, None);
    let reach = 50 + 5;
    assert_eq!(doubt.since(at(9_800)), at(9_800 - reach));
    assert_eq!(doubt.since(at(9_700)), at(10_000 - reach), "nothing was sent for some time");
}
