//! Reading one table of the file: its keys, what is missing, what is too much.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Keys;
use super::report::{Problem, Problems};
use super::value::{Kind, Value, with_places};

/// A table has a faulty value where a sound one was needed. The problem has been noted.
#[derive(Debug)]
pub(super) struct Faulty;

/// One table of the file.
#[derive(Debug)]
pub(super) struct Table<'t> {
    keys: &'static Keys,
    /// All tables that there are, in one of which an unknown key may belong.
    all: &'t [&'static Keys],
    entries: &'t DeTable<'t>,
    span: Range<usize>,
}

impl<'t> Table<'t> {
    /// The file itself: the table with these entries, which may have the keys of the first of `all` tables.
    pub(super) fn file<const N: usize>(
        all: &'t [&'static Keys; N],
        entries: &'t DeTable<'t>,
    ) -> Self {
        Self { keys: all[0], all, entries, span: 0..0 }
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where the value of `key` stands, or where the table begins if it has none.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.entries.get(key).map_or(self.span(), Spanned::span)
    }

    /// Whether the value of `key` is a string.
    pub(super) fn is_text(&self, key: &'static str) -> bool {
        self.get(key).is_some_and(|value| value.get().as_str().is_some())
    }

    /// Whether the file has that key, sound or not.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// The value of `key`, which is of this kind. `example` is what could stand there, and `hint` is added
    /// to the remedy if nothing does.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        example: &str,
        hint: &str,
        problems: &mut Problems,
        kind: impl Kind<T>,
    ) -> Option<T> {
        let Some(value) = self.get(key) else {
            problems.push(
                Problem::new(format!("missing key `{key}` in {}", self.keys.title()), self.span())
                    .label(format!("has no `{key}`"))
                    .help(format!("add `{key} = {example}`{hint}")),
            );
            return None;
        };
        kind.read(&value, problems)
    }

    /// The value of `key`, which is of this kind, or `default` if there is none.
    pub(super) fn optional<T>(
        &self,
        key: &'static str,
        default: T,
        problems: &mut Problems,
        kind: impl Kind<T>,
    ) -> Option<T> {
        match self.get(key) {
            Some(value) => kind.read(&value, problems),
            None => Some(default),
        }
    }

    /// The elements that were read of the list under `key`, each with its place.
    pub(super) fn with_places<T: Clone>(&self, key: &'static str, list: &[T]) -> Vec<Spanned<T>> {
        self.get(key).map_or_else(Vec::new, |value| with_places(&value, list))
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
            problems.push(problem.help(format!("its keys are: {}", keys.names().join(", "))));
            return Err(Faulty);
        };
        Ok(Some(self.below(keys, entries, value.span())))
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
                    tables.push(self.below(keys, entries, element.span()));
                }
            } else {
                let problem = Value::new(key, element).wrong_type("a table");
                problems.push(problem.help(format!("write {header} for each")));
                tables = None;
            }
        }
        tables
    }

    /// The tables below `key`, each with its name; `None` if they are not tables.
    pub(super) fn named_tables(
        &self,
        key: &'static str,
        keys: &'static Keys,
        problems: &mut Problems,
    ) -> Option<Vec<(String, Self)>> {
        let Some(value) = self.get(key) else { return Some(Vec::new()) };
        let help = format!("write {} for each", keys.title());
        let DeValue::Table(entries) = value.get() else {
            problems.push(value.wrong_type("a table for each name").help(help));
            return None;
        };
        let mut tables = Some(Vec::new());
        for (name, element) in entries.iter() {
            if let DeValue::Table(entries) = element.get_ref() {
                if let Some(tables) = &mut tables {
                    let table = self.below(keys, entries, name.span());
                    tables.push((name.get_ref().to_string(), table));
                }
            } else {
                let problem = Value::new(key, element).wrong_type("a table");
                problems.push(problem.help(help.clone()));
                tables = None;
            }
        }
        tables
    }

    /// Reports every key that such a table does not have; returns whether there is none.
    pub(super) fn finish(&self, problems: &mut Problems) -> bool {
        let known = self.keys.names();
        let mut all_known = true;
        for (key, _) in self.entries.iter() {
            if !known.contains(&key.get_ref().as_ref()) {
                all_known = false;
                let title = format!("unknown key `{}` in {}", key.get_ref(), self.keys.title());
                let help = self.keys.remedy(key.get_ref(), self.all);
                problems.push(Problem::new(title, key.span()).label("unknown key").help(help));
            }
        }
        all_known
    }

    fn below(&self, keys: &'static Keys, entries: &'t DeTable<'t>, span: Range<usize>) -> Self {
        Self { keys, all: self.all, entries, span }
    }

    fn get(&self, key: &'static str) -> Option<Value<'t>> {
        debug_assert!(self.keys.names().contains(&key), "`{key}` is missing from the list of keys");
        self.entries.get(key).map(|value| Value::new(key, value))
    }
}
