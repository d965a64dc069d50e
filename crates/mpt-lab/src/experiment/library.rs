//! The built-in experiments.

use std::path::Path;

use super::closest::did_you_mean;
use super::{Experiment, FileError};

/// Name and text of each, sorted by name.
const ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The word for all of them.
pub const EVERYTHING: &str = "all";

/// Name and text of every built-in experiment, sorted by name.
pub fn all() -> &'static [(&'static str, &'static str)] {
    ALL
}

/// The experiments of an argument: a file, a built-in one, or [`EVERYTHING`].
///
/// # Errors
///
/// There is no such thing, or it is no experiment.
pub fn find(word: &str) -> Result<Vec<Experiment>, FileError> {
    if word == EVERYTHING {
        return ALL.iter().map(|(name, text)| Experiment::parse(name, text)).collect();
    }
    let path = Path::new(word);
    let experiment = match built_in(word, path) {
        Some(text) => Experiment::parse(word, text),
        None => Experiment::read(path).map_err(|error| match error {
            FileError::Read { path, source, .. } => {
                let meant = did_you_mean(&path, ALL.iter().map(|(name, _)| *name));
                FileError::Read { path, meant, source }
            }
            other => other,
        }),
    };
    Ok(vec![experiment?])
}

/// The text of the built-in experiment of this name, unless there is a file of that name. A folder is none: results may be in it.
fn built_in(word: &str, path: &Path) -> Option<&'static str> {
    let known = ALL.iter().find(|(name, _)| *name == word)?;
    (!path.exists() || path.is_dir()).then_some(known.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_can_be_read_in_full_and_in_short() {
        for (name, _) in all() {
            let found = find(name).unwrap_or_else(|error| panic!("{error}"));
            let [experiment] = found.as_slice() else { panic!("{name}") };
            assert_eq!(experiment.entry.name, *name);
            assert!(!experiment.entry.question.is_empty(), "{name} asks nothing");
            let quick = experiment.clone().quick();
            assert!(!quick.cells.is_empty() && quick.cells.len() <= experiment.cells.len());
        }
        assert_eq!(find(EVERYTHING).unwrap().len(), all().len());
    }

    #[test]
    fn a_file_goes_before_a_built_in_experiment_and_a_folder_does_not() {
        let found = |path| built_in("scoreboard", Path::new(path)).is_some();
        assert_eq!(["no-such-file", "src", "Cargo.toml"].map(found), [true, true, false]);
    }

    #[test]
    fn a_missing_target_is_an_error() {
        let error = find("no-such-experiment").unwrap_err().to_string();
        assert!(error.contains("no built-in experiment no-such-experiment"), "{error}");
        assert!(!error.contains("did you mean"), "{error}");
        let error = find("tow-equal").unwrap_err().to_string();
        assert!(error.contains(": did you mean `two-equal`?"), "{error}");
    }
}
