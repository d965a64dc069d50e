//! The definitions of RFC 4737 and RFC 5236, each for itself, over a whole trace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::reordering::Reordering;

/// What a connection's stream comes to that begins with the number `begin` and whose packets arrive a millisecond
/// apart.
pub(super) fn stream(begin: u32, numbers: &[u32], threshold: u32) -> Reordering {
    // Numbers before the beginning are ignored.
    let numbers: Vec<(u64, i64)> = (0..)
        .zip(numbers)
        .map(|(ms, number)| (ms, i64::from(number.wrapping_sub(begin).cast_signed())))
        .filter(|&(_, number)| number >= 0)
        .collect();
    let arrived: BTreeSet<i64> = numbers.iter().map(|&(_, number)| number).collect();
    let highest = arrived.last().copied().unwrap_or(-1);
    let reach = i64::from(Reordering::REACH);
    let absent = |from: i64, to: i64| (from.max(0)..=to).filter(|n| !arrived.contains(n)).count();
    let mut seen = BTreeSet::new();
    let first: Vec<_> =
        numbers.iter().copied().filter(|&(_, number)| seen.insert(number)).collect();
    Reordering {
        duplicates: (numbers.len() - first.len()) as u64,
        lost: absent(0, highest - reach) as u64,
        missing: absent(highest - reach + 1, highest) as u64,
        ..judge(&first, threshold)
    }
}

/// What an order comes to.
pub(super) fn order(begin: u32, numbers: &[u32], threshold: u32) -> Reordering {
    let number = |number: &u32| i64::from(number.wrapping_sub(begin).cast_signed());
    let numbers: Vec<_> = (0..).zip(numbers.iter().map(number)).collect();
    judge(&numbers, threshold)
}

/// Arrival times and numbers, each number once.
fn judge(arrivals: &[(u64, i64)], threshold: u32) -> Reordering {
    let mut result = Reordering { packets: arrivals.len() as u64, ..Reordering::default() };
    let numbers: Vec<i64> = arrivals.iter().map(|&(_, number)| number).collect();
    result.n_reordering = vec![0; Reordering::MAX_N];
    let mut next_expected = i64::MIN;
    for (i, &(time, s)) in arrivals.iter().enumerate() {
        // RFC 4737 section 3.3.
        if s >= next_expected {
            next_expected = s + 1;
            continue;
        }
        result.reordered += 1;
        // Section 4.2: i - j for the least j < i with s[j] > s[i]; section 4.3: the times of both.
        let j = (0..i).find(|&j| numbers[j] > s).expect("one is higher");
        result.extent_sum += (i - j) as u64;
        result.extent_max = result.extent_max.max((i - j) as u64);
        let late = Duration::from_millis(time - arrivals[j].0);
        result.late_sum += late;
        result.late_max = result.late_max.max(late);
        // Section 5: n-reordered if s[j] > s[i] for all j from i - n to i - 1.
        for n in 1..=Reordering::MAX_N.min(i) {
            if (i - n..i).all(|j| numbers[j] > s) {
                result.n_reordering[n - 1] += 1;
            }
        }
    }
    while result.n_reordering.last() == Some(&0) {
        result.n_reordering.pop();
    }
    let counted = count(&numbers, threshold as usize);
    result.density = density(&counted);
    result.buffer_occupancy = occupancy(&counted);
    result
}

/// A number that left the window: its displacement if that counts, and what was still in the window.
struct Counted {
    number: i64,
    displacement: Option<i32>,
    window: Vec<i64>,
}

/// The algorithm of RFC 5236 for reorder density with its window and buffer, from the number 0 on; with the
/// index that is skipped for a packet that came too late.
fn count(numbers: &[i64], threshold: usize) -> Vec<Counted> {
    let (mut window, mut buffer) = (Vec::new(), Vec::new());
    let (mut index, mut stream) = (0_i64, numbers.iter().copied());
    let mut counted = Vec::new();
    while window.len() <= threshold {
        match stream.find(|&s| s >= index) {
            Some(s) => window.push(s),
            None => break,
        }
    }
    while !window.is_empty() {
        if !window.contains(&index) && !buffer.contains(&index) {
            let least =
                window.iter().chain(&buffer).min().copied().expect("the window is not empty");
            index = if index < least { least } else { index + 1 };
            let highest = window.iter().chain(&buffer).max().copied().expect("the same");
            assert!(index <= highest, "the receive index runs away");
            continue;
        }
        let number = window.remove(0);
        let displacement = index - number;
        let counts = displacement.unsigned_abs() as usize <= threshold;
        if counts {
            buffer.retain(|&held| held != index);
            if displacement < 0 {
                buffer.push(number);
            }
            index += 1;
        } else if displacement > 0 {
            buffer.retain(|&held| held != index);
            index += 1;
        }
        let displacement = counts.then_some(displacement as i32);
        counted.push(Counted { number, displacement, window: window.clone() });
        window.extend(stream.find(|&s| s >= index));
    }
    counted
}

/// RD of RFC 5236, not normalized.
fn density(counted: &[Counted]) -> BTreeMap<i32, u64> {
    let mut density = BTreeMap::new();
    for displacement in counted.iter().filter_map(|counted| counted.displacement) {
        *density.entry(displacement).or_default() += 1;
    }
    density
}

/// RBD of RFC 5236, not normalized: how many of those that were counted would wait for one in the window.
fn occupancy(counted: &[Counted]) -> Vec<u64> {
    let mut occupancy = Vec::new();
    for (last, Counted { window, .. }) in counted.iter().enumerate() {
        if counted[last].displacement.is_none() {
            continue;
        }
        let waits = |held: &&Counted| {
            held.displacement.is_some() && window.iter().any(|&number| number < held.number)
        };
        let held = counted[..=last].iter().filter(waits).count();
        if occupancy.len() <= held {
            occupancy.resize(held + 1, 0);
        }
        occupancy[held] += 1;
    }
    occupancy
}
