//! What the program says of itself: help, manual pages, completions and its version; and of wrong usage.

use crate::program::{complaint, mpt, stdout};

#[test]
fn help_lists_all_commands() {
    let output = mpt(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    insta::assert_snapshot!("help", stdout(&output));
}

#[test]
fn groups_of_commands_have_help_with_examples() {
    for group in ["path", "peer", "connection", "web"] {
        let text = stdout(&mpt(&[group, "--help"]));
        let examples = text.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("mpt {group} ")), "{text}");
        assert!(examples.lines().all(|line| line.len() <= 100), "{text}");
    }
}

#[test]
fn every_command_has_help_with_an_example_and_exit_codes() {
    for command in [
        &["run"][..],
        &["check"],
        &["status"],
        &["explain"],
        &["doctor"],
        &["trace"],
        &["man"],
        &["completions"],
        &["path", "up"],
        &["path", "down"],
        &["path", "weight"],
        &["path", "priority"],
        &["path", "remove"],
        &["path", "add"],
        &["reload"],
        &["config"],
        &["connection", "add"],
        &["connection", "remove"],
        &["peer", "add"],
        &["peer", "remove"],
        &["peer", "list"],
        &["peer", "reload"],
        &["web", "token"],
        &["genkey"],
        &["pubkey"],
        &["import"],
        &["init"],
        &["invite"],
        &["join"],
        &["leave"],
    ] {
        let output = mpt(&[command, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        let text = stdout(&output);
        assert!(text.contains("Example"), "{text}");
        assert!(text.contains(&format!("mpt {}", command[0])), "{text}");
        assert!(text.contains("Exit codes: 0"), "{text}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn help_is_a_command_too_and_shows_examples_of_the_command_itself() {
    for arguments in
        [&["help", "status"][..], &["path", "help", "weight"], &["help", "path", "weight"]]
    {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let name = arguments.last().unwrap();
        let text = stdout(&output);
        let examples = text.split("Example").nth(1).unwrap();
        assert!(examples.contains(name) && !examples.contains("path down"), "{text}");
    }
}

#[test]
fn help_has_help_which_is_the_list_of_commands() {
    let top = stdout(&mpt(&["help"]));
    let paths = stdout(&mpt(&["path", "help"]));
    for (arguments, expected) in [
        (&["help", "--help"][..], &top),
        (&["help", "-h"], &top),
        (&["path", "help", "--help"], &paths),
        (&["help", "path", "--help"], &paths),
    ] {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(stdout(&output), *expected, "{arguments:?}");
    }
    // A file may have that name.
    let output = mpt(&["check", "help", "--help"]);
    assert!(stdout(&output).contains("Usage: mpt check"), "{output:?}");
}

#[test]
fn manual_pages_and_completions_need_no_package() {
    assert!(stdout(&mpt(&["man"])).contains(".TH mpt 1"));
    for page in ["status", "mpt-status", "path-weight", "mpt.toml"] {
        let output = mpt(&["man", page]);
        assert_eq!(output.status.code(), Some(0), "{page}: {output:?}");
        assert!(stdout(&output).contains(".TH "), "{page}");
    }
    let output = mpt(&["man", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("mpt-status"), "{output:?}");
    let folder = tempfile::tempdir().unwrap();
    let output = mpt(&["man", "--output", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(folder.path().join("man1/mpt-status.1").exists());
    assert!(folder.path().join("man5/mpt.toml.5").exists());
    for shell in ["bash", "zsh", "fish"] {
        let output = mpt(&["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("status"), "{shell}");
    }
}

#[test]
fn version_in_both_ways() {
    let expected = format!("mpt {}\n", env!("CARGO_PKG_VERSION"));
    for arguments in [&["version"][..], &["-V"], &["--version"]] {
        let output = mpt(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected.clone()));
    }
}

#[test]
fn wrong_usage_is_one_line_and_2() {
    for (arguments, text) in [
        (&[][..], "no command given"),
        (&["chek"], "similar subcommand exists: 'check'"),
        (&["check", "a", "b"], "unexpected argument 'b'"),
        (&["status", "--jsn"], "'--json'"),
        (&["path", "left", "fibre"], "'left'"),
        (&["path", "up"], "<PATH>"),
        (&["path", "up", "a", "b", "c"], "'c'"),
    ] {
        let output = mpt(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let line = complaint(&output);
        assert!(line.contains(text) && line.contains("--help"), "{line}");
    }
}
