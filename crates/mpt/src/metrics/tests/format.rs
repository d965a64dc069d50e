//! The text format of OpenMetrics 1.0, as far as the page uses it, read strictly.

use std::collections::{BTreeMap, BTreeSet};

/// A page taken apart.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The kind of each family.
    pub(super) kinds: BTreeMap<String, String>,
    /// Every series, name and labels as they stand, with its value.
    pub(super) series: BTreeMap<String, f64>,
}

/// Takes `text` apart.
///
/// # Errors
/// The first line that breaks a rule, and the rule.
pub(super) fn parse(text: &str) -> Result<Page, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end in # EOF")?;
    let mut page = Page::default();
    let mut helped = BTreeSet::new();
    let mut family = String::new();
    for line in body.lines() {
        let wrong = |rule: &str| format!("{rule}: {line:?}");
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next(), words.next());
            let (Some(name), Some(rest)) = (name, rest) else {
                return Err(wrong("a comment has three parts"));
            };
            match what {
                Some("HELP") if rest.ends_with('.') => {
                    if !helped.insert(name.to_owned()) {
                        return Err(wrong("a family is in one piece"));
                    }
                    family = name.to_owned();
                }
                Some("TYPE") if name == family => {
                    page.kinds.insert(family.clone(), rest.to_owned());
                }
                Some("UNIT") if name == family && name.ends_with(&format!("_{rest}")) => {}
                _ => return Err(wrong("HELP, TYPE and UNIT come in this order")),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').ok_or_else(|| wrong("a value is missing"))?;
        let value: f64 = value.parse().map_err(|_| wrong("a value is a number"))?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => {
                let labels =
                    labels.strip_suffix('}').ok_or_else(|| wrong("braces come in pairs"))?;
                (name, labels)
            }
            None => (series, ""),
        };
        check_labels(labels).map_err(wrong)?;
        let suffix = match page.kinds.get(&family).map(String::as_str) {
            Some("counter") => "_total",
            Some("gauge") => "",
            Some("info") => "_info",
            _ => return Err(wrong("a family has a kind")),
        };
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name != format!("{family}{suffix}") || !name.bytes().all(valid) {
            return Err(wrong("a series is named after its family"));
        }
        if suffix == "_total" && (value < 0.0 || value.is_nan()) {
            return Err(wrong("a counter counts"));
        }
        if page.series.insert(series.to_owned(), value).is_some() {
            return Err(wrong("a series is there once"));
        }
    }
    Ok(page)
}

/// `name="value",...`, no name twice.
fn check_labels(mut text: &str) -> Result<(), &'static str> {
    let mut names = BTreeSet::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").ok_or("a label has a value in quotes")?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err("a label has a name");
        }
        if !names.insert(name) {
            return Err("a label is there once");
        }
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let rest = &rest[end.ok_or("a quoted value ends")? + 1..];
        text = match rest.strip_prefix(',') {
            Some("") => return Err("a comma stands between labels"),
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return Err("a comma stands between labels"),
        };
    }
    Ok(())
}

#[test]
fn what_breaks_a_rule_is_found() {
    let good = "# HELP a_bytes A.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
                a_bytes_total{p=\"x\\\"}\",q=\"\"} 1\na_bytes_total{p=\"y\",q=\"\"} 2\n# EOF\n";
    assert_eq!(parse(good).unwrap().series.len(), 2);
    for (from, to) in [
        ("# EOF\n", ""),
        ("HELP a_bytes A.", "HELP a_bytes A"),
        ("TYPE a_bytes", "TYPE b_bytes"),
        ("UNIT a_bytes bytes", "UNIT a_bytes seconds"),
        ("counter", "summary"),
        ("_total{p=\"y\"", "{p=\"y\""),
        ("p=\"y\"", "p=\"x\\\"}\""),
        ("p=\"y\"", "p=y"),
        ("q=\"\"} 2", "p=\"\"} 2"),
        ("q=\"\"} 2", "q=\"\",} 2"),
        ("q=\"\"} 2", "q=\"\"} two"),
        ("q=\"\"} 2", "q=\"\"} -2"),
        ("# EOF", "# HELP a_bytes A.\n# EOF"),
    ] {
        assert!(parse(&good.replace(from, to)).is_err(), "{from} -> {to}");
    }
}
