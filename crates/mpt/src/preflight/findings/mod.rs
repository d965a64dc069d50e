//! The findings about a host, derived from facts only.

mod named;
mod network;
mod paths;
mod process;
mod sockets;
mod sysctl;
mod tunnels;

use crate::config::Settings;

use super::facts::Facts;
use super::finding::Finding;

/// What of the tunnels does not fit the networks and names of the host of `facts`.
pub(super) fn of_tunnels(settings: &Settings, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    tunnels::judge(settings, facts, &mut findings);
    findings
}

/// What the host of `facts` lacks to run `settings`: errors first, then in a fixed order: what the
/// process may do, its sockets, its paths, the networks behind it, its
/// tunnels, files that the settings name.
pub(super) fn findings(settings: &Settings, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    process::judge(settings, facts, &mut findings);
    sockets::judge(settings, facts, &mut findings);
    paths::judge(settings, facts, &mut findings);
    network::judge(settings, facts, &mut findings);
    tunnels::judge(settings, facts, &mut findings);
    findings.extend(named::judge(facts));
    findings.sort_by_key(|finding| finding.severity);
    findings
}
