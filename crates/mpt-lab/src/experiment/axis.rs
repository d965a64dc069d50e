//! What varies from cell to cell: values put into the file's own text, point by point.
//!
//! An axis names keys of the file and the values that they take, one after the other. Each cell is the
//! file with these values written in, read like any other file, so that nothing can be varied that
//! could not be written by hand, and every value is checked as if it had been.
//!
//! ```toml
//! [[axis]]
//! name = "delay"
//! title = "one-way delay of both links"
//! unit = "ms"
//! set = ["link.*.delay_ms"]
//! values = [0, 10, 20]
//!
//! [[axis]]
//! name = "versions"
//! points = [
//!     { label = "4-in-6", set = { "tunnel.inner" = 4, "link.*.version" = 6 } },
//!     { label = "6-in-6", set = { "tunnel.inner" = 6, "link.*.version" = 6 } },
//! ]
//! ```
//!
//! A key is a path of names; in an array, a table's `name`, a number counted from 0, or `*` for all.

use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::mistake::Mistake;
use crate::results::{self, Coordinate};

/// An axis as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisForm {
    name: Spanned<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    values: Vec<Value>,
    #[serde(default)]
    points: Vec<PointForm>,
}

/// A point as written: values for several keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointForm {
    label: String,
    value: Option<f64>,
    #[serde(default)]
    set: Table,
}

/// An axis, ready to be walked.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) entry: results::Axis,
    pub(super) span: Range<usize>,
    points: Vec<Point>,
}

#[derive(Clone, Debug)]
struct Point {
    at: Coordinate,
    sets: Vec<(String, Value)>,
}

impl Axis {
    /// The axis of a form that stands at `span`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub(super) fn new(form: Spanned<AxisForm>) -> Result<Self, Mistake> {
        let span = form.span();
        let name_span = form.get_ref().name.span();
        let AxisForm { name, title, unit, set, values, points } = form.into_inner();
        let name = name.into_inner();
        let wrong = |message: &str| {
            Err(Mistake::new(name_span.clone(), format!("axis `{name}` {message}")))
        };
        if values.is_empty() == points.is_empty() {
            return wrong("needs either `values` for the keys of `set`, or `points`");
        }
        if values.is_empty() != set.is_empty() {
            return wrong("has `set` without `values`, or `values` without `set`");
        }
        let at = |label: String, value| Coordinate { axis: name.clone(), label, value };
        let simple = values.into_iter().map(|value| Point {
            at: at(label(&value), number(&value)),
            sets: set.iter().map(|key| (key.clone(), value.clone())).collect(),
        });
        let named = points.into_iter().map(|point| Point {
            at: at(point.label.clone(), point.value.or_else(|| point.label.parse().ok())),
            sets: point.set.into_iter().collect(),
        });
        let points: Vec<_> = simple.chain(named).collect();
        for (number, point) in points.iter().enumerate() {
            if points[..number].iter().any(|before| before.at.label == point.at.label) {
                return wrong(&format!("has `{}` twice", point.at.label));
            }
            let own = point.sets.iter().find(|(key, _)| is_of_experiment(key));
            if let Some((key, _)) = own {
                return wrong(&format!(
                    "cannot vary `{key}`, which belongs to the whole experiment"
                ));
            }
        }
        let labels = points.iter().map(|point| point.at.label.clone()).collect();
        let kept = Vec::new();
        Ok(Self { entry: results::Axis { name, title, unit, labels, kept }, span, points })
    }

    /// How many points it has.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Where point number `index` is.
    pub(super) fn at(&self, index: usize) -> &Coordinate {
        &self.points[index].at
    }

    /// Writes the values of point number `index` into a file.
    ///
    /// # Errors
    ///
    /// A key leads nowhere, in words.
    pub(super) fn write(&self, index: usize, file: &mut Table) -> Result<(), String> {
        let Point { at, sets } = &self.points[index];
        sets.iter().try_for_each(|(key, value)| {
            let steps: Vec<_> = key.split('.').collect();
            put_in_table(file, &steps, value)
                .map_err(|why| format!("axis `{}`, `{}`: `{key}`: {why}", at.axis, at.label))
        })
    }
}

/// Whether a key applies to all cells.
fn is_of_experiment(key: &str) -> bool {
    let first = key.split('.').next().unwrap_or(key);
    [
        "title",
        "question",
        "source",
        "notes",
        "repetitions",
        "systems",
        "system",
        "alone",
        "axis",
        "published",
        "columns",
        "plot",
        "target",
    ]
    .contains(&first)
}

/// The indexes of the first, the middle and the last of this many points.
pub(super) fn thinned(count: usize) -> Vec<usize> {
    let mut all = vec![0, count / 2, count.saturating_sub(1)];
    all.dedup();
    all
}

fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other @ (Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_)) => other.to_string(),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
}

fn put_in_table(table: &mut Table, steps: &[&str], value: &Value) -> Result<(), String> {
    match steps {
        [] => Err("an empty key".into()),
        [last] => {
            table.insert((*last).to_owned(), value.clone());
            Ok(())
        }
        [first, rest @ ..] => {
            let next = table.entry(*first).or_insert_with(|| Value::Table(Table::new()));
            put(next, first, rest, value)
        }
    }
}

fn put(into: &mut Value, name: &str, steps: &[&str], value: &Value) -> Result<(), String> {
    match into {
        Value::Table(table) => put_in_table(table, steps, value),
        Value::Array(array) => {
            let (step, rest) = steps.split_first().ok_or("an empty key")?;
            let mut found = false;
            for (index, item) in array.iter_mut().enumerate() {
                if !is_meant(item, index, step) {
                    continue;
                }
                found = true;
                if rest.is_empty() {
                    *item = value.clone();
                } else {
                    put(item, step, rest, value)?;
                }
            }
            if found { Ok(()) } else { Err(format!("`{name}` has no `{step}`")) }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => Err(format!("`{name}` is a single value")),
    }
}

fn is_meant(item: &Value, index: usize, step: &str) -> bool {
    let named = item.get("name").and_then(Value::as_str).is_some_and(|name| name == step);
    step == "*" || named || step.parse() == Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Table {
        "link = [{ name = 'a', delay_ms = 1 }, { name = 'b' }]\n[tunnel]\nweights = [1, 2]"
            .parse()
            .unwrap()
    }

    fn put_at(key: &str, value: Value) -> Result<Table, String> {
        let mut table = file();
        put_in_table(&mut table, &key.split('.').collect::<Vec<_>>(), &value)?;
        Ok(table)
    }

    #[test]
    fn a_key_leads_to_one_item_by_name_or_number_or_to_all() {
        let all = put_at("link.*.delay_ms", Value::Integer(7)).unwrap();
        assert_eq!(all["link"][0]["delay_ms"].as_integer(), Some(7));
        assert_eq!(all["link"][1]["delay_ms"].as_integer(), Some(7));
        let one = put_at("link.b.backward.rate_mbps", Value::Integer(5)).unwrap();
        assert!(one["link"][0].get("backward").is_none());
        assert_eq!(one["link"][1]["backward"]["rate_mbps"].as_integer(), Some(5));
        let weight = put_at("tunnel.weights.1", Value::Integer(9)).unwrap();
        assert_eq!(weight["tunnel"]["weights"][1].as_integer(), Some(9));
        let new = put_at("traffic.congestion", Value::from("bbr")).unwrap();
        assert_eq!(new["traffic"]["congestion"].as_str(), Some("bbr"));
    }

    #[test]
    fn a_key_that_does_not_exist_is_an_error() {
        for (key, part) in [
            ("link.c.delay_ms", "`link` has no `c`"),
            ("link.9.delay_ms", "`link` has no `9`"),
            ("link.a.delay_ms.x", "`delay_ms` is a single value"),
        ] {
            let error = put_at(key, Value::Integer(1)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_quick_run_keeps_the_ends_and_the_middle() {
        assert_eq!(thinned(10), [0, 5, 9]);
        assert_eq!(thinned(6), [0, 3, 5]);
        assert_eq!(thinned(3), [0, 1, 2]);
        assert_eq!(thinned(2), [0, 1]);
        assert_eq!(thinned(1), [0]);
    }
}
