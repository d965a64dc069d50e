//! Reading one table of the file: its keys, what is missing, what is too much.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Keys;
use super::report::{Problem, Problems};
use super::value::Value;

/// A table has a faulty value where a sound one was needed. The problem has been noted.
#[derive(Debug)]
pub(super) struct Faulty;

/// One table of the file.
#[derive(Debug)]
pub(super) struct Table<'t> {
    keys: &'static Keys,
    entries: &'t DeTable<'t>,
    span: Range<usize>,
}

impl<'t> Table<'t> {
    /// The table with these entries, which may have these keys; `span` is its header.
    pub(super) fn new(keys: &'static Keys, entries: &'t DeTable<'t>, span: Range<usize>) -> Self {
        Self { keys, entries, span }
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where the value of `key` stands, or where the table begins if it has none.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.entries.get(key).map_or(self.span(), Spanned::span)
    }

    /// Whether the file has that key, sound or not.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// The value of `key` as `read` understands it. `example` is what could stand there.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
        read: impl FnOnce(&Value<'t>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.get(key) else {
            problems.push(
                Problem::new(format!("missing key `{key}` in {}", self.keys.title()), self.span())
                    .label(format!("has no `{key}`"))
                    .help(format!("add `{key} = {example}`")),
            );
            return None;
        };
        read(&value, problems)
    }

    /// The value of `key` as `read` understands it, or `default` if there is none.
    pub(super) fn optional<T>(
        &self,
        key: &'static str,
        default: T,
        problems: &mut Problems,
        read: impl FnOnce(&Value<'t>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        match self.get(key) {
            Some(value) => read(&value, problems),
            None => Some(default),
        }
    }

    /// The single table under `key`, if there is one.
    pub(super) fn table(
        &self,
        key: &'static str,
        keys: &'static Keys,
        problems: &mut Problems,
    ) -> Result<Option<Self>, Faulty> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Table(entries) = value.get() else {
            let problem = value.wrong_type("a table");
            problems.push(problem.help(format!("its keys are: {}", keys.keys.join(", "))));
            return Err(Faulty);
        };
        Ok(Some(Self::new(keys, entries, value.span())))
    }

    /// The tables under `key` in the order of the file; `None` if they are not tables.
    pub(super) fn tables(
        &self,
        key: &'static str,
        keys: &'static Keys,
        problems: &mut Problems,
    ) -> Option<Vec<Self>> {
        let Some(value) = self.get(key) else { return Some(Vec::new()) };
        let header = keys.title();
        let DeValue::Array(array) = value.get() else {
            let problem = value.wrong_type("an array of tables");
            problems.push(problem.help(format!("write {header}, with double brackets, for each")));
            return None;
        };
        let mut tables = Some(Vec::new());
        for element in array.iter() {
            if let DeValue::Table(entries) = element.get_ref() {
                if let Some(tables) = &mut tables {
                    tables.push(Self::new(keys, entries, element.span()));
                }
            } else {
                let problem = Value::new(key, element).wrong_type("a table");
                problems.push(problem.help(format!("write {header} for each")));
                tables = None;
            }
        }
        tables
    }

    /// PathUpdates every key that such a table does not have.
    pub(super) fn finish(&self, problems: &mut Problems) {
        for (key, _) in self.entries.iter() {
            if !self.keys.keys.contains(&key.get_ref().as_ref()) {
                let title = format!("unknown key `{}` in {}", key.get_ref(), self.keys.title());
                let help = self.keys.remedy(key.get_ref());
                problems.push(Problem::new(title, key.span()).label("unknown key").help(help));
            }
        }
    }

    fn get(&self, key: &'static str) -> Option<Value<'t>> {
        debug_assert!(self.keys.keys.contains(&key), "`{key}` is missing from the list of keys");
        self.entries.get(key).map(|value| Value::new(key, value))
    }
}
