//! In which order subjects are measured.

/// The turns of `count` subjects in a round, by their places in the list of subjects.
///
/// Neighbours stay neighbours, because ratios are taken between them, but which of two comes first changes from
/// round to round, and so does the one that begins: what one leaves behind (a warm cache, a busy neighbour of this machine) must not
/// always meet the same other.
pub(super) fn turns(count: usize, round: usize) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..count).collect();
    if round % 2 == 1 {
        turns.reverse();
    }
    // Either way by the same number, so that each begins as often as another.
    turns.rotate_left((round / 2) % count.max(1));
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_each_subject_once() {
        for count in [0, 1, 2, 5, 18] {
            for round in 0..40 {
                let mut turns = turns(count, round);
                turns.sort_unstable();
                assert_eq!(turns, (0..count).collect::<Vec<_>>(), "{count} {round}");
            }
        }
    }

    #[test]
    fn each_begins_as_often_as_another_and_follows_either_neighbour() {
        let rounds: Vec<_> = (0..10).map(|round| turns(5, round)).collect();
        for subject in 0..5 {
            let begins = rounds.iter().filter(|turns| turns[0] == subject).count();
            assert_eq!(begins, 2, "{subject}");
        }
        let follows = |first, second| {
            let pairs = rounds.iter().flat_map(|turns| turns.windows(2));
            pairs.filter(|pair| **pair == [first, second]).count()
        };
        assert_eq!((follows(1, 2), follows(2, 1)), (4, 4));
        assert_eq!(follows(1, 3), 0, "neighbours stay neighbours");
    }

    #[test]
    fn of_two_subjects_each_comes_first_in_half_of_the_rounds() {
        let first: Vec<_> = (0..4).map(|round| turns(2, round)[0]).collect();
        assert_eq!(first.iter().filter(|&&subject| subject == 0).count(), 2, "{first:?}");
    }
}
