//! A client with two uplinks and a server with one address, as in the guide, and a host behind each.
//!
//! ```text
//!                 eth0  192.0.2.10   -- fibre --+
//! desk --- client                               internet -- 203.0.113.5 eth0 server --- store
//!                 wwan0 198.51.100.7 -- lte ----+
//! ```
//!
//! All are hosts of the kernel's own, joined by cables that can be cut out at either end.

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd as _;

use mpt_control::{Client, PathState, Reply, Request, TunnelStatus};
use mpt_io::netlink::{Netlink, Route};
use mpt_lab::daemon::Daemon;
use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use mpt_lab::traffic::{ping, udp};

use crate::site::{
    SHORT, assert_flawless_between, daemon, eventually, eventually_or, threads_line,
};

/// Keepalives that are so rare, and a dead time so long, that what these tests wait for must come from
/// something else.
pub(crate) const RARE: &str = "keepalive = 60\ndead_time = 200\n";

/// The server's address.
pub(crate) const SERVER: &str = "203.0.113.5";

/// The client's address on each uplink.
pub(crate) const FIBRE: &str = "192.0.2.10";
pub(crate) const LTE: &str = "198.51.100.7";

/// The hosts behind client and server.
pub(crate) const DESK: &str = "10.1.0.2";
pub(crate) const STORE: &str = "10.2.0.2";

/// The hosts, and the daemons that run on two of them.
pub(crate) struct Uplinks {
    // Daemons go first.
    pub(crate) on_client: Option<Daemon>,
    pub(crate) on_server: Option<Daemon>,
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) internet: Namespace,
    pub(crate) desk: Namespace,
    pub(crate) store: Namespace,
}

impl Uplinks {
    /// The hosts, with both uplinks.
    pub(crate) fn new() -> Self {
        let uplinks = Self::without_uplinks();
        uplinks.plug_fibre();
        uplinks.plug_lte(LTE);
        uplinks
    }

    /// The hosts, none of which the client can reach.
    pub(crate) fn without_uplinks() -> Self {
        let host = || Namespace::new().unwrap_or_else(|error| panic!("{error:#}"));
        let [client, server, internet, desk, store] = [(); 5].map(|()| host());
        for host in [&client, &server, &internet, &desk, &store] {
            host.run(|| switch("lo", true));
        }
        internet.run(|| forward(true));
        join(&server, "eth0", SERVER, &internet, "server", "203.0.113.1");
        server.run(|| add_default("eth0", "203.0.113.1", None));
        join(&client, "lan", "10.1.0.1", &desk, "eth0", DESK);
        join(&server, "lan", "10.2.0.1", &store, "eth0", STORE);
        desk.run(|| add_default("eth0", "10.1.0.1", None));
        store.run(|| add_default("eth0", "10.2.0.1", None));
        Self { on_client: None, on_server: None, client, server, internet, desk, store }
    }

    /// Gives the client its first uplink, which its default route takes.
    pub(crate) fn plug_fibre(&self) {
        join(&self.client, "eth0", FIBRE, &self.internet, "fibre", "192.0.2.1");
        self.client.run(|| add_default("eth0", "192.0.2.1", Some(100)));
    }

    /// Gives the client its second uplink, with that address.
    pub(crate) fn plug_lte(&self, address: &str) {
        join(&self.client, "wwan0", address, &self.internet, "lte", "198.51.100.1");
        self.client.run(|| add_default("wwan0", "198.51.100.1", Some(200)));
    }

    /// Starts both daemons of the guide. `connection` are further lines of the client's connection and
    /// of the server's, `path` of every path.
    pub(crate) fn start(&mut self, connection: [&str; 2], path: &str) {
        self.start_server(&server_config(connection[1], path));
        self.start_client(&client_config(connection[0], path));
    }

    pub(crate) fn start_client(&mut self, config: &str) {
        self.on_client = Some(start(&self.client, "client", config));
    }

    pub(crate) fn start_server(&mut self, config: &str) {
        self.on_server = Some(start(&self.server, "server", config));
    }

    /// The daemon on the client, which is on the left, or on the server.
    pub(crate) fn daemon(&self, side: Side) -> &Daemon {
        let daemon = if side == Side::Left { &self.on_client } else { &self.on_server };
        daemon.as_ref().expect("a daemon")
    }

    pub(crate) fn tunnel(&self, side: Side) -> TunnelStatus {
        let status = self.daemon(side).status().unwrap_or_else(|error| panic!("{error:#}"));
        status.tunnels.into_iter().next().expect("a tunnel")
    }

    pub(crate) fn path(&self, side: Side, name: &str) -> PathState {
        let paths = self.tunnel(side).connections.remove(0).paths;
        paths.into_iter().find(|path| path.name == name).expect("a path")
    }

    /// Waits until a path is in that state.
    pub(crate) fn await_state(&self, side: Side, name: &str, state: &str) {
        let mut last = None;
        let reached = eventually_or(|| {
            let path = self.path(side, name);
            let reached = path.state == state;
            last = Some(path);
            reached
        });
        let log =
            || [&self.on_client, &self.on_server].map(|daemon| daemon.as_ref().map(Daemon::log));
        assert!(reached, "{side:?}: path {name} is not {state}: {last:?}, logs: {:#?}", log());
    }

    /// Waits until a path is in that state at both ends.
    pub(crate) fn await_both(&self, name: &str, state: &str) {
        for side in [Side::Left, Side::Right] {
            self.await_state(side, name, state);
        }
    }

    /// Waits until a path of the client is down for a reason with these words.
    pub(crate) fn await_cause(&self, name: &str, words: &str) {
        eventually(&format!("path {name} is down because {words}"), || {
            let path = self.path(Side::Left, name);
            path.state == "down" && path.cause.is_some_and(|cause| cause.contains(words))
        });
    }

    /// Asserts that packets from client to server arrive once and in order.
    pub(crate) fn assert_flawless(&self) {
        let daemons = [self.daemon(Side::Left), self.daemon(Side::Right)];
        assert_flawless_between(daemons, || stream(&self.client, &self.server, "10.9.0.2"));
    }

    /// Makes a daemon read another file in place of its own.
    pub(crate) fn reload(&self, side: Side, config: &str) -> Reply {
        let socket = self.daemon(side).socket();
        let file = socket.with_file_name("mpt.toml");
        let text = format!("[control]\nsocket = '{}'\n\n{config}", socket.display());
        fs::write(file, text).expect("a file");
        let mut client = Client::connect(&socket).expect("a daemon");
        client.request(&Request::Reload {}).expect("an answer")
    }
}

/// The client's file in the guide.
pub(crate) fn client_config(connection: &str, path: &str) -> String {
    let mut config = tunnel(1, connection);
    for (name, interface) in [("fibre", "eth0"), ("lte", "wwan0")] {
        config.push_str(&format!(
            "[[tunnel.connection.path]]\nname = '{name}'\ninterface = '{interface}'\n\
             remote = '{SERVER}'\n{path}"
        ));
    }
    config
}

/// The server's file in the guide.
pub(crate) fn server_config(connection: &str, path: &str) -> String {
    let mut config = tunnel(2, connection);
    for (name, remote) in [("fibre", FIBRE), ("lte", LTE)] {
        config.push_str(&server_path(name, remote, path));
    }
    config
}

/// One more path of the server.
pub(crate) fn server_path(name: &str, remote: &str, path: &str) -> String {
    format!(
        "[[tunnel.connection.path]]\nname = '{name}'\nlocal = '{SERVER}'\nremote = '{remote}'\n{path}"
    )
}

/// The beginning of a host's file, with its connection.
pub(crate) fn tunnel(own: u8, connection: &str) -> String {
    let peer = 3 - own;
    let framing = if connection.contains("framing") { "" } else { "framing = 'plain'\n" };
    format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.{own}/24', 'fd00:9::{own}/64']\n{}\
         [[tunnel.connection]]\nname = 'peer'\npeer = ['10.9.0.{peer}', 'fd00:9::{peer}']\n\
         reorder = {{ max_delay = 1 }}\n{framing}{connection}\n",
        threads_line()
    )
}

fn start(host: &Namespace, name: &str, config: &str) -> Daemon {
    Daemon::start_in(host, &[], name, config, &daemon()).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Packets from one host to an address of another.
pub(crate) fn stream(from: &Namespace, to: &Namespace, address: &str) -> udp::Stream {
    let sink = to.run(|| udp::Sink::bind(ip(address))).expect("a sink");
    let source = from.run(|| udp::Source::connect(sink.address())).expect("a source");
    udp::Stream::start(sink, source, SHORT).expect("a stream")
}

/// How many of five echo requests are not answered.
pub(crate) fn unanswered(from: &Namespace, address: &str) -> u32 {
    let source = from.run(|| ping::Source::connect(ip(address))).expect("a raw socket");
    let options = ping::Options { count: 5, interval: std::time::Duration::from_millis(10) };
    let report = ping::Ping::start(source, options).and_then(ping::Ping::finish).expect("a report");
    report.lost
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// Lays a cable between two hosts and gives both ends their addresses.
pub(crate) fn join(
    one: &Namespace,
    name: &str,
    address: &str,
    other: &Namespace,
    far: &str,
    far_address: &str,
) {
    one.run(|| netlink().add_veth(name, far, Some(other.as_fd())).expect("a pair"));
    for (host, name, address) in [(one, name, address), (other, far, far_address)] {
        host.run(|| {
            let index = index(name);
            netlink().disable_address_generation(index).expect("no address of its own");
            add_address(name, address);
            netlink().set_up(index, true).expect("an interface that is up");
        });
    }
    // Until the kernel has noticed that both ends are on, it drops what is sent.
    for (host, name) in [(one, name), (other, far)] {
        host.run(|| {
            eventually("the interface comes up", || {
                netlink().link(name).expect("an answer").expect("an interface").running
            });
        });
    }
}

/// A conversation with the kernel about the calling thread's network.
pub(crate) fn netlink() -> Netlink {
    Netlink::open().expect("a netlink socket")
}

/// The number of an interface of the host that the calling thread is in.
pub(crate) fn index(name: &str) -> u32 {
    netlink().link(name).expect("an answer").expect("an interface").index
}

pub(crate) fn remove(name: &str) {
    netlink().remove_link(index(name)).expect("it is gone");
}

pub(crate) fn switch(name: &str, on: bool) {
    netlink().set_up(index(name), on).expect("it is switched");
}

pub(crate) fn add_address(name: &str, address: &str) {
    let address = ip(address);
    netlink().add_address(index(name), address, prefix(address)).expect("an address");
}

pub(crate) fn remove_address(name: &str, address: &str) {
    let address = ip(address);
    netlink().remove_address(index(name), address, prefix(address)).expect("it is gone");
}

/// The default route through an interface.
pub(crate) fn default_route(name: &str, router: &str, metric: Option<u32>) -> Route {
    let router = ip(router);
    let any = if router.is_ipv4() { ip("0.0.0.0") } else { ip("::") };
    Route { metric, ..Route::new((any, 0), index(name), Some(router)) }
}

pub(crate) fn add_default(name: &str, router: &str, metric: Option<u32>) {
    netlink().add_route_in(&default_route(name, router, metric)).expect("a route");
}

/// Has the calling thread's host forward packets of others, or not.
pub(crate) fn forward(on: bool) {
    for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let value = if on { "1" } else { "0" };
        fs::write(format!("/proc/sys/net/{file}"), value).expect("a setting");
    }
}
