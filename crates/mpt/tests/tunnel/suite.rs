//! Which tests there are, and how they run.
//!
//! Where rights or threads can make a difference, a test runs twice: by the right by which the tests were
//! started, with one thread for each tunnel; and as nobody, who may do nothing but open a TUN device and
//! enters a user namespace as any user would, with two threads. The others run once, with two
//! threads: one thread is what the tests of the core and of the simulated network have. Where a test
//! fails in one mode only, `MPT_THREADS=1` or `2` shows whether the threads have to do with it: the daemons
//! inherit it, and it wins over their configuration.

use mpt_lab::privilege;
use nix::unistd::Uid;

use crate::pool::{self, Case, Mode};
pub(crate) use crate::pool::{Test, skip};
use crate::{
    black_hole, carry, change, clients, commands, cost, crowd, deleted, disagree, earliest,
    evidence, experiment, explain, failover, flows, forged, found, gre, hostile, identity, import,
    inner_mtu, lifetime, log, many, mapping, measured, memory, names, netmon, original, outside,
    quota, repair, rights, routing, sealed, sessions, site, threads, translator, two_commands, web,
};

/// As started, which is usually as root, and with one thread.
const ONE_THREAD: Mode = Mode { name: "", enter: || enter(1) };

/// As started, and with two threads.
const TWO_THREADS: Mode = Mode { name: "", enter: || enter(2) };

/// As a user without any right, and with two threads.
const UNPRIVILEGED: Mode = Mode {
    name: "unprivileged",
    enter: || {
        if Uid::effective().is_root() {
            privilege::become_nobody()?;
        }
        enter(2)
    },
};

/// Obtains namespaces and capabilities, as any program must that makes a lab.
fn enter(threads: u64) -> anyhow::Result<()> {
    privilege::enter()?;
    site::set_threads(threads);
    names::prepare();
    Ok(())
}

/// All tests.
pub(crate) fn cases() -> Vec<Case> {
    let twice = [
        carry::TESTS,
        change::TESTS,
        cost::TESTS,
        deleted::TESTS,
        failover::TESTS,
        forged::TESTS,
        hostile::TESTS,
        identity::TESTS,
        inner_mtu::TESTS,
        lifetime::TESTS,
        netmon::TESTS,
        original::TESTS,
        original::twins::TESTS,
        outside::TESTS,
        quota::TESTS,
        rights::TESTS,
        routing::TESTS,
        threads::TESTS,
    ];
    let once = [
        black_hole::TESTS,
        commands::TESTS,
        disagree::TESTS,
        earliest::TESTS,
        evidence::TESTS,
        experiment::TESTS,
        explain::TESTS,
        flows::TESTS,
        found::TESTS,
        gre::TESTS,
        import::TESTS,
        log::TESTS,
        many::TESTS,
        mapping::TESTS,
        measured::TESTS,
        memory::TESTS,
        names::TESTS,
        original::TESTS_ONCE,
        clients::TESTS,
        repair::TESTS,
        sealed::TESTS,
        sessions::TESTS,
        translator::TESTS,
        two_commands::TESTS,
        web::TESTS,
    ];
    [
        pool::cases(TWO_THREADS, &once),
        pool::cases(ONE_THREAD, &twice),
        pool::cases(UNPRIVILEGED, &twice),
        pool::cases(ONE_THREAD, &[rights::TESTS_OF_ROOT]),
        pool::cases_alone(TWO_THREADS, &[crowd::TESTS]),
    ]
    .concat()
}

/// The user called nobody everywhere.
const NOBODY: Uid = Uid::from_raw(65534);

/// Who is to own what the tests of both modes share; `None` if that is who started them.
pub(crate) fn owner() -> Option<Uid> {
    Uid::effective().is_root().then_some(NOBODY)
}

/// Prints a figure that a test has found out.
#[allow(clippy::print_stderr, reason = "beside what the harness prints")]
pub(crate) fn figure(text: &str) {
    eprintln!("{text}");
}
