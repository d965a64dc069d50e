//! What is said of the host when networks are routed into a tunnel.
//!
//! Nothing here is an error: the host may not forward because nobody is behind it, and a host that filters
//! strictly may have routes to the peers. But packets that vanish for these reasons are hard to find.

use std::fs;

use crate::config::{self, Prefix};

/// Strict reverse path filtering (RFC 3704 section 2.2), in the numbers of `rp_filter`.
const STRICT: u8 = 1;

/// What keeps other hosts from these networks, each with the command that changes it. Most hosts with a tunnel have nobody behind
/// them.
pub(super) fn for_others<'c>(
    networks: impl Iterator<Item = &'c Prefix> + Clone,
) -> impl Iterator<Item = String> {
    let any = move |v4: bool| networks.clone().any(|network| network.addr.is_ipv4() == v4);
    let forwarding = [(true, "net.ipv4.ip_forward"), (false, "net.ipv6.conf.all.forwarding")];
    let is_off = move |&(v4, key): &(bool, &str)| any(v4) && setting(key) == Some(0);
    forwarding.into_iter().filter(is_off).map(|(_, key)| {
        format!("if hosts behind this one are to use the tunnel, too: `sysctl -w {key}=1`")
    })
}

/// What stands in the way of these networks, each with the command that fixes it. Nothing is said
/// about what cannot be found out.
pub(super) fn for_this_host<'c>(
    mut networks: impl Iterator<Item = &'c Prefix>,
    connections: impl Iterator<Item = &'c config::Connection>,
) -> Vec<String> {
    let mut advice = Vec::new();
    if networks.any(|network| network.len == 0 && network.addr.is_ipv4()) {
        for connection in connections {
            let filtered = connection.paths.iter().filter_map(|path| {
                let interface = path.interface.as_deref()?;
                let strict =
                    is_strict(interface) && path.remote.address().is_none_or(|at| at.is_ipv4());
                strict.then(|| {
                    format!(
                        "path {} of connection {}: interface {interface} drops the peer's \
                         datagrams, because the default route leads into the tunnel: \
                         `sysctl -w net.ipv4.conf.{interface}.rp_filter=2`",
                        path.name, connection.name
                    )
                })
            });
            advice.extend(filtered);
        }
    }
    advice
}

/// Whether the interface drops what it would not answer through. The larger of its own setting and
/// that of all counts (`ip-sysctl.rst` of the kernel).
fn is_strict(interface: &str) -> bool {
    let of = |place: &str| setting_in(&format!("ipv4/conf/{place}/rp_filter"));
    of("all").max(of(interface)) == Some(STRICT)
}

/// A setting by its name in `sysctl(8)`, of no interface.
fn setting(key: &str) -> Option<u8> {
    setting_in(&key.strip_prefix("net.")?.replace('.', "/"))
}

fn setting_in(file: &str) -> Option<u8> {
    fs::read_to_string(format!("/proc/sys/net/{file}")).ok()?.trim().parse().ok()
}
