//! The folder of results.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CellRecord, Manifest};

/// The file of manifests, in a folder of results.
pub const RUNS: &str = "runs.jsonl";
/// The file of cells, in a folder of results.
pub const CELLS: &str = "cells.jsonl";

/// A folder that results are added to.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// All that a folder holds.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The manifests, oldest first.
    pub runs: Vec<Manifest>,
    /// The cells, oldest first.
    pub cells: Vec<CellRecord>,
}

impl Folder {
    /// A folder for results; made if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Adds a run.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn add_run(&self, manifest: &Manifest) -> Result<()> {
        self.append(RUNS, manifest)
    }

    /// Adds a cell. When this returns, an end of the process takes nothing of it away.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn add_cell(&self, cell: &CellRecord) -> Result<()> {
        self.append(CELLS, cell)
    }

    fn append(&self, name: &str, line: &impl Serialize) -> Result<()> {
        let file = self.0.join(name);
        let mut text = serde_json::to_vec(line).context("cannot write JSON")?;
        text.push(b'\n');
        let open = OpenOptions::new().create(true).append(true).open(&file);
        // One write, so that a line is there or is not.
        open.and_then(|mut open| open.write_all(&text))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

impl Results {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// It holds no results, or a line of them, which is named, is none.
    pub fn read(folder: &Path) -> Result<Self> {
        let runs = lines(&folder.join(RUNS))?;
        let cells = lines(&folder.join(CELLS))?;
        ensure!(!runs.is_empty(), "{} holds no run", folder.display());
        Ok(Self { runs, cells })
    }
}

fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let open = File::open(file).with_context(|| {
        format!("cannot read {}; `mpt-lab run --out` makes folders of results", file.display())
    })?;
    let numbered = BufReader::new(open).lines().zip(1..);
    let read = |(line, number): (std::io::Result<String>, usize)| {
        let place = || format!("{}, line {number}", file.display());
        serde_json::from_str(&line.with_context(place)?).with_context(place)
    };
    numbered.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_read_and_adding_again_takes_nothing_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(&place.path().join("new/results")).unwrap();
        for id in ["one", "two"] {
            folder.add_run(&Manifest { id: id.into(), ..Manifest::default() }).unwrap();
            folder.add_cell(&CellRecord { run: id.into(), ..CellRecord::default() }).unwrap();
        }
        let results = Results::read(folder.path()).unwrap();
        assert_eq!(results.runs.iter().map(|run| &run.id).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(results.cells.iter().map(|cell| &cell.run).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(place.path()).unwrap();
        folder.add_run(&Manifest::default()).unwrap();
        fs::write(place.path().join(CELLS), "{}\n{oops\n").unwrap();
        let error = format!("{:#}", Results::read(place.path()).unwrap_err());
        assert!(error.contains("cells.jsonl, line 2"), "{error}");
        fs::remove_file(place.path().join(CELLS)).unwrap();
        let error = format!("{:#}", Results::read(place.path()).unwrap_err());
        assert!(error.contains("cannot read") && error.contains("--out"), "{error}");
    }
}
