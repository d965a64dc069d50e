//! Development tasks that cargo alone does not do: `cargo demo`, `cargo xtask perf-gate` and
//! `cargo xtask tidy`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod cargo;
mod demo;
mod perf_gate;
mod tidy;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of MPT")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the daemon and the lab in release mode, then run the lab's demonstration.
    Demo {
        /// Arguments for `mpt-lab demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Count the instructions that each part of the data path takes per packet, and compare with the
    /// stored figures. Needs valgrind.
    PerfGate(perf_gate::Options),
    /// Check what compiler and clippy do not: dependencies, unsafe code, programs started, file
    /// lengths, links, drop names.
    Tidy,
}

/// Exit code 0: done. 1: tidy or the gate found something. 2: the task itself failed. The demonstration's own
/// exit code is passed on.
fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Demo { arguments } => demo::run(&arguments),
        Task::PerfGate(options) => perf_gate::run(&options),
        Task::Tidy => tidy::run(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
