//! Cycles in a graph, and the edges to cut.

use std::collections::{BTreeMap, VecDeque};

use super::resolve::Use;

/// One module uses another, and what of it.
#[derive(Clone, Debug)]
pub(super) struct Edge<'u> {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) uses: Vec<&'u Use>,
}

/// Who uses whom.
#[derive(Debug, Default)]
pub(super) struct Graph<'u> {
    edges: BTreeMap<usize, BTreeMap<usize, Vec<&'u Use>>>,
}

impl<'u> Graph<'u> {
    pub(super) fn add(&mut self, from: usize, to: usize, used: &'u Use) {
        self.edges.entry(from).or_default().entry(to).or_default().push(used);
    }

    /// Takes out of the graph the edge of a shortest cycle that has the fewest uses. Returns that
    /// cycle, beginning with this edge; `None` if there is no cycle.
    pub(super) fn cut_one(&mut self) -> Option<Vec<Edge<'u>>> {
        let cycles = self.edges.keys().filter_map(|&start| self.shortest_cycle(start));
        let cycle = cycles.min_by_key(Vec::len)?;
        let mut cycle: Vec<_> = cycle
            .iter()
            .zip(cycle.iter().cycle().skip(1))
            .map(|(&from, &to)| Edge { from, to, uses: self.edges[&from][&to].clone() })
            .collect();
        let cheapest = (0..cycle.len()).min_by_key(|&at| cycle[at].uses.len())?;
        cycle.rotate_left(cheapest);
        self.edges.get_mut(&cycle[0].from)?.remove(&cycle[0].to);
        Some(cycle)
    }

    /// The modules of a shortest cycle through `start`, beginning with it.
    fn shortest_cycle(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            for &to in self.edges.get(&at).into_iter().flat_map(BTreeMap::keys) {
                if to == start {
                    let back = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                    let mut cycle: Vec<_> = back.collect();
                    cycle.reverse();
                    return Some(cycle);
                }
                came_from.entry(to).or_insert_with(|| {
                    open.push_back(to);
                    at
                });
            }
        }
        None
    }
}
