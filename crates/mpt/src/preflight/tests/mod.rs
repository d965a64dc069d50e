//! Every finding, from facts made up for it: a host that has the fault need not be at hand.

mod network;
mod paths;
mod process;
mod sockets;

use std::io::Write as _;
use std::net::IpAddr;

use mpt_io::limits::SocketBuffers;
use mpt_io::netlink::{Address, Link};

use super::facts::NoTun;
use super::findings::findings;
use super::*;
use crate::config;

/// Two paths, one by IPv4 and one by IPv6, and a tunnel that carries both.
const FILE: &str = r#"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24", "fd00:9::1/64"]
[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2", "fd00:9::2"]
[[tunnel.connection.path]]
name = "fibre"
interface = "eth0"
local = "192.0.2.1"
remote = "203.0.113.5"
[[tunnel.connection.path]]
name = "radio"
interface = "wwan0"
remote = "2001:db8:9::5"
"#;

fn settings(text: &str) -> Settings {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    match config::load(file.path()) {
        Ok(settings) => settings,
        Err(config::LoadError::Invalid(report)) => panic!("{}", report.render(false)),
        Err(error) => panic!("{error}"),
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn link(index: u32, name: &str) -> Link {
    Link { index, name: name.into(), up: true, carrier: true, running: true, ..Link::default() }
}

/// A host that has everything that [`FILE`] needs, and all limits as a distribution sets them.
fn good_host() -> Facts {
    let address = |index, address: &str, prefix| Address {
        index,
        address: ip(address),
        prefix,
        usable: true,
        deprecated: false,
    };
    let sysctls = [
        ("net/ipv4/ip_forward", 0),
        ("net/ipv6/conf/all/forwarding", 0),
        ("net/ipv4/conf/all/rp_filter", 0),
        ("net/ipv4/conf/default/rp_filter", 1),
        ("net/ipv4/conf/eth0/rp_filter", 2),
        ("net/ipv4/conf/eth1/rp_filter", 1),
        ("net/ipv6/conf/all/disable_ipv6", 0),
        ("net/ipv6/conf/default/disable_ipv6", 0),
        ("net/ipv6/conf/eth0/disable_ipv6", 0),
        ("net/ipv6/conf/wwan0/disable_ipv6", 0),
    ];
    Facts {
        links: Some(vec![link(1, "lo"), link(2, "eth0"), link(3, "wwan0"), link(4, "eth1")]),
        addresses: Some(vec![address(1, "127.0.0.1", 8), address(2, "192.0.2.1", 24)]),
        ways: [(ip("203.0.113.5"), 2), (ip("2001:db8:9::5"), 3)].into(),
        buffers: Some(SocketBuffers { receive: 212_992, send: 212_992 }),
        sysctls: sysctls.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Facts::default()
    }
}

/// What is found on a good host with these changes.
fn found(text: &str, change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let mut facts = good_host();
    change(&mut facts);
    findings(&settings(text), &facts).iter().map(ToString::to_string).collect()
}

/// Asserts that the changes are one finding: its severity and what, its why, and its remedy.
fn one(text: &str, change: impl FnOnce(&mut Facts), [what, why, fix]: [&str; 3]) {
    assert_eq!(found(text, change), [format!("{what}: {why}\n  fix: {fix}")]);
}

#[test]
fn a_complete_and_an_unknown_host_have_no_findings() {
    assert_eq!(found(FILE, |_| ()), [""; 0]);
    assert_eq!(findings(&settings(FILE), &Facts::default()), []);
}

#[test]
fn errors_come_first_and_many_users_are_counted() {
    let mut text = FILE.replace("interface = \"eth0\"\nlocal", "local");
    for number in 0..4 {
        text += &format!(
            "[[tunnel.connection.path]]\nname = \"p{number}\"\ninterface = \"wwan0\"\n\
             remote = \"2001:db8::{number}:1\"\n"
        );
    }
    let found = found(&text, |facts| {
        facts.links.as_mut().unwrap().retain(|link| link.name != "wwan0");
        facts.addresses.as_mut().unwrap().clear();
        facts.tun = Some(NoTun::Node);
    });
    assert_eq!(found.len(), 3);
    assert!(found[0].starts_with("error: "));
    let many = "path radio of server, path p0 of server, path p1 of server and 2 more cannot";
    assert!(found[1].contains(many), "{found:?}");
}

#[test]
fn a_real_host_can_be_checked_by_any_user() {
    let facts = Facts::gather(&settings(FILE));
    let links = facts.links.unwrap();
    assert!(links.iter().any(|link| link.name == "lo"));
    assert!(facts.addresses.is_some());
    assert!(facts.sysctls.contains_key("net/ipv4/ip_forward"));
}

#[test]
fn what_a_start_refuses_and_what_can_never_work_is_found() {
    use crate::config::Prefix;
    use crate::preflight::facts::Taken;
    let lan = Prefix { addr: ip("192.168.1.0"), len: 24 };
    let with = FILE.replace("peer = ", "networks = [\"192.168.1.0/24\"]\npeer = ");
    let taken = |via: Option<&str>| Taken { interface: "eth1".into(), via: via.map(ip) };
    for (via, fix) in [(None, "take 192.168.1.0/24 out of"), (Some("192.0.2.9"), "ip route del")] {
        let found = found(&with, |facts| {
            facts.taken = vec![(lan, taken(via))];
            facts.sysctls.insert("net/ipv4/ip_forward".into(), 1);
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("error: ") && found[0].contains(fix), "{found:?}");
        assert_eq!(found[0].contains("ip route del"), via.is_some(), "not the host's own network");
    }
    // With another metric the kernel takes it, and the host loses its neighbours.
    let hidden =
        found(&FILE.replace("peer = ", "networks = [\"192.0.2.0/24\"]\npeer = "), |facts| {
            facts.sysctls.insert("net/ipv4/ip_forward".into(), 1);
        });
    assert_eq!(hidden.len(), 1, "{hidden:?}");
    assert!(hidden[0].contains("192.0.2.0/24 in `networks` is the network of eth0"), "{hidden:?}");
    let inside = FILE.replace("remote = \"203.0.113.5\"", "remote = \"10.9.0.2\"");
    assert!(found(&inside, |_| ())[0].contains("`remote` is the peer's tunnel address 10.9.0.2"));
    let overlapping = FILE.replace("10.9.0.1/24", "192.0.2.77/24");
    let overlapping = overlapping.replace("10.9.0.2", "192.0.2.78");
    assert!(found(&overlapping, |_| ())[0].contains("is in the network 192.0.2.1/24 of eth0"));
    let named = FILE.replace("remote = \"203.0.113.5\"", "remote = \"vpn.example.org\"");
    let found_by_name = found(&named, |facts| {
        facts.unresolved.insert("vpn.example.org".into(), "no such name".into());
    });
    assert!(found_by_name[0].contains("the name vpn.example.org has no address"));
    let fixed = FILE.replace("name = \"mpt0\"", "name = \"mpt0\"\nmtu = 1500");
    let too_large = found(&fixed, |facts| {
        facts.carries.insert(("server".into(), "fibre".into()), 1448);
    });
    assert!(
        too_large[0]
            .contains("`mtu` of tunnel mpt0 is 1500, and path fibre of server carries 1448")
    );
}
