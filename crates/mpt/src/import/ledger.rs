//! What has become of each entry of a section: none may be forgotten.
//!
//! Whoever makes a setting takes the entries it is made of, and gets a note of where they stood; what
//! has no counterpart is put aside with the reason. What nobody took when the ledger is closed is
//! a key that the original does not know either.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::document::{Document, Entry, Section, Shown};
use super::integer;
use super::keys::{self, ALIASES};
use crate::config::{Prefix, Problem, closest};

/// A value, and where it is from: what stands behind the setting that is made of it.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) note: String,
    /// Whether nothing was written, and the value is the original's default.
    pub(super) missing: bool,
}

impl<T> Given<T> {
    /// What was written, as the note says.
    pub(super) fn written(value: T, note: String) -> Self {
        Self { value, note, missing: false }
    }

    /// What the original does where `key` is missing.
    pub(super) fn default(key: &str, value: T) -> Self
    where
        T: Display,
    {
        let note = format!("no {key}, which is {value} in the original");
        Self { value, note, missing: true }
    }
}

/// What is found out about a file, besides its settings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What whoever imports should know: an unknown key, a number out of bounds.
    pub(super) warnings: Vec<String>,
    /// What is missing or means nothing.
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
    /// Notes that a section is missing which another entry promises.
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
        while let Some(earlier) = self.place(&entry.key) {
            self.taken[earlier] = true;
            let why = format!("line {} says otherwise", entry.line);
            self.put_aside(earlier, &why);
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
            .rev()
            .position(|(entry, taken)| entry.key == key && !taken)
            .map(|from_end| self.section.entries.len() - 1 - from_end)
    }

    /// The same of another name of the key.
    fn alias(&self, key: &str) -> Option<usize> {
        ALIASES.iter().filter(|(_, right)| *right == key).find_map(|(alias, _)| self.place(alias))
    }

    /// The text of a key, unless there is none.
    pub(super) fn text(&mut self, key: &str) -> Option<Given<String>> {
        let Given { value, note, .. } = self.take(key)?;
        Some(Given::written(value.value, note))
    }

    /// The number of a key, within `range`. `why` says what is wrong with others.
    pub(super) fn number(
        &mut self,
        key: &str,
        default: i64,
        range: RangeInclusive<i64>,
        why: &str,
    ) -> Given<i64> {
        let Some(Given { value: entry, note, .. }) = self.take(key) else {
            return Given::default(key, default);
        };
        let Some((number, rest)) = integer::read(&entry.value) else {
            let problem = Problem::new(format!("`{key}` is not a number"), entry.span)
                .label("the original takes this for 0")
                .help("write a number, in decimal, or in hexadecimal with 0x in front");
            self.findings.problems.push(problem);
            return Given::written(default, note);
        };
        let mut given = Given::written(number, note);
        if !rest.is_empty() {
            self.change(&mut given, number, &format!("read as {number}, as in C"));
        }
        let clamped = number.clamp(*range.start(), *range.end());
        if clamped != number {
            self.change(&mut given, clamped, &format!("clamped to {clamped}: {why}"));
        }
        given
    }

    /// The address of a key, unless there is none or it stands for none. A prefix length, which the
    /// papers print and the original does not understand, is ignored.
    pub(super) fn address(&mut self, key: &str) -> Option<Given<IpAddr>> {
        let Given { value: entry, mut note, .. } = self.take(key)?;
        let (text, len) = match entry.value.split_once('/') {
            Some((text, len)) => (text, Some(len)),
            None => (&*entry.value, None),
        };
        let Ok(address) = text.trim().parse::<IpAddr>() else {
            let problem = Problem::new(format!("`{key}` is not an address"), entry.span)
                .label("the original takes this for no address")
                .help("write an address such as 192.0.2.1 or 2001:db8::1");
            self.findings.problems.push(problem);
            return None;
        };
        if address.is_unspecified() {
            self.asides.push(format!("{note}: stands for no address"));
            return None;
        }
        if let Some(len) = len {
            note += &format!(" (the address alone, without /{})", Shown(len));
        }
        Some(Given::written(address, note))
    }

    /// The same, which must be there. `title` says what it is to be without it.
    pub(super) fn required_address(&mut self, key: &str, title: &str) -> Option<Given<IpAddr>> {
        let known = self.findings.problems.len();
        let address = self.address(key);
        if address.is_none() && self.findings.problems.len() == known {
            let label = format!("`{key}` is missing, or stands for no address");
            let help = format!("write `{key}` in `[{}]`, such as 192.0.2.2", self.section.name);
            self.problem(title, &label, &help);
        }
        address
    }

    /// The address with its length of a key. None if there is none or its length is 0, which is how
    /// the original says that there is none.
    pub(super) fn prefix(&mut self, key: &str, zero: Zero) -> Option<Given<Prefix>> {
        let Given { value: entry, note, .. } = self.take(key)?;
        let (addr, len) = entry.value.split_once('/').unwrap_or((&entry.value, ""));
        let prefix = match (addr.trim().parse::<IpAddr>(), integer::read(len)) {
            (Ok(addr), Some((len, "")))
                if (0..=i64::from(Prefix::max_len(addr))).contains(&len) =>
            {
                Prefix { addr, len: u8::try_from(len).unwrap_or_default() }
            }
            _ => {
                let problem =
                    Problem::new(format!("`{key}` is not an address with its length"), entry.span)
                        .label(if len.is_empty() {
                            "the original takes a missing length for 0"
                        } else {
                            "here"
                        })
                        .help(
                            "write an address and the length of its network, such as 10.0.0.1/24",
                        );
                self.findings.problems.push(problem);
                return None;
            }
        };
        if prefix.len == 0 && zero == Zero::Nothing {
            self.asides.push(format!("{note}: a length of 0 stands for no address"));
            return None;
        }
        Some(Given::written(prefix, note))
    }

    /// Puts the entry of a key aside, if there is one: `why` says why it is no setting.
    pub(super) fn aside(&mut self, key: &str, why: impl Display) {
        if let Some(given) = self.take(key) {
            self.asides.push(format!("{}: {why}", given.note));
        }
    }

    /// Notes that a value has become another one, and why.
    pub(super) fn change<T>(&mut self, given: &mut Given<T>, value: T, what: &str) {
        let file = if given.missing { format!("{}: ", self.file) } else { String::new() };
        self.findings.warnings.push(format!("{file}{}: {what}", given.note));
        given.note += &format!(" ({what})");
        given.value = value;
    }

    /// Puts aside what has been taken, which whoever imports should know.
    pub(super) fn refuse(&mut self, note: &str, why: &str) {
        self.findings.warnings.push(format!("{note}: {why}"));
        self.asides.push(format!("{note}: {why}"));
    }

    /// Puts everything aside that is left, for one reason.
    pub(super) fn set_all_aside(&mut self, why: &str) {
        for place in 0..self.taken.len() {
            if !self.taken[place] {
                self.taken[place] = true;
                self.put_aside(place, why);
            }
        }
    }

    /// Whether the key has an entry that is not taken.
    pub(super) fn has(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// The value that a key would give.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.place(key).map(|place| &*self.section.entries[place].value)
    }

    /// Adds a comment of its own.
    pub(super) fn comment(&mut self, comment: String) {
        self.asides.push(comment);
    }

    /// Says of what the ledger is of: `path_0`.
    pub(super) fn name(&self) -> &str {
        &self.section.name
    }

    /// Whether nothing has been found wrong so far.
    pub(super) fn is_sound(&self) -> bool {
        self.findings.problems.is_empty()
    }

    /// Notes what is wrong with the section as a whole.
    pub(super) fn problem(&mut self, title: &str, label: &str, help: &str) {
        let problem = Problem::new(title, self.section.span.clone()).label(label).help(help);
        self.findings.problems.push(problem);
    }

    /// What has been put aside, with what is left: keys that the original does not know.
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
                let meant = meant.map(|key| format!("; is `{key}` meant?")).unwrap_or_default();
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

/// What a prefix length of 0 means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// There is no address.
    Nothing,
    /// Every address.
    Everything,
}

/// An empty section, where a file has none.
pub(super) fn missing(name: &str, document: &Document) -> Section {
    let end = document.text.len();
    Section { name: name.to_owned(), span: end..end, entries: Vec::new() }
}
