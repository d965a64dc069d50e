//! Sealed framing between two endpoints whose every datagram the test holds in its hand: what an attacker on the way, or
//! one who has recorded everything, can bring about.

use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, outer_address, packet};
use mpt_proto::{
    Cipher, Ciphers, ConnectionStats, Drop, Drops, Endpoint, EndpointConfig, Event, FramingConfig,
    HostKeys, Instant, KEY_LEN, PathId, PathState, PeerKeys, PrivateKey, Secret,
};

/// The wall clock when that of the core is zero.
const CLOCK_ZERO: Duration = Duration::from_secs(1_800_000_000);

const DAY: Duration = Duration::from_secs(24 * 3600);
const STEP: Duration = Duration::from_millis(50);

/// Kinds of datagrams (section 8.1 of `docs/protocol.md`).
const INITIATION: u8 = 3;
const RESPONSE: u8 = 4;
const COOKIE_REPLY: u8 = 13;

/// A stranger, who has a key that nobody has been told.
const STRANGER: u8 = 9;

fn private(number: u8) -> PrivateKey {
    PrivateKey::new([number; KEY_LEN])
}

/// A host as the core takes it, at its start number `start`, by a clock that was at `clock` when the core's was zero.
fn sealed(number: u8, keys_of: u8, start: u8, clock: Duration) -> EndpointConfig {
    let mut config = config(&Settings::default(), number);
    let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
    let seed = [16 * keys_of + start; KEY_LEN];
    config.keys = Some(HostKeys::new(private(keys_of), ciphers, seed, clock));
    config.secret = Secret::new([16 * keys_of + start; 16]);
    let connection = &mut config.connections[0];
    connection.framing = FramingConfig::Sealed;
    connection.peer_keys =
        Some(PeerKeys { public: private(3 - number).public(), preshared: None, invitation: None });
    config
}

fn host(now: Instant, number: u8, start: u8, clock: Duration) -> Host {
    let endpoint = Endpoint::new(&sealed(number, number, start, clock), now);
    Host { number, endpoint: endpoint.expect("good settings"), inbox: Inbox::default() }
}

fn new_pair() -> Pair {
    let now = Instant::ZERO + Duration::from_secs(1000);
    Pair { now, left: host(now, 1, 1, CLOCK_ZERO), right: host(now, 2, 1, CLOCK_ZERO) }
}

fn up() -> Pair {
    let mut pair = new_pair();
    pair.wait(Duration::from_secs(1), |_, _| true);
    assert!(is_up(&pair), "{}", state(&pair));
    for host in [&mut pair.left, &mut pair.right] {
        host.events();
    }
    pair
}

fn is_up(pair: &Pair) -> bool {
    [&pair.left, &pair.right].iter().all(|host| {
        let has_session = host.endpoint.connection(CONNECTION).has_session();
        has_session && (0..2).all(|path| host.state(path) == PathState::Up)
    })
}

/// What a failure shows.
fn state(pair: &Pair) -> String {
    [&pair.left, &pair.right].map(observed).join("\n")
}

/// All that can be seen of a host, but for what it has dropped.
fn observed(host: &Host) -> String {
    let connection = host.endpoint.connection(CONNECTION);
    let paths: Vec<_> = connection.paths().map(|path| connection.path(path)).collect();
    let stats = ConnectionStats { drops: Drops::default(), ..connection.stats() };
    let (sealed, due) = (connection.sealed(), host.endpoint.poll_timeout());
    let delivered = host.inbox.delivered.len();
    format!("{sealed:?} {paths:?} {stats:?} {due:?} {delivered} delivered")
}

/// A host gets a datagram, which it must drop and count, and which must change nothing.
fn drops(host: &mut Host, now: Instant, sent: &Sent, what: &str) {
    let (before, count) = (observed(host), host.dropped_in_all());
    host.receive(now, sent);
    assert_eq!(host.dropped_in_all(), count + 1, "{what} is counted once");
    assert_eq!(observed(host), before, "{what} changes nothing");
    assert_eq!(host.events(), [], "{what} is not heard of");
    let answers = host.keepalives(now);
    assert!(answers.is_empty(), "{what} is answered: {answers:?}");
}

/// A host drops a datagram for this reason.
fn drops_as(host: &mut Host, now: Instant, sent: &Sent, reason: Drop) {
    let before = host.dropped(reason);
    drops(host, now, sent, reason.name());
    assert_eq!(host.dropped(reason), before + 1, "dropped as {}", reason.name());
}

/// The kind of a datagram of extended framing: behind the GRE header, the key, and the sequence if there is one.
fn kind(sent: &Sent) -> u8 {
    let at = if sent.bytes[0] & 0x10 == 0 { 8 } else { 12 };
    sent.bytes[at] >> 4
}

/// Exchanges what is due of those kinds and directions that pass, and returns all that was sent.
fn exchange(pair: &mut Pair, passes: impl Fn(u8, u8) -> bool) -> Vec<(u8, Sent)> {
    let mut all = Vec::new();
    loop {
        let both = [(1, pair.left.keepalives(pair.now)), (2, pair.right.keepalives(pair.now))];
        if both.iter().all(|(_, sent)| sent.is_empty()) {
            return all;
        }
        for (from, sent) in both {
            let to = if from == 1 { &mut pair.right } else { &mut pair.left };
            for sent in &sent {
                if passes(from, kind(sent)) {
                    to.receive(pair.now, sent);
                }
            }
            all.extend(sent.into_iter().map(|sent| (from, sent)));
        }
    }
}

/// Lets a time pass, as [`exchange`] does.
fn run(pair: &mut Pair, time: Duration, passes: impl Fn(u8, u8) -> bool) -> Vec<(u8, Sent)> {
    let (end, mut all) = (pair.now + time, Vec::new());
    while pair.now < end {
        pair.now += STEP;
        for host in [&mut pair.left, &mut pair.right] {
            host.endpoint.handle_timeout(pair.now, &mut host.inbox);
        }
        all.extend(exchange(pair, &passes));
    }
    all
}

/// Packets from either host arrive at the other.
fn carries(pair: &mut Pair, number: u32) {
    for (from, to) in [(1, 2), (2, 1)] {
        let (sender, receiver) = match from {
            1 => (&mut pair.left, &mut pair.right),
            _ => (&mut pair.right, &mut pair.left),
        };
        receiver.inbox.delivered.clear();
        let sent = sender.send(pair.now, &packet(from, number)).expect("a path is up");
        receiver.receive(pair.now, &sent);
        assert_eq!(receiver.numbers(), [number], "from {from} to {to}");
    }
}

fn sessions(host: &mut Host) -> usize {
    host.events().iter().filter(|event| matches!(event, Event::Session { .. })).count()
}

#[test]
fn no_bit_of_any_datagram_can_be_changed_and_the_true_one_still_counts() {
    let mut pair = up();
    // One of each kind that a session has, and data of either direction's longest kind.
    let data = pair.left.send(pair.now, &packet(1, 7)).expect("a path is up");
    let sent = run(&mut pair, Duration::from_secs(1), |_, _| false);
    let mut samples = vec![data];
    for (_, sent) in sent.into_iter().filter(|(from, _)| *from == 1) {
        let is_new = samples.iter().all(|sample| kind(sample) != kind(&sent));
        if is_new && ![INITIATION, RESPONSE].contains(&kind(&sent)) {
            samples.push(sent);
        }
    }
    assert!(samples.len() >= 3, "{:?}", samples.iter().map(kind).collect::<Vec<_>>());
    for true_one in &samples {
        for bit in 0..true_one.bytes.len() * 8 {
            let mut forged = true_one.clone();
            forged.bytes[bit / 8] ^= 1 << (bit % 8);
            drops(
                &mut pair.right,
                pair.now,
                &forged,
                &format!("kind {}, bit {bit}", kind(true_one)),
            );
        }
        for len in 0..true_one.bytes.len() {
            let cut = Sent { path: true_one.path, bytes: true_one.bytes[..len].to_vec() };
            drops(
                &mut pair.right,
                pair.now,
                &cut,
                &format!("kind {}, {len} bytes", kind(true_one)),
            );
        }
    }
    let heard = |host: &Host| host.endpoint.connection(CONNECTION).path(PathId(0)).last_heard;
    for true_one in &samples {
        let before = pair.right.dropped_in_all();
        pair.right.receive(pair.now, true_one);
        assert_eq!(pair.right.dropped_in_all(), before, "kind {}", kind(true_one));
    }
    assert_eq!(pair.right.numbers(), [7]);
    assert_eq!(heard(&pair.right), Some(pair.now));
}

#[test]
fn what_was_received_once_is_dropped_within_the_window_behind_it_and_under_later_keys() {
    let mut pair = up();
    let mut recorded = Vec::new();
    for number in 0..20_000 {
        let sent = pair.left.send(pair.now, &packet(1, number)).expect("a path is up");
        pair.right.receive(pair.now, &sent);
        recorded.push(sent);
    }
    assert_eq!(pair.right.numbers().len(), 20_000);
    // Ten thousand on each of two paths: the window has 8192.
    for number in [0, 1, 999, 10_000, 19_998, 19_999] {
        drops_as(&mut pair.right, pair.now, &recorded[number], Drop::SealReplay);
    }
    let epoch =
        |pair: &Pair| pair.right.endpoint.connection(CONNECTION).sealed().map(|it| it.epoch);
    assert_eq!(epoch(&pair), Some(1));
    while epoch(&pair) == Some(1) {
        run(&mut pair, STEP, |_, _| true);
    }
    pair.right.events();
    drops_as(&mut pair.right, pair.now, &recorded[19_999], Drop::SealReplay);
    // The keys before are forgotten after 10 s.
    run(&mut pair, Duration::from_secs(11), |_, _| true);
    pair.right.events();
    drops_as(&mut pair.right, pair.now, &recorded[19_999], Drop::UnknownIndex);
    carries(&mut pair, 1);
}

#[test]
fn what_was_recorded_before_a_restart_of_either_host_is_dropped_after_it() {
    for left in [false, true] {
        let mut pair = up();
        let data = pair.left.send(pair.now, &packet(1, 3)).expect("a path is up");
        pair.right.receive(pair.now, &data);
        let never_received = pair.left.send(pair.now, &packet(1, 4)).expect("a path is up");
        if left {
            pair.left = host(pair.now, 1, 2, CLOCK_ZERO);
        } else {
            pair.right = host(pair.now, 2, 2, CLOCK_ZERO);
            exchange(&mut pair, |_, _| false);
            drops_as(&mut pair.right, pair.now, &data, Drop::UnknownIndex);
        }
        run(&mut pair, Duration::from_secs(30), |_, _| true);
        assert!(is_up(&pair), "{}", state(&pair));
        for host in [&mut pair.left, &mut pair.right] {
            host.events();
        }
        drops_as(&mut pair.right, pair.now, &data, Drop::UnknownIndex);
        drops_as(&mut pair.right, pair.now, &never_received, Drop::UnknownIndex);
        carries(&mut pair, 5);
    }
}

#[test]
fn recorded_handshakes_bring_about_nothing() {
    let mut pair = new_pair();
    let sent = run(&mut pair, Duration::from_secs(1), |_, _| true);
    assert!(is_up(&pair), "{}", state(&pair));
    for host in [&mut pair.left, &mut pair.right] {
        assert_eq!(sessions(host), 1);
    }
    let of = |wanted: u8| sent.iter().filter(move |(_, sent)| kind(sent) == wanted);
    assert!(of(INITIATION).count() > 0 && of(RESPONSE).count() > 0);
    for (from, initiation) in of(INITIATION) {
        let to = if *from == 1 { &mut pair.right } else { &mut pair.left };
        // That to the host with precedence is one which it has never answered; it is older than the session all the same.
        drops_as(to, pair.now, initiation, Drop::HandshakeReplay);
    }
    for (from, response) in of(RESPONSE) {
        let to = if *from == 1 { &mut pair.right } else { &mut pair.left };
        drops(to, pair.now, response, "a response");
    }
    // A host that was started anew does not remember what it has answered. It answers, and its peer wants no answer.
    pair.right = host(pair.now, 2, 2, CLOCK_ZERO);
    for (_, initiation) in of(INITIATION).filter(|(from, _)| *from == 1) {
        pair.right.receive(pair.now, initiation);
    }
    assert!(!pair.right.endpoint.connection(CONNECTION).has_session());
    run(&mut pair, Duration::from_secs(10), |_, _| true);
    assert!(is_up(&pair), "{}", state(&pair));
    assert_eq!((sessions(&mut pair.left), sessions(&mut pair.right)), (1, 1));
    carries(&mut pair, 1);
}

/// Its initiations are all taken for replays, but it answers those of its peer.
#[test]
fn a_host_whose_clock_was_set_back_a_day_has_a_session_as_soon_as_its_peer_asks_for_one() {
    for left in [false, true] {
        let mut pair = up();
        run(&mut pair, Duration::from_secs(5), |_, _| true);
        let clock = CLOCK_ZERO.saturating_sub(DAY);
        match left {
            true => pair.left = host(pair.now, 1, 2, clock),
            false => pair.right = host(pair.now, 2, 2, clock),
        }
        let sent = run(&mut pair, Duration::from_secs(5), |_, _| true);
        assert!(is_up(&pair), "left: {left}\n{}", state(&pair));
        carries(&mut pair, 1);
        let number = if left { 1 } else { 2 };
        let is_initiation = |it: &&(u8, Sent)| it.0 == number && kind(&it.1) == INITIATION;
        let (_, initiation) = sent.iter().find(is_initiation).expect("it asks as well");
        for host in [&mut pair.left, &mut pair.right] {
            assert_eq!(sessions(host), 1);
        }
        let other = if left { &mut pair.right } else { &mut pair.left };
        assert!(other.dropped(Drop::HandshakeReplay) > 0, "they are taken for replays");
        drops_as(other, pair.now, initiation, Drop::HandshakeReplay);
        // And it lasts: the peer has begun this epoch, so it begins the next ones.
        for minute in 0..10 {
            run(&mut pair, Duration::from_secs(60), |_, _| true);
            assert!(is_up(&pair), "left: {left}, minute {minute}\n{}", state(&pair));
            carries(&mut pair, minute);
        }
        for host in [&mut pair.left, &mut pair.right] {
            assert_eq!(sessions(host), 0);
        }
    }
}

/// The initiation of somebody who knows the public key of the right host, and whom it does not know.
fn stranger(now: Instant) -> Sent {
    let endpoint = Endpoint::new(&sealed(1, STRANGER, 1, CLOCK_ZERO), now);
    let endpoint = endpoint.expect("good settings");
    let mut host = Host { number: 1, endpoint, inbox: Inbox::default() };
    let sent = host.keepalives(now).into_iter().find(|sent| kind(sent) == INITIATION);
    sent.expect("it begins at once")
}

#[test]
fn a_host_that_strangers_keep_busy_makes_room_for_a_peer_with_a_cookie() {
    for cookies_arrive in [false, true] {
        let mut pair = new_pair();
        let flood = stranger(pair.now);
        let origin = outer_address(77, 0);
        // The right host's own initiations are lost, or its peer would answer them.
        let passes = |from, kind| {
            !(from == 2 && (kind == INITIATION || kind == COOKIE_REPLY && !cookies_arrive))
        };
        for step in 0..60 {
            pair.now += STEP;
            for host in [&mut pair.left, &mut pair.right] {
                host.endpoint.handle_timeout(pair.now, &mut host.inbox);
            }
            // 64 at once, and then 25 in every step, are as many as it computes.
            for _ in 0..if step == 0 { 64 } else { 40 } {
                pair.right.receive_from(pair.now, &flood, origin);
            }
            exchange(&mut pair, passes);
        }
        assert!(pair.right.dropped(Drop::HandshakeUnknown) > 500, "{}", state(&pair));
        assert!(pair.right.dropped(Drop::HandshakeLoad) > 500, "{}", state(&pair));
        assert_eq!(is_up(&pair), cookies_arrive, "{}", state(&pair));
    }
}
