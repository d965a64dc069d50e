//! The command line: its commands, options and exit codes.
//!
//! Arguments are parsed first, then the command runs; one file per command. Only results go to
//! standard output; an error is one line on standard error that begins with `mpt:` and says what to
//! do next. If the reader of standard output closes the pipe, the command succeeds.

mod change;
mod check;
mod doctor;
mod documents;
mod environment;
mod explain;
mod host;
mod import;
mod init;
mod invite;
mod join;
mod key;
mod leave;
mod line;
mod path;
mod peer;
mod run;
mod setup;
mod signals;
mod socket;
mod status;
mod trace;
mod usage;
mod web;

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
        Command::Completions { shell } => documents::completions(shell),
        Command::Config { socket } => change::config(&socket.socket),
        Command::Connection { action } => change::connection(&action),
        Command::Doctor { connection, file, rate, socket } => doctor::doctor(doctor::Order {
            connection: connection.as_deref(),
            file: &file,
            rate,
            socket: &socket.socket,
        }),
        Command::Explain { connection, json, socket } => {
            explain::explain(connection.as_deref(), json, &socket.socket)
        }
        Command::Genkey => key::generate(),
        Command::Host { action } => host::host(&action),
        Command::Import(import) => import.run(),
        Command::Man { page, output } => documents::man(page.as_deref(), output.as_deref()),
        Command::Init(init) => init.run(),
        Command::Invite(invite) => invite.run(),
        Command::Join(join) => join.run(),
        Command::Leave(leave) => leave.run(),
        Command::Path { action } => path::path(&action),
        Command::Peer { action } => peer::peer(&action),
        Command::Pubkey => key::public(),
        Command::Reload { socket } => change::reload(&socket.socket),
        Command::Run { file } => run::run(&file),
        Command::Status { watch, interval, json, verbose, socket } => {
            status::status(watch.then_some(interval), json, verbose, &socket.socket)
        }
        Command::Trace { options, socket } => options.run(&socket.socket),
        Command::Web { action } => web::web(&action),
        Command::Version => output::print(&format!("mpt {}\n", env!("CARGO_PKG_VERSION"))),
    };
    result.unwrap_or_else(|error| {
        output::complain(format_args!("{error:#}{}", as_root(&error)));
        Exit::Failure
    })
}

/// What who may not do something is to do, unless the message says that.
fn as_root(error: &anyhow::Error) -> &'static str {
    let is_denied = |cause: &(dyn std::error::Error + 'static)| {
        let error = cause.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let says_so = format!("{error:#}").contains("as root");
    let helps = !nix::unistd::Uid::effective().is_root() && !says_so;
    if helps && error.chain().any(is_denied) { " (run this as root)" } else { "" }
}

/// The definition of the command line.
pub(crate) fn definition() -> clap::Command {
    Line::command()
}
