//! Peers of other kinds: the original MPT, frame by frame as captured, and RFC 8086 endpoints that
//! support only GRE.

use std::time::Duration;

use crate::pair::{
    CONNECTION, Host, Inbox, Sent, Settings, config, inner_address, inner_address_v6, packet,
    packet_v6,
};
use mpt_proto::{
    Change, ConfigError, DownCause, Drop, Endpoint, EndpointConfig, Event, Instant, PathId,
    PathState, PathStatus, PeerKind, Prefix, ReorderConfig, Seq,
};

const START: Instant = Instant::ZERO;
const SECOND: Duration = Duration::from_secs(1);

/// What the original sends from 10.9.0.1 to 10.9.0.2 and back: its captured frame with these
/// addresses.
const KEEPALIVES: [&str; 2] = [
    "00000800a10000000004000000000000000000000000ffff0a09000100000000000000000000ffff0a090002",
    "00000800a10000000004000000000000000000000000ffff0a09000200000000000000000000ffff0a090001",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn keepalive(path: u8) -> Sent {
    Sent { path: PathId(path), bytes: bytes(KEEPALIVES[1]) }
}

/// Inner packet `number` as the peer sends it, with a sequence number if `seq` has one.
fn data(path: u8, seq: Option<u32>, number: u32) -> Sent {
    let header = match seq {
        Some(seq) => [&bytes("10000800")[..], &seq.to_be_bytes()].concat(),
        None => bytes("00000800"),
    };
    Sent { path: PathId(path), bytes: [header, packet(2, number)].concat() }
}

/// The settings of host 1 towards an original at 10.9.0.2.
fn original(settings: &Settings) -> EndpointConfig {
    let mut config = config(settings, 1);
    config.connections[0].peer_kind = PeerKind::Original;
    config.connections[0].peer.truncate(1);
    config
}

/// The settings of host 1 towards an endpoint of RFC 8086.
fn gre(settings: &Settings) -> EndpointConfig {
    let mut config = config(settings, 1);
    config.connections[0].peer_kind = PeerKind::Gre;
    config
}

fn without_times() -> Settings {
    Settings { keepalive: None, dead_time: None, sequence: false, ..Settings::default() }
}

fn host(config: &EndpointConfig) -> Host {
    let endpoint = Endpoint::new(config, START).expect("good settings");
    Host { number: 1, endpoint, inbox: Inbox::default() }
}

/// Every keepalive of the next `time`, with when it was sent; `peer` may do something every 100 ms.
fn wait(
    host: &mut Host,
    now: &mut Instant,
    time: Duration,
    mut peer: impl FnMut(&mut Host, Instant),
) -> Vec<(Duration, Sent)> {
    let mut sent = Vec::new();
    let end = *now + time;
    while *now < end {
        host.endpoint.handle_timeout(*now, &mut host.inbox);
        peer(host, *now);
        sent.extend(host.keepalives(*now).into_iter().map(|it| (now.since(START), it)));
        *now += Duration::from_millis(100);
    }
    sent
}

#[test]
fn an_original_gets_its_own_keepalives_at_a_fixed_interval_in_every_state() {
    let mut host = host(&original(&Settings { weights: vec![1], ..Settings::default() }));
    let mut now = START;
    // Silent for 3 s, heard for 3 s, silent again: probing, up, down.
    let sent = wait(&mut host, &mut now, 9 * SECOND, |host, now| {
        let at = now.since(START).as_millis();
        if (3000..6000).contains(&at) {
            host.receive(now, &keepalive(0));
        }
    });
    assert_eq!(host.state(0), PathState::Down(DownCause::Silent));
    for (at, sent) in &sent {
        assert_eq!(sent.bytes, bytes(KEEPALIVES[0]), "{at:?}");
        assert!(at.as_millis().is_multiple_of(500), "{at:?}");
    }
    assert_eq!(sent.len(), 18, "one at once and one each half second, no more and no less");
}

#[test]
fn a_path_that_is_switched_off_sends_an_original_nothing_and_begins_at_once_when_on_again() {
    let mut host = host(&original(&Settings::default()));
    let mut now = START;
    assert_eq!(host.keepalives(now).len(), 2);
    let status = |status| Change::SetStatus { connection: CONNECTION, path: PathId(0), status };
    host.change(now, &status(PathStatus::Off));
    let sent = wait(&mut host, &mut now, 3 * SECOND, |_, _| {});
    assert!(
        sent.iter().all(|(_, sent)| sent.path == PathId(1)),
        "also no leave is taken: {sent:?}"
    );
    host.change(now, &status(PathStatus::Available));
    assert!(host.keepalives(now).iter().any(|sent| sent.path == PathId(0)));
    host.endpoint.close(now, &mut host.inbox);
    assert!(host.keepalives(now + SECOND).is_empty());
}

#[test]
fn lost_and_standby_paths_are_not_reported_to_an_original() {
    let mut config = original(&Settings { weights: vec![1, 1, 1], ..Settings::default() });
    config.connections[0].paths[2].priority = 1;
    let mut host = host(&config);
    host.keepalives(START);
    (0..3).for_each(|path| host.receive(START, &keepalive(path)));
    let unnoticed = Duration::ZERO;
    let present =
        |path, present| Change::SetPresent { connection: CONNECTION, path, present, unnoticed };
    host.change(START, &present(PathId(0), false));
    host.change(START, &present(PathId(1), false));
    assert!(host.keepalives(START).is_empty(), "nothing is told, so nothing at once");
    let sent = host.keepalives(START + SECOND);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].bytes, bytes(KEEPALIVES[0]));
    assert_eq!(host.send(START, &packet(1, 0)).map(|sent| sent.path), Some(PathId(2)));
}

#[test]
fn of_an_originals_keepalives_only_the_arrival_counts() {
    let mut host = host(&original(&Settings::default()));
    assert_eq!(host.state(0), PathState::Probing);
    host.receive(START, &keepalive(0));
    assert_eq!(host.state(0), PathState::Up, "one frame is enough");
    host.receive(START, &data(1, None, 1));
    assert_eq!(host.state(1), PathState::Up, "data is a sign of life too");

    // All that our own kind would say: deaf, off, standby, another path lost, a trailer.
    let mut ours = keepalive(0);
    ours.bytes[5] = 0x07;
    ours.bytes[6..8].copy_from_slice(&1472_u16.to_be_bytes());
    ours.bytes[10..12].copy_from_slice(&[1, 2]);
    ours.bytes.extend([0; 16]);
    let mut other = keepalive(1);
    other.bytes[10] = 2;
    host.receive(START, &other);
    host.receive(START + SECOND, &ours);
    assert_eq!([host.state(0), host.state(1)], [PathState::Up; 2]);
    assert_eq!(host.dropped_in_all(), 0);

    let after = START + Duration::from_millis(1750);
    host.endpoint.handle_timeout(after, &mut host.inbox);
    assert_eq!([host.state(0), host.state(1)], [PathState::Up, PathState::Down(DownCause::Silent)]);
    host.receive(after, &keepalive(1));
    assert_eq!(host.state(1), PathState::Up, "without hysteresis");
}

#[test]
fn without_a_dead_time_an_original_is_always_up_and_its_keepalives_are_accepted() {
    let settings = Settings { keepalive: None, dead_time: None, ..Settings::default() };
    let mut host = host(&original(&settings));
    host.receive(START, &keepalive(0));
    let mut now = START;
    assert!(wait(&mut host, &mut now, 60 * SECOND, |_, _| {}).is_empty());
    assert_eq!([host.state(0), host.state(1)], [PathState::Up; 2]);
    assert_eq!(host.dropped_in_all(), 0);
}

#[test]
fn an_original_that_leaves_its_own_ipv6_address_out_is_heard() {
    let mut config = original(&Settings::default());
    config.connections[0].peer = vec![inner_address_v6(2)];
    let mut host = host(&config);
    let from = |sender: [u8; 16]| {
        let bytes = [
            &bytes("000086dda100000000060000")[..],
            &sender,
            &bytes("fd000009000000000000000000000001"),
        ];
        Sent { path: PathId(0), bytes: bytes.concat() }
    };
    host.receive(START, &from([0xfe; 16]));
    assert_eq!((host.state(0), host.dropped(Drop::ControlAddress)), (PathState::Probing, 1));
    host.receive(START, &from([0; 16]));
    assert_eq!(host.state(0), PathState::Up);
}

#[test]
fn numbers_to_an_original_begin_at_0_with_the_first_packet_on_a_path_that_is_heard() {
    let mut host = host(&original(&Settings::default()));
    assert!(host.send(START, &packet(1, 0)).is_none(), "nothing is heard, so no number is spent");
    host.receive(START, &keepalive(1));
    for number in 0..3_u32 {
        let sent = host.send(START, &packet(1, number)).unwrap();
        assert_eq!(sent.path, PathId(1));
        let expected = [&bytes("10000800")[..], &number.to_be_bytes(), &packet(1, number)].concat();
        assert_eq!(sent.bytes, expected, "S is the only flag");
    }
    assert!(host.send(START, &packet_v6(1)).is_none());
    assert_eq!(host.dropped(Drop::NoRoute), 1, "one connection carries one IP version");
    let unordered = ReorderConfig { window: 0, ..ReorderConfig::default() };
    let settings = Settings { sequence: false, reorder: unordered, ..Settings::default() };
    let mut host = self::host(&original(&settings));
    host.receive(START, &keepalive(0));
    let sent = host.send(START, &packet(1, 9)).unwrap();
    assert_eq!(sent.bytes, [bytes("00000800"), packet(1, 9)].concat());
}

/// Offers the numbers `from..to` of the peer, by the two paths in turn.
fn offer(host: &mut Host, now: Instant, numbers: std::ops::Range<u32>) {
    for number in numbers {
        host.receive(now, &data(number as u8 % 2, Some(number), number));
    }
}

#[test]
fn a_restarted_original_loses_nothing_after_its_first_keepalive() {
    for before in [1, 20, 1000, 20_000] {
        let mut host = host(&original(&Settings::default()));
        (0..2).for_each(|path| host.receive(START, &keepalive(path)));
        offer(&mut host, START, 0..before);
        assert_eq!(host.numbers(), Vec::from_iter(0..before));
        (0..2).for_each(|path| host.receive(START + SECOND, &keepalive(path)));
        offer(&mut host, START + SECOND, 0..5);
        assert_eq!(host.numbers(), [0, 1, 2, 3, 4], "after {before}");
        let restart = |event: &Event| {
            matches!(event, Event::Restart { expected, found, .. }
                if *expected == Seq::new(before) && *found == Seq::FIRST)
        };
        assert_eq!(host.events().iter().filter(|event| restart(event)).count(), 1);
    }
}

#[test]
fn a_restart_of_an_original_without_keepalives_is_detected_by_numbers() {
    let mut host = host(&original(&Settings::default()));
    offer(&mut host, START, 0..1000);
    host.numbers();
    offer(&mut host, START + SECOND, 0..100);
    assert_eq!(host.numbers(), Vec::from_iter(31..100), "the 32nd in a row is believed");
}

#[test]
fn a_late_packet_behind_a_keepalive_of_an_original_is_no_restart() {
    let mut host = host(&original(&Settings::default()));
    (0..2).for_each(|path| host.receive(START, &keepalive(path)));
    [0, 2, 3, 4].into_iter().for_each(|n| host.receive(START, &data(0, Some(n), n)));
    let later = START + Duration::from_millis(100);
    host.endpoint.handle_timeout(later, &mut host.inbox);
    host.receive(later, &keepalive(0));
    host.receive(later, &data(1, Some(1), 1));
    host.receive(later, &data(0, Some(5), 5));
    assert_eq!(host.numbers(), [0, 2, 3, 4, 1, 5], "5 follows 4 and waits for nothing");
}

#[test]
fn a_path_that_an_original_reports_down_is_unused_until_used_or_reported_up() {
    let mut host = host(&original(&Settings::default()));
    (0..2).for_each(|path| host.receive(START, &keepalive(path)));
    let down = |down| Change::SetPeerDown { connection: CONNECTION, path: PathId(0), down };
    let told = PathState::Down(DownCause::PeerDown);
    host.change(START, &down(true));
    assert_eq!(host.state(0), told);
    assert_eq!(host.send(START, &packet(1, 0)).map(|sent| sent.path), Some(PathId(1)));
    host.receive(START, &data(0, Some(0), 0));
    assert_eq!(host.state(0), told, "what was in flight is delivered and takes nothing back");
    assert_eq!(host.numbers(), [0]);
    let at = |millis| START + Duration::from_millis(millis);
    host.receive(at(600), &keepalive(0));
    assert_eq!(host.state(0), told, "the original goes on with keepalives, whatever it said");
    host.receive(at(1000), &data(0, Some(1), 1));
    assert_eq!(host.state(0), PathState::Up, "what it uses is up");
    host.change(at(1000), &down(true));
    host.change(at(1000), &down(false));
    assert_eq!(host.state(0), PathState::Up);

    // Nothing is sent, so after a while a keepalive has to do.
    host.change(at(2000), &down(true));
    host.receive(at(4999), &keepalive(0));
    assert_eq!(host.state(0), told);
    host.receive(at(5000), &keepalive(0));
    assert_eq!(host.state(0), PathState::Up);
    // The peer sends, but not there: the hole is still there, and nothing is sent into it for longer.
    for number in 2..40 {
        host.receive(at(5100), &data(1, Some(number), number));
    }
    host.receive(at(5200), &keepalive(0));
    assert_eq!(host.state(0), told);
    for millis in (5300..11_200).step_by(500) {
        host.receive(at(millis), &keepalive(0));
        assert_eq!(host.state(0), told, "{millis}");
    }
    host.receive(at(11_200), &keepalive(0));
    assert_eq!(host.state(0), PathState::Up);
}

#[test]
fn up_by_a_command_is_as_good_as_a_keepalive() {
    let mut host = host(&original(&Settings::default()));
    let down = |down| Change::SetPeerDown { connection: CONNECTION, path: PathId(0), down };
    assert_eq!(host.state(0), PathState::Probing);
    host.change(START, &down(false));
    assert_eq!(host.state(0), PathState::Up, "before the change it waited for a keepalive");
}

#[test]
fn an_rfc_8086_endpoint_gets_only_inner_packets_and_is_up() {
    for (key, checksum, sequence) in [(None, false, false), (Some(7), true, true)] {
        let mut host = host(&gre(&Settings { key, checksum, sequence, ..without_times() }));
        assert_eq!([host.state(0), host.state(1)], [PathState::Up; 2]);
        for inner in [packet(1, 0), packet_v6(1)] {
            let sent = host.send(START, &inner).unwrap();
            let flags = if key.is_some() { 0xb0 } else { 0 };
            assert_eq!(sent.bytes[0], flags);
            assert!(sent.bytes.ends_with(&inner));
        }
        let mut now = START;
        let present = |present| Change::SetPresent {
            connection: CONNECTION,
            path: PathId(0),
            present,
            unnoticed: Duration::ZERO,
        };
        let sent = wait(&mut host, &mut now, 60 * SECOND, |host, now| {
            let at = now.since(START).as_millis();
            if at == 1000 || at == 2000 {
                host.change(now, &present(at == 2000));
                let absent = PathState::Down(DownCause::Absent);
                assert_eq!(host.state(0), if at == 1000 { absent } else { PathState::Up });
            }
        });
        assert!(sent.is_empty(), "{sent:?}");
        host.endpoint.close(now, &mut host.inbox);
        assert!(host.keepalives(now).is_empty());
    }
}

#[test]
fn control_messages_from_an_endpoint_of_rfc_8086_are_unknown_whatever_they_look_like() {
    let mut host = host(&gre(&without_times()));
    let mut sent = keepalive(0);
    sent.bytes[5] = 0x02;
    host.receive(START, &sent);
    sent.bytes.truncate(7);
    host.receive(START, &sent);
    sent.bytes[4] = 0xff;
    host.receive(START, &sent);
    assert_eq!(host.dropped(Drop::ControlUnknown), 3);
    assert_eq!(host.state(0), PathState::Up, "nothing forged takes the path down");
}

#[test]
fn settings_that_a_kind_of_peer_would_not_understand_are_refused() {
    let refused = |config: &EndpointConfig| {
        matches!(Endpoint::new(config, START), Err(ConfigError::PeerKind { connection: 0, .. }))
    };
    let fine = original(&Settings::default());
    assert!(!refused(&fine));
    let with = |change: fn(&mut mpt_proto::ConnectionConfig)| {
        let mut config = fine.clone();
        change(&mut config.connections[0]);
        refused(&config)
    };
    assert!(with(|connection| connection.key = Some(7)));
    assert!(with(|connection| connection.checksum = true));
    assert!(with(|connection| connection.sequence = false));
    assert!(with(|connection| connection.reorder.window = 0));
    assert!(with(|connection| connection.peer.push(inner_address_v6(2))));
    assert!(with(|connection| connection.networks = vec![Prefix::host(inner_address_v6(9))]));
    assert!(!with(|connection| connection.networks = vec![Prefix::host(inner_address(9))]));
    assert!(!refused(&gre(&without_times())));
    assert!(refused(&gre(&Settings { keepalive: Some(SECOND), ..without_times() })));
    assert!(refused(&gre(&Settings { dead_time: Some(SECOND), ..without_times() })));
}
