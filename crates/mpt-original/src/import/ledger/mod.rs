//! Accounts for each entry of a section, so that none is lost.
//!
//! A setting takes the entries it is made of, each with a note of its place. An entry without a counterpart
//! is put aside with the reason. An entry that is left when the ledger is closed has an unknown key.

mod values;

use std::fmt::Display;

use super::document::{Document, Entry, Section, Shown};
use super::integer;
use super::keys::{self, ALIASES, closest};
use super::problem::Problem;

pub(super) use values::Zero;

/// A value and its origin, which becomes the comment on the setting.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) note: String,
    /// Whether the key is missing and the value the original's default.
    pub(super) missing: bool,
}

impl<T> Given<T> {
    /// A value of the file, with its origin.
    pub(super) fn written(value: T, note: String) -> Self {
        Self { value, note, missing: false }
    }

    /// The original's default where `key` is missing.
    pub(super) fn missing(key: &str, value: T) -> Self
    where
        T: Display,
    {
        let note = format!("no {key}, which is {value} in the original");
        Self { value, note, missing: true }
    }
}

/// Warnings and problems of a file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Warnings to the user: an unknown key, a number out of bounds.
    pub(super) warnings: Vec<String>,
    /// What is missing or cannot be read.
    pub(super) problems: Vec<Problem>,
}

/// The entries of a section, and which of them are accounted for.
#[derive(Debug)]
pub(super) struct Ledger {
    file: String,
    section: Section,
    taken: Vec<bool>,
    asides: Vec<String>,
    findings: Findings,
}

impl Findings {
    /// Adds the problem that a section is missing which an entry announces.
    pub(super) fn missing_section(&mut self, document: &Document, name: &str, promise: &str) {
        let end = document.text.trim_end().len();
        self.problems.push(
            Problem::new(format!("the section `[{name}]` is missing"), end..end)
                .label(format!("promised by {promise}"))
                .help("add the section, or lower the count"),
        );
    }
}

impl Ledger {
    /// Opens the ledger of a section of a file.
    pub(super) fn open(file: &str, section: Section) -> Self {
        let taken = vec![false; section.entries.len()];
        let findings = Findings::default();
        let file = Shown(file).to_string();
        let mut ledger = Self { file, section, taken, asides: Vec::new(), findings };
        for entry in ledger.section.entries.iter().filter(|entry| entry.remark.is_some()) {
            ledger.findings.warnings.push(ledger.note(entry));
        }
        ledger
    }

    /// The entry of a key. Of several the last counts, as in the original.
    pub(super) fn take(&mut self, key: &str) -> Option<Given<Entry>> {
        let place = self.place(key).or_else(|| self.alias(key))?;
        let entry = self.section.entries[place].clone();
        self.taken[place] = true;
        let why = format!("line {} overrides it", entry.line);
        for earlier in 0..place {
            if self.section.entries[earlier].key == entry.key && !self.taken[earlier] {
                self.taken[earlier] = true;
                self.put_aside(earlier, &why);
            }
        }
        let mut note = self.note(&entry);
        if entry.key != key {
            note += &format!(" (the original reads `{key}`)");
        }
        Some(Given::written(entry, note))
    }

    /// The last entry of a key that is not taken.
    fn place(&self, key: &str) -> Option<usize> {
        let entries = self.section.entries.iter().zip(&self.taken);
        entries
            .enumerate()
            .rev()
            .find_map(|(place, (entry, taken))| (entry.key == key && !taken).then_some(place))
    }

    /// The same of another name of the key.
    fn alias(&self, key: &str) -> Option<usize> {
        ALIASES.iter().filter(|(_, right)| *right == key).find_map(|(alias, _)| self.place(alias))
    }

    /// Puts the entry of a key aside, if there is one: `why` says why it is no setting.
    pub(super) fn aside(&mut self, key: &str, why: impl Display) {
        if let Some(given) = self.take(key) {
            self.asides.push(format!("{}: {why}", given.note));
        }
    }

    /// Changes a value, with a warning that says why.
    pub(super) fn change<T>(&mut self, given: &mut Given<T>, value: T, what: &str) {
        let file = if given.missing { format!("{}: ", self.file) } else { String::new() };
        self.findings.warnings.push(format!("{file}{}: {what}", given.note));
        given.note += &format!(" ({what})");
        given.value = value;
    }

    /// Puts aside an entry that has been taken, with a warning.
    pub(super) fn refuse(&mut self, note: &str, why: &str) {
        self.findings.warnings.push(format!("{note}: {why}"));
        self.asides.push(format!("{note}: {why}"));
    }

    /// Adds a warning about an entry that has been taken.
    pub(super) fn warn(&mut self, note: &str, what: &str) {
        self.findings.warnings.push(format!("{note}: {what}"));
    }

    /// Puts all remaining entries aside, for one reason.
    pub(super) fn set_all_aside(&mut self, why: &str) {
        for place in 0..self.taken.len() {
            if !self.taken[place] {
                self.taken[place] = true;
                self.put_aside(place, why);
            }
        }
    }

    /// Whether there is an entry of the key that is not taken.
    pub(super) fn has(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// The value of a key, without taking it.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.place(key).map(|place| &*self.section.entries[place].value)
    }

    /// Whether the value of a key is this number, without taking it.
    pub(super) fn says(&self, key: &str, number: i64) -> bool {
        self.value(key).and_then(integer::read).is_some_and(|(found, _)| found == number)
    }

    /// Adds a comment.
    pub(super) fn comment(&mut self, comment: String) {
        self.asides.push(comment);
    }

    /// The name of the section: `path_0`.
    pub(super) fn name(&self) -> &str {
        &self.section.name
    }

    /// Whether there are no problems so far.
    pub(super) fn is_sound(&self) -> bool {
        self.findings.problems.is_empty()
    }

    /// Adds a problem with the section as a whole.
    pub(super) fn problem(&mut self, title: &str, label: &str, help: &str) {
        let problem = Problem::new(title, self.section.span.clone()).label(label).help(help);
        self.findings.problems.push(problem);
    }

    /// Puts the remaining entries, whose keys are unknown, aside. Returns all that were put aside.
    pub(super) fn close(mut self, findings: &mut Findings) -> Vec<String> {
        for place in 0..self.taken.len() {
            if self.taken[place] {
                continue;
            }
            let entry = self.section.entries[place].clone();
            let why = if self.section.name.is_empty() {
                "outside of all sections".to_owned()
            } else {
                let known = keys::of_section(&self.section.name).iter().copied();
                let meant = closest(&entry.key, known);
                let meant = meant.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default();
                let section = Shown(&self.section.name);
                format!("no key of `[{section}]` that the original or `mpt` knows{meant}")
            };
            self.findings.warnings.push(format!("{}: {why}", self.note(&entry)));
            self.put_aside(place, &why);
        }
        findings.warnings.append(&mut self.findings.warnings);
        findings.problems.append(&mut self.findings.problems);
        self.asides
    }

    fn put_aside(&mut self, place: usize, why: &str) {
        let note = self.note(&self.section.entries[place]);
        self.asides.push(format!("{note}: {why}"));
    }

    fn note(&self, entry: &Entry) -> String {
        let remark = entry.remark.as_ref().map(|remark| format!(" ({})", Shown(remark)));
        format!("{}:{} {entry}{}", self.file, entry.line, remark.unwrap_or_default())
    }
}

/// An empty section, where a file has none.
pub(super) fn empty_section(name: &str, document: &Document) -> Section {
    let end = document.text.len();
    Section { name: name.to_owned(), span: end..end, entries: Vec::new() }
}
