//! The kernel's side of the bargain: TUN devices, sockets and netlink in network namespaces that
//! the tests make for themselves, so that no interface of the host is touched.
//!
//! Each test runs in a new namespace. An unprivileged process first enters a user namespace. A test
//! that this machine does not permit is reported as ignored, with the reason; with `MPT_NO_SKIP`
//! set it fails instead.

#![allow(clippy::unwrap_used, reason = "in tests that is the assertion")]

mod cable;
mod default_route;
mod ethtool;
mod firewall;
#[allow(dead_code, reason = "it is shared with other tests")]
#[path = "../super_packet/flow.rs"]
mod flow;
mod monitor;
mod netlink;
mod tun;
mod udp;
mod world;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// What a test returns: nothing, or why this machine cannot run it.
type Outcome = Result<(), Skip>;

/// Why this machine cannot run a test.
#[derive(Debug)]
struct Skip(String);

/// A test by name.
type Test = (&'static str, fn() -> Outcome);

fn main() {
    let arguments = Arguments::from_args();
    let entered = world::enter();
    let trials = [
        tun::TESTS,
        tun::transfer::TESTS,
        tun::capture::TESTS,
        udp::TESTS,
        udp::egress_rate::TESTS,
        udp::open::TESTS,
        udp::offload::TESTS,
        cable::TESTS,
        netlink::TESTS,
        monitor::TESTS,
        default_route::TESTS,
        firewall::TESTS,
        ethtool::TESTS,
    ]
    .concat()
    .into_iter()
    .map(|(name, test)| {
        let entered = entered.clone();
        Trial::ignorable_test(name, move || run(entered, test))
    })
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(entered: Result<(), String>, test: fn() -> Outcome) -> Result<Completion, Failed> {
    let outcome = match entered {
        Ok(()) => match world::in_fresh_namespace(test).join() {
            Ok(outcome) => outcome,
            Err(_) => return Err("it panicked; see above".into()),
        },
        Err(reason) => Err(Skip(reason)),
    };
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(Skip(reason)) if std::env::var_os("MPT_NO_SKIP").is_some() => Err(reason.into()),
        Err(Skip(reason)) => Ok(Completion::ignored_with(reason)),
    }
}
