//! The guide's page about changes, tried literally.

use std::fs;
use std::process::Command;

use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, daemon, threads_line};

const GUIDE: &str = include_str!("../../../../../docs/guide.md");

/// The text of the first block of that kind after some words of the guide.
fn block<'g>(after: &str, kind: &str) -> &'g str {
    let (_, text) = GUIDE.split_once(after).unwrap_or_else(|| panic!("no `{after}`"));
    let (_, text) = text.split_once(&format!("```{kind}\n")).expect("a block");
    text.split_once("```").expect("its end").0
}

/// The arguments of a line for a shell, of which some may be quoted and a comment may follow.
fn arguments(line: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (argument, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        arguments.push(argument);
        rest = after.trim_start();
    }
    arguments
}

/// Every command of the page, one after the other, does what it is there for on the guide's own client,
/// of which no uplink exists here.
pub(super) fn commands() {
    let mut site = Site::links_only(TWO_LINKS, "");
    let client = block("`/etc/mpt/client.toml`", "toml");
    let header = "[[tunnel]]\n";
    site.start_daemon_with(
        Side::Left,
        &client.replacen(header, &(header.to_owned() + &threads_line()), 1),
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("branch.toml"), block("`branch.toml`", "toml")).expect("a file");
    let (_, page) = GUIDE.split_once("## Change while it runs").expect("the page");
    let (page, _) = page.split_once("\n## ").expect("its end");
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# mpt ")).collect();
    assert_eq!(lines.len(), 11, "{lines:?}");
    let mut answers = Vec::new();
    for line in lines {
        let mut command = Command::new(daemon());
        command.args(arguments(line)).arg("--socket").arg(site.daemon(Side::Left).socket());
        let output = command.current_dir(folder.path()).output().expect("an end");
        assert!(output.status.success(), "{line}: {output:?}");
        answers.push(String::from_utf8(output.stdout).expect("text"));
    }
    let config = answers.pop().expect("the configuration");
    let expected = [
        "nothing has changed\n",
        "",
        "",
        "",
        "",
        "connection server: path cable: added\n",
        "connection server: path cable: removed\n",
        "connection branch: added to tunnel mpt0\n",
        "",
        "connection branch: removed\n",
    ];
    assert_eq!(answers, expected);
    assert!(config.contains("weight = 30\npriority = 1\n"), "{config}");
}
