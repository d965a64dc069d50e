//! Passing on packets between the tunnel and the networks behind this host.

use mpt_io::netlink::{Hook, IpVersion};

use super::sysctl::set_sysctl;
use crate::config::Settings;
use crate::preflight::facts::{Facts, of_interface};
use crate::preflight::finding::Finding;
use crate::preflight::needs;

pub(super) fn judge(settings: &Settings, facts: &Facts, findings: &mut Vec<Finding>) {
    for version in [IpVersion::V4, IpVersion::V6] {
        // A default route through the tunnel is more often for the host itself.
        let Some(network) = needs::networks(settings, version).find(|network| network.len > 0)
        else {
            continue;
        };
        let setting = match version {
            IpVersion::V4 => "net/ipv4/ip_forward".to_owned(),
            IpVersion::V6 => of_interface(version, "all", "forwarding"),
        };
        if facts.sysctl(&setting) == Some(0) {
            findings.push(Finding::warning(
                format!("{} is 0", mpt_io::sysctl::with_dots(&setting)),
                format!("hosts behind this one cannot reach {network} through it"),
                set_sysctl(&setting, 1),
            ));
        }
    }
    findings.extend(firewall(settings, facts));
}

/// Chains that drop what this host passes on, unless a rule accepts it. Whether one does was not
/// looked at, and that is said.
fn firewall(settings: &Settings, facts: &Facts) -> Vec<Finding> {
    let forward = facts.strict_chains.iter().filter(|chain| chain.hook == Hook::Forward);
    let mut findings = Vec::new();
    for chain in forward {
        let name = format!("{} {} {}", chain.family, chain.table, chain.name);
        for tunnel in &settings.tunnels {
            let mut networks =
                tunnel.connections.iter().flat_map(|connection| &connection.networks);
            if !networks.any(|network| network.len > 0 && chain.judges(network.addr.into())) {
                continue;
            }
            let device = &tunnel.name;
            findings.push(Finding::warning(
                format!("the firewall chain {name} drops packets that no rule accepts"),
                format!(
                    "nothing is forwarded through {device} unless a rule accepts it; mpt does not \
                     read the rules"
                ),
                format!(
                    "nft insert rule {name} iifname {device} accept && \
                     nft insert rule {name} oifname {device} accept"
                ),
            ));
        }
    }
    findings
}
