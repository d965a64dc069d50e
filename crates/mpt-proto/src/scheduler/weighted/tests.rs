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
    let steps: Vec<u128> = weights.iter().map(|&weight| multiple / u128::from(weight)).collect();
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
fn equal_weights_alternate() {
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

    /// Weights that change, each set for some packets; paths stay.
    #[test]
    fn every_path_stays_within_a_few_packets_of_its_share_however_weights_change(
        phases in (2..9_usize).prop_flat_map(|paths| {
            let weights = prop_oneof![3 => 1..20_u16, 1 => 1..=10_000_u16];
            prop::collection::vec((prop::collection::vec(weights, paths), 1..200_u32), 1..60)
        }),
    ) {
        let paths = phases[0].0.len();
        let mut deviation = Deviation::new(paths);
        for (weights, packets) in &phases {
            deviation.run(weights, *packets);
            let farthest = deviation.farthest();
            prop_assert!(farthest <= paths as f64, "{} packets from its share", farthest);
        }
    }

    /// Paths that have more packets than they were selected for.
    #[test]
    fn runs_leave_every_path_within_a_run_per_path_of_its_share(
        weights in prop::collection::vec(1..20_u16, 1..5),
        runs in prop::collection::vec(0..50_u32, 1..200),
    ) {
        let mut deviation = Deviation::new(weights.len());
        for more in &runs {
            deviation.run(&weights, 1);
            deviation.more(&weights, *more);
            let farthest = deviation.farthest();
            prop_assert!(farthest <= 50.0 * weights.len() as f64, "{} packets from its share", farthest);
        }
        let counts = deviation.weighted.entries.iter().map(|entry| entry.count.abs());
        prop_assert!(counts.max() < Some(300 * PACKET), "counts do not grow");
    }

    /// Paths are added and removed as well. In every case no path starves.
    #[test]
    fn a_path_waits_for_at_most_one_turn_per_path(
        phases in prop::collection::vec(
            (prop::collection::btree_map(0..6_u8, 1..20_u16, 1..=6), 1..50_u32),
            1..60,
        ),
    ) {
        let mut weighted = Weighted::default();
        for (weights, packets) in &phases {
            set(&mut weighted, weights.iter().map(|(path, weight)| (*path, *weight)));
            (0..*packets).for_each(|_| { weighted.select().unwrap(); });
        }
        let weights = &phases.last().unwrap().0;
        let sum: u16 = weights.values().sum();
        for (path, weight) in weights {
            let turn = sum.div_ceil(*weight);
            let most = turn * (weights.len() as u16 + 1);
            let waited = (0..most).take_while(|_| weighted.select() != Some(PathId(*path))).count();
            prop_assert!(waited < usize::from(most), "{} of {:?}", path, weights);
        }
    }
}

/// How far each path is from the sum of what it was entitled to.
struct Deviation {
    weighted: Weighted,
    /// The path that was selected last.
    last: PathId,
    entitled: Vec<f64>,
    had: Vec<f64>,
}

impl Deviation {
    fn new(paths: usize) -> Self {
        let (entitled, had) = (vec![0.0; paths], vec![0.0; paths]);
        Self { weighted: Weighted::default(), last: PathId(0), entitled, had }
    }

    fn run(&mut self, weights: &[u16], packets: u32) {
        set(&mut self.weighted, (0..).zip(weights.iter().copied()));
        self.entitle(weights, packets);
        for _ in 0..packets {
            self.last = self.weighted.select().unwrap();
            self.had[self.last.index()] += 1.0;
        }
    }

    /// The path that was selected last has so many packets more.
    fn more(&mut self, weights: &[u16], packets: u32) {
        self.entitle(weights, packets);
        self.weighted.add(self.last, packets);
        self.had[self.last.index()] += f64::from(packets);
    }

    fn entitle(&mut self, weights: &[u16], packets: u32) {
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        for (entitled, weight) in self.entitled.iter_mut().zip(weights) {
            *entitled += f64::from(packets) * f64::from(*weight) / sum;
        }
    }

    fn farthest(&self) -> f64 {
        let off = self.had.iter().zip(&self.entitled).map(|(had, entitled)| (had - entitled).abs());
        off.fold(0.0, f64::max)
    }
}

fn set(weighted: &mut Weighted, weights: impl IntoIterator<Item = (u8, u16)>) {
    weighted.set_paths(weights.into_iter().map(|(path, weight)| (PathId(path), weight)));
}

#[test]
fn weights_that_change_every_hundred_packets_starve_no_path() {
    // 1,000 packets/s for 1,000 s, other weights every 100 ms.
    let mut deviation = Deviation::new(3);
    for phase in 0..10_000_u16 {
        deviation.run(&[10_000, 1, 9000 + phase % 1000], 100);
        assert!(deviation.farthest() <= 3.0, "{}", deviation.farthest());
    }
    assert!((50.0..=53.0).contains(&deviation.had[1]), "{:?}", deviation.had);
}

#[test]
fn a_path_that_has_had_more_waits_for_as_many_turns() {
    for before in 0..3 {
        let mut weighted = Weighted::default();
        set(&mut weighted, [(0, 1), (1, 1)]);
        (0..before).for_each(|_| {
            weighted.select().unwrap();
        });
        let path = weighted.select().unwrap();
        weighted.add(path, 43);
        let others = (0..100).take_while(|_| weighted.select() != Some(path)).count();
        // Where both have had as many, the first is next.
        assert_eq!(others, 44, "{before}");
        let next: Vec<_> = (0..4).map(|_| weighted.select().unwrap()).collect();
        assert_eq!((next[0], next[1]), (next[2], next[3]), "they take turns again");
        assert_ne!(next[0], next[1]);
    }
}

#[test]
fn setting_unchanged_weights_has_no_effect() {
    for weights in [&[1, 2, 3][..], &[1, 1, 1], &[7, 3, 1, 1]] {
        let expected = vector(weights, 100);
        let mut weighted = Weighted::default();
        let interrupted = (0..100).map(|_| {
            set(&mut weighted, (0..).zip(weights.iter().copied()));
            weighted.select().unwrap().0
        });
        assert_eq!(interrupted.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_path_that_comes_and_goes_is_not_made_up_for() {
    let mut weighted = Weighted::default();
    let mut had = [0_i32; 3];
    for phase in 0..1000 {
        let there = if phase % 2 == 0 { 3 } else { 2 };
        set(&mut weighted, [(0, 1), (1, 1), (2, 1)].into_iter().take(there));
        (0..4).for_each(|_| had[weighted.select().unwrap().index()] += 1);
    }
    // Every other time 4 of 4 for two, then 4 for three; the third starts again each time.
    assert!((had[0] - had[1]).abs() <= 1, "{had:?}");
    set(&mut weighted, [(0, 1), (1, 1), (2, 1)]);
    let next: Vec<_> = (0..3).map(|_| weighted.select().unwrap().0).collect();
    assert!(next.contains(&2), "{next:?}");
}

#[test]
fn equal_weights_alternate_again_after_others() {
    let mut weighted = Weighted::default();
    set(&mut weighted, [(0, 10), (1, 1), (2, 1), (3, 1)]);
    (0..9).for_each(|_| assert_eq!(weighted.select(), Some(PathId(0))));
    set(&mut weighted, [(0, 1), (1, 1), (2, 1), (3, 1)]);
    assert!(!weighted.turns, "path 0 is far ahead");
    let caught_up: Vec<_> = (0..16).map(|_| weighted.select().unwrap().0).collect();
    assert!(weighted.turns, "{caught_up:?}");
    let ahead = caught_up.iter().filter(|&&path| path == 0).count();
    assert_eq!(ahead, 2, "two of its four turns fell away: {caught_up:?}");
}
