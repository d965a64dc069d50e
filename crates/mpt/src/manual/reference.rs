//! mpt.toml(5): what a configuration may say, from the guide's section on all settings.

use anyhow::Context as _;
use clap_mangen::roff::{Roff, roman};

use super::page::{MANUAL, SOURCE, VERSION, marked, section, verbatim};

/// The section of the guide.
const SECTION: &str = "## All settings";

/// Made from the text of the guide.
///
/// # Errors
/// The guide has no such section, or it has no table.
pub(super) fn page(guide: &str) -> anyhow::Result<String> {
    let settings = settings(guide)?;
    let mut page = Roff::new();
    page.control("TH", ["mpt.toml", "5", VERSION, SOURCE, MANUAL]);
    section(&mut page, "NAME");
    page.text([roman("mpt.toml - configuration of the multipath tunnel")]);
    section(&mut page, "DESCRIPTION");
    page.text(marked(
        "A file in TOML that `mpt run` takes; `mpt check` says what is wrong with one. It has one or \
         more `[[tunnel]]`, each with one or more `[[tunnel.connection]]`, and each of these with one or \
         more `[[tunnel.connection.path]]`. A key without a default must be given.",
    ));
    section(&mut page, "SETTINGS");
    let mut code: Option<Vec<&str>> = None;
    for line in settings.lines() {
        if line.starts_with("```") {
            match code.take() {
                Some(lines) => verbatim(&mut page, lines),
                None => code = Some(Vec::new()),
            }
        } else if let Some(code) = &mut code {
            code.push(line);
        } else if let Some(row) = line.strip_prefix('|') {
            add_row(&mut page, row);
        } else if let Some(title) = line.strip_prefix("### ") {
            page.control("SS", [title]);
        } else if line.trim().is_empty() {
            page.control("PP", []);
        } else {
            page.text(marked(line));
        }
    }
    section(&mut page, "SEE ALSO");
    page.text([roman(
        "mpt(1), mpt-check(1), mpt-run(1), /usr/share/doc/mpt/guide.md.gz and mpt.toml.gz",
    )]);
    Ok(page.to_roff())
}

/// The section's text.
fn settings(guide: &str) -> anyhow::Result<&str> {
    let (_, rest) =
        guide.split_once(SECTION).context("the guide has no section on all settings")?;
    let text = rest.split("\n## ").next().unwrap_or(rest).trim();
    text.contains("\n|---").then_some(text).context("that section of the guide has no table")
}

/// One row of a table: the key, its default, what it means. The head and the line below it are none.
fn add_row(page: &mut Roff, row: &str) {
    let cells: Vec<&str> =
        row.trim_end().trim_end_matches('|').split(" |").map(str::trim).collect();
    let (Some((&key, rest)), Some((&meaning, defaults))) =
        (cells.split_first(), cells.split_last())
    else {
        return;
    };
    if rest.is_empty() || key.starts_with("---") || key == "key" {
        return;
    }
    let default = defaults.get(1).filter(|default| !default.is_empty());
    page.control("TP", []);
    let mut title = marked(key);
    if let Some(default) = default {
        title.push(roman(" (default: "));
        title.extend(marked(default));
        title.push(roman(")"));
    }
    page.text(title);
    page.text(if meaning.is_empty() { vec![roman("Its name.")] } else { marked(meaning) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manual::GUIDE;

    #[test]
    fn every_row_of_the_guide_is_a_setting_of_the_page() {
        let page = page(GUIDE).unwrap();
        let rows = settings(GUIDE).unwrap().lines().filter(|line| line.starts_with("| "));
        let heads = settings(GUIDE).unwrap().matches("\n|---").count();
        assert_eq!(page.matches("\n.TP\n").count(), rows.count() - heads);
        for key in ["mtu", "weight", "keepalive", "reorder"] {
            assert!(page.contains(key), "{key}");
        }
    }

    #[test]
    fn a_row_is_key_default_and_meaning() {
        let mut page = Roff::new();
        add_row(&mut page, " `weight` | 1 | 1 .. 10000 |");
        add_row(&mut page, "---|---|---|");
        add_row(&mut page, " key | default | meaning |");
        add_row(&mut page, " **path** `name` | | |");
        let text = page.to_roff();
        assert!(text.contains(".TP\n\\fBweight\\fR (default: 1)\n1 .. 10000\n"), "{text}");
        assert!(text.contains(".TP\n\\fBpath\\fR \\fBname\\fR\nIts name.\n"), "{text}");
        assert_eq!(text.matches(".TP").count(), 2, "{text}");
    }

    #[test]
    fn a_guide_without_settings_is_an_error() {
        assert!(page("# Guide\n").is_err());
        assert!(page("## All settings\n\nnone\n").is_err());
    }
}
