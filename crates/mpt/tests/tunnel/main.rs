//! The real daemon at both ends of real links, by whatever right these tests were started.
//!
//! The tests run one after the other, because some of them look at time. What this machine does
//! not permit is reported as ignored, with the reason; with `MPT_NO_SKIP` set it fails instead.

mod black_hole;
mod carry;
mod change;
mod commands;
mod cost;
mod crowd;
mod evidence;
mod experiment;
mod failover;
mod gre;
mod hostile;
mod identity;
mod import;
mod inner_mtu;
mod lifetime;
mod many;
mod mapping;
mod measured;
mod names;
mod netmon;
mod original;
mod outside;
mod rights;
mod router;
mod routing;
mod site;
mod suite;
mod tap;
mod threads;
mod translator;
mod uplinks;

fn main() {
    let entered = mpt_lab::privilege::enter().map(drop);
    site::copy_daemon(None);
    let more = [experiment::TESTS, evidence::TESTS, original::TESTS_ONCE, rights::TESTS_OF_ROOT];
    suite::run(entered, 1, &more.concat());
}
