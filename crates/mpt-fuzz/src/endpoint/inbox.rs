//! What came out of an endpoint, and what can be said against it.

use std::collections::{BTreeMap, HashMap, HashSet};

use mpt_proto::wire::inner;
use mpt_proto::{
    Change, ConnectionConfig, ConnectionId, FramingConfig, Held, Late, Prefix, ReorderConfig, Sink,
};

use super::packet;
use super::settings::Settings;

/// Keeps accounts of what was delivered.
pub(super) struct Inbox {
    /// This host's number.
    own: usize,
    pub(super) delivered: u64,
    pub(super) held: HashMap<u32, Vec<u8>>,
    next_held: u32,
    room: usize,
    /// Numbers of packets that came out and are not judged yet.
    fresh: Vec<u64>,
    /// Numbers of packets that came out and may not do so again.
    seen: HashSet<u64>,
    /// The connections known to the receive side.
    orders: BTreeMap<ConnectionId, Order>,
    /// The connection that the peer sent each packet on.
    sent_on: HashMap<u64, ConnectionId>,
    distrusted: HashSet<u64>,
    /// Inner networks that the peer may have been speaking for.
    networks: Vec<Prefix>,
    /// Whether packets are judged at all.
    judging: bool,
}

/// The order of one connection.
struct Order {
    /// Whether there is a history by which duplicates are known.
    history: bool,
    /// Whether it is by evidence, and with a window.
    by_evidence: Option<bool>,
    /// Whether a packet may come out behind a later one.
    late: Late,
    /// The highest number that came out; `None` where the peer's sequence numbers are not what they
    /// should be.
    highest: Option<u64>,
}

impl Inbox {
    pub(super) fn new(settings: &Settings, own: usize) -> Self {
        Self {
            own,
            delivered: 0,
            held: HashMap::new(),
            next_held: 0,
            room: settings.room,
            fresh: Vec::new(),
            seen: HashSet::new(),
            orders: BTreeMap::new(),
            sent_on: HashMap::new(),
            distrusted: HashSet::new(),
            networks: Vec::new(),
            judging: true,
        }
    }

    /// Takes over from before a restart what is known of packets on their way.
    pub(super) fn remember(&mut self, old: &Self) {
        self.distrusted.clone_from(&old.distrusted);
        self.sent_on.clone_from(&old.sent_on);
        self.judging = old.judging;
        for (id, order) in &mut self.orders {
            let trusted = old.orders.get(id).is_none_or(|old| old.highest.is_some());
            order.highest = order.highest.filter(|_| trusted);
        }
    }

    /// The peer sends a packet on a connection.
    pub(super) fn on_sent(&mut self, number: u64, connection: ConnectionId) {
        self.sent_on.insert(number, connection);
    }

    /// From now on the packet of this number may come out more than once, or altered.
    pub(super) fn distrust(&mut self, number: u64) {
        self.distrusted.insert(number);
    }

    /// From now on packets of a connection may come out behind later ones, because the peer's numbers
    /// are not what they should be.
    pub(super) fn distrust_order(&mut self, connection: ConnectionId) {
        if let Some(order) = self.orders.get_mut(&connection) {
            order.highest = None;
        }
    }

    /// From here on the expected result is unknown.
    pub(super) fn stop_judging(&mut self) {
        self.judging = false;
    }

    /// Changes how many packets can be kept.
    pub(super) fn set_room(&mut self, room: u8) {
        self.room = usize::from(room);
    }

    /// There is a connection of these settings. Returns whether its history is gone, or was.
    pub(super) fn expect(&mut self, id: ConnectionId, config: &ConnectionConfig) -> bool {
        // What is judged of a connection with sessions is sent in one, where everything has a number.
        let ReorderConfig { evidence, window, late, .. } = config.reorder;
        let numbered = config.sequence || config.framing != FramingConfig::Plain;
        let history = numbered && (evidence || window > 0);
        let by_evidence = evidence.then_some(window > 0);
        let before = self.orders.get(&id);
        let is_other = |before: &Order| !before.history || before.by_evidence != by_evidence;
        let forgotten = before.is_some_and(is_other) || !history;
        let highest = before.map_or(Some(0), |before| before.highest);
        let highest = highest.filter(|_| !forgotten);
        self.orders.insert(id, Order { history, by_evidence, late, highest });
        self.networks.extend(&config.networks);
        forgotten
    }

    /// Called before a change reaches the receive side. Returns whether packets in flight may be
    /// delivered again.
    pub(super) fn on_change(&mut self, change: &Change) -> bool {
        match change {
            Change::AddConnection { connection, config, .. } => {
                !self.orders.contains_key(connection) && {
                    self.expect(*connection, config);
                    true
                }
            }
            Change::SetConnection { connection, config } => {
                self.orders.contains_key(connection) && self.expect(*connection, config)
            }
            Change::RemoveConnection { .. } => true,
            Change::AddPath { .. }
            | Change::RemovePath { .. }
            | Change::SetPath { .. }
            | Change::SetSurcharge { .. }
            | Change::SetStatus { .. }
            | Change::SetFits { .. }
            | Change::SetPeerDown { .. }
            | Change::SetPresent { .. } => false,
        }
    }

    /// A connection is gone, and what was held for it came out.
    pub(super) fn forget_connection(&mut self, id: ConnectionId) {
        self.orders.remove(&id);
    }

    /// A restart of the peer was detected, which begins a new history. Some of the packets just
    /// delivered belong to the old one.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.seen.clear();
        self.seen.extend(self.fresh.drain(..));
        self.distrust_order(connection);
    }

    pub(super) fn judge(&mut self) {
        for number in self.fresh.drain(..) {
            let connection = self.sent_on.get(&number);
            let order = connection.and_then(|connection| self.orders.get_mut(connection));
            let Some(order) = order.filter(|_| self.judging) else { continue };
            if self.distrusted.contains(&number) || !order.history {
                continue;
            }
            assert!(self.seen.insert(number), "packet {number} came out twice");
            if let Some(highest) = &mut order.highest {
                let in_order = number >= *highest || order.late == Late::Deliver;
                assert!(in_order, "packet {number} came out behind {highest}");
                *highest = number.max(*highest);
            }
        }
    }

    fn take(&mut self, packet: &[u8]) {
        self.delivered += 1;
        let inner = inner::parse(packet).expect("only whole packets are delivered");
        assert_eq!(inner.len, packet.len(), "and nothing behind them");
        let peer = packet::address(1 - self.own, inner.source.is_ipv6());
        let known = |network: &Prefix| network.contains(inner.source);
        assert!(inner.source == peer || self.networks.iter().any(known), "only the peer's");
        self.fresh.extend(packet::number(packet));
    }
}

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8]) {
        self.take(packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        if self.held.len() >= self.room {
            return None;
        }
        let number = self.next_held;
        self.next_held += 1;
        self.held.insert(number, packet.to_vec());
        Some(Held(number))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let packet = self.held.remove(&held.0).expect("what is held is given back once");
        self.take(&packet);
        packet.len()
    }
}
