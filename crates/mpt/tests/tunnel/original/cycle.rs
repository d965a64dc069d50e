//! On which path the original sends: its sending vector, and what it passes over.

/// The paths in turn, in proportion to their weights.
#[derive(Debug)]
pub(super) struct Cycle {
    paths: Vec<usize>,
    /// Where to look first.
    place: usize,
}

impl Cycle {
    /// Every path has a step that is the shorter the greater its weight, and the path that has come the
    /// least far is next, until all have come equally far.
    pub(super) fn new(weights: &[u64]) -> Self {
        let whole: u64 = weights.iter().product();
        let mut come = vec![0; weights.len()];
        let mut paths = Vec::new();
        loop {
            let would_be = |path: usize| come[path] + whole / weights[path];
            let next = (0..weights.len()).min_by_key(|&path| would_be(path)).expect("a path");
            come[next] = would_be(next);
            paths.push(next);
            if come.iter().all(|&far| far == come[0]) {
                return Self { paths, place: 0 };
            }
        }
    }

    /// The next path that is in order, and its place in the cycle.
    pub(super) fn next(&mut self, is_ok: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let length = self.paths.len();
        let places = (self.place..self.place + 2 * length).map(|place| place % length);
        let place = places.into_iter().find(|&place| is_ok(self.paths[place]))?;
        self.place = (place + 1) % length;
        Some((self.paths[place], place))
    }

    pub(super) fn paths(&self) -> &[usize] {
        &self.paths
    }
}

/// The examples of the document.
pub(super) fn vectors() {
    let cases: [(&[u64], &[usize]); 4] = [
        (&[1, 1], &[0, 1]),
        (&[1, 2], &[1, 0, 1]),
        (&[10, 20], &[1, 0, 1]),
        (&[1, 2, 3], &[2, 1, 2, 0, 1, 2]),
    ];
    for (weights, paths) in cases {
        assert_eq!(Cycle::new(weights).paths(), paths, "{weights:?}");
    }
    let mut cycle = Cycle::new(&[1, 2]);
    let turns: Vec<_> = (0..4).filter_map(|_| cycle.next(|path| path == 1)).collect();
    assert_eq!(turns, [(1, 0), (1, 2), (1, 0), (1, 2)]);
    assert_eq!(cycle.next(|_| false), None);
}
