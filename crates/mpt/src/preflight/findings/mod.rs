//! The findings about a host, derived from facts only.

mod network;
mod paths;
mod process;
mod sockets;
mod sysctl;

use crate::config::Settings;

use super::facts::Facts;
use super::finding::Finding;

/// What the host of `facts` lacks to run `settings`: errors first, then in a fixed order: what the
/// process may do, its sockets, its paths, the networks behind it.
pub(super) fn findings(settings: &Settings, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    process::judge(settings, facts, &mut findings);
    sockets::judge(settings, facts, &mut findings);
    paths::judge(settings, facts, &mut findings);
    network::judge(settings, facts, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}
