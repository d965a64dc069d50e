//! What a datagram costs from one socket to another over the loopback interface, with each offload on
//! and off.
//!
//! `cargo bench -p mpt-io --bench udp`. Sending runs the receiving half of the kernel too, so the sum of
//! both directions is what compares; the items per second are datagrams.

#![allow(clippy::unwrap_used, reason = "in benchmarks a failure may end the program")]

use divan::Bencher;
use divan::counter::ItemsCount;
use mpt_io::udp::{Options, Receive, ReceiveOptions, SendBatch, Socket};

fn main() {
    divan::main();
}

/// Segmentation and coalescing.
const OFFLOADS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// Length of a datagram and number of them in a send batch.
const BATCHES: [(usize, usize); 3] = [(64, 64), (1400, 44), (1400, 176)];

/// Send batches from socket to socket.
struct Road {
    near: Socket,
    far: Socket,
    send_batch: SendBatch,
    batch: Receive,
}

impl Road {
    fn new(segmentation: bool, coalescing: bool) -> Self {
        let options = Options {
            buffer_bytes: 4 << 20,
            segmentation,
            coalescing,
            ..Options::new("127.0.0.1:0".parse().unwrap())
        };
        let far = Socket::open(&options).unwrap();
        let options = Options { connect: Some(far.local_addr()), ..options };
        let near = Socket::open(&options).unwrap();
        let send_batch = SendBatch::new(far.local_addr(), None);
        let batch = Receive::new(&ReceiveOptions { coalescing, ..ReceiveOptions::default() });
        Self { near, far, send_batch, batch }
    }

    /// Writes, sends and receives a send batch, touching every datagram once on either side.
    fn travel(&mut self, len: usize, count: usize) {
        for number in 0..count {
            self.send_batch.reserve(len).unwrap()[..4]
                .copy_from_slice(&(number as u32).to_ne_bytes());
            self.send_batch.commit();
        }
        assert_eq!(self.near.send(&mut self.send_batch).datagrams, count);
        let mut next = 0;
        while next < count {
            self.far.receive(&mut self.batch).unwrap();
            for datagram in self.batch.datagrams() {
                assert_eq!(datagram.payload[..4], (next as u32).to_ne_bytes());
                next += 1;
            }
        }
    }
}

#[divan::bench(args = cases())]
fn travel(bencher: Bencher<'_, '_>, case: &Case) {
    let mut road = Road::new(case.segmentation, case.coalescing);
    bencher.counter(ItemsCount::new(case.count)).bench_local(|| road.travel(case.len, case.count));
}

struct Case {
    segmentation: bool,
    coalescing: bool,
    len: usize,
    count: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segmentation, coalescing, len, count } = self;
        let on = |on: &bool| if *on { "on" } else { "off" };
        write!(f, "{count} x {len} B, GSO {}, GRO {}", on(segmentation), on(coalescing))
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (len, count) in BATCHES {
        for (segmentation, coalescing) in OFFLOADS {
            cases.push(Case { segmentation, coalescing, len, count });
        }
    }
    cases
}
