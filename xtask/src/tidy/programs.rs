//! The daemon and what it is made of start no program.
//!
//! Addresses, routes and interfaces are set by netlink. So a name from a file or from the network
//! cannot reach a shell or `PATH`, and the daemon does not depend on installed programs. Tests may
//! start programs, and the lab does.

use std::path::Path;

use super::Violation;
use super::files::Files;
use super::source::{code_only, without_tests};

/// The crates whose sources start no program.
const CRATES: [&str; 5] = ["mpt", "mpt-control", "mpt-io", "mpt-original", "mpt-proto"];

/// The only file that starts programs, for `mpt init`, `mpt join` and `mpt leave`: systemd, its resolver and nftables
/// are asked by their own programs.
const SETUP: &str = "crates/mpt/src/setup/program.rs";

/// Every use of `std::process::Command` in them, tests aside.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    files
        .with_extension("rs")
        .filter(|(path, _)| is_shipped(path))
        .flat_map(|(path, text)| {
            lines_with_command(text).into_iter().map(move |line| {
                Violation::new(
                    format!("{}:{line}", path.display()),
                    "a program is started",
                    "ask the kernel instead: netlink, ioctl and sockets are in crates/mpt-io",
                )
            })
        })
        .collect()
}

/// Whether a file is compiled into what ships, as opposed to a test.
fn is_shipped(path: &Path) -> bool {
    let sources = |name: &str| path.starts_with(format!("crates/{name}/src"));
    let test = path.iter().any(|part| part == "tests" || part == "tests.rs");
    CRATES.iter().any(|name| sources(name)) && !test && path != Path::new(SETUP)
}

/// The numbers, from 1, of the lines on which `Command` is reached through `process`: by a path, out
/// of a group, or with all that is there.
fn lines_with_command(source: &str) -> Vec<usize> {
    let code = without_tests(&code_only(source));
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("process")
        .filter(|(at, _)| !code[..*at].ends_with(in_word))
        .filter_map(|(at, module)| {
            let items = code[at + module.len()..].trim_start().strip_prefix("::")?.trim_start();
            let reached = if items.starts_with('{') {
                &items[..items.find('}').unwrap_or(items.len())]
            } else {
                &items[..items.find(|c| !in_word(c) && c != '*').unwrap_or(items.len())]
            };
            let command = reached.split(|c| !in_word(c)).any(|word| word == "Command");
            (command || reached.contains('*')).then(|| code[..at].matches('\n').count() + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_however_they_are_named() {
        for source in [
            "use std::process::Command;",
            "fn f() { std::process::Command::new(x); }",
            "use std::process::{ExitCode, Command};",
            "use std::process::{\n    Child,\n    Command as Run,\n};",
            "use std::{fs, process::Command};",
            "use std::process::*;",
            "process :: Command::new(x);",
        ] {
            assert_eq!(lines_with_command(&format!("\n{source}")), [2], "{source}");
        }
    }

    #[test]
    fn other_commands_words_and_tests_are_not_meant() {
        for source in [
            "use std::process::ExitCode; use super::Command;",
            "use std::os::unix::process::CommandExt;",
            "use clap::{Command, Parser};",
            "// std::process::Command",
            "let s = \"std::process::Command\";",
            "mod subprocess { } use subprocess::Command;",
            "#[cfg(test)]\nmod tests {\n    use std::process::Command;\n}",
        ] {
            assert!(lines_with_command(source).is_empty(), "{source}");
        }
    }

    #[test]
    fn only_what_ships_is_looked_at() {
        let command = "use std::process::Command;";
        let files = Files::from([
            ("crates/mpt/src/main.rs", command),
            (SETUP, command),
            ("crates/mpt/src/control/tests/mod.rs", command),
            ("crates/mpt/src/config/tests.rs", command),
            ("crates/mpt/tests/cli/main.rs", command),
            ("crates/mpt-lab/src/netns.rs", command),
            ("xtask/src/demo.rs", command),
        ]);
        let violations = check(&files);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "crates/mpt/src/main.rs:1");
    }
}
