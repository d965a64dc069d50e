//! Where a send batch is cut: the runs of datagrams that leave as one super-datagram each.
//!
//! The kernel cuts a super-datagram back into datagrams at every `UDP_SEGMENT` bytes, so the
//! datagrams of a run have one length, except that the last may be shorter and thereby ends the run.
//! They share the control messages too, hence one type of service. A datagram that stands alone is a
//! run of one, sent without a segment size.

use std::ops::Range;

use super::MAX_SEGMENTS;
use super::send_batch::Staged;

/// Datagrams of a send batch, one behind the other, that leave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    first: u16,
    end: u16,
}

impl Run {
    /// The longest run that begins with the datagram `first` and has at most `limit` bytes, or else
    /// one datagram. `staged` are all datagrams of the send batch, `first` is one of them.
    pub(super) fn cut(staged: &[Staged], first: usize, limit: usize) -> Self {
        let Staged { start, tos, .. } = staged[first];
        let segment = staged[first].len();
        let rest = staged[first + 1..].iter().take(MAX_SEGMENTS - 1);
        let mut count = 1;
        for next in rest {
            let bytes = (next.end - start) as usize;
            if next.tos != tos || next.len() > segment || bytes > limit {
                break;
            }
            count += 1;
            if next.len() < segment {
                break;
            }
        }
        Self::new(first, count)
    }

    /// The datagram `first` alone.
    pub(super) fn single(first: usize) -> Self {
        Self::new(first, 1)
    }

    fn new(first: usize, count: usize) -> Self {
        // A send batch is far shorter than u16::MAX.
        Self { first: first as u16, end: (first + count) as u16 }
    }

    /// The datagrams by their place in the send batch.
    pub(super) fn datagrams(self) -> Range<usize> {
        usize::from(self.first)..usize::from(self.end)
    }

    /// How many datagrams these are.
    pub(super) fn count(self) -> usize {
        usize::from(self.end - self.first)
    }

    /// Where their bytes lie in the staging memory.
    pub(super) fn bytes(self, staged: &[Staged]) -> Range<usize> {
        let run = &staged[self.datagrams()];
        run[0].start as usize..run[run.len() - 1].end as usize
    }

    /// The length of its datagrams, in bytes; the last one's may be less.
    pub(super) fn segment(self, staged: &[Staged]) -> usize {
        staged[usize::from(self.first)].len()
    }

    /// Their type of service.
    pub(super) fn tos(self, staged: &[Staged]) -> u8 {
        staged[usize::from(self.first)].tos
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::udp::{MAX_DATAGRAM, MAX_SUPER};

    fn staged(datagrams: &[(usize, u8)]) -> Vec<Staged> {
        let mut end = 0;
        let stage = |(len, tos): &(usize, u8)| {
            end += *len as u32;
            Staged { start: end - *len as u32, end, tos: *tos }
        };
        datagrams.iter().map(stage).collect()
    }

    /// How many datagrams each run of such a send batch has.
    fn counts(staged: &[Staged], limit: usize) -> Vec<usize> {
        let mut counts: Vec<usize> = Vec::new();
        let mut next = 0;
        while next < staged.len() {
            let run = Run::cut(staged, next, limit);
            assert_eq!(run.datagrams().start, next);
            counts.push(run.count());
            next = run.datagrams().end;
        }
        counts
    }

    fn of_lengths(lengths: &[usize], limit: usize) -> Vec<usize> {
        counts(&staged(&lengths.iter().map(|len| (*len, 0)).collect::<Vec<_>>()), limit)
    }

    #[test]
    fn a_shorter_datagram_ends_a_run_and_a_longer_one_begins_the_next() {
        assert_eq!(of_lengths(&[10, 10, 9, 9, 10, 11, 1], MAX_SUPER), [3, 1, 1, 2]);
    }

    #[test]
    fn another_type_of_service_begins_another_run() {
        assert_eq!(counts(&staged(&[(5, 0), (5, 0), (5, 2), (5, 0)]), MAX_SUPER), [2, 1, 1]);
    }

    #[test]
    fn number_and_bytes_are_limited() {
        assert_eq!(of_lengths(&[1; 150], MAX_SUPER), [64, 64, 22]);
        assert_eq!(of_lengths(&[1460; 90], MAX_SUPER), [44, 44, 2]);
        assert_eq!(of_lengths(&[100; 5], 299), [2, 2, 1]);
        assert_eq!(of_lengths(&[100; 5], 300), [3, 2]);
        assert_eq!(of_lengths(&[100; 3], 1), [1, 1, 1], "never less than one");
    }

    proptest! {
        /// Every datagram is in exactly one run, in order; every run is what the kernel takes; and no
        /// run could have been longer.
        #[test]
        fn any_send_batch_is_split_correctly(
            datagrams in prop::collection::vec(
                (prop_oneof![1usize..4, Just(1460), 1usize..=MAX_DATAGRAM], 0u8..2),
                1..300,
            ),
            limit in prop_oneof![Just(MAX_SUPER), 1usize..5000],
        ) {
            let staged = staged(&datagrams);
            let mut next = 0;
            while next < staged.len() {
                let run = Run::cut(&staged, next, limit);
                prop_assert_eq!(run.datagrams().start, next);
                next = run.datagrams().end;
                prop_assert!((1..=MAX_SEGMENTS).contains(&run.count()));
                let bytes = run.bytes(&staged);
                prop_assert!(run.count() == 1 || bytes.len() <= limit);
                prop_assert_eq!(bytes.start, staged[run.datagrams().start].start as usize);
                prop_assert_eq!(bytes.end, staged[next - 1].end as usize);

                let segment = run.segment(&staged);
                let (last, whole) = datagrams[run.datagrams()].split_last().unwrap();
                prop_assert!(whole.iter().all(|(len, tos)| (*len, *tos) == (segment, last.1)));
                prop_assert!((1..=segment).contains(&last.0));
                prop_assert_eq!(run.tos(&staged), last.1);

                if let Some((len, tos)) = datagrams.get(next) {
                    let could_join = last.0 == segment
                        && *len <= segment
                        && *tos == last.1
                        && run.count() < MAX_SEGMENTS
                        && bytes.len() + len <= limit;
                    prop_assert!(!could_join, "the run before {} ended too early", next);
                }
            }
        }
    }
}
