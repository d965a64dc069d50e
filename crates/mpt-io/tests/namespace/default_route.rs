//! A default route through a tunnel, with a real kernel that routes real datagrams.
//!
//! ```text
//!                   /-- uplink: 192.0.2.1/24, 2001:db8::1/64, the default route of the main table
//!  a host with two <
//!   TUN devices     \-- mpt0: 10.9.0.1/24, fd00:9::1/64, the default route of another table
//! ```

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use mpt_io::netlink::{Error, IpVersion, Netlink, Route, Rule, Selector};
use mpt_io::poll::{Events, Interest, Poll};
use mpt_io::tun::{Burst, Coalescer, Device, Offloads, OpenError, Options};
use mpt_io::udp::{self, Receive, ReceiveOptions, SendBatch, Socket};

use crate::tun::{next_udp, turn};
use crate::world::{PATIENCE, eventually, readable};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[
    ("default_route::it_takes_everything_but_the_tunnel_itself", detour),
    ("default_route::answers_come_back_unless_the_filter_is_strict", answers),
    ("default_route::rules_outlive_their_interface_and_are_found", leftovers),
    ("default_route::routes_of_a_table_are_told_apart_by_metric", metrics),
    ("default_route::rules_come_and_go", rules),
];

/// What the outer datagrams carry, and the table that the others are looked up in. Larger than what
/// fits the header of a message.
const MARK: u32 = 0xdead_4754;
const TABLE: u32 = 475_400;
const PRIORITY: u32 = 4754;

/// Addresses of one version of IP.
struct Plan {
    version: IpVersion,
    uplink: (&'static str, u8),
    tunnel: (&'static str, u8),
    default: (&'static str, u8),
    /// A network that the main table has a route to, through the uplink.
    specific: (&'static str, u8),
    in_specific: &'static str,
    beside_tunnel: &'static str,
    far: &'static str,
}

const PLANS: [Plan; 2] = [
    Plan {
        version: IpVersion::V4,
        uplink: ("192.0.2.1", 24),
        tunnel: ("10.9.0.1", 24),
        default: ("0.0.0.0", 0),
        specific: ("198.51.100.0", 24),
        in_specific: "198.51.100.9",
        beside_tunnel: "10.9.0.2",
        far: "203.0.113.9",
    },
    Plan {
        version: IpVersion::V6,
        uplink: ("2001:db8::1", 64),
        tunnel: ("fd00:9::1", 64),
        default: ("::", 0),
        specific: ("2001:db8:5::", 48),
        in_specific: "2001:db8:5::9",
        beside_tunnel: "fd00:9::2",
        far: "2001:db8:9::9",
    },
];

impl Plan {
    /// The default route through the tunnel.
    fn route(&self, tunnel: &Device) -> Route {
        Route { table: TABLE, ..Route::new(network(self.default), tunnel.index(), None) }
    }

    fn rules(&self) -> [Rule; 2] {
        Rule::default_route(self.version, PRIORITY, MARK, TABLE)
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn network((address, prefix): (&str, u8)) -> (IpAddr, u8) {
    (ip(address), prefix)
}

struct Host {
    netlink: Netlink,
    uplink: Device,
    tunnel: Device,
    sent: u32,
}

impl Host {
    fn new() -> Result<Self, Skip> {
        let mut netlink = Netlink::open().unwrap();
        let uplink = device("uplink")?;
        let tunnel = device("mpt0")?;
        for (device, addresses) in
            [(&uplink, PLANS.map(|plan| plan.uplink)), (&tunnel, PLANS.map(|plan| plan.tunnel))]
        {
            let index = device.index();
            netlink.disable_address_generation(index).unwrap();
            netlink.set_up(index, true).unwrap();
            for (address, prefix) in addresses {
                netlink.add_address(index, ip(address), prefix).unwrap();
                assert!(netlink.wait_for_address(ip(address), PATIENCE).unwrap());
            }
        }
        for plan in PLANS {
            netlink.add_route(network(plan.default), uplink.index(), None).unwrap();
            netlink.add_route(network(plan.specific), uplink.index(), None).unwrap();
        }
        Ok(Self { netlink, uplink, tunnel, sent: 0 })
    }

    /// Sends a datagram to `remote` and says through which interface it leaves.
    fn way(&mut self, remote: &str, mark: Option<u32>) -> String {
        let remote = SocketAddr::new(ip(remote), 4754);
        self.sent += 1;
        let payload = format!("datagram {}", self.sent);
        let any = if remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        if mark.is_some() {
            let options = udp::Options { mark, ..udp::Options::new(any.parse().unwrap()) };
            let socket = Socket::open(&options).unwrap();
            let mut send_batch = SendBatch::new(remote, None);
            send_batch.reserve(payload.len()).unwrap().copy_from_slice(payload.as_bytes());
            send_batch.commit();
            assert_eq!(socket.send(&mut send_batch).datagrams, 1);
        } else {
            UdpSocket::bind(any).unwrap().send_to(payload.as_bytes(), remote).unwrap();
        }
        let name = self.next_with(payload.as_bytes());

        let index = mpt_io::interface::index(&name).unwrap();
        let asked = match mark {
            Some(mark) => self.netlink.marked_way_to(remote.ip(), mark),
            None => self.netlink.way_to(remote.ip()),
        };
        assert_eq!(asked.unwrap().unwrap().index, index, "what the kernel says is what it does");
        name
    }

    /// The interface that a packet with this payload comes out of.
    fn next_with(&self, payload: &[u8]) -> String {
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(2));
        let (devices, mut burst) = ([&self.uplink, &self.tunnel], Burst::new());
        for device in devices {
            poll.add(device, 0, Interest::READABLE).unwrap();
        }
        loop {
            assert_ne!(poll.wait(&mut events, Some(PATIENCE)).unwrap(), 0, "nothing came");
            for device in devices {
                while let Some(mut packets) = device.read(&mut burst).unwrap() {
                    // IPv6 sends other packets by itself.
                    while let Some(packet) = packets.next_packet() {
                        if packet.ends_with(payload) {
                            return device.name().to_owned();
                        }
                    }
                }
            }
        }
    }
}

fn device(name: &str) -> Result<Device, Skip> {
    let options = Options { name: name.into(), queue_len: None, offloads: Offloads::ALL };
    Device::open(&options).map_err(|error| {
        let absent =
            matches!(error, OpenError::NodeMissing { .. } | OpenError::NodePermission { .. });
        assert!(absent, "{error}");
        Skip(error.to_string())
    })
}

fn detour() -> Outcome {
    let mut host = Host::new()?;
    for plan in PLANS {
        let (route, rules) = (plan.route(&host.tunnel), plan.rules());
        assert_eq!(host.way(plan.far, None), "uplink", "as before there was a tunnel");

        host.netlink.add_route_in(&route).unwrap();
        assert_eq!(host.way(plan.far, None), "uplink", "no rule leads to the table yet");
        for rule in &rules {
            host.netlink.add_rule(rule).unwrap();
        }
        assert_eq!(host.way(plan.far, None), "mpt0");
        assert_eq!(host.way(plan.far, Some(MARK)), "uplink", "the tunnel's own datagrams");
        assert_eq!(host.way(plan.far, Some(MARK ^ 1)), "mpt0", "somebody else's mark");
        assert_eq!(host.way(plan.in_specific, None), "uplink", "a route of the main table");
        assert_eq!(host.way(plan.in_specific, Some(MARK)), "uplink");
        assert_eq!(host.way(plan.beside_tunnel, None), "mpt0");

        for rule in &rules {
            host.netlink.remove_rule(rule).unwrap();
        }
        host.netlink.remove_route_in(&route).unwrap();
        assert_eq!(host.way(plan.far, None), "uplink", "as before");
        let again = host.netlink.remove_route_in(&route);
        assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
        assert_eq!(host.netlink.rules().unwrap(), []);
    }
    Ok(())
}

fn answers() -> Outcome {
    let mut host = Host::new()?;
    let [plan, _] = PLANS; // only IPv4 has such a filter
    host.netlink.add_route_in(&plan.route(&host.tunnel)).unwrap();
    for rule in plan.rules() {
        host.netlink.add_rule(&rule).unwrap();
    }
    let options =
        udp::Options { mark: Some(MARK), ..udp::Options::new("0.0.0.0:0".parse().unwrap()) };
    let socket = Socket::open(&options).unwrap();
    let answer = || {
        let mut send_batch = SendBatch::new(SocketAddr::new(ip(plan.far), 4754), None);
        send_batch.reserve(7).unwrap().copy_from_slice(b"is this");
        send_batch.commit();
        assert_eq!(socket.send(&mut send_batch).datagrams, 1);
        let mut packet = next_udp(&host.uplink, &mut Burst::new());
        turn(&mut packet);
        let mut coalescer = Coalescer::new();
        coalescer.push(&host.uplink, &packet);
        coalescer.flush(&host.uplink);
    };
    let filter = |value| fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", value);
    const LOOSE: &str = "2";
    const STRICT: &str = "1";
    filter(LOOSE).map_err(|error| Skip(format!("no filter can be set: {error}")))?;
    answer();
    readable(&socket);
    assert_eq!(socket.receive(&mut Receive::new(&ReceiveOptions::default())).unwrap(), 1);

    // The way back to the peer is looked up without the mark, and so leads into the tunnel.
    fs::write("/proc/sys/net/ipv4/conf/uplink/rp_filter", "0").unwrap();
    filter(STRICT).unwrap();
    let before = filtered();
    answer();
    eventually("a strict filter drops the answer", || filtered() == before + 1);
    let specific = (ip(plan.far), 32);
    host.netlink.add_route(specific, host.uplink.index(), None).unwrap();
    answer();
    readable(&socket);
    Ok(())
}

/// Packets that reverse path filtering has dropped.
fn filtered() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut fields = || lines.next().unwrap().split_whitespace();
    let (names, values) = (fields(), fields());
    let (_, value) = names.zip(values).find(|(name, _)| *name == "IPReversePathFilter").unwrap();
    value.parse().unwrap()
}

fn leftovers() -> Outcome {
    let mut host = Host::new()?;
    for plan in PLANS {
        host.netlink.add_route_in(&plan.route(&host.tunnel)).unwrap();
        for rule in plan.rules() {
            host.netlink.add_rule(&rule).unwrap();
        }
        assert_eq!(host.way(plan.far, None), "mpt0");
    }
    // A process that is killed: its interface goes with the routes, its rules stay.
    host.tunnel = device("mpt1")?;
    for plan in PLANS {
        assert_eq!(host.way(plan.far, None), "uplink");
    }
    let left = host.netlink.rules().unwrap();
    assert_eq!(left, PLANS.map(|plan| plan.rules()).concat());
    for rule in &left {
        host.netlink.remove_rule(rule).unwrap();
    }
    assert_eq!(host.netlink.rules().unwrap(), []);
    Ok(())
}

fn metrics() -> Outcome {
    let mut host = Host::new()?;
    for plan in PLANS {
        let [all, _] = plan.rules();
        let rule = Rule { table: TABLE, suppress_prefix_len: None, ..all };
        host.netlink.add_rule(&rule).unwrap();
        let tunnel = Route { metric: Some(10), ..plan.route(&host.tunnel) };
        let uplink = Route { index: host.uplink.index(), metric: Some(20), ..tunnel };
        host.netlink.add_route_in(&uplink).unwrap();
        assert_eq!(host.way(plan.far, None), "uplink");
        host.netlink.add_route_in(&tunnel).unwrap();
        assert_eq!(host.way(plan.far, None), "mpt0");
        let again = host.netlink.add_route_in(&Route { metric: Some(10), ..uplink });
        assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        host.netlink.remove_route_in(&tunnel).unwrap();
        assert_eq!(host.way(plan.far, None), "uplink");
        host.netlink.remove_rule(&rule).unwrap();
    }
    Ok(())
}

fn rules() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    for version in [IpVersion::V4, IpVersion::V6] {
        let [first, second] = Rule::default_route(version, PRIORITY, MARK, TABLE);
        let marked = Rule { selector: Selector::Mark(MARK), priority: PRIORITY + 2, ..second };
        let rules = [first, second, marked];
        for rule in rules {
            netlink.add_rule(&rule).unwrap();
            let again = netlink.add_rule(&rule);
            assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        }
        assert_eq!(netlink.rules().unwrap(), rules);
        for rule in rules {
            netlink.remove_rule(&rule).unwrap();
            let again = netlink.remove_rule(&rule);
            assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
        }
        assert_eq!(netlink.rules().unwrap(), []);
    }
    Ok(())
}
