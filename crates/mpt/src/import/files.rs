//! Which files of the original there are, by its own rules and wherever its folder is named.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result, bail};
use mpt_original::import::{Source, Sources};

use crate::config;

/// Most files that are read: a wrong folder is noticed, and no site has so many connections.
const MAX_FILES: usize = 10_000;

/// Reads files, and what is in folders: the one that the original runs in, its `conf`, or
/// `conf/connections`. Where there is such a folder of connections, the one around it has `interface.conf` and
/// nothing else that counts.
///
/// # Errors
///
/// If something cannot be read, or a folder has nothing of the original.
pub(crate) fn find(places: &[PathBuf]) -> Result<Sources> {
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    for place in places {
        if place.is_dir() {
            let (read, others) = in_folder(place)?;
            files.extend(read);
            unread.extend(others.iter().map(|file| file.display().to_string()));
        } else {
            files.push(place.clone());
        }
    }
    if files.len() > MAX_FILES {
        bail!("{} files are more than {MAX_FILES}: is it the original's folder?", files.len());
    }
    let files: Result<Vec<Source>> = files.iter().map(|file| read(file)).collect();
    Ok(Sources { files: files?, unread })
}

fn read(file: &Path) -> Result<Source> {
    let name = file.display().to_string();
    let text = config::text_of(file).with_context(|| format!("cannot read {name}"))?;
    Ok(Source { name, text })
}

/// The files in a folder that the original would read, and those that only look as if.
fn in_folder(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let conf = folder.join("conf");
    let folder = if conf.is_dir() { &conf } else { folder };
    let listed =
        |folder: &Path| list(folder).with_context(|| format!("cannot list {}", folder.display()));
    let (mut files, mut unread) = (listed(folder)?, Vec::new());
    let connections = folder.join("connections");
    if connections.is_dir() {
        (files, unread) = files.into_iter().partition(|file| file.ends_with("interface.conf"));
        files.extend(listed(&connections)?);
    }
    if files.is_empty() {
        bail!(
            "{} has no files that end in .conf: name the folder that has interface.conf, or the files",
            folder.display()
        );
    }
    Ok((files, unread))
}

/// The files that the original would read, and its template, by name: the original takes them as the
/// folder happens to list them.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if (name.ends_with(".conf") || name == "conf.template") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
