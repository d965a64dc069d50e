//! Tables and keys as a configuration file has them.

use std::fmt::Write as _;

use super::keys::Keys;
use super::written::Written;

/// A file, or a table within a line, as far as it is written.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    /// Whether what is as it would be anyway is written too.
    all: bool,
}

impl Writer {
    /// What has been written, each key on a line.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// A table, unless it would have no keys.
    pub(super) fn table(&mut self, keys: &Keys, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        if !inner.text.is_empty() {
            self.header(keys.table);
            self.text.push_str(&inner.text);
        }
    }

    /// A table for each of these.
    pub(super) fn tables<T>(&mut self, keys: &Keys, tables: &[T], write: impl Fn(&T, &mut Self)) {
        for table in tables {
            self.header(keys.table);
            write(table, self);
        }
    }

    /// A table with this header.
    pub(super) fn headed(&mut self, header: &str, write: impl FnOnce(&mut Self)) {
        self.header(header);
        write(self);
    }

    fn header(&mut self, header: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(header);
        self.text.push('\n');
    }

    /// A key and its value.
    pub(super) fn key(&mut self, key: &str, value: &(impl Written + ?Sized)) {
        self.line(key, &value.written());
    }

    /// The key unless its value is the default.
    pub(super) fn unless<T: Written + PartialEq>(&mut self, key: &str, value: &T, default: &T) {
        if self.all || value != default {
            self.key(key, value);
        }
    }

    /// The key if it has a value.
    pub(super) fn some<T: Written>(&mut self, key: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.key(key, value);
        }
    }

    /// The key with a table in one line, unless that would have no keys.
    pub(super) fn inline(&mut self, key: &str, write: impl FnOnce(&mut Self)) {
        let mut inner = Self { text: String::new(), all: self.all };
        write(&mut inner);
        if !inner.text.is_empty() {
            self.line(key, &inner.braced());
        }
    }

    fn line(&mut self, key: &str, value: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn braced(&self) -> String {
        let keys: Vec<_> = self.text.lines().collect();
        format!("{{ {} }}", keys.join(", "))
    }
}

/// A table in one line, with everything in it: as a change of it is shown.
pub(super) fn whole(write: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer { text: String::new(), all: true };
    write(&mut out);
    out.braced()
}
