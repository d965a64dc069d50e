//! What the process may do, and room for its interfaces.

use mpt_io::netlink::Link;

use super::{FILE, found, link, one};
use crate::preflight::facts::{Facts, NoTun};

#[test]
fn a_tun_device_that_cannot_be_opened_is_an_error() {
    for (tun, what, fix) in [
        (NoTun::Driver, "error: the kernel has no TUN devices", "modprobe tun"),
        (
            NoTun::Node,
            "error: /dev/net/tun is missing",
            "mkdir -p /dev/net && mknod -m 0666 /dev/net/tun c 10 200",
        ),
        (
            NoTun::Permission,
            "error: this user may not open /dev/net/tun",
            "sudo mpt run FILE  (or allow every user: sudo chmod 0666 /dev/net/tun)",
        ),
    ] {
        one(FILE, |facts| facts.tun = Some(tun), [what, "no tunnel can be opened", fix]);
    }
}

#[test]
fn a_user_that_does_not_exist_is_an_error() {
    let text = format!("[daemon]\nuser = \"tunnels\"\n{FILE}");
    one(
        &text,
        |facts| facts.user_missing = true,
        [
            "error: there is no user tunnels",
            "the daemon is configured to switch to that user",
            "useradd --system --no-create-home --shell /usr/sbin/nologin tunnels",
        ],
    );
}

#[test]
fn a_user_that_may_not_open_tun_devices_is_an_error() {
    let text = format!("[daemon]\nuser = \"tunnels\"\n{FILE}");
    one(
        &text,
        |facts| facts.user_shut_out = true,
        [
            "error: user tunnels may not open /dev/net/tun",
            "the daemon is configured to switch to that user, which cannot open tunnels",
            "chmod 0666 /dev/net/tun",
        ],
    );
}

#[test]
fn a_tunnels_name_that_an_interface_has_is_a_warning_unless_it_is_our_daemons() {
    let there = |facts: &mut Facts| {
        facts.links.as_mut().unwrap().push(Link { is_tun: true, ..link(9, "mpt0") });
    };
    one(
        FILE,
        there,
        [
            "warning: interface mpt0 exists already",
            "unless it is an unused TUN interface, the tunnel of that name cannot be opened",
            "ip link delete mpt0",
        ],
    );
    let with_daemon = found(FILE, |facts| {
        there(facts);
        facts.daemon = true;
    });
    assert_eq!(with_daemon, [""; 0]);
    one(
        FILE,
        |facts| facts.links.as_mut().unwrap().push(link(9, "mpt0")),
        [
            "error: interface mpt0 exists already, and is no TUN interface",
            "the tunnel of that name cannot be opened",
            "choose another `name` for the tunnel",
        ],
    );
}

#[test]
fn ipv6_that_the_tunnel_needs_and_the_host_lacks_is_an_error() {
    const WHY: &str = "tunnel mpt0 cannot have its IPv6 addresses";
    one(
        FILE,
        |facts| facts.no_ipv6 = true,
        ["error: the kernel has no IPv6", WHY, "modprobe ipv6"],
    );
    let disable = |facts: &mut Facts| {
        facts.sysctls.insert("net/ipv6/conf/default/disable_ipv6".into(), 1);
    };
    one(
        FILE,
        disable,
        [
            "error: IPv6 is disabled on new interfaces",
            WHY,
            "sysctl -w net.ipv6.conf.default.disable_ipv6=0",
        ],
    );
    let only_ipv4 = FILE.replace(", \"fd00:9::1/64\"", "").replace(", \"fd00:9::2\"", "");
    assert_eq!(found(&only_ipv4, disable), [""; 0]);
}
