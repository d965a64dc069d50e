//! Whether targets are reached, and by how much they are missed.
//!
//! A target is about the cells of its `only`; one that divides by what was published is about those
//! that the publication prints. In each of them the figure, or its quotient, reaches the bound, misses
//! it, or could not be found. Each cell, so many of them, or their median has to reach it. What could not
//! be found counts for neither side: the verdict is [`Verdict::NotMeasured`] if it could have turned the
//! answer, so that nothing passes in silence.

mod value;
mod words;

use super::answer::{Answer, Form};
use crate::results::{Of, Target};
use crate::traffic::spread;
use value::{excess, is_about, value};

/// What became of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is reached.
    Met,
    /// A quick run says nothing about it.
    NotClaimed,
    /// Too much is missing to say.
    NotMeasured,
    /// It is missed.
    Missed,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotClaimed => "not claimed",
            Self::NotMeasured => "not measured",
            Self::Missed => "missed",
        }
    }
}

/// A target and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The target in words.
    pub text: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How many cells reach it.
    pub reached: usize,
    /// How many of these are doubtful.
    pub doubtful: usize,
    /// How many cells it is about.
    pub cells: usize,
    /// Of the cells that reach it the one that is closest to the bound, and its figure or quotient.
    pub closest: Option<(String, f64)>,
    /// The median of all cells that were measured, where that is what counts.
    pub median: Option<f64>,
    /// The cells that do not reach it, the worst first.
    pub misses: Vec<Miss>,
    /// The cells in which something is missing, and what.
    pub unknown: Vec<Unknown>,
}

/// A cell that does not reach a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// Which one.
    pub place: String,
    /// The figure or quotient.
    pub got: f64,
    /// How far beyond the bound it is, in the unit of the figure or quotient.
    pub by: f64,
    /// Whether the cell is doubtful.
    pub doubtful: bool,
    /// Whether the sending host rather than the links limits the flows of the cell.
    pub host_limited: bool,
}

/// A cell in which a target cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Which one.
    pub place: String,
    /// What is missing.
    pub why: String,
}

/// Judges all targets of an experiment.
pub fn judge_all(answer: &Answer) -> Vec<Judgement> {
    answer.entry.targets.iter().map(|target| judge(answer, target)).collect()
}

/// Judges one target.
pub fn judge(answer: &Answer, target: &Target) -> Judgement {
    let mut judgement = Judgement {
        text: words::text(answer, target),
        verdict: Verdict::NotClaimed,
        reached: 0,
        doubtful: 0,
        cells: 0,
        closest: None,
        median: None,
        misses: Vec::new(),
        unknown: Vec::new(),
    };
    if target.full && answer.form == Form::Quick {
        return judgement;
    }
    // How far each cell lies beyond the bound, and what it has.
    let mut beyond = Vec::new();
    let mut least_room = f64::INFINITY;
    for cell in answer.cells.iter().filter(|cell| is_about(target, &cell.cell)) {
        let Some(value) = value(cell, target) else { continue };
        judgement.cells += 1;
        let (place, doubtful) = (cell.place(), cell.doubtful);
        match value.map(|got| (got, excess(target, cell, got))) {
            Ok((got, by)) => {
                beyond.push((by, got));
                if by > 0.0 {
                    let host_limited = cell.host_limited.is_some();
                    judgement.misses.push(Miss { place, got, by, doubtful, host_limited });
                    continue;
                }
                judgement.reached += 1;
                judgement.doubtful += usize::from(doubtful);
                if -by < least_room {
                    least_room = -by;
                    judgement.closest = Some((place, got));
                }
            }
            Err(why) => judgement.unknown.push(Unknown { place, why }),
        }
    }
    for place in answer.missing.iter().filter(|place| is_about(target, place)) {
        judgement.cells += 1;
        let words: Vec<_> = place.iter().map(|at| format!("{} {}", at.axis, at.label)).collect();
        let why = "the cell was not measured".into();
        judgement.unknown.push(Unknown { place: words.join(", "), why });
    }
    judgement.misses.sort_by(|one, other| other.by.total_cmp(&one.by));
    judgement.verdict = match target.cells {
        Of::Each => of_cells(&judgement, target.share * judgement.cells as f64 - 1e-9),
        Of::AtLeast(count) => of_cells(&judgement, count as f64),
        Of::Median => {
            let got: Vec<_> = beyond.iter().map(|(_, got)| *got).collect();
            judgement.median = spread::median(&got);
            of_median(beyond.iter().map(|(by, _)| *by).collect(), judgement.unknown.len())
        }
    };
    judgement
}

/// The verdict if so many cells have to reach the bound.
fn of_cells(judgement: &Judgement, wanted: f64) -> Verdict {
    let at_best = judgement.reached + judgement.unknown.len();
    if judgement.cells == 0 {
        Verdict::NotMeasured
    } else if judgement.reached as f64 >= wanted && judgement.reached > 0 {
        Verdict::Met
    } else if (at_best as f64) < wanted || judgement.unknown.is_empty() {
        Verdict::Missed
    } else {
        Verdict::NotMeasured
    }
}

/// The verdict if the median counts of cells that lie so far beyond the bound, and of so many others.
fn of_median(beyond: Vec<f64>, unknown: usize) -> Verdict {
    let with = |others: f64| {
        let all = [beyond.clone(), vec![others; unknown]].concat();
        spread::median(&all).filter(|_| !beyond.is_empty())
    };
    // Finite, so that a median between two cells stays a number.
    match (with(f64::MAX / 4.0), with(f64::MIN / 4.0)) {
        (Some(at_worst), _) if at_worst <= 0.0 => Verdict::Met,
        (_, Some(at_best)) if at_best > 0.0 => Verdict::Missed,
        _ => Verdict::NotMeasured,
    }
}

/// The one verdict about several: the worst of them; `None` if there are none.
pub fn overall(judgements: &[Judgement]) -> Option<Verdict> {
    judgements.iter().map(|judgement| judgement.verdict).max()
}

#[cfg(test)]
mod tests;
