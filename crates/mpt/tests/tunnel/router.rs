//! Two hosts of which the first path leads through a router, a real one: the kernel's.
//!
//! ```text
//! left one ----- left  router  right ----- one right
//!      two ------------------------------- two
//! ```

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use mpt_control::Status;
use mpt_io::netlink::Netlink;
use mpt_lab::daemon::Daemon;
use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use mpt_lab::traffic::tcp;

use crate::site::{QUICK, daemon, eventually, inner};

/// Both hosts with their daemons, and the router.
pub(crate) struct Routed {
    daemons: [Daemon; 2],
    hosts: [Namespace; 2],
    router: Namespace,
}

impl Routed {
    /// Starts everything, with outer packets of an IP version, and waits until both paths are up.
    pub(crate) fn start(version: u8) -> Self {
        let [left, router, right] =
            [(); 3].map(|()| Namespace::new().unwrap_or_else(|error| panic!("{error:#}")));
        left.run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            netlink.add_veth("one", "left", Some(router.as_fd())).expect("a pair");
            netlink.add_veth("two", "two", Some(right.as_fd())).expect("a pair");
        });
        router.run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            netlink.add_veth("right", "one", Some(right.as_fd())).expect("a pair");
        });
        let address = |net, host| outer(version, net, host);
        for (host, interface, net, number) in [
            (&left, "one", 0, 1),
            (&router, "left", 0, 9),
            (&router, "right", 1, 9),
            (&right, "one", 1, 2),
            (&left, "two", 2, 1),
            (&right, "two", 2, 2),
        ] {
            host.run(|| set_up(interface, address(net, number)));
        }
        left.run(|| add_route("one", address(1, 0), address(0, 9)));
        right.run(|| add_route("one", address(0, 0), address(1, 9)));
        router.run(|| forward(version));
        for (host, interface) in [
            (&left, "one"),
            (&left, "two"),
            (&right, "one"),
            (&right, "two"),
            (&router, "left"),
            (&router, "right"),
        ] {
            host.run(|| await_running(interface));
        }
        let start = |host: &Namespace, own: u8, outer: [[IpAddr; 2]; 2]| {
            let config = config(own, outer);
            let name = if own == 1 { "left" } else { "right" };
            Daemon::start_in(host, &[], name, &config, &daemon())
                .unwrap_or_else(|error| panic!("{error:#}"))
        };
        let [there, beside] = [[address(0, 1), address(1, 2)], [address(2, 1), address(2, 2)]];
        let back = |[a, b]: [IpAddr; 2]| [b, a];
        let daemons =
            [start(&left, 1, [there, beside]), start(&right, 2, [back(there), back(beside)])];
        let routed = Self { daemons, hosts: [left, right], router };
        for side in [Side::Left, Side::Right] {
            eventually("both paths are up", || {
                let paths = routed.status(side).tunnels.remove(0).connections.remove(0).paths;
                paths.iter().all(|path| path.state == "up")
            });
        }
        routed
    }

    pub(crate) fn status(&self, side: Side) -> Status {
        let [left, right] = &self.daemons;
        let daemon = if side == Side::Left { left } else { right };
        daemon.status().unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Makes the link behind the router narrower. The router tells those who send too much.
    pub(crate) fn narrow(&self, mtu: u32) {
        self.router.run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            let link = netlink.link("right").expect("an answer").expect("an interface");
            netlink.set_mtu(link.index, mtu).expect("another MTU");
        });
    }

    /// A TCP flow through the tunnel, from left to right.
    pub(crate) fn flow(&self) -> tcp::Flow {
        let [left, right] = &self.hosts;
        let sink = right
            .run(|| tcp::Sink::listen(tcp::Transport::Tcp, inner(Side::Right, 4), None))
            .expect("a sink");
        let remote = sink.address();
        let source = left
            .run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"))
            .expect("a source");
        tcp::Flow::start(sink, source, Duration::from_secs(60)).expect("a flow")
    }
}

fn outer(version: u8, net: u8, host: u8) -> IpAddr {
    match version {
        4 => IpAddr::from([10, 1, net, host]),
        _ => IpAddr::from([0xfd01, net.into(), 0, 0, 0, 0, 0, host.into()]),
    }
}

fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

pub(crate) fn set_up(interface: &str, address: IpAddr) {
    let mut netlink = Netlink::open().expect("a netlink socket");
    let index = netlink.link(interface).expect("an answer").expect("an interface").index;
    netlink.disable_address_generation(index).expect("no address of its own");
    netlink.set_up(index, true).expect("an interface that is up");
    netlink.add_address(index, address, prefix(address)).expect("an address");
}

fn add_route(interface: &str, network: IpAddr, router: IpAddr) {
    let mut netlink = Netlink::open().expect("a netlink socket");
    let index = netlink.link(interface).expect("an answer").expect("an interface").index;
    netlink.add_route((network, prefix(network)), index, Some(router)).expect("a route");
}

/// Makes a router of the host that the calling thread is in.
fn forward(version: u8) {
    let file = match version {
        4 => "/proc/sys/net/ipv4/ip_forward",
        _ => "/proc/sys/net/ipv6/conf/all/forwarding",
    };
    fs::write(file, "1").expect("a router");
}

/// Until the kernel has noticed that both ends are on, it drops what is sent.
pub(crate) fn await_running(interface: &str) {
    let mut netlink = Netlink::open().expect("a netlink socket");
    eventually("the interface comes up", || {
        netlink.link(interface).expect("an answer").expect("an interface").running
    });
}

/// The configuration of a host with these local and remote addresses.
fn config(own: u8, paths: [[IpAddr; 2]; 2]) -> String {
    let peer = 3 - own;
    let mut config = format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.{own}/24', 'fd00:9::{own}/64']\n\
         [[tunnel.connection]]\nname = 'peer'\npeer = ['10.9.0.{peer}', 'fd00:9::{peer}']\n\
         framing = 'plain'\n"
    );
    for (name, [local, remote]) in ["one", "two"].iter().zip(paths) {
        config.push_str(&format!(
            "[[tunnel.connection.path]]\nname = '{name}'\nlocal = '{local}'\nremote = '{remote}'\n{QUICK}"
        ));
    }
    config
}
