//! The earliest of many deadlines, when each wake-up moves only a few of them.
//!
//! A tournament: the deadlines are the leaves of a binary tree, and every inner node is the earlier of
//! the two below it. To move one is to play again the games of one leaf; the winner is at the root.

use crate::time::Instant;

/// Stands for no deadline.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// A deadline for each of some small numbers.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The root is at 1, what is below `node` at twice its place and the one after; the second half are
    /// the leaves.
    tree: Vec<Instant>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { tree: vec![NEVER; 2] }
    }
}

impl Deadlines {
    /// Sets or removes the deadline of `number`.
    pub(crate) fn set(&mut self, number: usize, deadline: Option<Instant>) {
        while number >= self.leaves() {
            self.grow();
        }
        let mut node = self.leaves() + number;
        let mut earliest = deadline.unwrap_or(NEVER);
        loop {
            if self.tree[node] == earliest {
                return;
            }
            self.tree[node] = earliest;
            if node == 1 {
                return;
            }
            earliest = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// The earliest deadline and whose it is; of equal ones the least number's.
    pub(crate) fn first(&self) -> Option<(usize, Instant)> {
        let earliest = self.tree[1];
        if earliest == NEVER {
            return None;
        }
        let mut node = 1;
        while node < self.leaves() {
            node *= 2;
            if self.tree[node] != earliest {
                node += 1;
            }
        }
        Some((node - self.leaves(), earliest))
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    fn grow(&mut self) {
        let wider = vec![NEVER; self.tree.len() * 2];
        let old = std::mem::replace(&mut self.tree, wider);
        for (number, &deadline) in old[old.len() / 2..].iter().enumerate() {
            self.set(number, Some(deadline));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn none_at_the_start() {
        assert_eq!(Deadlines::default().first(), None);
    }

    proptest! {
        #[test]
        fn the_first_is_the_least(moves in prop::collection::vec((0..40_usize, prop::option::of(0..9_u64)), 1..90)) {
            let mut deadlines = Deadlines::default();
            let mut plain = vec![None; 40];
            for (number, at) in moves {
                let at = at.map(Instant::from_nanos);
                deadlines.set(number, at);
                plain[number] = at;
                let least = plain.iter().enumerate().filter_map(|(number, at)| Some((number, (*at)?)));
                prop_assert_eq!(deadlines.first(), least.min_by_key(|&(number, at)| (at, number)));
            }
        }
    }
}
