//! Probes: keepalives padded to a length, by which a host finds out what a path carries.

use std::collections::VecDeque;
use std::time::Duration;

use crate::pair::{CONNECTION, Inbox, Sent, Settings, config, outer_address};
use mpt_proto::{
    Drop, Endpoint, Instant, Origin, PathId, PathState, PeerKind, ReceiveSide, SocketId,
    TransmitSide,
};

const PATH: PathId = PathId(0);

struct Host {
    number: u8,
    tx: TransmitSide,
    rx: ReceiveSide,
    inbox: Inbox,
}

impl Host {
    fn new(settings: &Settings, number: u8, kind: PeerKind, now: Instant) -> Self {
        let mut config = config(settings, number);
        config.connections[0].peer_kind = kind;
        if kind == PeerKind::Original {
            config.connections[0].peer.truncate(1);
        }
        let (tx, rx) = Endpoint::new(&config, now).expect("good settings").split();
        Self { number, tx, rx, inbox: Inbox::default() }
    }

    fn poll(&mut self, now: Instant) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.tx.poll_transmit(now) {
            let mut bytes = vec![0; transmit.size()];
            self.tx.emit(now, &transmit, &mut bytes, |from, to| to.copy_from_slice(from));
            sent.push(Sent { path: transmit.path, bytes });
        }
        sent
    }

    fn receive(&mut self, now: Instant, sent: &Sent) {
        let remote = outer_address(3 - self.number, sent.path.0);
        let origin = Origin { socket: SocketId(u16::from(sent.path.0)), remote, tos: 0 };
        self.rx.arrivals(origin).handle_datagram(now, &mut sent.bytes.clone(), &mut self.inbox);
        let updates: VecDeque<_> = std::iter::from_fn(|| self.rx.poll_message()).collect();
        for (connection, update) in updates {
            self.tx.handle_message(now, connection, update);
        }
    }

    fn carried(&mut self) -> Option<usize> {
        self.tx.take_carried(CONNECTION, PATH)
    }
}

struct Hosts {
    left: Host,
    right: Host,
    now: Instant,
}

impl Hosts {
    fn new(settings: &Settings, kind: PeerKind) -> Self {
        let now = Instant::ZERO + Duration::from_secs(100);
        let [left, right] = [1, 2].map(|number| Host::new(settings, number, kind, now));
        Self { left, right, now }
    }

    /// Half a second with its keepalives; what is longer than `widest` bytes does not get to the right.
    fn pass(&mut self, widest: usize) {
        self.now += Duration::from_millis(500);
        for _ in 0..4 {
            for sent in self.left.poll(self.now) {
                if sent.bytes.len() <= widest {
                    self.right.receive(self.now, &sent);
                }
            }
            for sent in self.right.poll(self.now) {
                self.left.receive(self.now, &sent);
            }
        }
    }
}

#[test]
fn the_peer_tells_the_length_of_a_probe_that_arrives_and_of_no_other() {
    for (key, checksum) in [(None, false), (Some(7), true)] {
        let settings = Settings { key, checksum, ..Settings::default() };
        let mut hosts = Hosts::new(&settings, PeerKind::Mpt);
        (0..6).for_each(|_| hosts.pass(2000));
        let keepalive = hosts.left.carried().expect("a length");
        assert!(keepalive < 100);
        assert_eq!(hosts.left.carried(), None, "since it was last asked");
        hosts.left.tx.send_probe(CONNECTION, PATH, 1288);
        hosts.pass(2000);
        assert_eq!(hosts.left.carried(), Some(1288));
        hosts.left.tx.send_probe(CONNECTION, PATH, 1472);
        hosts.pass(1400);
        assert_eq!(hosts.left.carried(), Some(1288));
        (0..6).for_each(|_| hosts.pass(1400));
        assert_eq!(hosts.left.carried(), Some(1288), "the longest of them");
        hosts.pass(1400);
        assert_eq!(hosts.left.carried(), Some(keepalive), "it was long ago");
        assert_eq!(hosts.right.rx.connection(CONNECTION).stats().drops.total(), 0);
        assert_eq!(hosts.right.rx.connection(CONNECTION).state(PATH), PathState::Up);
        let counted = hosts.right.rx.connection(CONNECTION).path_stats(PATH).keepalives_received;
        let sent = hosts.left.tx.connection(CONNECTION).path_stats(PATH).keepalives_sent;
        assert_eq!(counted, sent + 1, "every keepalive and one probe");
    }
}

#[test]
fn nothing_stands_in_a_probe_but_who_sends_it() {
    let mut hosts = Hosts::new(&Settings::default(), PeerKind::Mpt);
    hosts.left.tx.send_probe(CONNECTION, PATH, 100);
    let sent = hosts.left.poll(hosts.now);
    let probe = sent.iter().find(|sent| sent.bytes.len() == 100).expect("a probe");
    let mut expected = vec![0, 0, 0x08, 0, 0xa1, 0, 0, 0, 0, 4, 0, 0];
    for host in [1, 2] {
        expected.extend([[0; 10].as_slice(), &[0xff, 0xff, 10, 9, 0, host]].concat());
    }
    expected.resize(100, 0);
    assert_eq!(probe.bytes, expected);
    // The path is heard by it, and whatever else its bytes would say is not read.
    let mut forged = probe.bytes.clone();
    forged[5..9].fill(0xff);
    forged[44..].fill(0xff);
    hosts.right.receive(hosts.now, &Sent { path: PATH, bytes: forged });
    let right = hosts.right.rx.connection(CONNECTION);
    assert_eq!(right.state(PATH), PathState::Up);
    assert_eq!(hosts.right.carried(), None);
    // One of another tunnel is dropped.
    let mut other = probe.bytes.clone();
    other[27] = 9;
    hosts.right.receive(hosts.now, &Sent { path: PATH, bytes: other });
    assert_eq!(hosts.right.rx.connection(CONNECTION).stats().drops.count(Drop::ControlAddress), 1);
}

#[test]
fn a_peer_that_would_not_tell_gets_no_probe() {
    let plain = Settings { weights: vec![1], ..Settings::default() };
    let silent = Settings { keepalive: None, dead_time: None, ..plain.clone() };
    for (settings, kind) in
        [(&plain, PeerKind::Original), (&silent, PeerKind::Gre), (&silent, PeerKind::Mpt)]
    {
        let mut hosts = Hosts::new(settings, kind);
        hosts.left.tx.send_probe(CONNECTION, PATH, 1288);
        let sent = hosts.left.poll(hosts.now);
        assert!(sent.iter().all(|sent| sent.bytes.len() < 100), "{kind:?}");
    }
}
