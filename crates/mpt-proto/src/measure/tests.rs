//! The published examples, the definitions written down once more and compared on random streams, and what
//! happens at the edges.

mod edges;
mod examples;
mod oracle;

use std::time::Duration;

use proptest::prelude::*;

use super::order::Order;
use super::reordering::Reordering;
use super::stream::Stream;
use crate::sequence::Seq;
use crate::time::Instant;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A stream whose packets arrive a millisecond apart.
fn stream(numbers: impl IntoIterator<Item = u32>) -> Stream {
    let mut stream = Stream::default();
    for (ms, number) in (0..).zip(numbers) {
        stream.on_arrival(at(ms), Seq::new(number));
    }
    stream
}

/// An order whose packets arrive a millisecond apart.
fn order(threshold: u32, numbers: impl IntoIterator<Item = u32>) -> Order {
    let mut order = Order::new(threshold);
    for (ms, number) in (0..).zip(numbers) {
        order.on_arrival(at(ms), Seq::new(number));
    }
    order
}

/// A sender's numbers as a network may deliver them: each with a delay, or lost, or twice.
fn trace() -> impl Strategy<Value = Vec<u32>> {
    let first = prop_oneof![Just(0), Just(7), 100..5000_u32, u32::MAX - 300..=u32::MAX];
    let delay = prop_oneof![
        30 => 0..2_u32,
        4 => 0..12_u32,
        1 => 0..90_u32,
    ];
    let fate = prop_oneof![40 => Just(1_u8), 3 => Just(0), 1 => Just(2)];
    // Calm stretches between disturbed ones, some with a jump.
    let stretch = (
        prop_oneof![Just(0_u32), 0..200_u32],
        prop_oneof![8 => Just(0_u32), 1 => 1..3000_u32],
        prop::collection::vec((delay, fate), 0..60),
    );
    (first, prop::collection::vec(stretch, 1..5)).prop_map(|(first, stretches)| {
        let mut arrivals = Vec::new();
        let mut number = 0_u32;
        let mut place = 0_u32;
        for (calm, jump, disturbed) in stretches {
            let calm = (0..calm).map(|_| (0, 1));
            for (delay, copies) in calm.chain(disturbed) {
                for copy in 0..u32::from(copies) {
                    arrivals.push((place + delay + copy * 5, number));
                }
                number += 1;
                place += 1;
            }
            number += jump;
        }
        arrivals.sort_by_key(|&(place, _)| place);
        arrivals.into_iter().map(|(_, number)| first.wrapping_add(number)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_is_judged_as_the_definitions_say(numbers in trace()) {
        let Some(&first) = numbers.first() else { return Ok(()) };
        let begin = if first < 64 { 0 } else { first };
        let threshold = Reordering::DISPLACEMENT_THRESHOLD;
        let expected = oracle::stream(begin, &numbers, threshold);
        prop_assert_eq!(stream(numbers).report(), expected);
    }

    #[test]
    fn an_order_with_many_losses_follows_the_definitions(numbers in trace(), keep in 2..5_u32, threshold in 1..40_u32) {
        // What one of several paths brings.
        let mut seen = std::collections::BTreeSet::new();
        let numbers: Vec<u32> = numbers.into_iter().filter(|n| n % keep < 2 && seen.insert(*n)).collect();
        let Some(&first) = numbers.first() else { return Ok(()) };
        let expected = oracle::order(first, &numbers, threshold);
        prop_assert_eq!(order(threshold, numbers).report(), expected);
    }
}
