//! The kernel's notifications as reported by a monitor.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use mpt_io::netlink::{Address, Change, Link, Monitor, Netlink};

use crate::world::{LO, PATIENCE, in_fresh_namespace, readable, readable_within};
use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("monitor::interfaces_that_come_change_and_go_are_told", interfaces),
    ("monitor::addresses_and_routes_that_come_and_go_are_told", addresses_and_routes),
    ("monitor::an_ipv6_address_is_told_when_it_becomes_usable", tentative),
    ("monitor::a_lost_announcement_is_told_and_none_after_it_is_lost", overrun),
    ("monitor::another_namespace_is_not_heard", namespaces),
    ("monitor::listings_are_complete_however_long", listings),
];

/// A monitor, and its reports that were not checked yet.
struct Heard {
    monitor: Monitor,
    waiting: VecDeque<Change>,
}

impl Heard {
    fn open() -> Self {
        Self { monitor: Monitor::open().unwrap(), waiting: VecDeque::new() }
    }

    fn read(&mut self) {
        let before = self.waiting.len();
        let told = self.monitor.read(|change| self.waiting.push_back(change)).unwrap();
        assert_eq!(told, self.waiting.len() - before);
    }

    /// Discards the reports until here.
    fn forget(&mut self) {
        while readable_within(&self.monitor, Duration::ZERO) {
            self.read();
        }
        self.waiting.clear();
    }

    /// Passes over changes up to one of which `wanted` makes something.
    fn wait_for<T>(&mut self, wanted: impl Fn(&Change) -> Option<T>) -> T {
        loop {
            while let Some(change) = self.waiting.pop_front() {
                if let Some(found) = wanted(&change) {
                    return found;
                }
            }
            readable(&self.monitor);
            self.read();
        }
    }

    fn wait_for_route(&mut self) {
        self.wait_for(|change| (*change == Change::Route).then_some(()));
    }

    /// Passes over changes up to an interface that is as wanted.
    fn wait_for_link(&mut self, wanted: impl Fn(&Link) -> bool) {
        self.wait_for(|change| {
            let Change::Link(link) = change else { return None };
            wanted(link).then_some(())
        });
    }

    fn wait_for_link_gone(&mut self) -> (u32, String) {
        self.wait_for(|change| {
            let Change::LinkGone { index, name } = change else { return None };
            Some((*index, name.clone()))
        })
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn to_v6(address: IpAddr) -> Ipv6Addr {
    let IpAddr::V6(address) = address else { panic!("{address}") };
    address
}

fn index(netlink: &mut Netlink, name: &str) -> u32 {
    netlink.link(name).unwrap().unwrap().index
}

/// Makes a cable in this namespace, without addresses of the kernel's own, and switches it on.
fn pair(netlink: &mut Netlink) -> (u32, u32) {
    netlink.add_veth("near", "far", None).unwrap();
    let (near, far) = (index(netlink, "near"), index(netlink, "far"));
    for index in [near, far] {
        netlink.disable_address_generation(index).unwrap();
        netlink.set_up(index, true).unwrap();
    }
    (near, far)
}

fn interfaces() -> Outcome {
    let (mut netlink, mut heard) = (Netlink::open().unwrap(), Heard::open());
    heard.read();
    assert!(heard.waiting.is_empty(), "nothing has changed, and nothing blocks");
    let (near, far) = pair(&mut netlink);
    let is_near = |link: &Link| link.index == near && link.name == "near";
    heard.wait_for_link(|link| is_near(link) && !link.up);
    heard.wait_for_link(|link| is_near(link) && link.up && link.carrier && link.running);
    netlink.set_mtu(near, 1400).unwrap();
    heard.wait_for_link(|link| is_near(link) && link.mtu == 1400);
    netlink.set_up(far, false).unwrap();
    heard.wait_for_link(|link| is_near(link) && link.up && !link.carrier);
    netlink.set_up(far, true).unwrap();
    heard.wait_for_link(|link| is_near(link) && link.running);
    netlink.remove_link(near).unwrap();
    let mut gone = [heard.wait_for_link_gone(), heard.wait_for_link_gone()];
    gone.sort();
    let mut expected = [(near, "near".to_owned()), (far, "far".to_owned())];
    expected.sort();
    assert_eq!(gone, expected);
    let mut late = Heard::open();
    late.read();
    assert!(late.waiting.is_empty(), "what was before is not told");
    Ok(())
}

fn addresses_and_routes() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    let (near, _) = pair(&mut netlink);
    let mut heard = Heard::open();
    for (address, prefix, network) in
        [("192.0.2.1", 24, ("203.0.113.0", 24)), ("2001:db8::1", 64, ("2001:db8:5::", 48))]
    {
        let (address, network) = (ip(address), (ip(network.0), network.1));
        let ours = Address { index: near, address, prefix, usable: true, deprecated: false };
        netlink.add_address(near, address, prefix).unwrap();
        heard.wait_for(|change| (*change == Change::Address(ours)).then_some(()));
        assert!(netlink.addresses().unwrap().contains(&ours));
        assert!(netlink.wait_for_address(address, PATIENCE).unwrap());

        heard.forget();
        netlink.add_route(network, near, None).unwrap();
        heard.wait_for_route();
        netlink.remove_route(network, near, None).unwrap();
        heard.wait_for_route();

        netlink.remove_address(near, address, prefix).unwrap();
        let gone = heard.wait_for(|change| {
            let Change::AddressGone(gone) = change else { return None };
            Some(*gone)
        });
        assert_eq!((gone.index, gone.address, gone.prefix), (near, address, prefix));
        assert!(!netlink.addresses().unwrap().iter().any(|other| other.address == address));
    }
    Ok(())
}

fn tentative() -> Outcome {
    let (mut netlink, mut heard) = (Netlink::open().unwrap(), Heard::open());
    netlink.add_veth("near", "far", None).unwrap();
    for name in ["far", "near"] {
        let index = index(&mut netlink, name);
        netlink.set_up(index, true).unwrap();
    }
    // The kernel gives itself these addresses, and asks around first.
    for _ in 0..2 {
        let told = heard.wait_for(|change| {
            let Change::Address(address) = change else { return None };
            Some(*address)
        });
        assert!(told.usable, "{told:?}");
        UdpSocket::bind(SocketAddrV6::new(to_v6(told.address), 0, 0, told.index)).unwrap();
        assert!(netlink.addresses().unwrap().contains(&told));
    }
    Ok(())
}

fn overrun() -> Outcome {
    let (mut netlink, mut heard) = (Netlink::open().unwrap(), Heard::open());
    // Each announcement takes at least 1 KiB of the buffer, which has 2 MiB at most.
    for number in 0..3000 {
        netlink.set_mtu(LO, 1500 + number).unwrap();
    }
    while readable_within(&heard.monitor, Duration::ZERO) {
        heard.read();
    }
    let overruns = heard.waiting.iter().filter(|change| **change == Change::Overrun);
    assert_eq!(overruns.count(), 1);
    assert_eq!(heard.waiting.back(), Some(&Change::Overrun), "what was before is not told after");

    netlink.set_mtu(LO, 9000).unwrap();
    heard.waiting.clear();
    heard.wait_for_link(|link| link.index == LO && link.mtu == 9000);
    Ok(())
}

fn namespaces() -> Outcome {
    let mut heard = Heard::open();
    in_fresh_namespace(|| Netlink::open().unwrap().set_mtu(LO, 1500).unwrap()).join().unwrap();
    Netlink::open().unwrap().set_mtu(LO, 1600).unwrap();
    let first = heard.wait_for(|change| Some(change.clone()));
    assert!(matches!(&first, Change::Link(link) if link.mtu == 1600), "{first:?}");
    Ok(())
}

fn listings() -> Outcome {
    const CABLES: usize = 40; // 80 interfaces take several reads
    let mut netlink = Netlink::open().unwrap();
    for number in 0..CABLES {
        netlink.add_veth(&format!("near{number}"), &format!("far{number}"), None).unwrap();
    }
    let near = index(&mut netlink, "near7");
    for number in 0..200 {
        netlink.add_address(near, ip(&format!("10.0.0.{number}")), 24).unwrap();
    }
    let links = netlink.links().unwrap();
    assert_eq!(links.len(), 2 * CABLES + 1);
    for number in 0..CABLES {
        for end in ["near", "far"] {
            let name = format!("{end}{number}");
            let link = netlink.link(&name).unwrap().unwrap();
            assert!(links.contains(&link), "{name}");
        }
    }
    let addresses = netlink.addresses().unwrap();
    let of_near = addresses.iter().filter(|address| address.index == near);
    assert_eq!(of_near.count(), 200);
    assert!(addresses.iter().any(|address| address.index == LO && address.address == ip("::1")));
    Ok(())
}
