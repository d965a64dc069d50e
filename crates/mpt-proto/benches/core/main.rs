//! Time per packet of the core: parse, choose a path, emit, put in order.
//!
//! `cargo bench -p mpt-proto`. Each figure is for one packet, save those of `emit` and `transmit`, which
//! are for a send batch; there divan's items per second count packets.

mod arrivals;
mod reorder;

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use mpt_proto::wire::{gre, inner};
use mpt_proto::{Endpoint, Instant, Transmit};

use arrivals::BATCH;

fn main() {
    divan::main();
}

/// Lengths of inner packets: the smallest of interest, and what fits a wire with an MTU of 1500.
const SIZES: [usize; 2] = [64, 1400];

/// A GRE header and the IP header behind it.
#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let mut endpoint = arrivals::sender(&[1]);
    let packet = arrivals::packet(64);
    let mut datagram = vec![0; 72];
    let sent = transmit(&mut endpoint, &packet);
    endpoint.emit(Instant::ZERO, &sent, &mut datagram);
    bencher.bench_local(|| {
        let datagram = gre::parse(black_box(&datagram)).expect("what emit wrote");
        let inner = inner::parse(datagram.payload).expect("what was put in");
        (datagram.header.sequence, inner)
    });
}

/// Headers and a copy each, one datagram behind the other.
#[divan::bench(args = SIZES)]
fn emit(bencher: Bencher<'_, '_>, size: usize) {
    let mut endpoint = arrivals::sender(&[1]);
    let packet = arrivals::packet(size);
    let transmits: Vec<_> = (0..BATCH).map(|_| transmit(&mut endpoint, &packet)).collect();
    let mut send_batch = SendBatch::new(size);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        transmits.iter().for_each(|transmit| send_batch.push(&mut endpoint, transmit));
        send_batch.depart();
    });
}

/// From an inner packet to a path and a header, by the number of paths, all of one weight. The length of
/// the packet does not matter.
#[divan::bench(args = [1, 2, 12])]
fn handle_inner(bencher: Bencher<'_, '_>, paths: usize) {
    schedule(bencher, &vec![1; paths]);
}

/// The same by paths of which each has another weight.
#[divan::bench(args = [2, 12])]
fn handle_inner_uneven(bencher: Bencher<'_, '_>, paths: u16) {
    schedule(bencher, &(1..=paths).collect::<Vec<_>>());
}

fn schedule(bencher: Bencher<'_, '_>, weights: &[u16]) {
    let mut endpoint = arrivals::sender(weights);
    let packet = arrivals::packet(64);
    bencher.bench_local(|| transmit(&mut endpoint, black_box(&packet)).path);
}

/// Both together: all that the core does for a packet that leaves.
#[divan::bench(args = SIZES)]
fn handle_inner_and_emit(bencher: Bencher<'_, '_>, size: usize) {
    let mut endpoint = arrivals::sender(&[1]);
    let packet = arrivals::packet(size);
    let mut send_batch = SendBatch::new(size);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            let sent = transmit(&mut endpoint, black_box(&packet));
            send_batch.push(&mut endpoint, &sent);
        }
        send_batch.depart();
    });
}

fn transmit<'a>(endpoint: &mut Endpoint, packet: &'a [u8]) -> Transmit<'a> {
    endpoint.handle_inner(Instant::ZERO, packet).expect("a path is up")
}

/// Memory in which datagrams lie one behind the other.
struct SendBatch {
    staging: Vec<u8>,
    len: usize,
}

impl SendBatch {
    fn new(packet_len: usize) -> Self {
        Self { staging: vec![0; BATCH as usize * (packet_len + gre::MAX_LEN)], len: 0 }
    }

    fn push(&mut self, endpoint: &mut Endpoint, transmit: &Transmit<'_>) {
        let size = transmit.size();
        endpoint.emit(Instant::ZERO, transmit, &mut self.staging[self.len..][..size]);
        self.len += size;
    }

    fn depart(&mut self) {
        black_box(&self.staging[..self.len]);
        self.len = 0;
    }
}
