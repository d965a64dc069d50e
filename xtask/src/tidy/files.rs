//! The Rust and Markdown files of the workspace, read once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Texts by their path below the workspace's root.
#[derive(Default)]
pub(super) struct Files {
    texts: BTreeMap<PathBuf, String>,
    root: PathBuf,
}

impl Files {
    /// Reads all `.rs` and `.md` files below `root`, except in hidden directories and cargo's
    /// output.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Self { texts: BTreeMap::new(), root: root.to_path_buf() };
        let mut directories = vec![root.to_path_buf()];
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(&directory)
                .with_context(|| format!("cannot list {}", directory.display()))?;
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    let hidden = name.as_encoded_bytes().starts_with(b".");
                    if !hidden && name != "target" {
                        directories.push(path);
                    }
                } else if path.extension().is_some_and(|end| end == "rs" || end == "md") {
                    let text = fs::read_to_string(&path)
                        .with_context(|| format!("cannot read {}", path.display()))?;
                    files.texts.insert(path.strip_prefix(root)?.to_path_buf(), text);
                }
            }
        }
        Ok(files)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Those whose name ends with `.extension`, in order of their paths.
    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&Path, &str)> {
        self.texts
            .iter()
            .filter(move |(path, _)| path.extension().is_some_and(|end| end == extension))
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// The text of one file, if it was read.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<&str> {
        self.texts.get(path.as_ref()).map(String::as_str)
    }

    /// Whether anything, file of any kind or directory, is at `path` below the root.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.texts.contains_key(path) || self.root.join(path).exists()
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Files {
    fn from(texts: [(&str, &str); N]) -> Self {
        let texts = texts.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
        Self { texts, root: PathBuf::from("/nonexistent") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sources_and_documents_but_neither_output_nor_hidden_directories() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/b.rs", "c.md", "d.toml", "target/e.rs", "a/target/f.rs", ".g/h.md"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let files = Files::read(root.path()).unwrap();
        let names = |end| files.with_extension(end).map(|(path, _)| path.to_owned());
        assert_eq!(names("rs").collect::<Vec<_>>(), [PathBuf::from("a/b.rs")]);
        assert_eq!(names("md").collect::<Vec<_>>(), [PathBuf::from("c.md")]);
        assert_eq!(files.len(), 2);
        assert!(files.exists(Path::new("d.toml")));
        assert!(files.exists(Path::new("a")));
        assert!(!files.exists(Path::new("e")));
    }
}
