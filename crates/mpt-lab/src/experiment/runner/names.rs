//! What steps and their files are called.

use crate::cell::Cell;
use crate::experiment::plan::Experiment;
use crate::experiment::step::{Step, Subject};
use crate::lab::Lab;
use crate::system::System;

/// What a step is called while it runs.
pub(super) fn title(experiment: &Experiment, cell: &Cell, step: &Step) -> String {
    let subject = match &step.subject {
        Subject::Alone(link) => format!("link {} alone", cell.topology.links[*link].name),
        Subject::System(System::Classic) if experiment.systems.len() == 1 => {
            match cell.topology.links.len() {
                1 => "tunnel".into(),
                count => format!("tunnel over {count} links"),
            }
        }
        Subject::System(system) => system.name().to_owned(),
    };
    let place = cell.place();
    if place.is_empty() {
        return match &step.subject {
            Subject::System(system) if experiment.systems.len() > 1 => system.settings(cell),
            Subject::Alone(_) | Subject::System(_) => subject,
        };
    }
    format!("{} ({place}): {subject}", experiment.entry.name)
}

/// What a file about a step is called, without its suffix.
pub(super) fn file_name(lab: &Lab, experiment: &str, title: &str) -> String {
    let title = title.strip_prefix(experiment).unwrap_or(title);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    let words: Vec<_> = title.split(|c| !plain(c)).filter(|word| !word.is_empty()).collect();
    // Repetitions differ in their seed.
    let (name, seed) = (words.join("-"), lab.topology().seed);
    format!("{experiment}.{name}.seed-{seed}")
}
