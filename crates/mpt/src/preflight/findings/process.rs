//! What the daemon's process may do, and whether there is room for its interfaces.

use super::sysctl::set_sysctl;
use crate::config::Settings;
use crate::preflight::facts::{Facts, NoTun, of_interface};
use crate::preflight::finding::Finding;
use mpt_io::netlink::IpVersion;

pub(super) fn judge(settings: &Settings, facts: &Facts, findings: &mut Vec<Finding>) {
    findings.extend(facts.tun.map(tun));
    if facts.powerless {
        findings.push(Finding::error(
            "this process lacks the capability CAP_NET_ADMIN",
            "it cannot create interfaces, addresses and routes",
            "sudo mpt run FILE",
        ));
    }
    if facts.user_missing
        && let Some(user) = &settings.daemon.user
    {
        findings.push(Finding::error(
            format!("there is no user {user}"),
            "the daemon is configured to switch to that user",
            format!("useradd --system --no-create-home --shell /usr/sbin/nologin {user}"),
        ));
    }
    if facts.user_shut_out
        && let Some(user) = &settings.daemon.user
    {
        findings.push(Finding::error(
            format!("user {user} may not open /dev/net/tun"),
            "the daemon is configured to switch to that user, which cannot open tunnels",
            "chmod 0666 /dev/net/tun",
        ));
    }
    if !facts.daemon {
        findings.extend(settings.tunnels.iter().filter_map(|tunnel| name(&tunnel.name, facts)));
    }
    findings.extend(ipv6(settings, facts));
}

fn tun(missing: NoTun) -> Finding {
    const WHY: &str = "no tunnel can be opened";
    match missing {
        NoTun::Driver => Finding::error("the kernel has no TUN devices", WHY, "modprobe tun"),
        NoTun::Node => Finding::error(
            "/dev/net/tun is missing",
            WHY,
            "mkdir -p /dev/net && mknod -m 0666 /dev/net/tun c 10 200",
        ),
        NoTun::Permission => Finding::error(
            "this user may not open /dev/net/tun",
            WHY,
            "sudo mpt run FILE  (or allow every user: sudo chmod 0666 /dev/net/tun)",
        ),
    }
}

/// An interface that has the name of a tunnel already. A TUN interface may have been left for the daemon, and that cannot
/// be seen from outside.
fn name(tunnel: &str, facts: &Facts) -> Option<Finding> {
    if !facts.link(tunnel)?.is_tun {
        return Some(Finding::error(
            format!("interface {tunnel} exists already, and is no TUN interface"),
            "the tunnel of that name cannot be opened",
            "choose another `name` for the tunnel",
        ));
    }
    Some(Finding::warning(
        format!("interface {tunnel} exists already"),
        "unless it is an unused TUN interface, the tunnel of that name cannot be opened",
        format!("ip link delete {tunnel}"),
    ))
}

/// IPv6 addresses that an interface made by the daemon would not get.
fn ipv6(settings: &Settings, facts: &Facts) -> Option<Finding> {
    let has_ipv6 = |tunnel: &&crate::config::Tunnel| {
        tunnel.addresses.iter().any(|address| address.addr.is_ipv6())
    };
    let tunnel = &settings.tunnels.iter().find(has_ipv6)?.name;
    let why = format!("tunnel {tunnel} cannot have its IPv6 addresses");
    let name = of_interface(IpVersion::V6, "default", "disable_ipv6");
    if facts.no_ipv6 {
        return Some(Finding::error("the kernel has no IPv6", why, "modprobe ipv6"));
    }
    let disabled = facts.sysctl(&name)? != 0;
    disabled
        .then(|| Finding::error("IPv6 is disabled on new interfaces", why, set_sysctl(&name, 0)))
}
