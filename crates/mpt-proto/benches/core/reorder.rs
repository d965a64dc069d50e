//! The whole of `handle_datagram`: which path it came by, whether that lives, and whose turn it is.
//!
//! Out of order means the largest buffer, 10,000 packets, in two ways: half full throughout, as two
//! paths of very different delay fill it; and filled and emptied in random order. By reference nothing
//! is copied, and the receive buffers of two rounds are larger than a processor's caches where packets
//! are: so figures for 1400 bytes are also what memory costs that was not touched lately.

use std::hint::black_box;

use divan::Bencher;
use mpt_proto::MAX_WINDOW;

use super::SIZES;
use super::arrivals::{self, Arrivals, BATCH, By, Keep, SKEWED_ROUND};

#[divan::bench(args = SIZES, sample_size = BATCH)]
fn in_order(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::in_order(&send_batch(size), By::Number));
}

#[divan::bench(args = SIZES, sample_size = BATCH)]
fn in_order_by_evidence(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::in_order(&send_batch(size), By::Evidence));
}

/// Every other packet waits for a send batch.
#[divan::bench(args = SIZES, sample_size = BATCH)]
fn striped(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::striped(&send_batch(size)));
}

#[divan::bench(args = SIZES, sample_size = SKEWED_ROUND)]
fn skewed(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::skewed(&arrivals::packet(size), Keep::Reference, By::Number));
}

#[divan::bench(args = SIZES, sample_size = SKEWED_ROUND)]
fn skewed_by_evidence(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::skewed(&arrivals::packet(size), Keep::Reference, By::Evidence));
}

#[divan::bench(args = SIZES, sample_size = SKEWED_ROUND)]
fn skewed_copied(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::skewed(&arrivals::packet(size), Keep::copy(), By::Number));
}

#[divan::bench(args = SIZES, sample_size = MAX_WINDOW)]
fn shuffled(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::shuffled(&arrivals::packet(size), Keep::Reference));
}

#[divan::bench(args = SIZES, sample_size = MAX_WINDOW)]
fn shuffled_copied(bencher: Bencher<'_, '_>, size: usize) {
    measure(bencher, Arrivals::shuffled(&arrivals::packet(size), Keep::copy()));
}

fn send_batch(size: usize) -> Vec<Vec<u8>> {
    vec![arrivals::packet(size); BATCH as usize]
}

/// A packet that is delivered, and no more than that.
fn delivered(packet: &[u8]) {
    black_box(packet);
}

fn measure(bencher: Bencher<'_, '_>, mut arrivals: Arrivals) {
    // Two rounds to touch all memory for the first time.
    for _ in 0..2 * arrivals.len() {
        arrivals.arrive(&mut delivered);
    }
    bencher.bench_local(|| arrivals.arrive(&mut delivered));
    arrivals.check();
}
