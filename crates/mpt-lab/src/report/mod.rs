//! Reports: a folder of results as one page of HTML that needs nothing else, or as Markdown.
//!
//! A [`Report`] holds what both say, taken from the results alone: for every experiment its
//! [`Answer`], that is the cells that count, its tables, and a verdict about each of its targets; and
//! over all of them how well the model foretold what was measured. [`html`] and [`markdown`] write it
//! down. [`compare`] lays two folders beside each other.

pub mod answer;
pub mod compare;
pub mod html;
pub mod markdown;
pub mod prediction;
mod remarks;
pub mod table;
pub mod verdict;
mod versions;

use crate::results::{Manifest, Results};

pub use answer::{Answer, Form};
pub use prediction::Prediction;
pub use table::Table;
pub use verdict::{Judgement, Verdict};

/// All that a report says.
#[derive(Clone, Debug)]
pub struct Report {
    /// The runs that any of its cells is of, or the latest if there are no cells; oldest first.
    pub runs: Vec<Manifest>,
    /// The seeds of its cells, each once.
    pub seeds: Vec<u64>,
    /// Each experiment.
    pub sections: Vec<Section>,
    /// How well the model foretold all this.
    pub prediction: Prediction,
}

/// What a report says of an experiment.
#[derive(Clone, Debug)]
pub struct Section {
    /// The experiment and its cells.
    pub answer: Answer,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What became of its targets.
    pub judgements: Vec<Judgement>,
    /// The remarks: systems that were skipped and why, cells that were scaled and why, missing
    /// cells, unused cells.
    pub remarks: Vec<String>,
    /// The notes of the experiment, and others.
    pub notes: Vec<String>,
    /// The doubtful cells, each with its reasons.
    pub doubts: Vec<(String, Vec<String>)>,
}

impl Report {
    /// The report about a folder's results.
    pub fn of(results: &Results) -> Self {
        let answers = answer::answers(results);
        let prediction = Prediction::of(&answers);
        let cells = || answers.iter().flat_map(|answer| &answer.cells);
        let parts = || cells().flat_map(|cell| &cell.parts);
        let counts = |run: &&Manifest| parts().any(|part| part.run == run.id);
        let mut runs: Vec<Manifest> = results.runs.iter().filter(counts).cloned().collect();
        if runs.is_empty() {
            runs.extend(results.runs.last().cloned());
        }
        let mut seeds: Vec<u64> = cells().map(|cell| cell.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Self { runs, seeds, sections: answers.into_iter().map(Section::of).collect(), prediction }
    }

    /// How many targets there are of each verdict, the prediction's own among them: met, missed, not
    /// claimed, not measured.
    pub fn counts(&self) -> [(Verdict, usize); 4] {
        let targets = self.sections.iter().flat_map(|section| &section.judgements);
        let all: Vec<_> = targets.map(|target| target.verdict).collect();
        [Verdict::Met, Verdict::Missed, Verdict::NotClaimed, Verdict::NotMeasured]
            .map(|verdict| (verdict, all.iter().filter(|one| **one == verdict).count()))
    }
}

impl Section {
    fn of(answer: Answer) -> Self {
        Self {
            tables: table::tables(&answer),
            judgements: verdict::judge_all(&answer),
            remarks: remarks::remarks(&answer),
            notes: remarks::notes(&answer),
            doubts: remarks::doubts(&answer),
            answer,
        }
    }

    /// The experiment's title, or its name if it has none.
    pub fn title(&self) -> &str {
        let entry = &self.answer.entry;
        if entry.title.is_empty() { &entry.name } else { &entry.title }
    }

    /// What was set, each thing in a line: `link fibre` and `40 Mbit/s, 5 ms, queue of 500 kB`.
    pub fn setup(&self) -> Vec<(&str, String)> {
        let facts = self.answer.entry.setup.iter();
        facts.map(|fact| (fact.name.as_str(), values(&fact.values))).collect()
    }

    /// Its verdict in words: `missed, 2 of 3 targets met`.
    pub fn verdict(&self) -> (Option<Verdict>, String) {
        let met = |judgement: &&Judgement| judgement.verdict == Verdict::Met;
        let (met, all) = (self.judgements.iter().filter(met).count(), self.judgements.len());
        let overall = verdict::overall(&self.judgements);
        let words = match overall {
            None => "no target".to_owned(),
            Some(_) => format!("{met} of {all} met"),
        };
        (overall, words)
    }
}

/// At most so many values of a fact are listed.
const LISTED: usize = 8;

/// The values of what cells differ in.
fn values(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        few if few.len() <= LISTED => few.join(" | "),
        many => {
            let (first, last) = (many[..LISTED - 1].join(" | "), &many[many.len() - 1]);
            format!("{first} | … | {last} ({} values)", many.len())
        }
    }
}

/// `full run` and `quick run`; a `single run` is one already, and `2 repetitions` are some.
fn form_of_run(form: &str) -> String {
    if matches!(form, "full" | "quick") { format!("{form} run") } else { form.to_owned() }
}

/// How many targets there are of each verdict, in words.
fn counts_in_words(report: &Report) -> String {
    let counts = report.counts().into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> =
        counts.map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_said_and_long_lists_are_cut() {
        let texts = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(values(&texts(1)), "1");
        assert_eq!(values(&texts(3)), "1 | 2 | 3");
        assert_eq!(values(&texts(20)), "1 | 2 | 3 | 4 | 5 | 6 | 7 | … | 20 (20 values)");
    }

    #[test]
    fn without_targets_it_says_so() {
        assert_eq!(counts_in_words(&Report::of(&Results::default())), "none");
    }
}
