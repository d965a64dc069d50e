//! Which cells were measured by which build of the programs, if there are several.

use super::remarks::{place, some};
use crate::results::{CellRecord, Manifest, Part};

/// A remark for each build or machine; none if one measured everything.
pub(super) fn remarks(runs: &[Manifest], cells: &[CellRecord]) -> Vec<String> {
    let mut groups: Vec<(&Manifest, Vec<&str>)> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|(first, _)| is_same(first, run)) {
            Some((_, ids)) => ids.push(&run.id),
            None => groups.push((run, vec![&run.id])),
        }
    }
    let of_group = |(run, ids): (&Manifest, Vec<&str>)| {
        let of_cell = |cell: &CellRecord| {
            let is_own = |part: &&Part| ids.contains(&part.run.as_str());
            let numbers: Vec<u32> =
                cell.parts.iter().filter(is_own).map(|part| part.repetition).collect();
            let all = numbers.len() == cell.parts.len();
            (!numbers.is_empty()).then(|| match all {
                true => place(cell),
                false => format!("{} ({})", place(cell), repetitions(&numbers)),
            })
        };
        let places: Vec<_> = cells.iter().filter_map(of_cell).collect();
        let (count, all) = (places.len(), cells.len());
        (!places.is_empty()).then(|| {
            format!("Measured by {}: {count} of {all} cells: {}.", run.programs(), some(&places))
        })
    };
    let remarks: Vec<_> = groups.into_iter().filter_map(of_group).collect();
    if remarks.len() > 1 { remarks } else { Vec::new() }
}

/// Whether two runs are of the same build and machine, as far as is known of older ones.
fn is_same(one: &Manifest, other: &Manifest) -> bool {
    one.has_programs_of(other) && one.version == other.version && one.commit == other.commit
}

fn repetitions(numbers: &[u32]) -> String {
    match numbers {
        [one] => format!("repetition {one}"),
        several => {
            let words: Vec<_> = several.iter().map(u32::to_string).collect();
            format!("repetitions {}", words.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Coordinate;

    fn run(id: &str, commit: &str) -> Manifest {
        let (id, commit) = (id.into(), commit.into());
        let (version, kernel, cpu) = ("1.0.0".into(), "6.1".into(), "Z80".into());
        Manifest { id, commit, version, kernel, cpu, processors: 1, ..Manifest::default() }
    }

    fn cell(delay: u32, parts: &[(u32, &str)]) -> CellRecord {
        let at = Coordinate { axis: "delay".into(), label: delay.to_string(), value: None };
        let part = |(repetition, run): &(u32, &str)| Part {
            repetition: *repetition,
            run: (*run).to_owned(),
        };
        CellRecord {
            cell: vec![at],
            parts: parts.iter().map(part).collect(),
            ..CellRecord::default()
        }
    }

    #[test]
    fn cells_of_several_builds_are_told_apart() {
        let runs = [run("a", "one"), run("b", "one"), run("c", "two")];
        let cells = [cell(5, &[(1, "a"), (2, "b")]), cell(7, &[(1, "a"), (2, "c"), (3, "c")])];
        assert_eq!(
            remarks(&runs, &cells),
            [
                "Measured by version 1.0.0, commit one, kernel 6.1, 1 of Z80: 2 of 2 cells: delay 5; delay 7 \
                 (repetition 1).",
                "Measured by version 1.0.0, commit two, kernel 6.1, 1 of Z80: 1 of 2 cells: delay 7 (repetitions 2, \
                 3)."
            ]
        );
        assert!(remarks(&runs, &cells[..1]).is_empty(), "one build measured everything");
    }
}
