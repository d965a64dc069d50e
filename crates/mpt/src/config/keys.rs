//! The keys of each kind of table, as errors and documents know them.

use toml::de::DeString;

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Keys {
    /// How the table is written in the file: its header or, inside another table, its key.
    pub(super) table: &'static str,
    /// Its keys in the order of the documentation.
    pub(super) rows: &'static [Rows],
}

/// Keys of a table, which may be those of another one that stand among its own.
#[derive(Debug)]
pub(super) enum Rows {
    /// These.
    Here(&'static [Row]),
    /// All keys of that table.
    Of(&'static Keys),
}

/// One key.
#[derive(Debug)]
#[cfg_attr(not(test), allow(dead_code, reason = "a test makes the documents"))]
pub(super) struct Row {
    pub(super) key: &'static str,
    /// What it means; empty for a table that has a header of its own.
    pub(super) doc: &'static str,
    /// The values that are allowed, where that is a range.
    pub(super) range: fn() -> Option<String>,
    /// What holds without it, as a file has it; `None` where nothing does, or what does depends on
    /// other settings.
    pub(super) default: fn() -> Option<String>,
    /// What holds without it, in words.
    pub(super) shown: Option<&'static str>,
    /// What could stand in the file, where no default can.
    pub(super) example: Option<&'static str>,
}

impl Row {
    /// A table below this one, with a header of its own.
    pub(super) const fn table(key: &'static str) -> Self {
        Self { key, doc: "", range: || None, default: || None, shown: None, example: None }
    }

    /// A key with a parser of its own: what holds without it in words, and what could stand there.
    pub(super) const fn own(
        key: &'static str,
        shown: &'static str,
        example: &'static str,
        doc: &'static str,
    ) -> Self {
        Self { doc, shown: Some(shown), example: Some(example), ..Self::table(key) }
    }
}

impl Keys {
    /// Its keys in the order of the documentation.
    pub(super) fn rows(&self) -> Vec<&'static Row> {
        let rows = |rows: &Rows| match rows {
            Rows::Here(rows) => rows.iter().collect(),
            Rows::Of(keys) => keys.rows(),
        };
        self.rows.iter().flat_map(rows).collect()
    }

    /// The names of its keys.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.rows().iter().map(|row| row.key).collect()
    }

    /// What to do about a key that this table does not have. `all` are the tables where it could belong;
    /// of several that have it the first is named.
    pub(super) fn remedy(&self, unknown: &DeString<'_>, all: &[&Self]) -> String {
        if let Some(other) = all.iter().find(|other| other.names().contains(&unknown.as_ref())) {
            return format!("`{unknown}` belongs in {}", other.title());
        }
        match closest(unknown, self.names()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("the keys of {} are: {}", self.title(), self.names().join(", ")),
        }
    }

    /// The table as it appears within a sentence.
    pub(super) fn title(&self) -> String {
        if self.table.contains(' ') { self.table.to_owned() } else { format!("`{}`", self.table) }
    }
}

/// The word nearest to `wrong`, unless all are too far for a slip of the fingers.
pub(super) fn closest<'w>(
    wrong: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    // A third of the letters may be wrong. Longer texts than this are no slip, and comparing takes
    // the product of the lengths.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase().replace('-', "_");
    words
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&wrong, word), word))
        .filter(|&(distance, word)| distance <= (word.len() / 3).max(1))
        .min()
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised_and_other_words_are_not() {
        let keys = ["weight", "priority", "keepalive", "dead_time", "interface"];
        for (wrong, right) in [
            ("wieght", Some("weight")),
            ("Weight", Some("weight")),
            ("dead-time", Some("dead_time")),
            ("keep_alive", Some("keepalive")),
            ("iface", None),
            ("", None),
        ] {
            assert_eq!(closest(wrong, keys), right, "{wrong}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_table_gets_a_hint_at_the_right_one() {
        static FILE: Keys =
            Keys { table: "the file", rows: &[Rows::Here(&[Row::table("tunnel")])] };
        static PATH: Keys = Keys {
            table: "[[path]]",
            rows: &[Rows::Here(&[Row::table("name")]), Rows::Of(&WEIGHTS)],
        };
        static WEIGHTS: Keys =
            Keys { table: "weights", rows: &[Rows::Here(&[Row::table("weight")])] };
        let remedy =
            |keys: &Keys, unknown: &'static str| keys.remedy(&unknown.into(), &[&FILE, &PATH]);
        assert_eq!(remedy(&FILE, "weight"), "`weight` belongs in `[[path]]`");
        assert_eq!(remedy(&FILE, "tunnels"), "did you mean `tunnel`?");
        assert_eq!(remedy(&PATH, "x"), "the keys of `[[path]]` are: name, weight");
        assert_eq!(remedy(&FILE, "x"), "the keys of the file are: tunnel");
    }
}
