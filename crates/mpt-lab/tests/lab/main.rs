//! Real hosts, links and programs in namespaces that the tests make for themselves.
//!
//! They run as the user who started them and, where rights can make a difference, once more without any
//! privilege. What this machine does not
//! permit is reported as ignored, with the reason; with `MPT_NO_SKIP` set it fails instead.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it is a test without a harness")]

mod capture;
mod cleanup;
mod commands;
mod ftp;
mod links;
mod mptcp;
mod netem;
mod pool;
mod run;
mod traffic;
mod world;

use std::process::ExitCode;

use mpt_lab::privilege;
use nix::unistd::Uid;
use pool::{Case, Mode};

/// As started, which is usually as root.
const USUAL: Mode = Mode { name: "", enter: || privilege::enter().map(drop) };

/// As an unprivileged user: root becomes user nobody, with a TUN node as distributions ship it, and
/// enters a user namespace as any user would.
const UNPRIVILEGED: Mode = Mode {
    name: "unprivileged",
    enter: || privilege::become_nobody().and_then(|()| privilege::enter().map(drop)),
};

fn main() -> ExitCode {
    mpt_lab::guard::stand_in();
    if cleanup::play_victim() {
        return ExitCode::SUCCESS;
    }
    let cases = cases();
    pool::run_one(&cases).unwrap_or_else(|| pool::run(&cases, &[]).exit_code())
}

fn cases() -> Vec<Case> {
    // Longest first, so that none of them is left for the end.
    let twice = [
        run::TESTS,
        links::TESTS,
        netem::TESTS,
        capture::TESTS,
        cleanup::TESTS,
        commands::TESTS,
        ftp::TESTS,
        mptcp::TESTS,
    ];
    let mut cases = pool::cases(USUAL, &twice);
    // Who is not root runs all of them without privilege anyway.
    if Uid::effective().is_root() && in_first_user_namespace() {
        cases.extend(pool::cases(UNPRIVILEGED, &twice));
    }
    cases.extend(pool::cases(USUAL, &[traffic::TESTS]));
    cases.extend(pool::cases_alone(USUAL, &[commands::TESTS_ALONE]));
    cases
}

/// Whether all users outside are mapped (user_namespaces(7)), including nobody.
fn in_first_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}
