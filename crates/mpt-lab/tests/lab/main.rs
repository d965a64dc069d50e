//! Real hosts, links and programs in namespaces that the tests make for themselves.
//!
//! The tests run one after the other, because some of them look at time, and once more as a user
//! without any privilege. What this machine does not permit is reported as ignored, with the
//! reason; with `MPT_NO_SKIP` set it fails instead.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it is a test without a harness")]

mod again;
mod capture;
mod cleanup;
mod commands;
mod ftp;
mod links;
mod mptcp;
mod netem;
mod run;
mod traffic;
mod world;

use libtest_mimic::{Arguments, Trial};

fn main() {
    mpt_lab::guard::stand_in();
    if cleanup::play_victim() || again::refuse_as_nobody() {
        return;
    }
    let entered = mpt_lab::privilege::enter().map(drop).map_err(|error| format!("{error:#}"));
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests = [
        links::TESTS,
        netem::TESTS,
        capture::TESTS,
        cleanup::TESTS,
        commands::TESTS,
        ftp::TESTS,
        mptcp::TESTS,
        run::TESTS,
        traffic::TESTS,
    ]
    .concat();
    let trials = tests.into_iter().map(|(name, test)| {
        let entered = entered.clone();
        Trial::ignorable_test(name, move || world::run(entered, test))
    });
    let trials = trials.chain(again::trial()).collect();
    libtest_mimic::run(&arguments, trials).exit();
}
