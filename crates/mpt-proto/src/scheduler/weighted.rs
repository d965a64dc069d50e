//! Weighted round robin: the sending vector of draft-lencse-tsvwg-mpt section 5.1.
//!
//! The draft gives every path a step L / weight, L being a common multiple of the weights, and lets
//! the path go next whose sum of steps would be least, the first of them on a tie. The vector is
//! complete when all sums are equal; a path then stands in it weight / gcd times.
//!
//! The vector is not stored: with 64 weights of up to 10,000 it can have 640,000 entries and L
//! dozens of digits. A path that went `count` times has the sum `count` * L / weight, so comparing
//! (count + 1) / weight by cross-multiplication gives the same selection.
//!
//! When weights change or paths come and go, a vector begun afresh would favour those that stand
//! first in it: beside a weight of 10,000 a weight of 1 stands last, and would never have its turn
//! if every hundred packets something else is wanted. So the rest of the old vector is carried over.
//! Every path that stays takes along how many packets it has had beyond its share, or fewer, among
//! those that stay; who comes begins with nothing; and the new vector begins with these counts
//! instead of zeros. That is how stride scheduling (Waldspurger, Weihl: Stride Scheduling, MIT
//! LCS TM-528, 1995) moves a client to another share. Whatever changes however often, each path
//! stays within a few packets of the sum of what it was entitled to, at most one for each path of
//! the connection; and a path that is ahead waits for that many of its turns and no longer.
//!
//! Paths of one weight, and above all a path alone, just take turns: that is what the vector comes
//! to, and needs no comparison.

use crate::id::PathId;

/// A packet, where fractions of one are counted: shares are rounded to a millionth of a packet, and
/// the longest vector, 640,000 packets, times the largest weight has room in 63 bits a thousand times.
const PACKET: i64 = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Weighted {
    entries: Vec<Entry>,
    /// Whether all weights are the same.
    equal: bool,
    /// Whether the entries just take turns as they stand, and nothing is counted but `chosen`.
    turns: bool,
    /// The length of the sending vector: the sum of the entries' weights.
    len: usize,
    /// How many choices of the vector have been made; less than `len`.
    chosen: usize,
}

#[derive(Debug)]
struct Entry {
    path: PathId,
    /// Its weight over the greatest common divisor of all: how often it stands in the vector.
    weight: u32,
    /// How many packets it has had of this vector, in units of [`PACKET`], beginning with what it
    /// had too many or, below zero, too few before.
    count: i64,
}

impl Weighted {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    pub(crate) fn set_paths(&mut self, paths: impl Iterator<Item = (PathId, u16)>) {
        let mut paths: Vec<_> = paths.map(|(path, weight)| (path, u32::from(weight))).collect();
        let divisor = paths.iter().map(|(_, weight)| *weight).reduce(greatest_common_divisor);
        paths.iter_mut().for_each(|(_, weight)| *weight /= divisor.unwrap_or(1));
        if self.is_made_of(&paths) {
            return;
        }
        self.finish_turns();
        self.entries.retain(|entry| paths.iter().any(|(path, _)| *path == entry.path));
        let excess = self.excess();
        let begin = |(path, weight)| {
            let before = self.entries.iter().position(|entry| entry.path == path);
            Entry { path, weight, count: before.map_or(0, |place| excess[place]) }
        };
        self.entries = paths.into_iter().map(begin).collect();
        self.len = self.entries.iter().map(|entry| entry.weight as usize).sum();
        self.chosen = 0;
        self.equal = self.entries.iter().all(|entry| entry.weight == 1);
        self.begin_turns();
    }

    #[inline]
    pub(crate) fn select(&mut self) -> Option<PathId> {
        if !self.turns {
            return self.select_by_weight();
        }
        let path = self.entries.get(self.chosen)?.path;
        self.chosen += 1;
        if self.chosen == self.entries.len() {
            self.chosen = 0;
        }
        Some(path)
    }

    /// A path has had so many packets beyond those for which it was selected. It waits for as many of its turns.
    pub(crate) fn add(&mut self, path: PathId, packets: u32) {
        self.finish_turns();
        self.turns = false;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.path == path) {
            entry.count += i64::from(packets) * PACKET;
            self.chosen += packets as usize;
        }
        let Some(vectors) = self.chosen.checked_div(self.len).filter(|vectors| *vectors > 0) else {
            return;
        };
        self.chosen %= self.len;
        self.begin_again(vectors);
    }

    /// The lowest weight and the sum of all, if there are several paths.
    pub(crate) fn least_share(&self) -> Option<(u32, u32)> {
        let least = self.entries.iter().map(|entry| entry.weight).min()?;
        (self.entries.len() > 1).then_some((least, self.len as u32))
    }

    fn select_by_weight(&mut self) -> Option<PathId> {
        let next = |entry: &Entry| entry.count + PACKET;
        let chosen = self.entries.iter_mut().reduce(|best, entry| {
            let earlier =
                next(entry) * i64::from(best.weight) < next(best) * i64::from(entry.weight);
            if earlier { entry } else { best }
        })?;
        chosen.count += PACKET;
        let path = chosen.path;
        self.chosen += 1;
        if self.chosen == self.len {
            self.chosen = 0;
            self.begin_again(1);
        }
        Some(path)
    }

    /// So many vectors are complete: all sums are what they were when the first began. Cold, so that registers are
    /// saved around this call only and not for every packet.
    #[cold]
    fn begin_again(&mut self, vectors: usize) {
        let full = |entry: &Entry| vectors as i64 * i64::from(entry.weight) * PACKET;
        self.entries.iter_mut().for_each(|entry| entry.count -= full(entry));
        self.begin_turns();
    }

    /// Alternates from here on if the weights are equal and no path is more than a packet ahead of
    /// another. Then the path with the fewest packets is first; apart from ties the comparison
    /// gives the same result.
    fn begin_turns(&mut self) {
        let counts = || self.entries.iter().map(|entry| entry.count);
        let close = || Some(counts().max()? - counts().min()? <= PACKET);
        self.turns = self.equal && close().unwrap_or(true);
        if self.turns {
            self.entries.sort_by_key(|entry| entry.count);
        }
    }

    /// Whether these are the paths and weights of the present vector.
    fn is_made_of(&self, paths: &[(PathId, u32)]) -> bool {
        let entry = |entry: &Entry| paths.contains(&(entry.path, entry.weight));
        self.entries.len() == paths.len() && self.entries.iter().all(entry)
    }

    /// Counts the turns that were taken of this round.
    fn finish_turns(&mut self) {
        if self.turns {
            let had = self.entries.iter_mut().take(self.chosen);
            had.for_each(|entry| entry.count += PACKET);
        }
    }

    /// What each entry has had beyond its share of what all of them had. The sum is zero.
    fn excess(&self) -> Vec<i64> {
        let had: i64 = self.entries.iter().map(|entry| entry.count).sum();
        let weights: i64 = self.entries.iter().map(|entry| i64::from(entry.weight)).sum();
        let share = |entry: &Entry| had * i64::from(entry.weight) / weights;
        self.entries.iter().map(|entry| entry.count - share(entry)).collect()
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
