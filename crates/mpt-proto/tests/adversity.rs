//! What ordinary bad luck does to a pair of hosts: restarts over crippled connections, paths that
//! stand still, one-sided trouble, and memory that runs out.

use std::time::Duration;

use crate::pair::{
    CONNECTION, Host, Inbox, Pair, Sent, Settings, config, inner_address, outer_address, packet,
};
use mpt_proto::{
    Change, ConfigError, DownCause, Drop, Endpoint, Held, Instant, Late, Origin, PathId, PathState,
    PathStatus, Prefix, ReorderConfig, Sink, SocketId,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sends packets of these numbers from left to right.
fn carry(pair: &mut Pair, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        pair.right.receive(pair.now, &sent);
    }
}

#[test]
fn a_restart_with_a_path_cut_loses_nothing() {
    let mut pair = Pair::up(&Settings::default());
    pair.wait(ms(3000), |_, path| path.0 == 0);
    carry(&mut pair, 0..5000);
    pair.right.numbers();
    pair.left = Host::new(&Settings::default(), 1, pair.now);
    pair.exchange(|_, path| path.0 == 0);
    carry(&mut pair, 0..50);
    assert_eq!(pair.right.numbers(), (0..50).collect::<Vec<_>>());
}

#[test]
fn a_restart_with_a_path_switched_off_loses_nothing() {
    let mut pair = Pair::up(&Settings::default());
    let Host { endpoint, inbox, .. } = &mut pair.right;
    endpoint.set_path_status(pair.now, CONNECTION, PathId(1), PathStatus::Off, inbox);
    pair.exchange(|_, _| true);
    carry(&mut pair, 0..5000);
    pair.right.numbers();
    pair.left = Host::new(&Settings::default(), 1, pair.now);
    pair.exchange(|_, _| true);
    carry(&mut pair, 0..50);
    assert_eq!(pair.right.numbers(), (0..50).collect::<Vec<_>>());
}

/// A round trip on path 0 is quicker than one way on path 1.
#[test]
fn a_restart_over_paths_of_different_delay_loses_nothing() {
    let mut pair = Pair::up(&Settings::default());
    carry(&mut pair, 0..5000);
    pair.right.numbers();
    pair.left = Host::new(&Settings::default(), 1, pair.now);
    let mut on_the_way = Vec::new();
    for _ in 0..5 {
        for sent in pair.left.keepalives(pair.now) {
            if sent.path.0 == 0 {
                pair.right.receive(pair.now, &sent);
            } else {
                on_the_way.push(sent);
            }
        }
        for sent in pair.right.keepalives(pair.now).iter().filter(|sent| sent.path.0 == 0) {
            pair.left.receive(pair.now, sent);
        }
    }
    assert_eq!(pair.left.state(0), PathState::Up);
    carry(&mut pair, 0..20);
    on_the_way.iter().for_each(|sent| pair.right.receive(pair.now, sent));
    pair.exchange(|_, _| true);
    carry(&mut pair, 20..50);
    assert_eq!(pair.right.numbers(), (0..50).collect::<Vec<_>>());
}

/// A path stands still for longer than packets are held, and then brings its queue in one go.
#[test]
fn a_burst_of_late_packets_is_no_restart() {
    let mut pair = Pair::up(&Settings::default());
    let mut queue = Vec::new();
    for number in 0..400 {
        pair.now += ms(1);
        pair.right.endpoint.handle_timeout(pair.now, &mut pair.right.inbox);
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        if sent.path.0 == 0 {
            pair.right.receive(pair.now, &sent);
        } else {
            queue.push(sent);
        }
    }
    pair.right.events();
    queue[..100].iter().for_each(|sent| pair.right.receive(pair.now, sent));
    assert_eq!(pair.right.events(), []);
    assert_eq!(pair.right.endpoint.connection(CONNECTION).stats().reorder.restarts, 0);
}

/// This end finds the MTU of a path too small, the peer does not and continues to send there.
#[test]
fn an_overtaken_keepalive_is_ignored() {
    let mut pair = Pair::up(&Settings::default());
    let mut switch = |status| {
        pair.now += ms(1);
        let Host { endpoint, inbox, .. } = &mut pair.left;
        endpoint.set_path_status(pair.now, CONNECTION, PathId(1), status, inbox);
        pair.left.keepalives(pair.now)
    };
    let off: Vec<Sent> = switch(PathStatus::Off);
    let on: Vec<Sent> = switch(PathStatus::Available);
    pair.now += ms(40);
    let later = pair.now;
    on.iter().chain(&off).for_each(|sent| pair.right.receive(later, sent));
    let deaf = PathState::Down(DownCause::PeerDeaf);
    assert_eq!(pair.right.state(1), deaf, "it restarts, and is not off");

    // This does not apply to a restarted peer, whose clock went back far or which had sent
    // something.
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(1), PathState::Up);
    let back = |pair: &mut Pair, millis| {
        let earlier = Instant::ZERO + pair.now.since(Instant::ZERO + ms(millis));
        pair.left = Host::new(&Settings::default(), 1, earlier);
        pair.left.keepalives(earlier).iter().for_each(|sent| pair.right.receive(pair.now, sent));
        assert_eq!(pair.right.state(1), deaf, "{millis} ms");
        pair.exchange(|_, _| true);
        assert_eq!(pair.right.state(1), PathState::Up, "{millis} ms");
    };
    back(&mut pair, 2000);
    carry(&mut pair, 0..10);
    pair.wait(ms(500), |_, _| true);
    back(&mut pair, 300);
    pair.right.numbers();
    carry(&mut pair, 0..10);
    assert_eq!(pair.right.numbers(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_path_unusable_in_one_direction_is_waited_for_in_the_other() {
    let reorder = ReorderConfig { late: Late::Drop, ..ReorderConfig::default() };
    let mut pair = Pair::up(&Settings { reorder, ..Settings::default() });
    let Host { endpoint, inbox, .. } = &mut pair.right;
    let change = Change::SetFits { connection: CONNECTION, path: PathId(1), fits: false };
    endpoint.change(pair.now, &change, inbox);
    pair.exchange(|_, _| true);
    let mut overtaken: Option<Sent> = None;
    for number in 0..100 {
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        if sent.path.0 == 0 {
            pair.right.receive(pair.now, &sent);
            if let Some(sent) = overtaken.take() {
                pair.right.receive(pair.now, &sent);
            }
        } else {
            overtaken = Some(sent);
        }
    }
    assert_eq!(pair.right.dropped(Drop::Late), 0);
}

#[test]
fn a_dead_path_that_flaps_does_not_disturb_the_others_shares() {
    let mut pair = Pair::up(&Settings { weights: vec![1, 1, 1], ..Settings::default() });
    let mut keepalive = pair.right.keepalives(pair.now + ms(1000)).remove(2);
    let mut counts = [0; 3];
    for number in 0..100 {
        keepalive.bytes[5] = 1 + (number % 2) as u8; // deaf, off, deaf, off ...
        pair.left.receive(pair.now, &keepalive);
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("two paths are up");
        counts[usize::from(sent.path.0)] += 1;
    }
    assert_eq!(counts, [50, 50, 0]);
}

#[test]
fn without_a_dead_time_a_deaf_peer_takes_an_up_path_down() {
    let mut pair = Pair::new(&Settings { dead_time: None, ..Settings::default() });
    assert_eq!(pair.left.state(0), PathState::Up);
    let mut keepalive = pair.right.keepalives(pair.now).remove(0);
    keepalive.bytes[5] = 1;
    pair.left.receive(pair.now, &keepalive);
    assert_eq!(pair.left.state(0), PathState::Down(DownCause::PeerDeaf));
}

/// A peer without keepalives could never take back what a forged one says.
#[test]
fn a_forged_keepalive_of_a_peer_without_keepalives_is_dropped() {
    let mut pair = Pair::new(&Settings { keepalive: None, dead_time: None, ..Settings::default() });
    let mut forged = Pair::new(&Settings::default()).right.keepalives(pair.now).remove(0);
    forged.bytes[5] = 2;
    pair.left.receive(pair.now, &forged);
    assert_eq!(pair.left.state(0), PathState::Up);
    assert_eq!(pair.left.dropped(Drop::ControlUnknown), 1);
}

#[test]
fn keepalives_name_the_address_that_the_peer_knows() {
    let settings = Settings { weights: vec![1], ..Settings::default() };
    let prefix = |address| Prefix::new(address, 24).expect("24 bits");
    let mut left = config(&settings, 1);
    left.addresses = vec![prefix([10, 8, 0, 1].into()), prefix(inner_address(1))];
    let mut pair = Pair::new(&settings);
    pair.left.endpoint = Endpoint::new(&left, pair.now).unwrap();
    pair.exchange(|_, _| true);
    assert_eq!(pair.right.state(0), PathState::Up);
    assert_eq!(pair.right.dropped(Drop::ControlAddress), 0);
}

/// Counts, and never has room.
#[derive(Default)]
struct Full {
    delivered: u32,
}

impl Sink for Full {
    fn deliver(&mut self, _: &[u8]) {
        self.delivered += 1;
    }

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        unreachable!("nothing was held")
    }
}

#[test]
fn without_memory_to_hold_packets_a_loss_does_not_stop_the_rest() {
    let mut pair = Pair::up(&Settings { weights: vec![1], ..Settings::default() });
    let mut sink = Full::default();
    for number in (0..10_000).filter(|&number| number != 10) {
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        let origin = Origin { socket: SocketId(0), remote: outer_address(1, 0), tos: 0 };
        pair.right.endpoint.handle_datagram(pair.now, origin, &mut sent.bytes.clone(), &mut sink);
    }
    assert_eq!(sink.delivered, 9_999);
}

#[test]
fn times_of_zero_are_refused() {
    for settings in [
        Settings { keepalive: Some(Duration::ZERO), ..Settings::default() },
        Settings { dead_time: Some(Duration::ZERO), ..Settings::default() },
    ] {
        let refused = Endpoint::new(&config(&settings, 1), Instant::ZERO).err();
        assert_eq!(refused, Some(ConfigError::ZeroTime { connection: 0, path: 0 }));
    }
}

#[test]
fn a_path_that_is_off_from_the_start_sends_nothing() {
    let mut config = config(&Settings::default(), 1);
    config.connections[0].paths[0].status = PathStatus::Off;
    let endpoint = Endpoint::new(&config, Instant::ZERO).unwrap();
    let mut host = Host { number: 1, endpoint, inbox: Inbox::default() };
    let paths: Vec<_> = host.keepalives(Instant::ZERO).iter().map(|sent| sent.path.0).collect();
    assert_eq!(paths, [1]);
}
