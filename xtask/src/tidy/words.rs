//! Words that this project once had for itself, where the field of networking has one of its own.
//!
//! Who searches for a word of the field must find the place, and who reads the code must not have to
//! learn a language first. The changelog may name what was renamed.

use std::path::Path;

use super::Violation;
use super::files::Files;
use super::source::code_only;

/// A word that is not to come back.
struct Old {
    /// Each of its forms, in lower case unless it is a type.
    forms: &'static [&'static str],
    what: What,
    /// Where it is not to stand: folders and files. Empty is everywhere.
    within: &'static [&'static str],
    /// Where it may stand all the same, because it has its usual meaning there.
    except: &'static [&'static str],
    /// What to say instead.
    instead: &'static str,
}

/// As what a word is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A word of prose, or a part of a name: `knock` is in `a_knock_comes` and in `KnockLimit`.
    Word,
    /// A whole name in code, as written.
    Name,
    /// The first part of a function's name where it is defined.
    Function,
}

const OLD: [Old; 19] = [
    Old::name(&["Lane"], &["crates/mpt", "crates/mpt-io"], "PathSender"),
    Old::name(&["Drain"], &[], "EgressRate"),
    Old::word(&["keeper", "keepers"], &[], "Reconciler"),
    Old::word(&["knock", "knocks", "knocked", "knocking"], &[], "ConnectRequest"),
    Old::name(&["Note", "Notes", "News"], &[], "PathUpdate"),
    Old::name(&["Notice", "Notices"], &[], "MainEvent"),
    Old::name(&["Order", "Step"], &["crates/mpt/src/tunnel"], "ReceiveCommand, TunnelOp"),
    Old::name(&["Narrowing"], &[], "BlackHoleDetector"),
    Old::name(&["Recent"], &[], "RetransmitBuffer"),
    Old::name(&["Doubt"], &[], "LossWindow"),
    Old::name(&["Suspicion"], &[], "RestartDetector, or Evidence"),
    Old::name(&["Duty"], &[], "activation epoch"),
    Old::name(&["Gauge"], &["crates/mpt-proto"], "PathEstimator"),
    Old {
        forms: &["visitor", "visitors"],
        what: What::Word,
        within: &[],
        // As serde calls it.
        except: &["crates/mpt-lab/src/topology/link.rs", "crates/mpt-sim/src/profile/form.rs"],
        instead: "client",
    },
    Old::word(&["elide", "elides", "elided", "eliding"], &[], "checksum partial"),
    Old::name(&["Carrier", "Carriers"], &["crates/mpt-lab/src/bench"], "Subject"),
    Old::word(&["world", "worlds"], &["crates/mpt/src"], "netmon, or the host"),
    Old {
        forms: &["settle"],
        what: What::Function,
        within: &[],
        except: &[],
        instead: "reconcile, refresh or commit, as meant",
    },
    Old::word(&["whoever"], &[], "who it is: the caller, a client, the peer"),
];

impl Old {
    const fn word(
        forms: &'static [&'static str],
        within: &'static [&'static str],
        instead: &'static str,
    ) -> Self {
        Self { forms, what: What::Word, within, except: &[], instead }
    }

    const fn name(
        forms: &'static [&'static str],
        within: &'static [&'static str],
        instead: &'static str,
    ) -> Self {
        Self { forms, what: What::Name, within, except: &[], instead }
    }

    fn concerns(&self, path: &Path) -> bool {
        let below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
        (self.within.is_empty() || below(self.within)) && !below(self.except)
    }

    fn is_in(&self, line: &str) -> bool {
        match self.what {
            What::Word => {
                names(line).any(|name| parts(name).any(|part| self.forms.contains(&part.as_str())))
            }
            What::Name => names(line).any(|name| self.forms.contains(&name)),
            What::Function => names(line).zip(names(line).skip(1)).any(|(keyword, name)| {
                keyword == "fn"
                    && parts(name).next().is_some_and(|part| self.forms.contains(&part.as_str()))
            }),
        }
    }
}

/// Where old words may stand: what was renamed, and this list.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// Every line with an old word.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    let (code, prose) = (files.with_extension("rs"), files.with_extension("md"));
    code.chain(prose)
        .filter(|(path, _)| !HISTORY.iter().any(|history| *path == Path::new(history)))
        .flat_map(|(path, text)| lines_with_old_words(path, text))
        .collect()
}

fn lines_with_old_words(path: &Path, text: &str) -> Vec<Violation> {
    let is_code = path.extension().is_some_and(|end| end == "rs");
    let code = if is_code { code_only(text) } else { String::new() };
    let mut found = Vec::new();
    for old in OLD.iter().filter(|old| old.concerns(path)) {
        let text = if old.what == What::Word { text } else { &code };
        for (number, _) in (1..).zip(text.lines()).filter(|(_, line)| old.is_in(line)) {
            found.push(Violation::new(
                format!("{}:{number}", path.display()),
                format!("the old word `{}`", old.forms[0]),
                format!("say {}", old.instead),
            ));
        }
    }
    found
}

/// The words and names of a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// The parts of a name, in lower case: those of `snake_case` and those of `CamelCase`.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && after_lower) {
            parts.push(String::new());
        }
        after_lower = c.is_lowercase();
        if c != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(c.to_lowercase());
        }
    }
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Files::from([(path, text)])).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn words_are_found_in_prose_and_in_names() {
        for text in ["let text = \"Whoever asks\";", "/// Knocks."] {
            assert_eq!(found("crates/mpt/src/a.rs", text), ["crates/mpt/src/a.rs:1"], "{text}");
        }
        assert_eq!(found("docs/a.md", "one\ntwo visitors"), ["docs/a.md:2"]);
        for text in ["// constrained, retrained", "struct Constraint;", "fn however() {}"] {
            assert_eq!(found("crates/mpt/src/a.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn names_are_found_in_code_alone_and_as_a_whole() {
        for text in ["struct Note;", "fn f(_: &a::News) {}", "use a::{Drain, b};"] {
            assert_eq!(found("crates/mpt/src/a.rs", text), ["crates/mpt/src/a.rs:1"], "{text}");
        }
        for text in ["/// Notes that", "let a = \"News\";", "struct Notes2;", "fn drain() {}"] {
            assert_eq!(found("crates/mpt/src/a.rs", text), [""; 0], "{text}");
        }
        assert_eq!(found("docs/a.md", "## Notes"), [""; 0]);
    }

    #[test]
    fn functions_are_found_by_the_first_part_of_their_name() {
        for text in ["fn settle() {}", "pub async fn settle_all<T>() {}"] {
            assert_eq!(found("crates/mpt/src/a.rs", text), ["crates/mpt/src/a.rs:1"], "{text}");
        }
        for text in ["fn unsettled() {}", "// fn settle()", "let settle = fn_a;", "a.settle()"] {
            assert_eq!(found("crates/mpt/src/a.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_word_is_looked_for_where_it_is_not_to_stand() {
        let lane = "struct Lane;";
        assert_eq!(found("crates/mpt/src/a.rs", lane).len(), 1);
        assert_eq!(found("crates/mpt-lab/src/a.rs", lane), [""; 0]);
        let visitor = "impl Visitor for A {}";
        assert_eq!(found("crates/mpt-sim/src/profile.rs", visitor).len(), 1);
        assert_eq!(found("crates/mpt-sim/src/profile/form.rs", visitor), [""; 0]);
        assert_eq!(found("CHANGELOG.md", "Keeper is Reconciler"), [""; 0]);
    }

    #[test]
    fn every_form_of_every_word_is_found() {
        for old in &OLD {
            let folder = old.within.first().unwrap_or(&"crates/a");
            for form in old.forms {
                let text = match old.what {
                    What::Word => format!("// {form}"),
                    What::Name => format!("struct {form};"),
                    What::Function => format!("fn {form}() {{}}"),
                };
                let found = check(&Files::from([(&*format!("{folder}/a.rs"), &*text)]));
                assert!(found.iter().any(|found| found.remedy.ends_with(old.instead)), "{form}");
            }
        }
    }
}
