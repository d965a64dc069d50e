//! What changes while an endpoint runs, and what must not be felt of it.

use std::sync::Arc;
use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, outer_address, packet};
use mpt_proto::{
    Change, ConnectionConfig, DownCause, Endpoint, Instant, Message, Origin, PathConfig, PathId,
    PathState, PathStatus, PathUpdate, ReorderConfig, SocketId,
};

const KEEPALIVE: Duration = Duration::from_millis(500);

/// The settings of a path of a host's connection, whatever its number.
fn path_config(host: u8, path: u8) -> PathConfig {
    let weights = vec![1; usize::from(path) + 1];
    let settings = Settings { weights, ..Settings::default() };
    config(&settings, host).connections.remove(0).paths.remove(usize::from(path))
}

fn connection_config(host: u8) -> ConnectionConfig {
    config(&Settings::default(), host).connections.remove(0)
}

fn add_path(host: u8, path: u8) -> Change {
    let config = path_config(host, path);
    Change::AddPath { connection: CONNECTION, path: PathId(path), config }
}

fn remove_path(path: u8) -> Change {
    Change::RemovePath { connection: CONNECTION, path: PathId(path) }
}

fn set_present(path: u8, present: bool) -> Change {
    let unnoticed = Duration::ZERO;
    Change::SetPresent { connection: CONNECTION, path: PathId(path), present, unnoticed }
}

/// Packets of these numbers, sent by the left host.
fn send(pair: &mut Pair, numbers: std::ops::Range<u32>) -> Vec<Sent> {
    numbers
        .map(|number| pair.left.send(pair.now, &packet(1, number)).expect("a path is up"))
        .collect()
}

/// They arrive at the right host, those of some paths first and those of the others behind them: each
/// path keeps its order, and some are slower.
fn arrive_late(pair: &mut Pair, sent: &[Sent], slow: impl Fn(&Sent) -> bool) {
    let (late, early): (Vec<_>, Vec<_>) = sent.iter().partition(|sent| slow(sent));
    early.into_iter().chain(late).for_each(|sent| pair.right.receive(pair.now, sent));
}

fn arrive(pair: &mut Pair, sent: &[Sent]) {
    arrive_late(pair, sent, |_| false);
}

fn assert_nothing_lost(host: &Host) {
    let reorder = host.endpoint.connection(CONNECTION).stats().reorder;
    let lost = (reorder.lost_early_release, reorder.lost_max_delay, reorder.lost_window);
    assert_eq!((lost, reorder.late, reorder.held), ((0, 0, 0), 0, 0));
}

#[test]
fn packets_in_flight_on_a_path_removed_by_the_receiver_arrive_in_order() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..10);
    pair.right.change(pair.now, &remove_path(1));
    arrive_late(&mut pair, &sent, |sent| sent.path.0 == 1);
    assert_eq!(pair.right.numbers(), Vec::from_iter(0..10));
    assert_nothing_lost(&pair.right);

    pair.wait(KEEPALIVE, |_, _| true);
    assert!(pair.right.endpoint.connection(CONNECTION).paths().eq([PathId(0)]), "it is gone");
    assert_eq!(pair.left.state(1), PathState::Down(DownCause::PeerOff));
    let sent = send(&mut pair, 10..14);
    assert!(sent.iter().all(|sent| sent.path.0 == 0), "the peer was told");
    arrive(&mut pair, &sent);
    assert_eq!(pair.right.numbers(), [10, 11, 12, 13]);
}

#[test]
fn packets_in_flight_on_a_path_removed_by_the_sender_arrive_in_order() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..10);
    pair.left.change(pair.now, &remove_path(1));
    let farewell = pair.left.keepalives(pair.now);
    assert!(farewell.iter().any(|sent| sent.path.0 == 1), "the peer is told");
    // A small datagram can overtake large ones.
    arrive(&mut pair, &farewell);
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerOff));
    arrive_late(&mut pair, &sent, |sent| sent.path.0 == 1);
    assert_eq!(pair.right.numbers(), Vec::from_iter(0..10));
    assert_nothing_lost(&pair.right);
    assert!(send(&mut pair, 10..14).iter().all(|sent| sent.path.0 == 0));
    // It is waited for only as long as packets can be in flight.
    pair.wait(KEEPALIVE, |_, _| true);
    let sent = send(&mut pair, 20..23);
    arrive(&mut pair, &sent[1..]);
    assert_eq!(
        pair.right.numbers(),
        [21, 22],
        "what is lost on the other path is given up at once"
    );
}

#[test]
fn the_first_packets_on_an_added_path_are_waited_for() {
    let mut pair = Pair::up(&Settings::default());
    pair.left.change(pair.now, &add_path(1, 2));
    pair.right.change(pair.now, &add_path(2, 2));
    let on_added = |sent: Vec<Sent>| -> Vec<Sent> {
        sent.into_iter().filter(|sent| sent.path.0 == 2).collect()
    };
    // The left host's first keepalive arrives, and the right one's answer, but not yet what the left one
    // says after that: it already sends.
    let hello = on_added(pair.left.keepalives(pair.now));
    arrive(&mut pair, &hello);
    let answer = on_added(pair.right.keepalives(pair.now));
    answer.iter().for_each(|sent| pair.left.receive(pair.now, sent));
    assert_eq!(pair.left.state(2), PathState::Up);
    let sent = send(&mut pair, 0..9);
    assert_eq!(sent.iter().filter(|sent| sent.path.0 == 2).count(), 3);
    arrive_late(&mut pair, &sent, |sent| sent.path.0 == 2);
    assert_eq!(pair.right.numbers(), Vec::from_iter(0..9));
    assert_nothing_lost(&pair.right);
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(2), PathState::Up);
}

#[test]
fn a_carrier_loss_is_reported_on_another_path_and_stops_the_peer_until_it_is_back() {
    let settings = Settings { weights: vec![1, 1, 1], ..Settings::default() };
    let mut pair = Pair::up(&settings);
    for lost in [1, 2] {
        pair.left.change(pair.now, &set_present(lost, false));
        assert_eq!(pair.left.state(lost), PathState::Down(DownCause::Absent));
    }
    let told = pair.left.keepalives(pair.now);
    assert!(!told.is_empty() && told.iter().all(|sent| sent.path.0 == 0), "there is no other way");
    arrive(&mut pair, &told);
    // Each keepalive has room for one of them.
    pair.wait(KEEPALIVE, |_, path| path.0 == 0);
    for lost in [1, 2] {
        assert_eq!(pair.right.state(lost), PathState::Down(DownCause::PeerLost));
    }
    let answers: Vec<_> =
        (0..6).filter_map(|number| pair.right.send(pair.now, &packet(2, number))).collect();
    assert!(answers.len() == 6 && answers.iter().all(|sent| sent.path.0 == 0));
    assert!(send(&mut pair, 0..6).iter().all(|sent| sent.path.0 == 0));

    for back in [1, 2] {
        pair.left.change(pair.now, &set_present(back, true));
    }
    pair.exchange(|_, _| true);
    for back in [1, 2] {
        assert_eq!((pair.left.state(back), pair.right.state(back)), (PathState::Up, PathState::Up));
    }
    let used: Vec<_> = send(&mut pair, 6..9).iter().map(|sent| sent.path.0).collect();
    assert_eq!(used.len(), 3);
    assert!(used.contains(&1) && used.contains(&2), "{used:?}");
}

/// A keepalive that was in flight when the path was lost arrives after the report of the loss.
#[test]
fn a_lost_path_is_not_recovered_by_earlier_datagrams() {
    let mut pair = Pair::up(&Settings::default());
    pair.now += Duration::from_millis(500);
    let on_their_way = pair.left.keepalives(pair.now);
    assert_eq!(on_their_way.len(), 2);
    pair.now += Duration::from_millis(20);
    pair.left.change(pair.now, &set_present(1, false));
    pair.exchange(|_, path| path == PathId(0));
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerLost));
    pair.now += Duration::from_millis(20);
    on_their_way.iter().for_each(|sent| pair.right.receive(pair.now, sent));
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerLost));
    pair.left.change(pair.now, &set_present(1, true));
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(1), PathState::Up);
}

/// The path of the loss report is slower than the one that was lost.
#[test]
fn a_recovered_path_is_not_lost_by_an_outdated_report() {
    // The word that loses the path if it comes in time.
    let lose = |pair: &mut Pair| {
        pair.left.change(pair.now, &set_present(1, false));
        let word = pair.left.keepalives(pair.now);
        assert_eq!(word.iter().map(|sent| sent.path).collect::<Vec<_>>(), [PathId(0)]);
        word
    };
    let mut pair = Pair::up(&Settings::default());
    let word = lose(&mut pair);
    arrive(&mut pair, &word);
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerLost));

    let mut pair = Pair::up(&Settings::default());
    let word = lose(&mut pair);
    pair.now += Duration::from_millis(2);
    pair.left.change(pair.now, &set_present(1, true));
    pair.exchange(|_, path| path.0 == 1);
    arrive(&mut pair, &word);
    assert_eq!((pair.left.state(1), pair.right.state(1)), (PathState::Up, PathState::Up));
}

/// Two hosts whose second path is on standby.
fn with_standby() -> Pair {
    let mut pair = Pair::up(&Settings::default());
    for (host, number) in [(&mut pair.left, 1), (&mut pair.right, 2)] {
        let config = PathConfig { priority: 1, ..path_config(number, 1) };
        let change = Change::SetPath { connection: CONNECTION, path: PathId(1), config };
        host.change(pair.now, &change);
    }
    pair
}

#[test]
fn a_standby_path_is_not_waited_for() {
    let mut pair = with_standby();
    for round in 0..4 {
        let sent = send(&mut pair, round * 40..round * 40 + 40);
        assert!(sent.iter().all(|sent| sent.path.0 == 0));
        arrive(&mut pair, &sent);
        pair.wait(KEEPALIVE, |_, _| true);
    }
    pair.right.numbers();
    let sent = send(&mut pair, 200..204);
    arrive(&mut pair, &sent[1..]);
    assert_eq!(pair.right.numbers(), [201, 202, 203], "the first was lost on the only path in use");
}

#[test]
fn the_first_burst_of_a_quiet_connection_is_waited_for_on_every_path() {
    let mut pair = Pair::up(&Settings::default());
    pair.wait(10 * KEEPALIVE, |_, _| true);
    let sent = send(&mut pair, 0..20);
    arrive_late(&mut pair, &sent, |sent| sent.path.0 == 1);
    assert_eq!(pair.right.numbers(), Vec::from_iter(0..20));
    assert_nothing_lost(&pair.right);
}

#[test]
fn another_window_gives_out_once_what_is_held() {
    for window in [0, 16, 9999] {
        let mut pair = Pair::up(&Settings::default());
        let sent = send(&mut pair, 0..9);
        // Path 1 is silent, so everything behind the first gap waits.
        let (first, rest): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.path.0 == 1);
        rest.iter().for_each(|sent| pair.right.receive(pair.now, sent));
        let before = pair.right.numbers();
        assert_eq!(before.len(), 1);
        let mut config = connection_config(2);
        config.reorder.window = window;
        let config = Arc::new(config);
        pair.right.change(pair.now, &Change::SetConnection { connection: CONNECTION, config });
        assert_eq!(pair.right.numbers(), [2, 4, 6, 8], "window {window}");
        assert_eq!(pair.right.endpoint.connection(CONNECTION).stats().reorder.held, 0);
        pair.wait(KEEPALIVE, |_, _| true);
        assert_eq!(pair.right.numbers(), [], "and not again");
        arrive(&mut pair, &first);
        assert_eq!(pair.right.numbers(), [1, 3, 5, 7], "these are late");
    }
}

#[test]
fn a_window_that_was_off_begins_with_the_number_that_comes() {
    let reorder = ReorderConfig { window: 0, ..ReorderConfig::default() };
    let mut pair = Pair::up(&Settings { reorder, ..Settings::default() });
    // Enough that the first numbers are not waited for.
    let sent = send(&mut pair, 0..100);
    arrive(&mut pair, &sent);
    let set = |pair: &mut Pair, window| {
        let mut config = connection_config(2);
        config.reorder.window = window;
        let config = Arc::new(config);
        pair.right.change(pair.now, &Change::SetConnection { connection: CONNECTION, config });
    };
    for window in [64, 0, 64] {
        set(&mut pair, window);
        let sent = send(&mut pair, 10..30);
        arrive(&mut pair, &sent);
        // More than the reach, in which numbers are believed without a question.
        if window == 0 {
            let sent = send(&mut pair, 30..20_030);
            arrive(&mut pair, &sent);
        }
    }
    assert_eq!(pair.right.numbers().len(), 100 + 3 * 20 + 20_000);
    assert_eq!(pair.right.dropped_in_all(), 0);
    assert_nothing_lost(&pair.right);
}

#[test]
fn a_removed_connection_delivers_held_packets_and_notifies_the_peer() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..8);
    let rest: Vec<_> = sent.into_iter().filter(|sent| sent.path.0 == 0).collect();
    arrive(&mut pair, &rest);
    assert_eq!(pair.right.numbers(), [0]);
    pair.right.change(pair.now, &Change::RemoveConnection { connection: CONNECTION });
    assert_eq!(pair.right.numbers(), [2, 4, 6]);
    assert_eq!(pair.right.endpoint.connections().count(), 0);
    assert!(pair.right.send(pair.now, &packet(2, 0)).is_none(), "nothing leads to the peer");
    let farewell = pair.right.keepalives(pair.now);
    assert_eq!(farewell.len(), 2, "one on each path");
    farewell.iter().for_each(|sent| pair.left.receive(pair.now, sent));
    for path in 0..2 {
        assert_eq!(pair.left.state(path), PathState::Down(DownCause::PeerOff));
    }
    assert_eq!(pair.right.endpoint.poll_timeout(), None, "nothing is left of it");
    arrive(&mut pair, &rest);
    assert_eq!(pair.right.endpoint.drops().total(), 5, "4 datagrams and a packet of nobody");
}

#[test]
fn numbers_can_be_used_again() {
    let mut pair = Pair::up(&Settings::default());
    let sent = send(&mut pair, 0..8);
    arrive(&mut pair, &sent);
    pair.right.numbers();
    let add = |host| {
        let config = Arc::new(connection_config(host));
        Change::AddConnection { connection: CONNECTION, config, accepted_by: None }
    };
    let connection = Change::RemoveConnection { connection: CONNECTION };
    for (gone, [left, right]) in
        [(remove_path(1), [add_path(1, 1), add_path(2, 1)]), (connection, [add(1), add(2)])]
    {
        for host in [&mut pair.left, &mut pair.right] {
            host.change(pair.now, &gone);
        }
        pair.wait(KEEPALIVE, |_, _| true);
        pair.left.change(pair.now, &left);
        pair.right.change(pair.now, &right);
        pair.exchange(|_, _| true);
        for host in [&pair.left, &pair.right] {
            let view = host.endpoint.connection(CONNECTION).path(PathId(1));
            assert_eq!((view.state, view.stats.sent.packets), (PathState::Up, 0));
            assert!(view.stats.keepalives_received < 4, "it counts from zero");
        }
        let sent = send(&mut pair, 8..16);
        arrive_late(&mut pair, &sent, |sent| sent.path.0 == 1);
        assert_eq!(pair.right.numbers(), Vec::from_iter(8..16));
        assert_nothing_lost(&pair.right);
    }
}

#[test]
fn unknown_or_ending_paths_and_connections_do_not_change() {
    let mut pair = Pair::up(&Settings::default());
    let status = PathStatus::Available;
    let (connection, path) = (CONNECTION, PathId(1));
    pair.left.change(pair.now, &remove_path(1));
    let config = path_config(1, 1);
    for change in [
        Change::SetStatus { connection, path, status },
        Change::SetPath { connection, path, config },
        set_present(1, true),
        set_present(7, false),
        remove_path(7),
    ] {
        pair.left.change(pair.now, &change);
    }
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerOff));
    assert!(send(&mut pair, 0..4).iter().all(|sent| sent.path.0 == 0));

    // A connection of this number is there, with what it holds.
    let sent = send(&mut pair, 4..8);
    let config = Arc::new(connection_config(2));
    pair.right.change(pair.now, &Change::AddConnection { connection, config, accepted_by: None });
    arrive(&mut pair, &sent);
    assert_eq!(pair.right.state(0), PathState::Up);

    pair.left.change(pair.now, &Change::RemoveConnection { connection });
    let config = Arc::new(connection_config(1));
    pair.left.change(pair.now, &Change::SetConnection { connection, config });
    pair.left.change(pair.now, &add_path(1, 3));
    pair.exchange(|_, _| true);
    assert_eq!(pair.left.endpoint.poll_timeout(), None, "it has ended");
}

#[test]
fn switching_off_is_announced_with_a_changed_keepalive_interval() {
    let mut pair = Pair::up(&Settings::default());
    let keepalive = Some(Duration::from_millis(200));
    let config = PathConfig { keepalive, status: PathStatus::Off, ..path_config(1, 1) };
    let change = Change::SetPath { connection: CONNECTION, path: PathId(1), config };
    pair.left.change(pair.now, &change);
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::PeerOff));
}

#[test]
fn updates_about_removed_paths_are_ignored() {
    let now = Instant::ZERO + Duration::from_secs(1000);
    let settings = Settings::default();
    let (mut tx, mut rx) = Endpoint::new(&config(&settings, 1), now).unwrap().split();
    let mut peer = Host::new(&settings, 2, now);
    let mut inbox = Inbox::default();
    for sent in peer.keepalives(now) {
        let remote = outer_address(2, sent.path.0);
        let origin = Origin { socket: SocketId(u16::from(sent.path.0)), remote, tos: 0 };
        rx.arrivals(origin).handle_datagram(now, &mut sent.bytes.clone(), &mut inbox);
    }
    let path_updates: Vec<_> = std::iter::from_fn(|| rx.poll_message()).collect();
    let hears = |message: &Message| {
        let hearing = PathUpdate::Hearing { path: PathId(1), hearing: true };
        *message == Message::Update(hearing)
    };
    assert!(path_updates.iter().any(|(_, update)| hears(update)));
    tx.change(now, &remove_path(1));
    while tx.poll_transmit(now).is_some() {}
    let up = |path| Message::Update(PathUpdate::State { path: PathId(path), state: PathState::Up });
    let late = path_updates.iter().cloned().chain([0, 1, 63].map(|path| (CONNECTION, up(path))));
    late.clone().for_each(|(connection, update)| tx.handle_message(now, connection, update));
    for number in 0..4 {
        let sent = tx.handle_inner(now, &packet(1, number)).map(|sent| sent.path);
        assert_eq!(sent, Some(PathId(0)));
    }
    while let Some(sent) = tx.poll_transmit(now) {
        assert_eq!(sent.path, PathId(0));
    }
    tx.change(now, &Change::RemoveConnection { connection: CONNECTION });
    while tx.poll_transmit(now).is_some() {}
    late.for_each(|(connection, update)| tx.handle_message(now, connection, update));
    assert!(tx.handle_inner(now, &packet(1, 0)).is_none());
    assert_eq!((tx.poll_timeout(), tx.poll_event()), (None, None));
}

/// A host that was away hears its peer, who never ceased to send, before it has sent anything itself.
#[test]
fn a_restarted_host_announces_itself_even_if_it_hears_its_peer_first() {
    let settings = Settings::default();
    let mut pair = Pair::up(&settings);
    let sent = send(&mut pair, 0..40);
    arrive(&mut pair, &sent);
    pair.left = Host::new(&settings, 1, pair.now);
    let keepalives = pair.right.keepalives(pair.now + Duration::from_secs(1));
    pair.now += Duration::from_secs(1);
    assert_eq!(keepalives.len(), 2);
    keepalives.iter().for_each(|sent| pair.left.receive(pair.now, sent));
    pair.exchange(|_, _| true);
    let sent = send(&mut pair, 100..103);
    arrive(&mut pair, &sent);
    assert_eq!(pair.right.numbers().split_off(40), [100, 101, 102]);
}
