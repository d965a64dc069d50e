//! How well the model foretold what classic MPT reached.

use super::answer::Answer;
use super::table::{GOODPUT, PREDICTED};
use super::verdict::Verdict;

/// The system that the model is about.
const CLASSIC: &str = "classic";
/// A prediction is good if it is within this share of the measurement.
const CLOSE: f64 = 0.10;
/// The share of cells in which it has to be.
const WANTED: f64 = 0.90;

/// Cells in which both a prediction and a measurement stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// How many there are.
    pub cells: usize,
    /// In how many of them the prediction is within 10 % of the measurement.
    pub close: usize,
    /// In how many of the others the measurement lies where chance alone may bring a single run.
    pub possible: usize,
    /// The cells in which it is not, with the deviation as a share, the largest first.
    pub far: Vec<(String, f64)>,
}

impl Prediction {
    /// Over all cells of all experiments.
    pub fn of(answers: &[Answer]) -> Self {
        let mut all = Self::default();
        for answer in answers {
            for cell in &answer.cells {
                let figure = |name| cell.figure(CLASSIC, name);
                let (Some(predicted), Some(measured)) = (figure(PREDICTED), figure(GOODPUT)) else {
                    continue;
                };
                let off = predicted / measured - 1.0;
                all.cells += 1;
                // What is no number is not close.
                if off.abs() <= CLOSE + 1e-9 {
                    all.close += 1;
                } else {
                    let range =
                        cell.system(CLASSIC).and_then(|system| system.figures.get(PREDICTED));
                    let reach = range.map(|range| range.min..=range.max);
                    all.possible +=
                        usize::from(reach.is_some_and(|reach| reach.contains(&measured)));
                    all.far.push((format!("{}, {}", answer.entry.name, cell.place()), off));
                }
            }
        }
        all.far.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()));
        all
    }

    /// Whether it is within 10 % in at least 90 % of the cells.
    pub fn verdict(&self) -> Verdict {
        if self.cells == 0 {
            Verdict::NotMeasured
        } else if self.close as f64 >= WANTED * self.cells as f64 - 1e-9 {
            Verdict::Met
        } else {
            Verdict::Missed
        }
    }

    /// The result in words.
    pub fn outcome(&self) -> String {
        if self.cells == 0 {
            return "no classic cell has both a prediction and a measurement".into();
        }
        let Self { cells, close, possible, .. } = self;
        let share = *close as f64 / *cells as f64 * 100.0;
        let close = format!("within 10 % in {close} of {cells} classic cells, {share:.1}\u{a0}%");
        match possible {
            0 => close,
            _ => format!(
                "{close}; in {possible} more the measurement is within the model's random range of \
                 a single run"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Form;
    use super::*;
    use crate::results::{CellRecord, ExperimentEntry, Figure, SystemRecord};

    fn answer(pairs: &[(f64, f64)]) -> Answer {
        let cell = |(predicted, measured): &(f64, f64)| {
            let figures = [(PREDICTED, predicted), (GOODPUT, measured)]
                .map(|(name, value)| (name.to_owned(), Figure::of(&[*value]).unwrap()));
            let system = SystemRecord {
                system: CLASSIC.into(),
                figures: figures.into(),
                ..SystemRecord::default()
            };
            CellRecord { systems: vec![system], ..CellRecord::default() }
        };
        Answer {
            entry: ExperimentEntry { name: "x".into(), ..ExperimentEntry::default() },
            form: Form::Full,
            cells: pairs.iter().map(cell).collect(),
            missing: Vec::new(),
            remarks: Vec::new(),
        }
    }

    #[test]
    fn nine_of_ten_are_enough_and_eight_are_not() {
        let mut pairs = vec![(110.0, 100.0); 9];
        pairs.push((120.0, 100.0));
        let nine = Prediction::of(&[answer(&pairs)]);
        assert_eq!((nine.close, nine.cells, nine.verdict()), (9, 10, Verdict::Met));
        pairs[0] = (85.0, 100.0);
        let eight = Prediction::of(&[answer(&pairs)]);
        assert_eq!(eight.verdict(), Verdict::Missed);
        assert!((eight.far[0].1 - 0.2).abs() < 1e-9 && (eight.far[1].1 + 0.15).abs() < 1e-9);
        assert!(eight.outcome().contains("8 of 10 classic cells, 80.0\u{a0}%"));
    }

    #[test]
    fn results_within_the_random_range_are_reported_but_do_not_count_as_close() {
        let mut wide = answer(&[(100.0, 60.0)]);
        let figures = &mut wide.cells[0].systems[0].figures;
        figures.insert(PREDICTED.into(), Figure { median: 100.0, min: 50.0, max: 110.0, count: 1 });
        let prediction = Prediction::of(&[wide]);
        assert_eq!((prediction.close, prediction.possible), (0, 1));
        assert_eq!(prediction.verdict(), Verdict::Missed);
        assert!(prediction.outcome().contains("in 1 more"), "{}", prediction.outcome());
    }

    #[test]
    fn nothing_predicted_is_nothing_passed() {
        let bare = CellRecord::default();
        let answers = [Answer { cells: vec![bare], ..answer(&[]) }];
        assert_eq!(Prediction::of(&answers).verdict(), Verdict::NotMeasured);
        assert_eq!(Prediction::of(&[answer(&[(5.0, 0.0)])]).verdict(), Verdict::Missed);
    }
}
