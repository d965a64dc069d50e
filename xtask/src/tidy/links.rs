//! Links inside the repository lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::Violation;
use super::files::Files;
use super::markdown;

/// Every relative link in a document whose file, or whose heading, does not exist.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (document, text) in files.with_extension("md") {
        for (line, prose) in markdown::prose(text) {
            for link in markdown::links(prose).filter(|link| is_relative(link)) {
                if let Err(what) = resolve(files, document, text, link) {
                    violations.push(Violation::new(
                        format!("{}:{line}", document.display()),
                        format!("the link to {link} leads nowhere: {what}"),
                        "correct the link or create its target",
                    ));
                }
            }
        }
    }
    violations
}

fn is_relative(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:")
}

/// Follows `link` as it stands in `document`, whose contents are `text`.
fn resolve(files: &Files, document: &Path, text: &str, link: &str) -> Result<(), String> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
    let target = if file.is_empty() {
        document.to_path_buf()
    } else {
        beside(document, file).ok_or("it leaves the repository")?
    };
    if !files.exists(&target) {
        return Err(format!("no file {}", target.display()));
    }
    let text = if file.is_empty() { Some(text) } else { files.text(&target) };
    match (anchor, text) {
        (Some(anchor), Some(text)) if !markdown::anchors(text).iter().any(|a| a == anchor) => {
            Err(format!("no heading #{anchor} in {}", target.display()))
        }
        _ => Ok(()),
    }
}

/// The path of `link` seen from the directory of `document`, without `.` and `..`; `None` if it
/// climbs out of the root.
fn beside(document: &Path, link: &str) -> Option<PathBuf> {
    let mut path = document.parent()?.to_path_buf();
    for component in Path::new(link).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_headings_that_exist_are_kept() {
        let files = Files::from([
            (
                "README.md",
                "# Top\n[a](docs/a.md) [b](docs/a.md#one-two) [c](#top) [d](https://x/y)",
            ),
            ("docs/a.md", "# One two\n[r](../README.md) [s](./a.md)"),
        ]);
        assert_eq!(check(&files), []);
    }

    #[test]
    fn links_to_nothing_are_reported_with_their_line() {
        let files = Files::from([
            (
                "README.md",
                "# Top\n\n[a](docs/b.md)\n[b](docs/a.md#two)\n[c](#bottom)\n[d](../x.md)",
            ),
            ("docs/a.md", "# One\n```\n[not a link](nowhere.md)\n```"),
        ]);
        let places: Vec<_> = check(&files).into_iter().map(|found| found.place).collect();
        assert_eq!(places, ["README.md:3", "README.md:4", "README.md:5", "README.md:6"]);
    }
}
