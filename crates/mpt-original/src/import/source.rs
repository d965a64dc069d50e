//! Files of the original, as they were read.

use std::path::Path;

/// A file that has been read.
#[derive(Clone, Debug)]
pub struct Source {
    /// As it was named.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What was found where the original's files were said to be.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The files to import.
    pub files: Vec<Source>,
    /// The names of files that the original would not read, and that are not read here.
    pub unread: Vec<String>,
}

/// What each file is called in comments: its name without the folder, where no other has it.
pub(super) fn labels(files: &[Source]) -> Vec<String> {
    let last = |source: &Source| {
        let name = Path::new(&source.name).file_name();
        name.map_or_else(|| source.name.clone(), |name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = files.iter().map(last).collect();
    let unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let labels = names.iter().zip(files);
    labels.map(|(name, source)| if unique(name) { name } else { &source.name }.clone()).collect()
}
