//! `mpt`: the multipath tunnel for Linux, daemon and command line in one binary.
//!
//! [`cli`] turns the command line into one of a few commands; [`config`] turns a file into
//! settings; [`tunnel`] runs them, a thread per tunnel; [`control`] answers visitors on a Unix
//! socket; [`output`] is how everything looks on a terminal.

mod cli;
mod config;
mod control;
mod output;
mod tunnel;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os()).into()
}
