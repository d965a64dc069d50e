//! Sums that must balance, whatever comes and goes.
//!
//! A connection or path that goes takes its counters with it. So they are read before and after whatever
//! can make it go, and what they last were is kept.

use std::collections::BTreeMap;

use mpt_proto::wire::extended::{Header, Kind};
use mpt_proto::{ConnectionId, PathId, PathStats, ReceiveHalf, ReceiveSide, TransmitSide};

use super::inbox::Inbox;
use super::settings::{CONNECTIONS, PATHS};

/// What one connection may take for sending and receiving, in bytes, packets that are held apart: as much as one with
/// the highest path number, and for receiving with the largest window.
const MAX_TRANSMIT_MEMORY: usize = 160 << 10;
const MAX_RECEIVE_MEMORY: usize = 768 << 10;

/// What went in, and what became of it where the counters are gone.
#[derive(Default)]
pub(super) struct Accounts {
    pub(super) offered: u64,
    pub(super) received: u64,
    /// Messages of sessions that were understood, path statuses apart: only keepalives have a counter.
    messages: u64,
    seen: Seen,
    gone: Counts,
}

/// All counters as they were last.
#[derive(Default)]
struct Seen {
    /// Of the transmit halves: packets sent and dropped.
    sent: BTreeMap<ConnectionId, [u64; 2]>,
    /// Of their paths: packets sent.
    paths_sent: BTreeMap<(ConnectionId, PathId), u64>,
    /// What paths that are gone have sent of what their connection has.
    left_sent: BTreeMap<ConnectionId, u64>,
    /// Of the receive halves: packets delivered or held, and dropped.
    received: BTreeMap<ConnectionId, [u64; 2]>,
    /// Of their paths: keepalives received.
    paths_received: BTreeMap<(ConnectionId, PathId), u64>,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    transmit_drops: u64,
    delivered: u64,
    keepalives: u64,
    receive_drops: u64,
}

fn ids() -> impl Iterator<Item = ConnectionId> {
    (0..CONNECTIONS as u16).map(ConnectionId)
}

/// What a path has sent that no other had sent before.
fn sent_first(stats: &PathStats) -> u64 {
    stats.sent.packets - stats.resent
}

fn paths() -> impl Iterator<Item = PathId> + Clone {
    PATHS.into_iter().map(PathId)
}

impl Accounts {
    /// How many datagrams have a counter that says what became of them.
    pub(super) fn taken(rx: &ReceiveSide) -> u64 {
        let halves = ids().filter_map(|id| rx.find(id));
        let of_half = |half: &ReceiveHalf| {
            let stats = half.stats();
            let paths = paths().filter(|path| half.has(*path));
            let keepalives = paths.map(|path| half.path_stats(path).keepalives_received);
            stats.delivered.packets
                + stats.reorder.held
                + stats.drops.total()
                + keepalives.sum::<u64>()
        };
        halves.map(of_half).sum::<u64>() + rx.drops().total()
    }

    /// A datagram was received, and so many counters counted it.
    pub(super) fn on_received(&mut self, counted: u64, datagram: &[u8]) {
        if counted == 1 {
            return;
        }
        assert_eq!(counted, 0, "one thing becomes of a datagram");
        let kind = Header::parse(datagram).map(|header| header.kind);
        let is_message = kind.is_ok_and(|kind| !matches!(kind, Kind::Data | Kind::PathStatus));
        assert!(is_message, "a datagram vanished");
        self.messages += 1;
    }

    /// Reads the counters: to be done before and after everything by which something can go.
    pub(super) fn observe(&mut self, tx: &TransmitSide, rx: &ReceiveSide) {
        let mut seen = Seen::default();
        for id in ids() {
            if let Some(half) = tx.find(id) {
                let stats = half.stats();
                seen.sent.insert(id, [stats.sent.packets, stats.drops.total()]);
                let paths = half.paths().map(|path| (path, sent_first(&half.path_stats(path))));
                seen.paths_sent.extend(paths.map(|(path, sent)| ((id, path), sent)));
            }
            if let Some(half) = rx.find(id) {
                let stats = half.stats();
                let delivered = stats.delivered.packets + stats.reorder.held;
                seen.received.insert(id, [delivered, stats.drops.total()]);
                for path in paths().filter(|path| half.has(*path)) {
                    let keepalives = half.path_stats(path).keepalives_received;
                    seen.paths_received.insert((id, path), keepalives);
                }
            }
        }
        let Seen { sent, paths_sent, left_sent, received, paths_received } = &self.seen;
        let (gone, left) = (&mut self.gone, &mut seen.left_sent);
        for (_, [sent, drops]) in departed(sent, &seen.sent) {
            (gone.sent, gone.transmit_drops) = (gone.sent + sent, gone.transmit_drops + drops);
        }
        for (id, count) in left_sent.iter().filter(|(id, _)| !is_new(*id, sent, &seen.sent)) {
            *left.entry(*id).or_default() += count;
        }
        for ((id, _), count) in departed(paths_sent, &seen.paths_sent) {
            if !is_new(&id, sent, &seen.sent) {
                *left.entry(id).or_default() += count;
            }
        }
        for (_, [delivered, drops]) in departed(received, &seen.received) {
            (gone.delivered, gone.receive_drops) =
                (gone.delivered + delivered, gone.receive_drops + drops);
        }
        for (_, keepalives) in departed(paths_received, &seen.paths_received) {
            gone.keepalives += keepalives;
        }
        self.seen = seen;
    }

    /// Checks the sums.
    pub(super) fn check(&self, tx: &TransmitSide, rx: &ReceiveSide, inbox: &Inbox) {
        let (gone, mut now) = (&self.gone, Counts::default());
        let mut held = 0;
        for (id, half) in ids().filter_map(|id| Some((id, tx.find(id)?))) {
            let stats = half.stats();
            let left = self.seen.left_sent.get(&id).copied().unwrap_or_default();
            let of_paths = half.paths().map(|path| sent_first(&half.path_stats(path)));
            assert_eq!(left + of_paths.sum::<u64>(), stats.sent.packets, "paths and connection");
            assert!(half.memory() < MAX_TRANSMIT_MEMORY, "{} bytes", half.memory());
            now.sent += stats.sent.packets;
            now.transmit_drops += stats.drops.total();
        }
        for half in ids().filter_map(|id| rx.find(id)) {
            let stats = half.stats();
            let reorder = stats.reorder;
            let delivered =
                reorder.in_order + reorder.reordered + reorder.late + reorder.unsequenced;
            assert_eq!(delivered, stats.delivered.packets, "reorder buffer and connection");
            assert!(reorder.held <= u64::from(half.reorder_config().window), "{reorder:?}");
            assert!(half.memory() < MAX_RECEIVE_MEMORY, "{} bytes", half.memory());
            held += reorder.held;
            now.delivered += delivered;
            now.receive_drops += stats.drops.total();
            let paths = paths().filter(|path| half.has(*path));
            now.keepalives +=
                paths.map(|path| half.path_stats(path).keepalives_received).sum::<u64>();
        }
        assert_eq!(
            now.delivered + gone.delivered,
            inbox.delivered,
            "the sink got what was counted"
        );
        assert_eq!(held, inbox.held.len() as u64, "and keeps what is held");

        let sent = now.sent + gone.sent;
        let unsent = now.transmit_drops + gone.transmit_drops + tx.drops().total();
        assert_eq!(sent + unsent, self.offered, "every packet offered was sent or has a drop");
        let used = now.delivered + gone.delivered + held + now.keepalives + gone.keepalives;
        let used = used + self.messages;
        let unused = now.receive_drops + gone.receive_drops + rx.drops().total();
        assert_eq!(used + unused, self.received, "every datagram was used or has a drop");
    }
}

/// The last counts of removed connections and paths, or of those that restart at zero under the
/// same number.
fn departed<'c, K: Copy + Ord, C: Copy + PartialOrd>(
    before: &'c BTreeMap<K, C>,
    after: &'c BTreeMap<K, C>,
) -> impl Iterator<Item = (K, C)> {
    let is_gone = |(key, count): &(&K, &C)| after.get(key).is_none_or(|now| now < count);
    before.iter().filter(is_gone).map(|(key, count)| (*key, *count))
}

/// Whether what has a number is not what had it.
fn is_new<K: Ord, C: PartialOrd>(key: &K, before: &BTreeMap<K, C>, after: &BTreeMap<K, C>) -> bool {
    match (before.get(key), after.get(key)) {
        (Some(before), Some(after)) => after < before,
        _ => true,
    }
}
