//! Single forged keepalives, by an attacker who knows the addresses, and in some tests the peer's clock.

use std::time::Duration;

use crate::pair::{CONNECTION, Pair, Sent, Settings, inner_address, packet};
use mpt_proto::wire::keepalive::{Keepalive, LEN, Report, Trailer};
use mpt_proto::{Change, DownCause, PathId, PathState, PathStatus};

const FORGED: PathId = PathId(0);
const OTHER: PathId = PathId(1);

/// Two hosts that have sent packets and keepalives for a while.
fn running() -> Pair {
    let mut pair = Pair::up(&Settings::default());
    for _ in 0..8 {
        traffic(&mut pair, 100);
        pair.wait(Duration::from_millis(500), |_, _| true);
    }
    assert_eq!(lost(&pair, FORGED), 0);
    pair
}

/// Packets from left to right, which all arrive.
fn traffic(pair: &mut Pair, count: u32) {
    for number in 0..count {
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        pair.right.receive(pair.now, &sent);
    }
}

fn lost(pair: &Pair, path: PathId) -> u64 {
    pair.right.endpoint.connection(CONNECTION).path(path).quality.lost.unwrap_or(0)
}

/// The peer's clock `millis` from now, as its keepalives say it.
fn time(pair: &Pair, millis: u64) -> u32 {
    ((pair.now.as_nanos() / 1000) + millis * 1000) as u32
}

/// A keepalive of the left host on the first path.
fn keepalive(time: u32, sent: u32) -> Keepalive {
    let trailer = Some(Trailer { sent, time, echo: None });
    let path = Some(FORGED.0);
    Keepalive { trailer, path, ..Keepalive::bare(inner_address(1), inner_address(2)) }
}

fn forge(pair: &mut Pair, keepalive: &Keepalive) {
    let mut bytes = vec![0, 0, 0x08, 0];
    bytes.extend_from_slice(keepalive.emit(&mut [0; LEN]));
    pair.right.receive(pair.now, &Sent { path: FORGED, bytes });
}

/// How many datagrams with inner packets the left host has sent on a path.
fn sent(pair: &Pair, path: PathId) -> u32 {
    pair.left.endpoint.connection(CONNECTION).path(path).stats.sent.packets as u32
}

/// Before the change the first of each took the other path down for 10 s.
#[test]
fn a_forged_loss_of_a_path_at_a_later_time_is_ignored() {
    for millis in [1_000, 9_500, 100_000] {
        for (count, restarts) in [(1, false), (2, false), (5, false), (1, true), (2, true)] {
            let mut pair = running();
            let sent = if restarts { 0 } else { sent(&pair, FORGED) };
            let keepalive = keepalive(time(&pair, millis), sent);
            for _ in 0..count {
                forge(&mut pair, &Keepalive { lost: Some(OTHER.0), ..keepalive });
                assert_eq!(pair.right.state(OTHER.0), PathState::Up, "{millis} {count} {restarts}");
            }
            pair.wait(Duration::from_secs(2), |_, _| true);
            assert_eq!(pair.right.state(FORGED.0), PathState::Up);
        }
    }
}

#[test]
fn a_forged_loss_of_a_path_at_the_right_time_lasts_for_little_more_than_a_keepalive_interval() {
    for millis in [0, 200] {
        let mut pair = running();
        let keepalive = keepalive(time(&pair, millis), sent(&pair, FORGED));
        forge(&mut pair, &Keepalive { lost: Some(OTHER.0), ..keepalive });
        assert_eq!(pair.right.state(OTHER.0), PathState::Down(DownCause::PeerLost));
        pair.wait(Duration::from_secs(1), |_, _| true);
        assert_eq!(pair.right.state(OTHER.0), PathState::Up, "{millis}");
    }
}

/// Before the change what the peer said was ignored for as long as the forged time was ahead, up to 1 s.
#[test]
fn a_forged_time_does_not_hide_the_keepalives_that_follow() {
    for millis in [300, 950, 9_500, 4_000_000] {
        for restarts in [false, true] {
            let mut pair = running();
            let sent = if restarts { 0 } else { sent(&pair, FORGED) };
            let forged = keepalive(time(&pair, millis), sent);
            forge(&mut pair, &forged);
            let off =
                Change::SetStatus { connection: CONNECTION, path: FORGED, status: PathStatus::Off };
            pair.left.change(pair.now, &off);
            pair.exchange(|_, _| true);
            let state = pair.right.state(FORGED.0);
            assert_eq!(state, PathState::Down(DownCause::PeerOff), "{millis} {restarts}");
        }
    }
}

#[test]
fn a_forged_state_at_a_wrong_time_is_ignored() {
    for millis in [300, 9_500, 4_000_000] {
        let mut pair = running();
        let forged = keepalive(time(&pair, millis), sent(&pair, FORGED));
        for report in [Report { deaf: true, off: false }, Report { deaf: false, off: true }] {
            forge(&mut pair, &Keepalive { report, ..forged });
            assert_eq!(pair.right.state(FORGED.0), PathState::Up, "{millis}");
        }
    }
}

/// Before the change each added up to 2^31 to the losses, for good.
#[test]
fn a_forged_count_of_datagrams_sent_is_no_loss() {
    for more in [5_000, 60_000, 1 << 30, 1 << 31] {
        for millis in [0, 1, 9_500] {
            let mut pair = running();
            for _ in 0..20 {
                let sent = sent(&pair, FORGED).wrapping_add(more);
                let forged = keepalive(time(&pair, millis), sent);
                forge(&mut pair, &forged);
                assert!(lost(&pair, FORGED) < 100_000, "{more} {millis}");
                traffic(&mut pair, 100);
                pair.wait(Duration::from_millis(500), |_, _| true);
            }
            assert_eq!(lost(&pair, FORGED), 0, "{more} {millis}");
        }
    }
}

#[test]
fn a_genuine_jump_of_the_clock_is_accepted_after_a_keepalive_interval() {
    for jump in [400, 5_000, 1_000_000] {
        let mut pair = running();
        let ahead = Duration::from_millis(jump);
        let mut accepted = None;
        // The left host says that it does not hear the right one, whose keepalives no longer arrive.
        for step in 0..80 {
            pair.now += Duration::from_millis(50);
            let now = pair.now + ahead;
            pair.left.endpoint.handle_timeout(now, &mut pair.left.inbox);
            for sent in pair.left.keepalives(now) {
                pair.right.receive(pair.now, &sent);
            }
            pair.right.keepalives(pair.now);
            let state = pair.right.state(FORGED.0);
            assert_ne!(state, PathState::Down(DownCause::Silent), "it is heard all the time");
            if state == PathState::Down(DownCause::PeerDeaf) && accepted.is_none() {
                accepted = Some(step);
            }
        }
        assert!(accepted.is_some_and(|step| step < 60), "{jump}: {accepted:?}");
    }
}

#[test]
fn losses_are_still_counted_when_many_are_lost() {
    for count in [10, 1_000, 100_000] {
        let mut pair = running();
        for number in 0..count {
            pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        }
        pair.wait(Duration::from_secs(3), |_, _| true);
        let counted = lost(&pair, FORGED) + lost(&pair, OTHER);
        assert_eq!(counted, u64::from(count));
    }
}
