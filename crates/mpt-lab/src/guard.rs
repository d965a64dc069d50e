//! Programs that die with the process that started them.
//!
//! A lab may be killed outright, and then no destructor runs. The kernel can send a child a signal
//! when its parent ends, but only the child itself can ask for that, after it is born and before it
//! becomes another program. So a guarded command first starts this very executable again;
//! [`stand_in`], which `main` calls before anything else, recognises the call by its name
//! (`argv[0]`), asks for the signal, and becomes the wanted program.
//!
//! A process that never called it would not recognise itself, so there [`command`] is a plain
//! command, and only the handle's destructor ends the child.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid};

/// The name (`argv[0]`) by which this executable detects that it stands in for another program.
const NAME: &str = "mpt-lab-guard";
/// The exit code of a stand-in that could not become the wanted program, as shells have it.
const CANNOT_RUN: i32 = 127;

static READY: AtomicBool = AtomicBool::new(false);

/// A command for `program` that the kernel kills when the thread that spawned it, or this process,
/// ends.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    if !READY.load(Ordering::Relaxed) {
        return Command::new(program);
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0(NAME).arg(getpid().to_string()).arg(program);
    command
}

/// Becomes the wanted program if this process was started as a stand-in; if not, makes [`command`]
/// guarded from here on. Call it first in `main`; [`crate::privilege::enter`] does it too.
pub fn stand_in() {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != NAME) {
        READY.store(true, Ordering::Relaxed);
        return;
    }
    exit(become_program(arguments));
}

/// Whether a process has not yet become the program it stands in for. Until then the end of the
/// thread that spawned it would go unnoticed.
pub(crate) fn is_stand_in(process: u32) -> bool {
    let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    if arguments.is_empty() {
        // A process in the middle of `exec` has no program yet, and may be about to become the
        // stand-in: its parent goes on as soon as the old program is gone. One that has ended has no
        // executable either.
        return fs::read_link(format!("/proc/{process}/exe")).is_ok();
    }
    arguments.split(|byte| *byte == 0).next() == Some(NAME.as_bytes())
}

/// Returns only if the program could not be started, with the exit code.
#[expect(clippy::print_stderr, reason = "a stand-in has no other way to report")]
fn become_program(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    let (Some(parent), Some(program)) = (arguments.next(), arguments.next()) else {
        return CANNOT_RUN;
    };
    if let Err(error) = set_pdeathsig(Signal::SIGKILL) {
        eprintln!("{NAME}: cannot ask for a signal at the parent's end: {error}");
        return CANNOT_RUN;
    }
    // The process may have ended before the signal was asked for; then it would never come. For the
    // thread that spawned this, `Namespace` sees to it.
    if parent.to_str() != Some(getppid().to_string().as_str()) {
        return CANNOT_RUN;
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("{NAME}: cannot run {}: {error}", program.display());
    CANNOT_RUN
}
