//! Counts in few bytes, as idle connections keep them: numbers in groups of 7 bits (LEB128), and rows of zeros as one.
//!
//! The histograms of a stream have up to a thousand counts each. If all of them take more than [`MOST`], counts of large
//! numbers are added up by ranges that are an eighth as wide as their numbers, which then takes no more than some hundred
//! counts. So much is enough for people to read.

use std::ops::Range;

/// The histograms of one stream may take so many bytes before they are made coarser.
const MOST: usize = 384;

/// How many numbers have a range of their own in coarse histograms, and how many ranges there are from one power of two to
/// the next above.
const FINE: usize = 16;
const RANGES: usize = 8;

/// Writes numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Packer(Vec<u8>);

/// Reads them.
#[derive(Debug)]
pub(super) struct Unpacker<'b>(&'b [u8]);

impl Packer {
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Counts, without the zeros at their end.
    pub(super) fn counts(&mut self, counts: &[u64]) {
        let len = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.number(len as u64);
        let mut rest = &counts[..len];
        while let Some(count) = rest.first() {
            self.number(*count);
            let row = if *count > 0 { 1 } else { rest.iter().take_while(|it| **it == 0).count() };
            if *count == 0 {
                self.number(row as u64);
            }
            rest = &rest[row..];
        }
    }

    /// All bytes, with these histograms at the end.
    pub(super) fn with_histograms(self, histograms: [&[u64]; 3]) -> Box<[u8]> {
        let mut exact = self.clone();
        exact.number(0);
        histograms.iter().for_each(|counts| exact.counts(counts));
        if exact.0.len() - self.0.len() <= MOST {
            return exact.0.into();
        }
        let mut coarse = self;
        coarse.number(1);
        for counts in histograms {
            let sums = ranges(counts.len()).map(|range| counts[range].iter().sum());
            coarse.counts(&sums.collect::<Vec<u64>>());
        }
        coarse.0.into()
    }
}

impl<'b> Unpacker<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn number(&mut self) -> u64 {
        let len = self.0.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
        let (number, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        number.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
    }

    pub(super) fn counts(&mut self) -> Vec<u64> {
        let len = self.number() as usize;
        let mut counts = Vec::with_capacity(len);
        while counts.len() < len {
            match self.number() {
                0 => counts.resize(counts.len() + self.number().max(1) as usize, 0),
                count => counts.push(count),
            }
        }
        counts
    }

    /// Histograms. What was counted of a range is counted of the number in its middle.
    pub(super) fn histograms(&mut self) -> [Vec<u64>; 3] {
        let is_coarse = self.number() == 1;
        std::array::from_fn(|_| {
            let counts = self.counts();
            if !is_coarse {
                return counts;
            }
            let mut fine = Vec::new();
            for (count, range) in counts.into_iter().zip(ranges(usize::MAX)) {
                let middle = range.start.midpoint(range.end - 1);
                fine.resize(range.end, 0);
                fine[middle] = count;
            }
            while fine.last() == Some(&0) {
                fine.pop();
            }
            fine
        })
    }
}

/// The ranges of coarse histograms, of which the last one ends at `end` at the latest.
fn ranges(end: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let width = if start < FINE { 1 } else { (1 << start.ilog2()) / RANGES };
        let range = start..end.min(start + width);
        start = range.end;
        Some(range).filter(|range| !range.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_counts_stay_exact() {
        let late = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX, 0, 0, 0, 5, 0];
        let mut packer = Packer::default();
        packer.number(300);
        packer.counts(&[0, 7, 0]);
        let bytes = packer.with_histograms([&late, &[], &[0, 0, 9]]);
        let mut from = Unpacker::new(&bytes);
        assert_eq!((from.number(), from.counts()), (300, vec![0, 7]));
        assert_eq!(from.histograms(), [late[..11].to_vec(), vec![], vec![0, 0, 9]]);
    }

    #[test]
    fn many_counts_are_added_up_by_ranges() {
        let counts: Vec<_> = (0..1024_u64).map(|number| 1 + number % 100).collect();
        let bytes = Packer::default().with_histograms([&counts, &counts, &counts]);
        assert!(bytes.len() <= 3 * 160, "{}", bytes.len());
        for back in Unpacker::new(&bytes).histograms() {
            assert_eq!(back[..16], counts[..16]);
            assert_eq!(back.iter().sum::<u64>(), counts.iter().sum());
            let mean = |counts: &[u64]| {
                let sum: u64 = (0..).zip(counts).map(|(number, count)| number * count).sum();
                sum as f64 / counts.iter().sum::<u64>() as f64
            };
            assert!((mean(&back) / mean(&counts) - 1.0).abs() < 0.01, "{}", mean(&back));
            // Once more, it stays what it is.
            let again = Packer::default().with_histograms([&back, &back, &back]);
            assert_eq!(Unpacker::new(&again).histograms()[0], back);
        }
    }

    #[test]
    fn ranges_are_an_eighth_as_wide_as_their_numbers() {
        let mut end = 0;
        for range in ranges(5000) {
            assert_eq!(range.start, end);
            let power = if range.start < FINE { 8 } else { 1 << range.start.ilog2() };
            assert!(range.len() == power / 8 || range.end == 5000, "{range:?}");
            end = range.end;
        }
        assert_eq!(end, 5000);
    }
}
