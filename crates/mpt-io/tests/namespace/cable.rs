//! Cables between hosts: what crosses them, and who sees it.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::mpsc;

use mpt_io::netlink::{Error, Netlink, TokenBucket};
use mpt_io::packet;
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use crate::world::{eventually, other_host, readable};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[("netlink::super_packets_are_cut_on_a_cable_of_two", cut)];

const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 9];
const SEGMENT: usize = 1400;
const SEGMENTS: usize = 10;

fn cut() -> Outcome {
    let (plugged, wait_for_plug) = mpsc::channel::<()>();
    let (ready, wait_for_ready) = mpsc::channel();
    let (netns, host) = other_host(move || {
        wait_for_plug.recv().unwrap();
        end_of_cable("far", "192.0.2.2");
        let socket = UdpSocket::bind("192.0.2.2:4754").unwrap();
        ready.send(()).unwrap();
        for _ in 0..2 * SEGMENTS {
            readable(&socket);
            assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), SEGMENT);
        }
    });
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", Some(netns.as_fd())).unwrap();
    plugged.send(()).unwrap();
    let near = end_of_cable("near", "192.0.2.1");
    wait_for_ready.recv().unwrap();
    let running = || Netlink::open().unwrap().link("near").unwrap().unwrap().running;
    eventually("the cable carries", running);

    let listener = packet::open(near).unwrap();
    let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
    setsockopt(&socket, UdpGsoSegment, &(SEGMENT as i32)).unwrap();
    let mut sent = || netlink.link("near").unwrap().unwrap().tx_packets;
    let send = || socket.send_to(&[7; SEGMENT * SEGMENTS], "192.0.2.2:4754").unwrap();
    // Only what was sent, so there was no ARP request.
    send();
    eventually("a cable passes super-packets whole", || sent() == 1);
    let mut cutter = Netlink::open().unwrap();
    let frame = SEGMENT as u32 + 28 + 14;
    let unlimited = TokenBucket { rate: 1_000_000_000_000, burst: frame, queue: 16 << 20 };
    match cutter.add_token_bucket(near, unlimited) {
        Err(Error::NotFound { .. }) => {
            return Err(Skip("this kernel has no token bucket filter".into()));
        }
        other => other.unwrap(),
    }
    let again = cutter.add_token_bucket(near, unlimited);
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    send();
    eventually("each frame crosses alone", || sent() == 1 + SEGMENTS as u64);
    host.join().unwrap();

    let mut lengths = Vec::new();
    while lengths.len() < 1 + SEGMENTS {
        readable(&listener);
        let mut buffer = [0; 1 << 16];
        let len = nix::unistd::read(&listener, &mut buffer).unwrap();
        assert_eq!(buffer[0], 0x45, "from the IP header on");
        lengths.push(len);
    }
    assert_eq!(lengths[0], SEGMENT * SEGMENTS + 28);
    assert_eq!(lengths[1..], [SEGMENT + 28; SEGMENTS]);
    assert_eq!(packet::dropped(&listener).unwrap(), 0);
    Ok(())
}

/// Sets up one end; its index.
fn end_of_cable(name: &str, address: &str) -> u32 {
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.link(name).unwrap().unwrap().index;
    netlink.disable_address_generation(index).unwrap();
    netlink.set_point_to_point(index, ADDRESS).unwrap();
    netlink.set_up(index, true).unwrap();
    netlink.add_address(index, address.parse().unwrap(), 24).unwrap();
    index
}
