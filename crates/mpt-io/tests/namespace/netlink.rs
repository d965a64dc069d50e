//! Interfaces, addresses and routes in a real kernel.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use mpt_io::netlink::{Error, Leaving, Netlink, TokenBucket, Vxlan, Way};
use nix::errno::Errno;
use socket2::SockRef;

use crate::world::{LO, PATIENCE, eventually, other_host, readable, readable_within};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[
    ("netlink::interfaces_are_found_and_set", interfaces),
    ("netlink::addresses_come_and_go", addresses),
    ("netlink::routes_come_and_go", routes),
    ("netlink::a_route_names_the_congestion_control_of_its_connections", congestion_control),
    ("netlink::a_cable_joins_two_namespaces", cable),
    ("netlink::the_kernels_own_tunnel_carries_packets", vxlan),
    ("netlink::a_token_bucket_is_set_and_read_back", token_bucket),
    ("netlink::no_address_is_generated_where_disabled", address_generation),
    ("netlink::errors_say_what_was_tried_and_why", errors),
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// An interface pair in this namespace, both ends up; the index of the near one.
fn pair(netlink: &mut Netlink) -> u32 {
    netlink.add_veth("near", "far", None).unwrap();
    for name in ["near", "far"] {
        let index = netlink.link(name).unwrap().unwrap().index;
        netlink.disable_address_generation(index).unwrap();
        netlink.set_up(index, true).unwrap();
    }
    netlink.link("near").unwrap().unwrap().index
}

/// The local address that the kernel's routes choose for `remote`, if one leads there.
fn chosen(remote: IpAddr) -> Option<IpAddr> {
    let any = if remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect((remote, 7)).ok()?;
    Some(socket.local_addr().unwrap().ip())
}

fn interfaces() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let lo = netlink.link("lo").unwrap().unwrap();
    assert_eq!((lo.index, lo.name.as_str(), lo.mtu), (LO, "lo", 65_536));
    assert!(lo.up && lo.carrier);
    assert_eq!(netlink.link("absent").unwrap(), None);
    assert!(matches!(netlink.link("a/b"), Err(Error::Name(_))));

    let near = pair(&mut netlink);
    netlink.set_mtu(near, 1400).unwrap();
    netlink.set_queue_len(near, 1234).unwrap();
    let link = netlink.link("near").unwrap().unwrap();
    assert_eq!((link.mtu, link.queue_len, link.up, link.carrier), (1400, 1234, true, true));
    let far = netlink.link("far").unwrap().unwrap();
    netlink.set_up(far.index, false).unwrap();
    let link = netlink.link("near").unwrap().unwrap();
    assert!(link.up && !link.carrier, "the other end is off");
    netlink.remove_link(near).unwrap();
    assert_eq!(netlink.link("far").unwrap(), None, "the other end of the cable goes too");
    Ok(())
}

fn addresses() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let near = pair(&mut netlink);
    for (address, prefix) in [(ip("192.0.2.1"), 24), (ip("2001:db8::1"), 64)] {
        assert!(UdpSocket::bind((address, 0)).is_err());
        netlink.add_address(near, address, prefix).unwrap();
        UdpSocket::bind((address, 0)).expect("usable at once");
        assert!(netlink.wait_for_address(address, PATIENCE).unwrap());
        let again = netlink.add_address(near, address, prefix);
        assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        netlink.remove_address(near, address, prefix).unwrap();
        assert!(UdpSocket::bind((address, 0)).is_err());
        assert!(!netlink.wait_for_address(address, Duration::ZERO).unwrap());
        let again = netlink.remove_address(near, address, prefix);
        assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
    }
    Ok(())
}

fn routes() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let near = pair(&mut netlink);
    for (address, prefix, router, network, inside) in [
        ("192.0.2.1", 24, "192.0.2.254", ("203.0.113.9", 24), "203.0.113.200"),
        ("192.0.2.2", 24, "192.0.2.254", ("0.0.0.0", 0), "203.0.113.200"),
        ("2001:db8::1", 64, "2001:db8::fe", ("2001:db8:5::9", 48), "2001:db8:5:7::1"),
        ("2001:db8::2", 64, "2001:db8::fe", ("::", 0), "2001:db8:5:7::1"),
    ] {
        let (address, network, inside) = (ip(address), (ip(network.0), network.1), ip(inside));
        netlink.add_address(near, address, prefix).unwrap();
        for via in [None, Some(ip(router))] {
            assert_eq!(chosen(inside), None);
            netlink.add_route(network, near, via).unwrap();
            assert_eq!(chosen(inside), Some(address));
            let again = netlink.add_route(network, near, via);
            assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
            netlink.remove_route(network, near, via).unwrap();
            let again = netlink.remove_route(network, near, via);
            assert!(matches!(again, Err(Error::NotFound { .. })), "{again:?}");
        }
        netlink.remove_address(near, address, prefix).unwrap();
    }
    Ok(())
}

fn congestion_control() -> Outcome {
    let (addressed, wait_for_address) = mpsc::channel::<SocketAddr>();
    let (plugged, wait_for_plug) = mpsc::channel::<()>();
    let (netns, host) = other_host(move || {
        wait_for_plug.recv().unwrap();
        let mut netlink = Netlink::open().unwrap();
        let far = netlink.link("far").unwrap().unwrap().index;
        netlink.set_up(far, true).unwrap();
        for (address, prefix) in [(ip("192.0.2.2"), 24), (ip("2001:db8::2"), 64)] {
            netlink.add_address(far, address, prefix).unwrap();
            assert!(netlink.wait_for_address(address, PATIENCE).unwrap());
        }
        // The connections last until the channel ends.
        let connections: Vec<_> =
            wait_for_address.iter().map(|remote| TcpStream::connect(remote).unwrap()).collect();
        assert_eq!(connections.len(), 6);
    });
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", Some(netns.as_fd())).unwrap();
    let near = netlink.link("near").unwrap().unwrap().index;
    netlink.set_up(near, true).unwrap();
    plugged.send(()).unwrap();
    for (local, prefix, remote, host_prefix) in [
        (ip("192.0.2.1"), 24, ip("192.0.2.2"), 32),
        (ip("2001:db8::1"), 64, ip("2001:db8::2"), 128),
    ] {
        netlink.add_address(near, local, prefix).unwrap();
        assert!(netlink.wait_for_address(local, PATIENCE).unwrap());
        assert_eq!(netlink.way_to(local).unwrap(), None);
        assert_eq!(
            netlink.way_to(remote).unwrap(),
            Some(Way { index: near, via: None, source: Some(local) })
        );
        let listener = TcpListener::bind((local, 0)).unwrap();
        let accepted = || {
            addressed.send(listener.local_addr().unwrap()).unwrap();
            let (connection, _) = listener.accept().unwrap();
            let name = SockRef::from(&connection).tcp_congestion().unwrap();
            String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned()
        };
        let usual = accepted();
        let [first, second] = if usual == "reno" { ["cubic", "reno"] } else { ["reno", "cubic"] };
        for name in [first, second] {
            netlink.replace_route((remote, host_prefix), near, None, name).unwrap();
            assert_eq!(accepted(), name);
        }
        let unknown = netlink.replace_route((remote, host_prefix), near, None, "none-such");
        let unknown = unknown.unwrap_err().to_string();
        assert!(unknown.contains("none-such"), "{unknown}");
    }
    let away = netlink.way_to(ip("203.0.113.9")).unwrap_err().to_string();
    assert!(away.contains("203.0.113.9"), "{away}");
    let router = Some(ip("192.0.2.2"));
    netlink.add_route((ip("203.0.113.0"), 24), near, router).unwrap();
    let way = netlink.way_to(ip("203.0.113.9")).unwrap();
    assert_eq!(way, Some(Way { index: near, via: router, source: Some(ip("192.0.2.1")) }));
    let odd = Leaving { source: Some(ip("203.0.113.9")), ..Leaving::default() };
    assert!(netlink.way_of(ip("192.0.2.2"), odd).is_err(), "this host does not have that address");
    let bound = Leaving { index: Some(near), ..Leaving::default() };
    let way = netlink.way_of(ip("198.51.100.9"), bound).unwrap().unwrap();
    assert_eq!((way.index, way.via), (near, None), "bound, it leaves there without a route");
    drop(addressed);
    host.join().unwrap();
    Ok(())
}

fn cable() -> Outcome {
    const PORT: u16 = 4754;
    let (plugged, wait_for_plug) = mpsc::channel::<()>();
    let (ready, wait_for_ready) = mpsc::channel();
    let (netns, host) = other_host(move || {
        let mut netlink = Netlink::open().unwrap();
        wait_for_plug.recv().unwrap();
        let far = netlink.link("far").unwrap().expect("the far end is here").index;
        netlink.set_up(far, true).unwrap();
        for (address, prefix) in [(ip("192.0.2.2"), 24), (ip("2001:db8::2"), 64)] {
            netlink.add_address(far, address, prefix).unwrap();
            assert!(netlink.wait_for_address(address, PATIENCE).unwrap());
            let socket = UdpSocket::bind((address, PORT)).unwrap();
            ready.send(()).unwrap();
            readable(&socket);
            let mut buffer = [0; 100];
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..len], from).unwrap();
        }
    });
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", Some(netns.as_fd())).unwrap();
    plugged.send(()).unwrap();
    assert_eq!(netlink.link("far").unwrap(), None, "the far end is not here");
    let near = netlink.link("near").unwrap().unwrap().index;
    netlink.set_up(near, true).unwrap();
    for (local, prefix, remote) in
        [(ip("192.0.2.1"), 24, ip("192.0.2.2")), (ip("2001:db8::1"), 64, ip("2001:db8::2"))]
    {
        netlink.add_address(near, local, prefix).unwrap();
        assert!(netlink.wait_for_address(local, PATIENCE).unwrap());
        let socket = UdpSocket::bind((local, 0)).unwrap();
        wait_for_ready.recv().unwrap();
        // The kernel drops what is sent before it has noticed that both ends are up.
        eventually("something comes through the cable", || {
            socket.send_to(b"through the cable", (remote, PORT)).unwrap();
            readable_within(&socket, Duration::from_millis(50))
        });
        let mut buffer = [0; 100];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let expected = SocketAddr::new(remote, PORT);
        assert_eq!((&buffer[..len], from), (&b"through the cable"[..], expected));
    }
    host.join().unwrap();
    Ok(())
}

fn vxlan() -> Outcome {
    const PORT: u16 = 4754;
    let (local, remote) = (ip("192.0.2.1"), ip("192.0.2.2"));
    let (ready, wait_for_ready) = mpsc::channel();
    let (plugged, wait_for_plug) = mpsc::channel::<()>();
    let (netns, host) = other_host(move || {
        wait_for_plug.recv().unwrap();
        let mut netlink = Netlink::open().unwrap();
        let far = netlink.link("far").unwrap().unwrap().index;
        netlink.set_up(far, true).unwrap();
        netlink.add_address(far, remote, 24).unwrap();
        let end = Vxlan { id: 7, local: remote, remote: local, over: far };
        if netlink.add_vxlan("inner", &end).is_err() {
            drop(ready); // the other side says why
            return;
        }
        let inner = netlink.link("inner").unwrap().unwrap().index;
        netlink.set_up(inner, true).unwrap();
        netlink.add_address(inner, ip("198.51.100.2"), 24).unwrap();
        let socket = UdpSocket::bind((ip("198.51.100.2"), PORT)).unwrap();
        ready.send(()).unwrap();
        readable(&socket);
        let (len, _) = socket.recv_from(&mut [0; 100]).unwrap();
        assert_eq!(len, 5);
    });
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", Some(netns.as_fd())).unwrap();
    let near = netlink.link("near").unwrap().unwrap().index;
    netlink.set_up(near, true).unwrap();
    netlink.add_address(near, local, 24).unwrap();
    plugged.send(()).unwrap();
    match netlink.add_vxlan("inner", &Vxlan { id: 7, local, remote, over: near }) {
        Ok(()) => {}
        Err(Error::Refused { source, .. })
            if source.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) =>
        {
            return Err(Skip("this kernel has no VXLAN".into()));
        }
        Err(error) => panic!("{error}"),
    }
    let inner = netlink.link("inner").unwrap().unwrap();
    assert_eq!(inner.mtu, 1450, "50 bytes below the interface it goes over");
    netlink.set_up(inner.index, true).unwrap();
    netlink.add_address(inner.index, ip("198.51.100.1"), 24).unwrap();
    wait_for_ready.recv().unwrap();
    let socket = UdpSocket::bind((ip("198.51.100.1"), 0)).unwrap();
    let before = netlink.link("near").unwrap().unwrap().tx_bytes;
    eventually("something comes through the tunnel", || {
        socket.send_to(b"hello", (ip("198.51.100.2"), PORT)).unwrap();
        host.is_finished()
    });
    let after = netlink.link("near").unwrap().unwrap().tx_bytes;
    assert!(after - before >= 5 + 28 + 50, "{before} {after}");
    host.join().unwrap();
    Ok(())
}

fn token_bucket() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let near = pair(&mut netlink);
    assert_eq!(netlink.token_bucket(near).unwrap(), None);
    let gigabit = TokenBucket { rate: 125_000_000, burst: 32 << 10, queue: 6_250_000 };
    match netlink.add_token_bucket(near, gigabit) {
        Err(Error::NotFound { .. }) => {
            return Err(Skip("this kernel has no token bucket filter".into()));
        }
        other => other.unwrap(),
    }
    assert_eq!(netlink.token_bucket(near).unwrap(), Some(gigabit));
    let again = netlink.add_token_bucket(near, gigabit);
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    let far = netlink.link("far").unwrap().unwrap().index;
    assert_eq!(netlink.token_bucket(far).unwrap(), None, "the other end has none");

    // Beyond the range of 32 bits.
    let fast = TokenBucket { rate: 5_000_000_000, burst: 1_000_000, queue: 2_000_000 };
    netlink.add_token_bucket(far, fast).unwrap();
    let found = netlink.token_bucket(far).unwrap().unwrap();
    assert_eq!((found.rate, found.queue), (fast.rate, fast.queue));
    assert!(
        found.burst.abs_diff(fast.burst) <= 64 * 5,
        "rounded to what fills in 64 ns: {found:?}"
    );
    let absent = netlink.add_token_bucket(4_000_000, gigabit);
    assert!(matches!(absent, Err(Error::NotFound { .. })), "{absent:?}");
    Ok(())
}

fn address_generation() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    for (near, far) in [("silent0", "silent1"), ("talking0", "talking1")] {
        netlink.add_veth(near, far, None).unwrap();
        for name in [near, far] {
            let index = netlink.link(name).unwrap().unwrap().index;
            if name.starts_with("silent") {
                netlink.disable_address_generation(index).unwrap();
            }
            netlink.set_up(index, true).unwrap();
        }
    }
    let addresses = || fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap();
    eventually("the kernel generates addresses, otherwise this test shows nothing", || {
        let addresses = addresses();
        let running = |name| netlink.link(name).unwrap().unwrap().running;
        ["talking0", "talking1"].iter().all(|name| addresses.contains(name))
            && ["silent0", "silent1"].into_iter().all(running)
    });
    assert!(!addresses().contains("silent"), "{}", addresses());
    Ok(())
}

fn errors() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let near = pair(&mut netlink);
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();

    let absent = text(netlink.set_mtu(4_000_000, 1400));
    assert!(absent.contains("MTU of interface 4000000"), "{absent}");
    let mtu = text(netlink.set_mtu(near, 10));
    assert!(mtu.contains("to 10") && mtu.contains("(mtu less than device minimum)"), "{mtu}");
    let prefix = text(netlink.add_address(near, ip("192.0.2.1"), 33));
    assert!(prefix.contains("192.0.2.1/33"), "{prefix}");
    let router = text(netlink.add_route((ip("203.0.113.0"), 24), near, Some(ip("198.51.100.1"))));
    assert!(router.contains("via 198.51.100.1") && router.contains("unreachable"), "{router}");
    let pair = netlink.add_veth("near", "other", None);
    assert!(matches!(pair, Err(Error::Exists { .. })), "{pair:?}");
    assert!(matches!(netlink.remove_link(4_000_000), Err(Error::NotFound { .. })));
    // A refused request leaves the conversation usable.
    assert!(netlink.link("near").unwrap().is_some());
    Ok(())
}
