//! What is to be said about a host, judged from facts alone.

mod network;
mod paths;
mod process;
mod sockets;
mod sysctl;

use crate::config::Settings;

use super::facts::Facts;
use super::finding::Finding;

/// What the host that `facts` tell of lacks to run `settings`: the errors first, and otherwise in a
/// fixed order: what the process may do, its sockets, its paths, the networks behind it.
pub(super) fn findings(settings: &Settings, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    process::judge(settings, facts, &mut findings);
    sockets::judge(settings, facts, &mut findings);
    paths::judge(settings, facts, &mut findings);
    network::judge(settings, facts, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}
