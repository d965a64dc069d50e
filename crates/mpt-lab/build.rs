//! Embeds the built-in experiments and the commit into the lab.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let folder = here.join("experiments");
    fs::write(out.join("experiments.rs"), experiments(&folder)).expect("OUT_DIR can be written");
    println!("cargo::rerun-if-changed=experiments");

    // Every commit adds a line there, whatever the branch is. In a worktree `.git` is a file, so git is asked for it.
    if let Some(log) = git(&here, &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={}", here.join(log).display());
    }
    let commit = git(&here, &["rev-parse", "--short=12", "HEAD"]);
    println!("cargo::rustc-env=MPT_COMMIT={}", commit.unwrap_or_default());
}

/// A Rust expression: the name and the text of every experiment, sorted by name.
fn experiments(folder: &Path) -> String {
    let files = fs::read_dir(folder).expect("the experiments are part of the crate");
    let mut files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let _ = writeln!(text, "({name:?}, include_str!({:?})),", file.display().to_string());
    }
    text.push(']');
    text
}

/// What git answers about this checkout, if it is one and there is git.
fn git(here: &Path, question: &[&str]) -> Option<String> {
    let output = Command::new("git").args(question).current_dir(here).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
