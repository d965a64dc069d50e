//! What a host lacks to run a configuration, and the command that fixes it.
//!
//! Three steps, one module each. [`needs`] says what the settings want of the host: sockets, paths,
//! families. [`gather`] looks at the host, by `/proc` and netlink and by opening what the daemon
//! would open, and returns plain [`Facts`]; it changes nothing. [`findings`] compares the two, and is a
//! pure function, so that every finding is tested without a host that has the fault.
//!
//! Only known facts are reported. A fact that could not be determined, for lack of privilege or
//! kernel support, is no finding.

mod facts;
mod finding;
mod findings;
mod gather;
mod holder;
mod needs;

#[cfg(test)]
mod tests;

use crate::config::Settings;

use facts::Facts;
pub(crate) use finding::{Finding, Severity};

/// What this host lacks to run `settings`, the errors first.
pub(crate) fn lacks(settings: &Settings) -> Vec<Finding> {
    findings::findings(settings, &Facts::gather(settings))
}
