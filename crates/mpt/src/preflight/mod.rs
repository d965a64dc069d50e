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
mod named;
mod needs;

#[cfg(test)]
mod tests;

use mpt_io::netlink::Netlink;

use crate::config::{Prefix, Settings};

use facts::Facts;
pub(crate) use finding::{Finding, Severity};

/// The networks of `settings` that this host routes elsewhere, so that a tunnel cannot have them: each with the
/// remedy. What cannot be found out is not among them.
pub(crate) fn routed_elsewhere(settings: &Settings) -> Vec<(Prefix, String)> {
    let Ok(mut netlink) = Netlink::open() else { return Vec::new() };
    let taken = gather::taken(settings, &mut netlink);
    let facts = Facts { taken: taken.clone(), ..Facts::default() };
    let findings =
        findings::findings(&Settings { tunnels: Vec::new(), ..settings.clone() }, &facts);
    let networks = taken.into_iter().map(|(network, _)| network);
    networks.zip(findings).map(|(network, finding)| (network, finding.in_a_line())).collect()
}

/// What of `settings` does not fit the networks and names of this host, each in one line with the remedy.
pub(crate) fn misfits(settings: &Settings) -> Vec<String> {
    let findings = findings::of_tunnels(settings, &Facts::gather(settings));
    findings.iter().map(Finding::in_a_line).collect()
}

/// What this host lacks to run `settings`, the errors first.
pub(crate) fn lacks(settings: &Settings) -> Vec<Finding> {
    findings::findings(settings, &Facts::gather(settings))
}
