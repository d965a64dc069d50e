//! Tables of the configuration, with the origin of each setting as a comment.

use std::fmt::Write as _;

use super::ledger::Given;
use super::value::Value;

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    header: &'static str,
    settings: Vec<(String, String)>,
    /// Entries that are no settings, as comments.
    pub(super) asides: Vec<String>,
    /// Whether the table is written as a comment.
    pub(super) disabled: bool,
    /// Whether one of the settings is a key.
    pub(super) holds_key: bool,
}

/// Longest setting whose comment is aligned.
const ALIGNED: usize = 40;

impl Table {
    /// A table under its header.
    pub(super) fn new(header: &'static str) -> Self {
        Self { header, settings: Vec::new(), asides: Vec::new(), disabled: false, holds_key: false }
    }

    /// Adds a setting with its origin.
    pub(super) fn set<T: Value>(&mut self, key: &str, given: &Given<T>) {
        self.set_as(key, &given.value.toml(), &given.note);
    }

    /// Adds a setting whose value is TOML already.
    pub(super) fn set_as(&mut self, key: &str, value: &str, note: &str) {
        self.settings.push((format!("{key} = {value}"), note.to_owned()));
    }

    /// How many settings there are.
    pub(super) fn len(&self) -> usize {
        self.settings.len()
    }

    /// Inserts a setting after the first `place` ones.
    pub(super) fn set_at<T: Value>(&mut self, place: usize, key: &str, given: &Given<T>) {
        let setting = format!("{key} = {}", given.value.toml());
        self.settings.insert(place, (setting, given.note.clone()));
    }

    /// The table as a part of the file.
    pub(super) fn write(&self, out: &mut String) {
        let off = if self.disabled { "# " } else { "" };
        let aligned = self.settings.iter().map(|(setting, _)| setting.chars().count());
        let width = aligned.filter(|&length| length <= ALIGNED).max().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{off}{}", self.header);
        for (setting, note) in &self.settings {
            let _ = writeln!(out, "{off}{setting:width$}  # {note}");
        }
        if !self.asides.is_empty() {
            out.push_str("# No counterpart here:\n");
        }
        for aside in &self.asides {
            let _ = writeln!(out, "#   {aside}");
        }
    }
}
