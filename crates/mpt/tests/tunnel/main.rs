//! The real daemon at both ends of real links.
//!
//! What this machine does not permit is reported as ignored, with the reason; with `MPT_NO_SKIP` set it
//! fails instead. [`suite`] says which tests run how, [`pool`] runs them.

mod black_hole;
mod carry;
mod change;
mod clients;
mod commands;
mod cost;
mod crowd;
mod deleted;
mod disagree;
mod earliest;
mod evidence;
mod experiment;
mod explain;
mod failover;
mod flows;
mod forged;
mod found;
mod gre;
mod hostile;
mod identity;
mod import;
mod inner_mtu;
mod lifetime;
mod log;
mod many;
mod mapping;
mod measured;
mod memory;
mod names;
mod netmon;
mod original;
mod outside;
#[path = "../../../mpt-lab/tests/lab/pool/mod.rs"]
mod pool;
mod quota;
mod repair;
mod rights;
mod router;
mod routing;
mod sealed;
mod sessions;
mod site;
mod suite;
mod tap;
mod threads;
mod translator;
mod two_commands;
mod uplinks;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    mpt_lab::guard::stand_in();
    let cases = suite::cases();
    if let Some(code) = pool::run_one(&cases) {
        names::remove_files();
        return code;
    }
    let (_folder, daemon) = site::copy_daemon(suite::owner());
    pool::run(&cases, &[(site::DAEMON, daemon)]).exit_code()
}
