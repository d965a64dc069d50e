//! Packets that are too big for the tunnel, from a host behind it and from the tunnel's own.
//!
//! ```text
//! site ----- left ===== right
//! ```

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use mpt_control::{DeviceCounters, TunnelStatus};
use mpt_io::netlink::Netlink;
use mpt_io::udp::route_mtu;
use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use mpt_lab::traffic::tcp;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::TcpMaxSeg};
use nix::unistd::Pid;

use crate::site::{PATIENCE, Site, TWO_LINKS, change_interface, eventually, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("an_interface_has_the_mtu_of_the_paths_and_keeps_it_without_any", interface),
    ("a_host_behind_learns_that_the_tunnel_narrows_and_its_tcp_goes_on", || narrows("")),
    ("a_host_behind_is_told_by_the_tunnel_itself_where_the_paths_carry_less", || {
        narrows("mtu = 1500\n");
    }),
    ("one_packet_too_many_is_enough_to_learn_the_mtu", one_packet),
    ("a_packet_that_may_be_fragmented_is_dropped_without_an_answer", fragmentable),
    ("tcp_agrees_on_segments_that_fit_before_anybody_has_to_be_told", clamped),
    ("clamping_begins_and_ends_with_a_reload", reloaded),
];

/// What the links leave, and what is left when one has 1400.
const MTU: u32 = 1464;
const NARROW: u32 = 1364;

/// Longer than any of these tests takes; a flow that is dropped ends.
const LONG: Duration = Duration::from_secs(60);

/// Bytes by which a flow counts as running.
const PROGRESS: u64 = 1 << 20;

/// A site and a host behind its left end.
struct Behind {
    site: Site,
    host: Namespace,
}

impl Behind {
    /// Further lines of the left tunnel and of the right one.
    fn start(left: &str, right: &str) -> Self {
        let site = Site::start_with(TWO_LINKS, "", |side, config| match side {
            Side::Left => with(left, &config),
            Side::Right => {
                let behind = "networks = ['10.20.0.0/24', 'fd00:20::/64']\n";
                let config = with(right, &config);
                config.replace(
                    "[[tunnel.connection.path]]\nname = 'one'",
                    &format!("{behind}[[tunnel.connection.path]]\nname = 'one'"),
                )
            }
        });
        let host = Namespace::new().unwrap_or_else(|error| panic!("{error:#}"));
        let gateway = site.lab.left();
        gateway.run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            netlink.add_veth("site", "up", Some(host.as_fd())).expect("a pair");
            set_up(&mut netlink, "site", 1);
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a router");
            fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("a router");
        });
        host.run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            let index = set_up(&mut netlink, "up", 2);
            for version in [4, 6] {
                let tunnel = (inner(Side::Right, version), 32 * if version == 4 { 1 } else { 4 });
                let gateway = Some(behind(version, 1));
                netlink.add_route(tunnel, index, gateway).expect("a route");
            }
            eventually("the interface comes up", || {
                netlink.link("up").expect("an answer").expect("an interface").running
            });
        });
        Self { site, host }
    }

    fn tunnel(&self, side: Side) -> TunnelStatus {
        self.site.status(side).tunnels.remove(0)
    }

    fn counters(&self) -> (u64, DeviceCounters) {
        let tunnel = self.tunnel(Side::Left);
        (tunnel.drops.get("inner_too_big").copied().unwrap_or_default(), tunnel.device)
    }

    /// What the host behind believes to get through to the right one.
    fn learned(&self, version: u8) -> u32 {
        self.host.run(|| learned(version))
    }

    fn flow(&self) -> tcp::Flow {
        let right = self.site.lab.right();
        let sink =
            right.run(|| tcp::Sink::listen(tcp::Transport::Tcp, inner(Side::Right, 4), None));
        let sink = sink.expect("a sink");
        let remote = sink.address();
        let connect = || tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic");
        let source = self.host.run(connect).expect("a source");
        tcp::Flow::start(sink, source, LONG).expect("a flow")
    }

    /// Has the first link carry less, from left to right.
    fn narrow(&self) {
        change_interface(self.site.lab.left(), "one", |netlink, index| {
            netlink.set_mtu(index, 1400)
        });
    }
}

/// A configuration with further lines of its tunnel.
fn with(lines: &str, config: &str) -> String {
    config.replace("[[tunnel]]\n", &format!("[[tunnel]]\n{lines}"))
}

/// A host of the network behind the left one.
fn behind(version: u8, host: u8) -> IpAddr {
    match version {
        4 => IpAddr::from([10, 20, 0, host]),
        _ => IpAddr::from([0xfd00, 0x20, 0, 0, 0, 0, 0, u16::from(host)]),
    }
}

fn set_up(netlink: &mut Netlink, name: &str, host: u8) -> u32 {
    let index = netlink.link(name).expect("an answer").expect("an interface").index;
    netlink.set_up(index, true).expect("an interface that is up");
    netlink.add_address(index, behind(4, host), 24).expect("an address");
    netlink.add_address(index, behind(6, host), 64).expect("an address");
    index
}

fn learned(version: u8) -> u32 {
    let right = SocketAddr::new(inner(Side::Right, version), 9);
    route_mtu(None, None, None, right).expect("a route")
}

fn interface() {
    let mtu = |site: &Site| {
        let link = site.lab.left().run(|| Netlink::open().and_then(|mut link| link.link("mpt0")));
        link.expect("an answer").expect("an interface").mtu
    };
    // The least there can be.
    let site = Site::start("[[link]]\nname = 'one'\nmtu = 1316\n", "");
    assert_eq!(mtu(&site), 1280);
    drop(site);

    let site = Site::start(TWO_LINKS, "");
    assert_eq!(mtu(&site), MTU);
    for name in ["one", "two"] {
        change_interface(site.lab.left(), name, |netlink, index| netlink.set_up(index, false));
    }
    eventually("no path is left", || site.connection(Side::Left).paths.iter().all(|p| !p.carrier));
    assert_eq!((mtu(&site), site.status(Side::Left).tunnels[0].mtu), (MTU, u64::from(MTU)));
}

fn narrows(setting: &str) {
    // The right end announces what its interface takes, so the left one is not spared to find out.
    let lab = Behind::start(setting, "mtu = 1500\n");
    let fixed = !setting.is_empty();
    assert_eq!(lab.tunnel(Side::Left).mtu, if fixed { 1500 } else { u64::from(MTU) });
    assert_eq!(lab.learned(4), 1500);
    let flow = lab.flow();
    goes_on(&flow);
    assert_eq!(lab.learned(4), MTU);
    lab.narrow();
    eventually("the host behind learns it", || lab.learned(4) == NARROW);
    goes_on(&flow);
    drop(flow);
    let (dropped, device) = lab.counters();
    if fixed {
        // There is no other ICMP message: the interface would have accepted them all.
        assert_eq!(lab.tunnel(Side::Left).mtu, 1500);
        assert!(device.too_big_answers >= 2 && dropped >= device.too_big_answers, "{device:?}");
    } else {
        assert_eq!(lab.tunnel(Side::Left).mtu, u64::from(NARROW));
    }
}

fn one_packet() {
    let lab = Behind::start("mtu = 1500\n", "");
    for version in [4, 6] {
        let source = lab.host.run(|| connected(version));
        source.send(&[0; 1500 - 48]).expect("room in the socket");
        eventually("the host behind learns the MTU", || lab.learned(version) == MTU);
        let left = lab.site.lab.left();
        let source = left.run(|| connected(version));
        source.send(&[0; 1500 - 48]).expect("room in the socket");
        eventually("so does the tunnel's own host", || left.run(|| learned(version)) == MTU);
    }
    let (dropped, device) = lab.counters();
    assert_eq!((dropped, device.too_big_answers), (4, 4));
    // What fits exactly gets through.
    let sink = lab.site.lab.right().run(|| UdpSocket::bind((inner(Side::Right, 4), 9)));
    let sink = sink.expect("a socket");
    sink.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let source = lab.host.run(|| connected(4));
    source.send(&[7; MTU as usize - 28]).expect("room in the socket");
    assert_eq!(sink.recv(&mut [0; 2000]).expect("a datagram"), MTU as usize - 28);
    assert_eq!(lab.counters().0, 4);
}

fn connected(version: u8) -> UdpSocket {
    let any: IpAddr = if version == 4 { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0)).expect("a socket");
    socket.connect((inner(Side::Right, version), 9)).expect("a route");
    socket
}

fn fragmentable() {
    let lab = Behind::start("mtu = 1500\n", "");
    // Don't fragment is set by nobody but path MTU discovery (ip(7)).
    lab.host.run(|| fs::write("/proc/sys/net/ipv4/ip_no_pmtu_disc", "1")).expect("no discovery");
    let source = lab.host.run(|| connected(4));
    source.send(&[0; 1500 - 28]).expect("room in the socket");
    eventually("it is dropped", || lab.counters().0 == 1);
    assert_eq!(lab.counters().1.too_big_answers, 0);
    assert_eq!(lab.learned(4), 1500);
}

fn clamped() {
    // Either interface takes anything, so only what TCP agrees on keeps packets small.
    let lab = Behind::start("mtu = 1500\nclamp_mss = true\n", "mtu = 1500\n");
    for (version, headers) in [(4, 40), (6, 60)] {
        let own = agreed_by(&lab, version, Sender::Left);
        let behind = agreed_by(&lab, version, Sender::Behind);
        assert_eq!([own, behind], [[MTU - headers; 2]; 2], "{version}");
    }
    assert_eq!(lab.counters().1.clamped_mss, 8, "each of four connections has two announcements");
    let flow = lab.flow();
    goes_on(&flow);
    lab.narrow();
    eventually("what may be announced follows the MTU", || {
        agreed_by(&lab, 4, Sender::Behind) == [NARROW - 40; 2]
    });
    drop(flow);
    assert_eq!(lab.tunnel(Side::Right).device.clamped_mss, 0, "nobody asked for it there");
}

fn reloaded() {
    let mut lab = Behind::start("mtu = 1500\n", "mtu = 1500\n");
    assert_eq!(agreed_by(&lab, 4, Sender::Behind), [1460; 2]);
    for (lines, agreed) in [("mtu = 1500\nclamp_mss = true\n", MTU - 40), ("mtu = 1500\n", 1460)] {
        reload(&mut lab.site, lines);
        eventually("TCP agrees otherwise", || agreed_by(&lab, 4, Sender::Behind) == [agreed; 2]);
    }
    assert_eq!(lab.tunnel(Side::Right).device.clamped_mss, 0, "nobody asked for it there");
}

fn reload(site: &mut Site, lines: &str) {
    let daemon = site.daemon(Side::Left);
    let socket = daemon.socket();
    let config = with(lines, &site.config(Side::Left));
    let config = format!("[control]\nsocket = '{}'\n\n{config}", socket.display());
    fs::write(socket.with_file_name("mpt.toml"), config).expect("another configuration");
    kill(Pid::from_raw(daemon.pid() as i32), Signal::SIGHUP).expect("a daemon");
}

#[derive(Clone, Copy, PartialEq)]
enum Sender {
    Behind,
    Left,
}

/// How large the segments are that the two ends of a connection to the right host may send, as told to
/// each by the other. Some bytes pass in either direction first.
fn agreed_by(lab: &Behind, version: u8, sender: Sender) -> [u32; 2] {
    let right = lab.site.lab.right();
    let listener = right.run(|| TcpListener::bind((inner(Side::Right, version), 0)));
    let listener = listener.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let connect = || TcpStream::connect_timeout(&address, PATIENCE);
    let near = match sender {
        Sender::Behind => lab.host.run(connect),
        Sender::Left => lab.site.lab.left().run(connect),
    };
    let mut near = near.expect("a connection");
    let (mut far, _) = listener.accept().expect("a connection");
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    }
    near.write_all(b"so").expect("room in the socket");
    far.read_exact(&mut [0; 2]).expect("some bytes");
    far.write_all(b"yes").expect("room in the socket");
    near.read_exact(&mut [0; 3]).expect("some bytes");
    [&near, &far].map(announced_to)
}

/// The size of segments that a socket sends, with the timestamps that all of them carry.
fn announced_to(stream: &TcpStream) -> u32 {
    const TIMESTAMPS: u32 = 12;
    getsockopt(stream, TcpMaxSeg).expect("a size") + TIMESTAMPS
}

/// Waits until a flow has got further.
fn goes_on(flow: &tcp::Flow) {
    let before = flow.received();
    eventually("the flow goes on", || flow.received() > before + PROGRESS);
}
