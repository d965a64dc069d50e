//! Running the tests of both binaries.
//!
//! Each binary runs all of them once: one as root with a thread per tunnel, the other as nobody with
//! two. So both modes see every test, in no more time than one would take. Where a test fails in one
//! binary only, `MPT_THREADS=1` or `2` shows whether the threads have to do with it: the daemons
//! inherit it, and it wins over their configuration.

use std::env;
use std::panic::catch_unwind;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{
    carry, cost, failover, hostile, identity, lifetime, narrowing, outside, site, threads,
    translator,
};

/// A test by name; it fails by panicking.
pub(crate) type Test = (&'static str, fn());

/// Runs the tests of both binaries and `more` with so many threads for each tunnel, or none if the
/// way in was barred.
pub(crate) fn run(entered: anyhow::Result<()>, threads: u64, more: &[Test]) {
    site::set_threads(threads);
    let entered = entered.map_err(|error| format!("{error:#}"));
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests = [
        carry::TESTS,
        failover::TESTS,
        lifetime::TESTS,
        narrowing::TESTS,
        outside::TESTS,
        hostile::TESTS,
        threads::TESTS,
        identity::TESTS,
        translator::TESTS,
        cost::TESTS,
        more,
    ];
    let trial = |&(name, test): &Test| {
        let entered = entered.clone();
        Trial::ignorable_test(name, move || run_one(entered, test))
    };
    let trials = tests.concat().iter().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    site::remove_daemon();
    conclusion.exit();
}

fn run_one(entered: Result<(), String>, test: fn()) -> Result<Completion, Failed> {
    match entered {
        Err(reason) if env::var_os("MPT_NO_SKIP").is_some() => Err(reason.into()),
        Err(reason) => Ok(Completion::ignored_with(reason)),
        Ok(()) => match catch_unwind(test) {
            Ok(()) => Ok(Completion::Completed),
            Err(_) => Err("it panicked; see above".into()),
        },
    }
}
