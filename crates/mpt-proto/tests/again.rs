//! What was in flight on a path that is lost is sent again on those that are left.

use std::time::Duration;

use mpt_proto::{Change, Drop, PathId, PathStatus, ReorderConfig, TransmitKind};

use crate::pair::{CONNECTION, Host, Pair, Sent, Settings, packet};

/// Gone, and noticed at once.
fn lost(path: u8) -> Change {
    lost_for(path, Duration::ZERO)
}

fn lost_for(path: u8, unnoticed: Duration) -> Change {
    Change::SetPresent { connection: CONNECTION, path: PathId(path), present: false, unnoticed }
}

/// Packets of these numbers, sent by the left host at this moment.
fn send(pair: &mut Pair, numbers: std::ops::Range<u32>) -> Vec<Sent> {
    let Pair { now, left, .. } = pair;
    numbers.map(|number| left.send(*now, &packet(1, number)).expect("a path is up")).collect()
}

/// Some time passes in which nothing is sent.
fn pass(pair: &mut Pair, time: Duration) {
    pair.now += time;
}

/// What arrives on the paths that are not cut.
fn arrive(pair: &mut Pair, sent: &[Sent], cut: Option<u8>) {
    let through = sent.iter().filter(|sent| Some(sent.path.0) != cut);
    through.for_each(|sent| pair.right.receive(pair.now, sent));
}

fn resent(host: &Host, path: u8) -> u64 {
    host.endpoint.connection(CONNECTION).path(PathId(path)).stats.resent
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_path_lost_here_loses_nothing() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..100);
    arrive(&mut pair, &sent, Some(1));
    pass(&mut pair, 8 * MS);
    let now = pair.now;
    pair.left.change(now, &lost_for(1, 5 * MS));
    pair.exchange(|_, path| path == PathId(0));
    assert!(pair.right.numbers().into_iter().eq(0..100), "each once and in order");
    assert_eq!((resent(&pair.left, 0), resent(&pair.left, 1)), (50, 0));
    assert_eq!(pair.right.dropped_in_all(), 0);
    let stats = pair.left.endpoint.connection(CONNECTION).stats();
    assert_eq!(stats.sent.packets, 100, "no packet counts twice");
    let sent = send(&mut pair, 100..110);
    arrive(&mut pair, &sent, Some(1));
    assert!(pair.right.numbers().into_iter().eq(100..110), "no number was spent on a copy");
}

#[test]
fn a_path_lost_by_the_peer_loses_nothing() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..100);
    let now = pair.now;
    pair.right.change(now, &lost(1));
    arrive(&mut pair, &sent, Some(1));
    pair.exchange(|_, path| path == PathId(0));
    assert!(pair.right.numbers().into_iter().eq(0..100));
    assert_eq!(resent(&pair.left, 0), 50);
    assert_eq!(pair.right.dropped_in_all(), 0);
}

#[test]
fn a_late_duplicate_is_no_restart() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..3000);
    arrive(&mut pair, &sent, None);
    // So that it is no longer waited for, and consecutive numbers from behind on the only path are
    // suspicious.
    let now = pair.now;
    pair.left.change(now, &lost(1));
    let again = pair.left.keepalives(now);
    let (keepalives, copies): (Vec<_>, Vec<_>) =
        again.into_iter().partition(|sent| sent.bytes.len() > 50);
    assert_eq!(copies.len(), 1500);
    arrive(&mut pair, &keepalives, Some(1));
    pass(&mut pair, 300 * MS);
    let Pair { now, right, .. } = &mut pair;
    right.endpoint.handle_timeout(*now, &mut right.inbox);
    arrive(&mut pair, &copies, Some(1));
    assert!(pair.right.numbers().into_iter().eq(0..3000), "each once");
    assert_eq!(pair.right.dropped(Drop::Duplicate), 1500);
    let stats = pair.right.endpoint.connection(CONNECTION).stats();
    assert_eq!(stats.reorder.restarts, 0);
    pair.exchange(|_, path| path == PathId(0));
    let quality = pair.right.endpoint.connection(CONNECTION).path(PathId(0)).quality;
    assert_eq!(quality.lost, Some(0), "the copies were sent and came");
}

#[test]
fn only_the_loss_window_is_retransmitted() {
    let mut pair = Pair::up(&Settings::default());
    let early = send(&mut pair, 0..100);
    arrive(&mut pair, &early, None);
    pass(&mut pair, 500 * MS);
    let late = send(&mut pair, 100..120);
    arrive(&mut pair, &late, Some(1));
    let now = pair.now;
    pair.left.change(now, &lost(1));
    pair.exchange(|_, path| path == PathId(0));
    assert!(pair.right.numbers().into_iter().eq(0..120));
    assert_eq!(resent(&pair.left, 0), 10);
}

#[test]
fn no_retransmission_without_a_lost_path_or_duplicate_detection() {
    let off =
        Change::SetStatus { connection: CONNECTION, path: PathId(1), status: PathStatus::Off };
    let usual = Settings::default;
    let windowless = ReorderConfig { window: 0, ..ReorderConfig::default() };
    for (what, settings, change, expected) in [
        ("lost", usual(), lost(1), 50),
        ("switched off", usual(), off, 0),
        ("removed", usual(), Change::RemovePath { connection: CONNECTION, path: PathId(1) }, 0),
        ("without numbers", Settings { sequence: false, ..usual() }, lost(1), 0),
        ("without a window", Settings { reorder: windowless, ..usual() }, lost(1), 0),
    ] {
        let mut pair = Pair::up(&settings);
        send(&mut pair, 0..100);
        let now = pair.now;
        pair.left.change(now, &change);
        pair.exchange(|_, path| path == PathId(0));
        assert_eq!(resent(&pair.left, 0), expected, "{what}");
    }
}

#[test]
fn paths_lost_one_after_the_other_lose_nothing_either() {
    let mut pair = Pair::up(&Settings { weights: vec![1, 1, 1], ..Settings::default() });
    let mut sent = send(&mut pair, 0..90);
    let now = pair.now;
    pair.left.change(now, &lost(0));
    sent.extend(pair.left.keepalives(now));
    assert_eq!([0, 1, 2].map(|path| resent(&pair.left, path)), [0, 15, 15]);
    pair.left.change(now, &lost(1));
    sent.extend(pair.left.keepalives(now));
    assert_eq!(resent(&pair.left, 2), 15 + 30 + 15, "and what was sent again on it");
    sent.retain(|sent| sent.path == PathId(2));
    arrive(&mut pair, &sent, None);
    assert!(pair.right.numbers().into_iter().eq(0..90));
    assert_eq!(pair.right.dropped_in_all(), 0);
}

#[test]
fn with_no_path_left_nothing_is_sent() {
    let mut pair = Pair::up(&Settings::default());
    send(&mut pair, 0..10);
    let now = pair.now;
    pair.left.change(now, &lost(1));
    pair.left.change(now, &lost(0));
    assert_eq!(pair.left.keepalives(now).len(), 0);
    assert_eq!((resent(&pair.left, 0), resent(&pair.left, 1)), (0, 0));
}

#[test]
fn more_than_the_allowance_is_not_kept() {
    const LONG: usize = 1400;
    let mut pair = Pair::up(&Settings::default());
    let long = |number| {
        let mut packet = packet(1, number);
        packet.resize(LONG, 0);
        packet[2..4].copy_from_slice(&(LONG as u16).to_be_bytes());
        packet
    };
    let Pair { now, left, .. } = &mut pair;
    for number in 0..60_000 {
        left.send(*now, &long(number)).expect("a path is up");
    }
    // The last that were kept are not the last that were sent.
    *now += 100 * MS;
    for number in 0..100 {
        left.send(*now, &long(number)).expect("a path is up");
    }
    left.change(*now, &lost(1));
    left.keepalives(*now);
    assert_eq!(resent(left, 0), 0);
}

/// The right host loses a path and recovers it, and reports this each time.
fn lose_and_find(pair: &mut Pair, path: u8) {
    let found = Change::SetPresent {
        connection: CONNECTION,
        path: PathId(path),
        present: true,
        unnoticed: Duration::ZERO,
    };
    for change in [lost(path), found] {
        pass(pair, MS);
        pair.right.change(pair.now, &change);
        pair.exchange(|_, _| true);
    }
}

#[test]
fn no_datagram_is_retransmitted_more_than_twice() {
    let mut pair = Pair::up(&Settings::default());
    send(&mut pair, 0..100);
    (0..4).for_each(|round| lose_and_find(&mut pair, round % 2));
    assert_eq!(resent(&pair.left, 0) + resent(&pair.left, 1), 200);
}

#[test]
fn repeated_loss_reports_are_rate_limited() {
    let mut pair = Pair::up(&Settings::default());
    for round in 0..20 {
        send(&mut pair, 10 * round..10 * (round + 1));
        lose_and_find(&mut pair, 1);
    }
    assert_eq!(resent(&pair.left, 0), 4 * 5);
    pass(&mut pair, 1000 * MS);
    send(&mut pair, 200..210);
    lose_and_find(&mut pair, 1);
    assert_eq!(resent(&pair.left, 0), 5 * 5);
}

#[test]
fn packets_beyond_the_receivers_history_are_not_retransmitted() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..10);
    let Pair { now, left, .. } = &mut pair;
    // What is not kept takes numbers all the same.
    (10..12_294).for_each(|number| {
        left.endpoint.handle_inner(*now, &packet(1, number));
    });
    left.change(*now, &lost(1));
    left.keepalives(*now);
    let on_lost = sent.iter().filter(|sent| sent.path == PathId(1)).count() as u64;
    assert_eq!((on_lost, resent(left, 0)), (5, 2));
}

#[test]
fn after_a_stall_the_last_datagrams_sent_are_retransmitted() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..100);
    arrive(&mut pair, &sent, Some(1));
    let now = pair.now;
    pair.right.change(now, &lost(1));
    pass(&mut pair, 200 * MS);
    pair.exchange(|_, path| path == PathId(0));
    assert!(pair.right.numbers().into_iter().eq(0..100));
    assert_eq!(resent(&pair.left, 0), 50);
}

#[test]
fn a_copy_says_whether_its_checksum_is_partial() {
    for partial in [false, true] {
        let Pair { now, left, .. } = Pair::in_session(&Settings::default());
        let (mut sender, _) = left.endpoint.split();
        // Flag P, in the first byte behind the GRE header (section 8.1 of `docs/protocol.md`).
        let says_partial = |datagram: &[u8]| datagram[12] & 0x08 != 0;
        for number in 0..20 {
            let packet = packet(1, number);
            let transmit = sender.handle_inner(now, &packet).expect("a path is up");
            let mut datagram = vec![0; transmit.size()];
            sender.emit_either(now, &transmit, &mut datagram, |packet, place| {
                place.copy_from_slice(packet);
                partial
            });
            assert_eq!(says_partial(&datagram), partial);
        }
        sender.change(now, &lost(1));
        let mut copies = 0;
        while let Some(transmit) = sender.poll_transmit(now) {
            let mut datagram = vec![0; transmit.size()];
            sender.emit(now, &transmit, &mut datagram, |payload, place| {
                place.copy_from_slice(payload);
            });
            if transmit.kind() == TransmitKind::Retransmission {
                assert_eq!(says_partial(&datagram), partial);
                copies += 1;
            }
        }
        assert_eq!(copies, 10, "all that went by the path that is lost");
    }
}
