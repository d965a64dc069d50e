//! Running the tests of both binaries.
//!
//! Each binary runs all of them once: one as root with a thread per tunnel, the other as nobody with
//! two. So both modes see every test, in no more time than one would take. Where a test fails in one
//! binary only, `MPT_THREADS=1` or `2` shows whether the threads have to do with it: the daemons
//! inherit it, and it wins over their configuration.

use std::env;
use std::panic::{catch_unwind, resume_unwind};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{
    black_hole, carry, change, commands, cost, crowd, failover, gre, hostile, identity, import,
    inner_mtu, lifetime, many, mapping, measured, names, netmon, original, outside, rights,
    routing, site, threads, translator,
};

/// A test by name; it fails by panicking.
pub(crate) type Test = (&'static str, fn());

/// Runs the tests of both binaries and `more` with so many threads for each tunnel, or none if the
/// way in was barred.
pub(crate) fn run(entered: anyhow::Result<()>, threads: u64, more: &[Test]) {
    site::set_threads(threads);
    names::prepare();
    let entered = entered.map_err(|error| format!("{error:#}"));
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests = [
        carry::TESTS,
        change::TESTS,
        commands::TESTS,
        failover::TESTS,
        gre::TESTS,
        lifetime::TESTS,
        mapping::TESTS,
        black_hole::TESTS,
        import::TESTS,
        inner_mtu::TESTS,
        measured::TESTS,
        original::TESTS,
        original::twins::TESTS,
        outside::TESTS,
        rights::TESTS,
        hostile::TESTS,
        threads::TESTS,
        identity::TESTS,
        translator::TESTS,
        netmon::TESTS,
        many::TESTS,
        names::TESTS,
        routing::TESTS,
        crowd::TESTS,
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
    names::remove_files();
    conclusion.exit();
}

/// Prints a figure that a test has found out.
#[allow(clippy::print_stderr, reason = "beside what the harness prints")]
pub(crate) fn figure(text: &str) {
    eprintln!("{text}");
}

/// Ends a test for which this machine lacks something, as ignored; as failed where nothing may be.
pub(crate) fn skip(reason: &str) -> ! {
    resume_unwind(Box::new(Skip(reason.to_owned())))
}

struct Skip(String);

fn run_one(entered: Result<(), String>, test: fn()) -> Result<Completion, Failed> {
    let skipped = match entered {
        Err(reason) => reason,
        Ok(()) => match catch_unwind(test) {
            Ok(()) => return Ok(Completion::Completed),
            Err(payload) => match payload.downcast::<Skip>() {
                Ok(skip) => skip.0,
                Err(_) => return Err("it panicked; see above".into()),
            },
        },
    };
    match env::var_os("MPT_NO_SKIP") {
        Some(_) => Err(skipped.into()),
        None => Ok(Completion::ignored_with(skipped)),
    }
}
