//! The command line: its commands, options and exit codes.
//!
//! Arguments are parsed first, then the command runs; one file per command. Only results go to
//! standard output; an error is one line on standard error that begins with `mpt:` and says what to
//! do next. If the reader of standard output closes the pipe, the command succeeds.

mod change;
mod check;
mod environment;
mod explain;
mod import;
mod key;
mod line;
mod path;
mod run;
mod signals;
mod status;
mod trace;
mod usage;

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::exit::Exit;
use crate::output;
use line::{Command, Line};

/// Runs the command given by `args`, which begin with the program's name.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let command = match usage::parse(args) {
        Ok(Line { command }) => command,
        Err(exit) => return exit,
    };
    let result = match command {
        Command::Check { file, file_only } => check::check(&file, file_only),
        Command::Config { socket } => change::config(&socket.socket),
        Command::Connection { action } => change::connection(&action),
        Command::Explain { connection, json, socket } => {
            explain::explain(connection.as_deref(), json, &socket.socket)
        }
        Command::Genkey => key::generate(),
        Command::Import(import) => import.run(),
        Command::Path { action } => path::path(&action),
        Command::Pubkey => key::public(),
        Command::Reload { socket } => change::reload(&socket.socket),
        Command::Run { file } => run::run(&file),
        Command::Status { watch, interval, json, socket } => {
            status::status(watch.then_some(interval), json, &socket.socket)
        }
        Command::Trace { options, socket } => options.run(&socket.socket),
        Command::Version => output::print(&format!("mpt {}\n", env!("CARGO_PKG_VERSION"))),
    };
    result.unwrap_or_else(|error| {
        output::complain(format_args!("{error:#}"));
        Exit::Failure
    })
}

/// The definition of the command line.
pub(crate) fn definition() -> clap::Command {
    Line::command()
}
