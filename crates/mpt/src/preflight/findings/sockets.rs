//! UDP ports and socket buffers.

use mpt_io::netlink::{Hook, IpVersion};

use super::sysctl::set_sysctl;
use crate::config::Settings;
use crate::preflight::facts::{Closed, Facts};
use crate::preflight::finding::Finding;
use crate::preflight::needs::{self, Names, Socket, User};

/// Wanted for each socket buffer, in bytes: as much as the daemon asks for.
const BUFFER: usize = 4 << 20;

pub(super) fn judge(settings: &Settings, facts: &Facts, findings: &mut Vec<Finding>) {
    let users = needs::socket_users(settings);
    let mut taken: Vec<Finding> =
        facts.closed.iter().map(|(socket, reason)| closed(socket, reason, &users)).collect();
    // Of paths that are found each has a socket for its interface, and all have one port.
    taken.dedup();
    findings.extend(taken);
    findings.extend(buffers(facts));
    findings.extend(firewall(facts, &users));
}

fn closed(socket: &Socket, reason: &Closed, users: &[User<'_>]) -> Finding {
    // Paths that are found have sockets of interfaces that no file names.
    let port = socket.interface.as_ref().map(|_| socket.local.port());
    let is_found = |user: &User<'_>| user.is_found && port == Some(user.port);
    let users: Vec<&User<'_>> = users
        .iter()
        .filter(|user| is_found(user) || user.sockets().any(|other| other == *socket))
        .collect();
    let (port, names) = (socket.local.port(), Names(&users));
    match reason {
        Closed::Taken(holder) => {
            let key = users.first().map_or("local_port", |user| user.port_key);
            let by = holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default();
            Finding::error(
                format!("UDP {} is in use{by}", socket.local),
                format!("{names} cannot be opened"),
                format!("ss -lunp 'sport = :{port}'  (end that program, or set another {key})"),
            )
        }
        Closed::Privileged => Finding::error(
            format!("UDP port {port} is for privileged processes"),
            format!("{names} cannot be opened"),
            set_sysctl("net/ipv4/ip_unprivileged_port_start", port),
        ),
    }
}

/// Limits that only count for who has not the capability to exceed them.
fn buffers(facts: &Facts) -> Vec<Finding> {
    let Some(limits) = facts.buffers.filter(|_| facts.powerless) else { return Vec::new() };
    let limit = |name: &str, limit: usize, why: &str| {
        (limit < BUFFER).then(|| {
            Finding::warning(
                format!("{} is {limit}, less than {BUFFER}", mpt_io::sysctl::with_dots(name)),
                why,
                set_sysctl(name, BUFFER),
            )
        })
    };
    let receive = "datagrams are dropped when the machine is busy for some milliseconds";
    let send = "datagrams are dropped when an interface is slow for some milliseconds";
    [
        limit("net/core/rmem_max", limits.receive, receive),
        limit("net/core/wmem_max", limits.send, send),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Chains that drop the peers' datagrams unless a rule accepts them. Whether one does was not looked
/// at, and that is said.
fn firewall(facts: &Facts, users: &[User<'_>]) -> Vec<Finding> {
    let input = facts.strict_chains.iter().filter(|chain| chain.hook == Hook::Input);
    input
        .filter_map(|chain| {
            let judged = |version: &IpVersion| chain.judges(*version);
            let mut ports: Vec<u16> = users
                .iter()
                .filter(|user| user.versions.iter().any(judged))
                .map(|user| user.port)
                .collect();
            ports.sort_unstable();
            ports.dedup();
            let (text, set) = match &ports[..] {
                [] => return None,
                [port] => (format!("port {port}"), port.to_string()),
                ports => {
                    let list: Vec<String> = ports.iter().map(u16::to_string).collect();
                    let list = list.join(", ");
                    (format!("ports {list}"), format!("'{{ {list} }}'"))
                }
            };
            let chain = format!("{} {} {}", chain.family, chain.table, chain.name);
            Some(Finding::warning(
                format!("the firewall chain {chain} drops packets that no rule accepts"),
                format!(
                    "datagrams from peers are dropped unless a rule accepts UDP {text}; mpt does \
                     not read the rules"
                ),
                format!("nft insert rule {chain} udp dport {set} accept"),
            ))
        })
        .collect()
}
