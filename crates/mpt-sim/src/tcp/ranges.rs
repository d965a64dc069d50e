//! What has arrived beyond a gap, and which of it an acknowledgement names.

use std::collections::BTreeMap;

use super::{MOST_RANGES, Range};

/// Disjoint ranges of segments, and the order in which they were touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// Ends by starts.
    ranges: BTreeMap<u64, u64>,
    /// Starts of the ranges touched last, the latest first.
    recent: Vec<u64>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, &end)| number < end)
    }

    /// Adds a range of which nothing is in yet.
    pub(super) fn insert(&mut self, (mut start, mut end): Range) {
        if let Some((&before, &its_end)) = self.ranges.range(..=start).next_back()
            && its_end == start
        {
            self.ranges.remove(&before);
            self.recent.retain(|&recent| recent != before);
            start = before;
        }
        if let Some(after) = self.ranges.remove(&end) {
            self.recent.retain(|&recent| recent != end);
            end = after;
        }
        self.ranges.insert(start, end);
        self.recent.insert(0, start);
        self.recent.truncate(2 * MOST_RANGES);
    }

    /// Takes the range that begins at `next`, if there is one; returns its end.
    pub(super) fn take(&mut self, next: u64) -> Option<u64> {
        let end = self.ranges.remove(&next)?;
        self.recent.retain(|&recent| recent != next);
        Some(end)
    }

    /// The ranges touched last.
    pub(super) fn named(&self) -> [Option<Range>; MOST_RANGES] {
        let mut recent = self.recent.iter();
        std::array::from_fn(|_| recent.next().map(|start| (*start, self.ranges[start])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_the_latest_is_named_first() {
        let mut ranges = Ranges::default();
        for number in [5, 9, 7, 20, 6, 30] {
            ranges.insert((number, number + 1));
        }
        assert_eq!(ranges.named(), [Some((30, 31)), Some((5, 8)), Some((20, 21))]);
        assert!(ranges.contains(7) && ranges.contains(9) && !ranges.contains(8));
        assert_eq!(ranges.take(4), None);
        assert_eq!(ranges.take(5), Some(8));
        assert_eq!(ranges.named(), [Some((30, 31)), Some((20, 21)), Some((9, 10))]);
    }
}
