//! The folder of results.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
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
    /// Lines that cannot be read, such as one that was being written when the machine went down: where,
    /// and why. Everything else counts.
    pub torn: Vec<String>,
}

impl Folder {
    /// A folder for results; created if missing.
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
        // One write, so that a line is there or is not; after one that was torn all the same, a new one.
        let write = |mut open: File| -> io::Result<()> {
            if !ends_with_newline(&file)? {
                text.insert(0, b'\n');
            }
            open.write_all(&text)
        };
        open.and_then(write).with_context(|| format!("cannot write {}", file.display()))
    }
}

impl Results {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// It holds no results.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut torn = Vec::new();
        let runs: Vec<_> = lines(&folder.join(RUNS), &mut torn)?;
        ensure!(!runs.is_empty(), "{} contains no run", folder.display());
        if !folder.join(CELLS).exists() {
            bail!("{} contains a run, but no cell was measured", folder.display());
        }
        let cells = lines(&folder.join(CELLS), &mut torn)?;
        Ok(Self { runs, cells, torn })
    }
}

fn ends_with_newline(file: &Path) -> io::Result<bool> {
    let mut file = File::open(file)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

fn lines<T: DeserializeOwned>(file: &Path, torn: &mut Vec<String>) -> Result<Vec<T>> {
    let open = File::open(file).with_context(|| {
        format!("cannot read {}; `mpt-lab run --out` creates folders of results", file.display())
    })?;
    let mut all = Vec::new();
    for (line, number) in BufReader::new(open).split(b'\n').zip(1..) {
        let line = line.with_context(|| format!("cannot read {}", file.display()))?;
        match serde_json::from_slice(&line) {
            Ok(value) => all.push(value),
            Err(_) if line.is_empty() => {}
            Err(why) => torn.push(format!("{}, line {number}: {why}", file.display())),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_results_are_read_with_the_earlier_ones() {
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
    fn a_truncated_line_is_reported_and_others_are_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(place.path()).unwrap();
        folder.add_run(&Manifest::default()).unwrap();
        fs::write(place.path().join(CELLS), "{}\n{oops").unwrap();
        folder.add_cell(&CellRecord { run: "after".into(), ..CellRecord::default() }).unwrap();
        let results = Results::read(place.path()).unwrap();
        assert_eq!(results.cells.len(), 2, "the one before and the one after");
        let [torn] = results.torn.as_slice() else { panic!("{:?}", results.torn) };
        assert!(torn.contains("cells.jsonl, line 2"), "{torn}");
        fs::remove_file(place.path().join(CELLS)).unwrap();
        let error = format!("{:#}", Results::read(place.path()).unwrap_err());
        assert!(error.contains("no cell was measured"), "{error}");
        let error = format!("{:#}", Results::read(&place.path().join("none")).unwrap_err());
        assert!(error.contains("cannot read") && error.contains("--out"), "{error}");
    }
}
