//! Development tasks that cargo alone does not do: `cargo demo`, and `cargo xtask` with `deb`, `generate`,
//! `interop`, `perf-gate`, `static`, `tidy` or `unit`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod architecture;
mod cargo;
mod deb;
mod demo;
mod generate;
mod interop;
mod perf_gate;
mod program;
mod statically;
mod tidy;
mod unit;

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
    /// Make the Debian package, for this kind of machine or another.
    Deb(deb::Options),
    /// Build the daemon and the lab in release mode, then run the lab's demonstration.
    Demo {
        /// Arguments for `mpt-lab demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Make manual pages and shell completions from the command line's definition.
    Generate,
    /// Exchange pings and TCP with Linux's own GRE over FOU, in QEMU where this kernel has none.
    Interop(interop::Options),
    /// What `interop` does in a namespace or machine.
    #[command(hide = true, subcommand)]
    InteropPart(interop::Part),
    /// Count the instructions that each part of the data path takes per packet, and compare with the
    /// stored figures. Needs valgrind.
    PerfGate(perf_gate::Options),
    /// Build programs that need no C library: they run on any Linux of that kind of machine, as on routers.
    Static(statically::Options),
    /// Check what compiler and clippy do not: dependencies, import cycles, unsafe code, programs started, old words, file
    /// lengths, links, drop names.
    Tidy,
    /// Rate the systemd units and refuse one that is too open.
    Unit,
}

/// Exit code 0: done. 1: tidy, the gate or the rating of units found something. 2: the task itself failed. The demonstration's own
/// exit code is passed on.
fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Deb(options) => deb::run(&options),
        Task::Demo { arguments } => demo::run(&arguments),
        Task::Generate => generate::run(),
        Task::Interop(options) => interop::run(&options),
        Task::InteropPart(part) => interop::run_part(&part),
        Task::PerfGate(options) => perf_gate::run(&options),
        Task::Static(options) => statically::run(&options),
        Task::Tidy => tidy::run(),
        Task::Unit => unit::run(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}
