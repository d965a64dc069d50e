//! Packets that were sent on two paths at once: only if both copies are lost, one is to be sent again.

use std::collections::VecDeque;

/// So many are remembered of which something is to be found out. What is known of the others is not put together.
const MOST: usize = 256;

/// What follows when it is known of one copy whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing yet: the other one is on its way.
    Open,
    /// Both have arrived, so one would have been enough.
    Both,
    /// One has arrived, and the other one is lost.
    One,
    /// Both are lost, or nothing is known of the other one.
    None,
}

/// The packets of one connection, by their numbers, each with what is known of the copy that something is known of.
#[derive(Debug, Default)]
pub(crate) struct Twins(VecDeque<(u32, Option<bool>)>);

impl Twins {
    /// Bytes of memory apart from its own size.
    pub(in crate::tx) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, Option<bool>)>()
    }

    /// A packet with this number is sent on two paths.
    pub(in crate::tx) fn on_sent(&mut self, number: u32) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((number, None));
    }

    /// One copy has arrived, or is lost.
    pub(in crate::tx) fn on_known(&mut self, number: u32, arrived: bool) -> Fate {
        let Some(at) = self.0.iter().position(|(other, _)| *other == number) else {
            return if arrived { Fate::Open } else { Fate::None };
        };
        let Some(other) = self.0[at].1 else {
            self.0[at].1 = Some(arrived);
            return Fate::Open;
        };
        self.0.remove(at);
        match (other, arrived) {
            (true, true) => Fate::Both,
            (false, false) => Fate::None,
            _ => Fate::One,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_lost_twice_is_lost() {
        let mut twins = Twins::default();
        for (number, copies, fate) in [
            (7, [true, true], Fate::Both),
            (8, [false, true], Fate::One),
            (9, [true, false], Fate::One),
            (10, [false, false], Fate::None),
        ] {
            twins.on_sent(number);
            assert_eq!(twins.on_known(number, copies[0]), Fate::Open);
            assert_eq!(twins.on_known(number, copies[1]), fate, "{copies:?}");
        }
        assert!(twins.0.is_empty());
    }

    #[test]
    fn what_is_forgotten_counts_alone() {
        let mut twins = Twins::default();
        (0..=MOST as u32).for_each(|number| twins.on_sent(number));
        assert_eq!(twins.0.len(), MOST);
        assert_eq!(twins.on_known(0, false), Fate::None);
        assert_eq!(twins.on_known(0, true), Fate::Open);
    }
}
