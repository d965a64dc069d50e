//! `mpt-lab`: the lab of MPT on the command line.

mod cli;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mpt_lab::guard;

/// The exit code of a failure, as opposed to 1 for a negative result.
const FAILURE: u8 = 2;

/// The lab of MPT: hosts, links and daemons on one machine, and traffic to measure them.
///
/// It does not touch the machine's own network. It needs root, or unprivileged user namespaces and
/// a TUN device that every user may open; `mpt-lab doctor` reports what is missing.
#[derive(Debug, Parser)]
#[command(name = "mpt-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(cli::bench::Arguments),
    Compare(cli::compare::Arguments),
    Demo(cli::demo::Arguments),
    Doctor(cli::doctor::Arguments),
    List(cli::list::Arguments),
    Predict(cli::predict::Arguments),
    Report(cli::report::Arguments),
    Run(cli::run::Arguments),
    Selftest(cli::selftest::Arguments),
    Shell(cli::shell::Arguments),
    Up(cli::up::Arguments),
}

#[expect(clippy::print_stderr, reason = "where a program says why it failed")]
fn main() -> ExitCode {
    guard::stand_in();
    let arguments = without_help_of_help(std::env::args_os().collect());
    let outcome = match &Arguments::parse_from(arguments).command {
        Command::Bench(arguments) => cli::bench::run(arguments),
        Command::Compare(arguments) => cli::compare::run(arguments),
        Command::Demo(arguments) => cli::demo::run(arguments),
        Command::Doctor(arguments) => cli::doctor::run(arguments),
        Command::List(arguments) => cli::list::run(arguments),
        Command::Predict(arguments) => cli::predict::run(arguments),
        Command::Report(arguments) => cli::report::run(arguments),
        Command::Run(arguments) => cli::run::run(arguments),
        Command::Selftest(arguments) => cli::selftest::run(arguments),
        Command::Shell(arguments) => cli::shell::run(arguments),
        Command::Up(arguments) => cli::up::run(arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("mpt-lab: {error:#}");
        ExitCode::from(FAILURE)
    })
}

/// The arguments, where `mpt-lab help --help` is `mpt-lab help`: clap takes `--help` there for the name of a command.
fn without_help_of_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|argument| argument == "help") {
        arguments.retain(|argument| argument != "--help" && argument != "-h");
    }
    arguments
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn help_has_help() {
        for line in ["mpt-lab help --help", "mpt-lab help -h", "mpt-lab help run --help"] {
            let line = line.split(' ').map(OsString::from).collect();
            let error = Arguments::try_parse_from(without_help_of_help(line)).expect_err("help");
            assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{error}");
        }
    }

    #[test]
    fn every_command_has_help_with_an_example_and_exit_codes() {
        let mut arguments = Arguments::command();
        arguments.build();
        let commands = arguments.get_subcommands_mut().filter(|it| it.get_name() != "help");
        let mut count = 0;
        for command in commands {
            let (name, text) =
                (command.get_name().to_owned(), command.render_long_help().to_string());
            assert!(text.contains("Exit code"), "{text}");
            let examples = text.split("Examples:").nth(1).unwrap_or_default();
            assert!(examples.contains(&format!("  mpt-lab {name}")), "{text}");
            assert!(examples.lines().all(|line| line.len() <= 100), "{text}");
            count += 1;
        }
        assert_eq!(count, 11);
    }
}
