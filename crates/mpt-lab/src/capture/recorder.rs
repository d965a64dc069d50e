//! The thread that writes packets to the file, in the order of their times.
//!
//! Packets come from several threads, each in order but one later than the other. Held back for a
//! moment they can be sorted, so that a reader sees what happened in the order in which it did.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::pcapng::{Packet, Statistics, Writer};
use crate::emulator::tap::{Exit, Origin, Record};

/// How often packets are fetched. Taps do not wake this thread, so it polls.
const FETCH_EVERY: Duration = Duration::from_millis(5);
/// How long packets are held back: longer than threads that are ready usually wait for a processor.
const HOLD: Duration = Duration::from_millis(20);

/// An interface of the file.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) dropped: Arc<AtomicU64>,
    pub(super) written: u64,
}

/// The writer's thread at work.
#[derive(Debug)]
pub(super) struct Recorder {
    writer: Writer<BufWriter<File>>,
    interfaces: Vec<Interface>,
    exit: Exit,
    origin: Origin,
    start: Duration,
    held: BinaryHeap<Reverse<Entry>>,
    next_number: u64,
}

/// A packet held back. The number breaks ties: first in, first out.
#[derive(Debug)]
struct Entry {
    at: Duration,
    number: u64,
    record: Record,
}

impl Recorder {
    /// Writes what comes out of `exit` to a file that has these interfaces already.
    pub(super) fn new(
        writer: Writer<BufWriter<File>>,
        interfaces: Vec<Interface>,
        exit: Exit,
        origin: Origin,
    ) -> Self {
        let start = origin.now();
        Self { writer, interfaces, exit, origin, start, held: BinaryHeap::new(), next_number: 0 }
    }

    /// Writes until it is stopped, and returns the counts. Packets offered after that may be in the
    /// file or not.
    pub(super) fn run(mut self, end: &AtomicBool) -> io::Result<Vec<Interface>> {
        loop {
            let last = end.load(Ordering::Acquire);
            self.fetch();
            if last {
                break;
            }
            let ripe = self.origin.now().saturating_sub(HOLD);
            self.write_until(ripe)?;
            thread::sleep(FETCH_EVERY);
        }
        self.write_until(Duration::MAX)?;
        let (start, end) = (self.start, self.origin.now());
        for (number, interface) in (0..).zip(&self.interfaces) {
            let dropped = interface.dropped.load(Ordering::Relaxed);
            let statistics = Statistics { start, end, written: interface.written, dropped };
            self.writer.statistics(number, &statistics)?;
        }
        self.writer.finish()?;
        Ok(self.interfaces)
    }

    fn fetch(&mut self) {
        for record in self.exit.receiver.try_iter() {
            let entry = Entry { at: record.at, number: self.next_number, record };
            self.next_number += 1;
            self.held.push(Reverse(entry));
        }
    }

    fn write_until(&mut self, ripe: Duration) -> io::Result<()> {
        while self.held.peek().is_some_and(|Reverse(entry)| entry.at <= ripe) {
            let Some(Reverse(Entry { record, .. })) = self.held.pop() else { break };
            self.exit.release(&record);
            let Record { interface, at, way, bytes, length, comment } = &record;
            let (interface, at, way, length) = (*interface, *at, *way, *length);
            self.writer.packet(&Packet { interface, at, way, bytes, length, comment })?;
            self.interfaces[interface as usize].written += 1;
        }
        Ok(())
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}
