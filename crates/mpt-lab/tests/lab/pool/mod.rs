//! Tests that run at the same time, each in a separate process.
//!
//! Most of these tests wait: for the detection of a failed path, for a link's delay, for a program
//! to start. So several run at once, as [`turns`] says. Each is a process, because it has a user, a mount namespace,
//! descriptors and children, and those belong to processes: `main` starts its own executable again,
//! which detects by its name (`argv[0]`) that it runs one test. The output of that process is shown
//! if it fails, or at once with `--nocapture`.
//!
//! A test that measures time or loads the processors runs alone, after the others. One that fails beside
//! others runs once more alone, because beside others a busy machine can starve the paths of a test for longer
//! than their dead time. The second outcome counts; the first is printed, and its tests are listed at the
//! end. `MPT_NO_RETRY=1` makes the first outcome count.

mod turns;

use std::env;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::parent_id;
use std::panic::{catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use turns::Turns;

/// A test by name; it fails by panicking.
pub(crate) type Test = (&'static str, fn());

/// A way to run tests.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// Printed in brackets before the names of its tests; empty for the usual mode.
    pub(crate) name: &'static str,
    /// Called in the process of a test before the test, while there is one thread. An error says why this
    /// machine cannot run tests this way.
    pub(crate) enter: fn() -> anyhow::Result<()>,
}

/// A test in one of the modes that it runs in.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    mode: Mode,
    test: Test,
    /// No other test may run at the same time.
    alone: bool,
}

/// All tests of some tables, in this mode.
pub(crate) fn cases(mode: Mode, tables: &[&[Test]]) -> Vec<Case> {
    tables.concat().into_iter().map(|test| Case { mode, test, alone: false }).collect()
}

/// The same, and each of these tests has the machine to itself.
pub(crate) fn cases_alone(mode: Mode, tables: &[&[Test]]) -> Vec<Case> {
    cases(mode, tables).into_iter().map(|case| Case { alone: true, ..case }).collect()
}

/// The name by which this executable detects that it runs one test.
const CHILD: &str = "mpt-one-test";
/// How the process of a test says that the machine cannot run it. The reason is in the file that is its
/// standard input.
const SKIPPED: u8 = 77;
/// How the process of a test says that the test failed, as libtest does.
const FAILED: u8 = 101;

/// How many tests are named as the slowest.
const SLOWEST: usize = 8;

/// Runs the test that this process was started for, and returns how it ended; `None` if this process was
/// started to run them all. To be called before any thread starts.
pub(crate) fn run_one(cases: &[Case]) -> Option<ExitCode> {
    let mut arguments = env::args();
    if arguments.next()? != CHILD {
        return None;
    }
    let mut next = || arguments.next().expect("it was started by `start`");
    let (parent, mode, name) = (next(), next(), next());
    let case = cases.iter().find(|case| case.mode.name == mode && case.test.0 == name);
    let case = case.expect("the same executable has the same tests");
    Some(match case.run(&parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(payload) => match payload.downcast::<Skip>() {
            Ok(skip) => {
                report(&skip.0);
                SKIPPED.into()
            }
            Err(_) => FAILED.into(),
        },
    })
}

/// Ends a test that this machine cannot run, saying what it lacks. With `MPT_NO_SKIP` set, that is a
/// failure.
pub(crate) fn skip(reason: &str) -> ! {
    assert!(env::var_os("MPT_NO_SKIP").is_none(), "MPT_NO_SKIP is set, but {reason}");
    resume_unwind(Box::new(Skip(reason.to_owned())))
}

/// Ends a test for which the kernel lacks a module. Few kernels have them all, so that this fails only where
/// `MPT_NO_SKIP` is `all`.
#[allow(dead_code, reason = "not every program with such tests has some that need modules")]
pub(crate) fn lacks_module(reason: &str) -> ! {
    assert_ne!(env::var("MPT_NO_SKIP").as_deref(), Ok("all"), "{reason}");
    resume_unwind(Box::new(Skip(reason.to_owned())))
}

/// Why a test is skipped.
struct Skip(String);

impl Case {
    /// Runs the test in this process.
    fn run(self, parent: &str) -> std::thread::Result<()> {
        catch_unwind(|| {
            if let Err(error) = (self.mode.enter)() {
                skip(&format!("{error:#}"));
            }
            // After the mode is entered: another user loses the signal (PR_SET_PDEATHSIG in prctl(2)).
            set_pdeathsig(Signal::SIGKILL).expect("a signal at the end of the parent");
            assert_eq!(parent, parent_id().to_string(), "the parent has ended already");
            (self.test.1)();
        })
    }

    /// Runs the test in a separate process.
    fn start(self, environment: &[Variable], captured: bool) -> Result<Completion, Failed> {
        let (mut reason, mut output) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut command = Command::new("/proc/self/exe");
        command.arg0(CHILD).arg(std::process::id().to_string()).args([self.mode.name, self.test.0]);
        command.envs(environment.iter().cloned()).stdin(reason.try_clone()?);
        if captured {
            command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        }
        let status = command.status()?;
        match status.code() {
            Some(0) => Ok(Completion::Completed),
            Some(code) if code == i32::from(SKIPPED) => {
                Ok(Completion::ignored_with(content(&mut reason)?))
            }
            _ => Err(format!("{}{status}", content(&mut output)?).into()),
        }
    }
}

/// Reports to the parent why a test is skipped.
fn report(reason: &str) {
    let file = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|mut file| file.write_all(reason.as_bytes())).expect("a file as standard input");
}

fn content(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A variable of the environment of every test, and its value.
pub(crate) type Variable = (&'static str, PathBuf);

/// Runs the tests that the command line asks for, and says which took longest.
pub(crate) fn run(cases: &[Case], environment: &[Variable]) -> Conclusion {
    let mut arguments = Arguments::from_args();
    let turns = Arc::new(Turns::new(arguments.test_threads));
    arguments.test_threads = Some(turns.most());
    let captured = !arguments.nocapture;

    let times = Arc::new(Mutex::new(Vec::new()));
    let retried = Arc::new(Mutex::new(Vec::new()));
    let retries = env::var_os("MPT_NO_RETRY").is_none();
    // Who runs beside others reads, who runs alone writes.
    let machine = Arc::new(RwLock::new(()));
    let trial = |&case: &Case| {
        let (turns, machine) = (Arc::clone(&turns), Arc::clone(&machine));
        let (times, retried) = (Arc::clone(&times), Arc::clone(&retried));
        let environment = environment.to_vec();
        let run = move || {
            // No thread panics while holding a lock, and if one did, the data would still be valid.
            let turn = (!case.alone).then(|| turns.take());
            let beside =
                (!case.alone).then(|| machine.read().unwrap_or_else(PoisonError::into_inner));
            let alone = case.alone.then(|| machine.write().unwrap_or_else(PoisonError::into_inner));
            let begun = Instant::now();
            let mut outcome = case.start(&environment, captured);
            drop((beside, alone, turn));
            if let Err(failed) = &outcome
                && retries
                && !case.alone
            {
                print_retry(case, failed);
                let _alone = machine.write().unwrap_or_else(PoisonError::into_inner);
                outcome = case.start(&environment, captured);
                retried
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((case, outcome.is_ok()));
            }
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push((begun.elapsed(), case));
            outcome
        };
        Trial::ignorable_test(case.test.0, run).with_kind(case.mode.name)
    };
    // The pool takes them in this order. One that runs alone waits until nothing else does, so that those
    // together cost the least at the end.
    let (alone, beside): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.alone);
    let trials = beside.into_iter().chain(alone).map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    print_slowest(&mut times.lock().unwrap_or_else(PoisonError::into_inner));
    print_retried(&retried.lock().unwrap_or_else(PoisonError::into_inner));
    conclusion
}

#[allow(clippy::print_stdout, reason = "beside what the harness prints")]
fn print_retry(case: Case, failed: &Failed) {
    let output = failed.message().unwrap_or_default();
    println!(
        "{} {} failed beside other tests, and runs again alone:\n{output}",
        case.mode.name, case.test.0
    );
}

#[allow(clippy::print_stdout, reason = "beside what the harness prints")]
fn print_retried(retried: &[(Case, bool)]) {
    for (case, passed) in retried {
        let outcome = if *passed { "passed alone" } else { "failed alone too" };
        println!("failed beside other tests, {outcome}: {} {}", case.mode.name, case.test.0);
    }
}

#[allow(clippy::print_stdout, reason = "beside what the harness prints")]
fn print_slowest(times: &mut [(Duration, Case)]) {
    if times.len() <= SLOWEST {
        return;
    }
    let sum: Duration = times.iter().map(|(time, _)| *time).sum();
    println!("one after the other they would have taken {:.0} s; the slowest:", sum.as_secs_f64());
    times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    for (time, case) in times.iter().take(SLOWEST) {
        let alone = if case.alone { " (alone)" } else { "" };
        println!("{:6.1} s  {} {}{alone}", time.as_secs_f64(), case.mode.name, case.test.0);
    }
    println!();
}
