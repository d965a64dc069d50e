//! `mpt man` and `mpt completions`: what a package would have installed.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::{manual, output};

/// Prints the manual page of this name, `mpt` if there is none; or writes all of them into a folder.
pub(super) fn man(page: Option<&str>, folder: Option<&Path>) -> Result<Exit> {
    let pages = manual::pages()?;
    if let Some(folder) = folder {
        for (name, text) in &pages {
            let section = name.rsplit('.').next().unwrap_or_default();
            let place = folder.join(format!("man{section}"));
            fs::create_dir_all(&place)
                .with_context(|| format!("cannot make {}", place.display()))?;
            let place = place.join(name);
            fs::write(&place, text).with_context(|| format!("cannot write {}", place.display()))?;
        }
        return Ok(Exit::Done);
    }
    let wanted = page.unwrap_or("mpt").replace(' ', "-");
    let is_it = |(name, _): &&(String, String)| {
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        stem == wanted || stem.strip_prefix("mpt-") == Some(wanted.as_str())
    };
    match pages.iter().find(is_it) {
        Some((_, text)) => output::print(text),
        None => {
            let names = pages.iter().filter_map(|(name, _)| name.rsplit_once('.'));
            let names: Vec<&str> = names.map(|(stem, _)| stem).collect();
            output::complain(format_args!(
                "no manual page `{wanted}`: there are {}",
                names.join(", ")
            ));
            Ok(Exit::Negative)
        }
    }
}

/// Prints the completions for a shell.
pub(super) fn completions(shell: Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut super::definition(), "mpt", &mut text);
    output::print(&String::from_utf8(text).context("completions are no text")?)
}
