//! All of it once more as a user without any privilege, in a process of its own.
//!
//! Root becomes nobody, with a TUN node as distributions ship it; from there on the process is as
//! any user's and enters a user namespace. Who is not root anyway has nothing to repeat.

use std::env;
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};
use nix::unistd::Uid;

use crate::world::skip;

/// Set in the process that is to be nobody's.
const NOBODY: &str = "MPT_LAB_TEST_NOBODY";
/// How that process says that it cannot be nobody's.
const CANNOT: i32 = 77;

/// The repetition, as one test; none if this process is no one to become nobody.
pub(crate) fn trial() -> Option<Trial> {
    let is_root = Uid::effective().is_root();
    let outermost = env::var_os(NOBODY).is_none() && in_first_user_namespace();
    (is_root && outermost).then(|| Trial::ignorable_test("all_the_same_without_privilege", repeat))
}

/// In the process of the repetition: becomes nobody. True if that is impossible, and said.
pub(crate) fn refuse_as_nobody() -> bool {
    if env::var_os(NOBODY).is_none() || !Uid::effective().is_root() {
        return false;
    }
    let Err(error) = mpt_lab::privilege::become_nobody() else { return false };
    println!("cannot become nobody: {error:#}");
    std::process::exit(CANNOT)
}

fn repeat() -> Result<Completion, Failed> {
    let mut command = Command::new(env::current_exe()?);
    let output = command.env(NOBODY, "1").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(CANNOT) {
        return skip(text.trim().to_owned());
    }
    let closing = text.lines().rfind(|line| line.starts_with("test result:"));
    let closing = closing.unwrap_or("no test result").to_owned();
    if !output.status.success() {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    if !closing.contains("; 0 ignored;") {
        return skip(format!("without privilege: {closing}\n{text}"));
    }
    Ok(Completion::Completed)
}

/// Whether all users outside are mapped (user_namespaces(7)).
fn in_first_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}
