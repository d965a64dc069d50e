//! Whether targets are reached, and by how much they are missed.
//!
//! A target is about the cells of its `only`; one that divides by what was published is about those
//! that the publication prints. In each of them the figure, or its quotient, reaches the bound, misses
//! it, or could not be found. What could not be found counts for neither side: the verdict is
//! [`Verdict::NotMeasured`] if it could have turned the answer, so that nothing passes in silence.

use super::answer::{Answer, Form};
use crate::plot::figure;
use crate::results::{Bound, CellRecord, Coordinate, Quantity, Target};

/// The `of` of a target that is measured against the publication.
const PUBLISHED: &str = "published";

/// What became of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is reached.
    Passed,
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
            Self::Passed => "passed",
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
        text: text(answer, target),
        verdict: Verdict::NotClaimed,
        reached: 0,
        doubtful: 0,
        cells: 0,
        misses: Vec::new(),
        unknown: Vec::new(),
    };
    if target.full && answer.form == Form::Quick {
        return judgement;
    }
    for cell in answer.cells.iter().filter(|cell| is_about(target, &cell.cell)) {
        let Some(value) = value(cell, target) else { continue };
        judgement.cells += 1;
        match value {
            Ok(got) => match excess(target, got) {
                by if by > 0.0 => {
                    let (place, doubtful) = (cell.place(), cell.doubtful);
                    judgement.misses.push(Miss { place, got, by, doubtful });
                }
                _ => {
                    judgement.reached += 1;
                    judgement.doubtful += usize::from(cell.doubtful);
                }
            },
            Err(why) => judgement.unknown.push(Unknown { place: cell.place(), why }),
        }
    }
    for place in answer.missing.iter().filter(|place| is_about(target, place)) {
        judgement.cells += 1;
        let words: Vec<_> = place.iter().map(|at| format!("{} {}", at.axis, at.label)).collect();
        let why = "the cell was not measured".into();
        judgement.unknown.push(Unknown { place: words.join(", "), why });
    }
    judgement.misses.sort_by(|one, other| other.by.total_cmp(&one.by));
    judgement.verdict = conclude(&judgement, target.share);
    judgement
}

/// The verdict for these numbers of cells that reach it, miss it and are unknown.
fn conclude(judgement: &Judgement, share: f64) -> Verdict {
    let wanted = share * judgement.cells as f64 - 1e-9;
    let at_best = judgement.reached + judgement.unknown.len();
    if judgement.cells == 0 {
        Verdict::NotMeasured
    } else if judgement.reached as f64 >= wanted && judgement.reached > 0 {
        Verdict::Passed
    } else if (at_best as f64) < wanted || judgement.unknown.is_empty() {
        Verdict::Missed
    } else {
        Verdict::NotMeasured
    }
}

fn is_about(target: &Target, place: &[Coordinate]) -> bool {
    target
        .only
        .iter()
        .all(|(axis, labels)| place.iter().any(|at| at.axis == *axis && labels.contains(&at.label)))
}

/// The figure or quotient that is held against the bound; `None` if the cell has nothing to do with the
/// target, an error with what is missing.
fn value(cell: &CellRecord, target: &Target) -> Option<Result<f64, String>> {
    let Target { system, figure, of, .. } = target;
    if of == PUBLISHED && cell.published(system, figure).is_none() {
        return None;
    }
    let divisor = match of.as_str() {
        "" => Ok(1.0),
        PUBLISHED => cell
            .published(system, figure)
            .ok_or_else(|| format!("nothing was published for {figure} of {system}")),
        other => match other.rsplit_once('/') {
            Some((system, figure)) => measured(cell, system, figure),
            None => measured(cell, system, other),
        },
    };
    let quotient = measured(cell, system, figure).and_then(|value| {
        let quotient = value / divisor?;
        if quotient.is_finite() { Ok(quotient) } else { Err(format!("{of} is 0")) }
    });
    Some(quotient)
}

fn measured(cell: &CellRecord, system: &str, figure: &str) -> Result<f64, String> {
    let Some(record) = cell.system(system) else {
        return Err(format!("{system} was not measured"));
    };
    if let Some(why) = &record.skipped {
        return Err(format!("{system} was skipped: {why}"));
    }
    let value = record.figures.get(figure).map(|figure| figure.median);
    value.filter(|value| value.is_finite()).ok_or_else(|| format!("{system} has no {figure}"))
}

/// How far a value is beyond the bound; nothing or less if it reaches it.
fn excess(target: &Target, value: f64) -> f64 {
    // What is written as 0.97 must not be missed by the last bit of a quotient.
    let slack = 1e-9 * (1.0 + target.value.abs());
    let by = match target.bound {
        Bound::AtLeast => target.value - value,
        Bound::AtMost => value - target.value,
        Bound::Within => (value - 1.0).abs() - target.value,
    };
    if by <= slack { 0.0 } else { by }
}

/// A target in words: its own, or made from what it demands.
fn text(answer: &Answer, target: &Target) -> String {
    if !target.text.is_empty() {
        return target.text.clone();
    }
    let title = |system: &str| {
        let known = answer.entry.systems.iter().find(|entry| entry.name == system);
        match known {
            Some(entry) if !entry.title.is_empty() => entry.title.clone(),
            _ => system.to_owned(),
        }
    };
    let quantity = Quantity::of(&target.figure);
    let mut words = format!("{}: {}", title(&target.system), quantity.title);
    let of = match target.of.as_str() {
        "" => String::new(),
        PUBLISHED => " ÷ published".into(),
        other => match other.rsplit_once('/') {
            Some((system, name)) => {
                format!(" ÷ {} of {}", Quantity::of(name).title, title(system))
            }
            None => format!(" ÷ {}", Quantity::of(other).title),
        },
    };
    words.push_str(&of);
    let unit = if of.is_empty() { quantity.unit } else { "" };
    let value = target.value;
    words.push_str(&match target.bound {
        Bound::AtLeast => format!(" at least {value} {unit}"),
        Bound::AtMost => format!(" at most {value} {unit}"),
        Bound::Within => format!(" within {} of 1", percent(value)),
    });
    let mut words = words.trim_end().to_owned();
    if !target.only.is_empty() {
        let places =
            target.only.iter().map(|(axis, labels)| format!("{axis} {}", labels.join(", ")));
        words.push_str(&format!(", for {}", places.collect::<Vec<_>>().join(" and ")));
    }
    if target.share < 1.0 {
        words.push_str(&format!(", in at least {} of the cells", percent(target.share)));
    }
    words
}

/// A share in per cent, without needless digits.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}

impl Judgement {
    /// What became of it, with the numbers: `missed in 2 of 10 cells, most at delay 50: 0.93, by 0.04`.
    pub fn outcome(&self) -> String {
        let Self { reached, cells, .. } = self;
        let unknown = match (self.unknown.len(), self.unknown.first()) {
            (0, _) | (_, None) => String::new(),
            (count, Some(first)) => {
                let place = if first.place.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", first.place)
                };
                let more = if count > 1 { ", ..." } else { "" };
                format!("; {count} not measured ({place}{}{more})", first.why)
            }
        };
        match self.verdict {
            Verdict::NotClaimed => "a quick run does not measure it".into(),
            Verdict::NotMeasured if *cells == 0 => "none of its cells was measured".into(),
            Verdict::Passed if self.doubtful > 0 => {
                format!(
                    "in {reached} of {cells} cells, {} of them doubtful{unknown}",
                    self.doubtful
                )
            }
            Verdict::Passed => format!("in {reached} of {cells} cells{unknown}"),
            Verdict::NotMeasured | Verdict::Missed => match self.misses.first() {
                None => format!("in {reached} of {cells} cells{unknown}"),
                Some(worst) => {
                    let place = if worst.place.is_empty() {
                        String::new()
                    } else {
                        format!("{}: ", worst.place)
                    };
                    format!(
                        "missed in {} of {cells} cells, most by {} ({place}{}{}){unknown}",
                        self.misses.len(),
                        figure(worst.by),
                        figure(worst.got),
                        if worst.doubtful { ", doubtful" } else { "" },
                    )
                }
            },
        }
    }
}

/// The one verdict about several: the worst of them; `None` if there are none.
pub fn overall(judgements: &[Judgement]) -> Option<Verdict> {
    judgements.iter().map(|judgement| judgement.verdict).max()
}

#[cfg(test)]
mod tests;
