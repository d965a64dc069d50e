//! Interfaces, addresses, routes.

use super::{FILE, found, ip, one};
use crate::preflight::facts::Facts;
use crate::preflight::needs::Leg;

#[test]
fn a_missing_or_switched_off_interface_is_a_warning() {
    one(
        FILE,
        |facts| facts.links.as_mut().unwrap().retain(|link| link.name != "eth0"),
        [
            "warning: interface eth0 does not exist",
            "path fibre of server cannot be used until it is up",
            "ip -brief link  (correct `interface` if none of them is it)",
        ],
    );
    one(
        FILE,
        |facts| facts.links.as_mut().unwrap()[2].up = false,
        [
            "warning: interface wwan0 is switched off",
            "path radio of server cannot be used until it is up",
            "ip link set wwan0 up",
        ],
    );
}

#[test]
fn ipv6_disabled_on_an_interface_matters_to_ipv6_paths() {
    let disable = |interface: &'static str| {
        move |facts: &mut Facts| {
            facts.sysctls.insert(format!("net/ipv6/conf/{interface}/disable_ipv6"), 1);
        }
    };
    one(
        FILE,
        disable("wwan0"),
        [
            "warning: IPv6 is disabled on interface wwan0",
            "path radio of server cannot be used",
            "sysctl -w net.ipv6.conf.wwan0.disable_ipv6=0",
        ],
    );
    assert_eq!(found(FILE, disable("eth0")), [""; 0]);
}

#[test]
fn a_missing_or_unusable_address_is_a_warning() {
    one(
        FILE,
        |facts| facts.addresses.as_mut().unwrap().clear(),
        [
            "warning: no interface has the address 192.0.2.1",
            "path fibre of server cannot be used until one has",
            "ip address add 192.0.2.1/PREFIX dev INTERFACE",
        ],
    );
    one(
        FILE,
        |facts| facts.addresses.as_mut().unwrap()[1].usable = false,
        [
            "warning: the address 192.0.2.1 is not usable",
            "another host has it or may have it, and path fibre of server cannot be used",
            "ip address show to 192.0.2.1",
        ],
    );
}

#[test]
fn a_peer_without_a_route_is_a_warning_for_that_peer() {
    let cut_off = |facts: &mut Facts| {
        let local = Some(ip("192.0.2.1"));
        let remote = "203.0.113.5:4754".parse().unwrap();
        facts.unreachable.insert(Leg { interface: Some("eth0".into()), local, remote });
    };
    one(
        FILE,
        cut_off,
        [
            "warning: no route leads to 203.0.113.5 through eth0",
            "path fibre of server cannot be used until one does",
            "ip route add 203.0.113.5 via ROUTER dev eth0",
        ],
    );
    let found = found(FILE, |facts| {
        cut_off(facts);
        facts.addresses.as_mut().unwrap().clear();
    });
    assert_eq!(found.len(), 1, "the address is the reason: {found:?}");
}

#[test]
fn a_strict_filter_is_reported_if_the_reverse_route_differs() {
    let strict = |facts: &mut Facts| {
        facts.sysctls.insert("net/ipv4/conf/eth0/rp_filter".into(), 1);
    };
    assert_eq!(found(FILE, strict), [""; 0], "there and back are the same");
    let elsewhere = |facts: &mut Facts| {
        facts.ways.insert(ip("203.0.113.5"), 4);
    };
    assert_eq!(found(FILE, elsewhere), [""; 0], "the filter is loose");
    let both = |facts: &mut Facts| {
        strict(facts);
        elsewhere(facts);
    };
    const WHAT: &str = "warning: reverse path filtering is strict on eth0";
    const MEND: &str = "sysctl -w net.ipv4.conf.eth0.rp_filter=2";
    const WHY: &str = "the kernel drops datagrams for path fibre of server, because the route \
                       to 203.0.113.5 leads through eth1";
    one(FILE, both, [WHAT, WHY, MEND]);
    let by_address = FILE.replace("interface = \"eth0\"\n", "");
    one(&by_address, both, [WHAT, WHY, MEND]);

    for (all, own, drops) in [(1, 0, true), (0, 1, true), (1, 2, false), (2, 1, false)] {
        let found = found(FILE, |facts| {
            elsewhere(facts);
            facts.sysctls.insert("net/ipv4/conf/all/rp_filter".into(), all);
            facts.sysctls.insert("net/ipv4/conf/eth0/rp_filter".into(), own);
        });
        assert_eq!(!found.is_empty(), drops, "all {all}, eth0 {own}");
    }

    let default = FILE.replace(
        "\n[[tunnel.connection.path]]\nname = \"fibre\"",
        "\nnetworks = [\"0.0.0.0/0\"]\n[[tunnel.connection.path]]\nname = \"fibre\"",
    );
    let why = "the kernel drops datagrams for path fibre of server, because the default route \
               leads through the tunnel, unless 203.0.113.5 has a route of its own";
    one(&default, strict, [WHAT, why, MEND]);
}
