//! Weighted round robin: the sending vector of draft-lencse-tsvwg-mpt section 5.1.
//!
//! The draft gives every path a step L / weight, L being a common multiple of the weights, and lets
//! the path go next whose sum of steps would be least, the first of them on a tie. The vector is
//! complete when all sums are equal; a path then stands in it weight / gcd times.
//!
//! Here nobody writes the vector down: with 64 weights of up to 10,000 it can have 640,000 entries
//! and L dozens of digits. A path that went `count` times has the sum `count` * L / weight, so
//! comparing (count + 1) / weight by cross-multiplication makes the same choice. And where the
//! original skips the entries of dead paths, the vector of the living ones is begun afresh: the
//! same shares, more evenly interleaved.
//!
//! Paths of one weight, and above all a path alone, just take turns: that is what the vector comes
//! to, and needs no comparison.

use crate::path::PathId;

#[derive(Debug, Default)]
pub(crate) struct Weighted {
    entries: Vec<Entry>,
    /// Whether all weights are the same.
    equal: bool,
    /// The length of the sending vector: the sum of the weights over their greatest divisor.
    len: u32,
    /// How many choices have been made since all sums were equal; less than `len`.
    chosen: u32,
}

#[derive(Debug)]
struct Entry {
    path: PathId,
    weight: u16,
    /// How often it has been chosen since all sums were equal; unused where all weights are.
    count: u32,
}

impl Weighted {
    pub(crate) fn set_paths(&mut self, paths: impl Iterator<Item = (PathId, u16)>) {
        self.entries.clear();
        self.entries.extend(paths.map(|(path, weight)| Entry { path, weight, count: 0 }));
        self.equal = self.entries.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let weights = || self.entries.iter().map(|entry| u32::from(entry.weight));
        let divisor = weights().reduce(greatest_common_divisor);
        self.len = divisor.map_or(0, |divisor| weights().sum::<u32>() / divisor);
        self.chosen = 0;
    }

    pub(crate) fn select(&mut self) -> Option<PathId> {
        let path = match self.equal {
            true => self.entries.get(self.chosen as usize)?.path,
            false => self.select_by_weight()?,
        };
        self.chosen += 1;
        if self.chosen == self.len {
            self.chosen = 0;
            if !self.equal {
                self.entries.iter_mut().for_each(|entry| entry.count = 0);
            }
        }
        Some(path)
    }

    fn select_by_weight(&mut self) -> Option<PathId> {
        let next = |entry: &Entry| u64::from(entry.count) + 1;
        let chosen = self.entries.iter_mut().reduce(|best, entry| {
            let earlier =
                next(entry) * u64::from(best.weight) < next(best) * u64::from(entry.weight);
            if earlier { entry } else { best }
        })?;
        chosen.count += 1;
        Some(chosen.path)
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector(weights: &[u16], len: usize) -> Vec<u8> {
        let mut weighted = Weighted::default();
        weighted.set_paths((0..).map(PathId).zip(weights.iter().copied()));
        (0..len).map(|_| weighted.select().unwrap().0).collect()
    }

    /// The draft's own procedure, with sums of steps as exact integers.
    fn vector_of_the_draft(weights: &[u16]) -> Vec<u8> {
        let multiple: u128 = weights.iter().fold(1, |multiple, &weight| {
            let (mut a, mut b) = (multiple, u128::from(weight));
            while b != 0 {
                (a, b) = (b, a % b);
            }
            multiple / a * u128::from(weight)
        });
        let steps: Vec<u128> =
            weights.iter().map(|&weight| multiple / u128::from(weight)).collect();
        let mut sums = vec![0; weights.len()];
        let mut vector = Vec::new();
        loop {
            let path = (0..weights.len()).min_by_key(|&path| sums[path] + steps[path]).unwrap();
            sums[path] += steps[path];
            vector.push(path as u8);
            if sums.iter().all(|&sum| sum == sums[0]) {
                return vector;
            }
        }
    }

    #[test]
    fn the_examples_of_the_draft() {
        assert_eq!(vector(&[1, 1], 4), [0, 1, 0, 1]);
        assert_eq!(vector(&[1, 2], 6), [1, 0, 1, 1, 0, 1]);
        assert_eq!(vector(&[1, 2, 3], 12), [2, 1, 2, 0, 1, 2, 2, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn no_paths_no_choice() {
        assert_eq!(Weighted::default().select(), None);
    }

    #[test]
    fn vectors_longer_than_the_originals_table_keep_every_share() {
        let weights: Vec<u16> = (0..64).map(|path| 10_000 - path).collect();
        let len: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
        let mut counts = [0_u16; 64];
        for path in vector(&weights, len) {
            counts[usize::from(path)] += 1;
        }
        assert_eq!(counts.as_slice(), weights);
    }

    #[test]
    fn equal_weights_take_turns_whatever_they_are() {
        assert_eq!(vector(&[10_000], 3), [0, 0, 0]);
        assert_eq!(vector(&[7, 7, 7], 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(vector_of_the_draft(&[7, 7, 7]), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn equals_the_vector_of_the_draft_where_weights_are_equal(
            weight in 1..=10_000_u16,
            paths in 1..=64_usize,
        ) {
            let expected = vector_of_the_draft(&vec![weight; paths]);
            let twice = [&expected[..], &expected[..]].concat();
            prop_assert_eq!(vector(&vec![weight; paths], twice.len()), twice);
        }

        #[test]
        fn equals_the_vector_of_the_draft(weights in prop::collection::vec(1..200_u16, 1..7)) {
            let expected = vector_of_the_draft(&weights);
            let twice = [&expected[..], &expected[..]].concat();
            prop_assert_eq!(vector(&weights, twice.len()), twice);
        }
    }
}
