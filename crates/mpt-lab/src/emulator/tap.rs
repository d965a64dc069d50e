//! The way of packets from where they pass to the thread that writes them.
//!
//! A thread that holds a [`Tap`] must never wait for it: the thread of a link would be late, and
//! the link would not match its profile. So a tap only copies the packet into a queue; it wakes no
//! thread, because that is a system call, and packets that do not fit are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Packets that may wait for the writer: it comes for them every few milliseconds, and a disk may
/// let it wait for longer.
const QUEUE: usize = 16_384;
/// Bytes that may wait, whatever the length of the packets.
const QUEUE_BYTES: usize = 32 << 20;

/// Which way a packet went, as its host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It came to the host.
    In,
    /// The host sent it.
    Out,
}

/// One clock for packets of the kernel, which have the time of day, and of links, which have not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    instant: Instant,
    since_1970: Duration,
}

/// Where packets of all interfaces are put; a clone for each of them.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    sender: SyncSender<Record>,
    waiting: Arc<AtomicUsize>,
    origin: Origin,
    snap: usize,
}

/// Where they come out, for the writer.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) receiver: Receiver<Record>,
    waiting: Arc<AtomicUsize>,
}

/// A packet on its way to the file.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) interface: u32,
    /// Since 1970.
    pub(crate) at: Duration,
    pub(crate) way: Way,
    pub(crate) bytes: Box<[u8]>,
    /// How long the packet was before it was cut to `bytes`.
    pub(crate) length: u32,
    pub(crate) comment: String,
}

/// A look at one interface.
#[derive(Debug)]
pub struct Tap {
    interface: u32,
    entrance: Entrance,
    dropped: Arc<AtomicU64>,
}

impl Origin {
    pub(crate) fn here() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { instant: Instant::now(), since_1970 }
    }

    pub(crate) fn since_1970(self, at: Instant) -> Duration {
        self.since_1970 + at.saturating_duration_since(self.instant)
    }

    pub(crate) fn now(self) -> Duration {
        self.since_1970(Instant::now())
    }
}

/// The queue from taps to the writer. `snap` is the most bytes of a packet that are kept.
pub(crate) fn queue(origin: Origin, snap: usize) -> (Entrance, Exit) {
    let (sender, receiver) = sync_channel(QUEUE);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Entrance { sender, waiting: Arc::clone(&waiting), origin, snap }, Exit { receiver, waiting })
}

impl Entrance {
    /// A tap for the interface of that number, and how many packets it could not deliver.
    pub(crate) fn tap(&self, interface: u32) -> (Tap, Arc<AtomicU64>) {
        let dropped = Arc::new(AtomicU64::new(0));
        (Tap { interface, entrance: self.clone(), dropped: Arc::clone(&dropped) }, dropped)
    }
}

impl Exit {
    /// Makes room for what comes, once a packet has been written.
    pub(crate) fn release(&self, record: &Record) {
        self.waiting.fetch_sub(record.bytes.len(), Ordering::Relaxed);
    }
}

impl Tap {
    /// Notes a packet that passes at `at`, with what there is to say about it.
    pub fn offer(&self, at: Instant, way: Way, packet: &[u8], comment: String) {
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let at = self.entrance.origin.since_1970(at);
        self.put(at, way, packet, length, comment);
    }

    /// The same for a packet whose time the kernel took and of which it gave only the first bytes.
    pub(crate) fn put(&self, at: Duration, way: Way, packet: &[u8], length: u32, comment: String) {
        let Entrance { sender, waiting, snap, .. } = &self.entrance;
        let bytes: Box<[u8]> = packet[..packet.len().min(*snap)].into();
        let len = bytes.len();
        if waiting.fetch_add(len, Ordering::Relaxed) + len <= QUEUE_BYTES {
            let record = Record { interface: self.interface, at, way, bytes, length, comment };
            if sender.try_send(record).is_ok() {
                return;
            }
        }
        waiting.fetch_sub(len, Ordering::Relaxed);
        self.drop_unseen(1);
    }

    /// Counts packets that could not be captured.
    pub(crate) fn drop_unseen(&self, packets: u64) {
        self.dropped.fetch_add(packets, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_beyond_the_queue_are_counted_and_do_not_block() {
        let (entrance, exit) = queue(Origin::here(), 100);
        let (tap, dropped) = entrance.tap(3);
        let packets = QUEUE + 5;
        for _ in 0..packets {
            tap.offer(Instant::now(), Way::In, &[0; 1500], String::new());
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 5);
        let first = exit.receiver.try_recv().unwrap();
        assert_eq!((first.interface, first.bytes.len(), first.length), (3, 100, 1500));
        exit.release(&first);
        tap.offer(Instant::now(), Way::In, &[0; 1500], String::new());
        assert_eq!(dropped.load(Ordering::Relaxed), 5, "there is room again");
    }

    #[test]
    fn neither_do_many_bytes_wait() {
        let (entrance, exit) = queue(Origin::here(), usize::MAX);
        let (tap, dropped) = entrance.tap(0);
        let large = vec![0; 1 << 20];
        for _ in 0..40 {
            tap.offer(Instant::now(), Way::Out, &large, String::new());
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 40 - 32);
        let first = exit.receiver.try_recv().unwrap();
        exit.release(&first);
        tap.offer(Instant::now(), Way::Out, &large, String::new());
        assert_eq!(dropped.load(Ordering::Relaxed), 8);
    }
}
