//! The scheduler "flow": one path for each flow, and ports that are pinned to one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;

use super::trace::{self, Flows, Trace};
use super::{SKEWED, all_flawless, packets, sent_during, stream, with};
use crate::site::{PATIENCE, Site, TWO_LINKS, inner};

/// UDP flows of the first test, and TCP flows as well.
const FLOWS: u16 = 24;

/// Packets of each UDP flow.
const PACKETS: u32 = 50;

/// Bytes of each TCP flow.
const BYTES: usize = 60_000;

/// Nothing puts packets in order here, so that what is in order has never been out of it.
pub(super) fn in_order() {
    let site = Site::start(SKEWED, "scheduler = 'flow'\nreorder = { window = 0 }");
    let traces = [Side::Left, Side::Right].map(|side| Trace::begin(&site, side));
    let udp = |side, first: u16| {
        let one = |number: u16| {
            stream(
                &site,
                side,
                if number.is_multiple_of(2) { 4 } else { 6 },
                first + number,
                packets(PACKETS, 10),
            )
        };
        (0..FLOWS / 2).map(one).collect::<Vec<_>>()
    };
    tcp(&site);
    let streams = [udp(Side::Left, 7000), udp(Side::Right, 7100)];
    streams.into_iter().for_each(all_flawless);

    for (trace, from) in traces.into_iter().zip([Side::Right, Side::Left]) {
        let flows = trace.end(&site);
        let of = |protocol| flows.iter().filter(move |(flow, _)| flow.0 == protocol);
        assert_eq!(of(trace::UDP).count(), usize::from(FLOWS / 2), "{flows:?}");
        assert_eq!(of(trace::TCP).count(), usize::from(FLOWS), "{flows:?}");
        assert_one_path_each(&flows);
        for (_, paths) in of(trace::UDP) {
            assert_eq!(paths.values().sum::<u64>(), u64::from(PACKETS));
        }
        for path in 0..2 {
            // The links saw what the daemon says that it sent, but for the mark at the end of one
            // trace and the answer to that of the other.
            let address = site.lab.host(from).address(path);
            let seen: u64 = flows.values().filter_map(|paths| paths.get(&address)).sum();
            let sent = site.path(from, path).sent.packets;
            assert!(seen > 0 && sent - seen <= 2, "{from:?} sent {sent} on {path}, seen {seen}");
        }
    }
}

fn assert_one_path_each(flows: &Flows) {
    let torn = flows.iter().find(|(_, paths)| paths.len() != 1);
    assert_eq!(torn, None);
}

/// Sends some bytes over several TCP connections at once, and waits until they are there.
fn tcp(site: &Site) {
    let address = (inner(Side::Right, 4), 0);
    let listener = site.lab.right().run(|| TcpListener::bind(address)).expect("a listener");
    let remote = listener.local_addr().expect("an address");
    let connect = |_| {
        let stream = site.lab.left().run(|| TcpStream::connect_timeout(&remote, PATIENCE));
        let mut sender = stream.expect("a connection");
        let mut receiver = listener.accept().expect("a connection").0;
        receiver.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        thread::spawn(move || {
            sender.write_all(&vec![7; BYTES]).expect("room");
            drop(sender);
            let mut arrived = Vec::new();
            receiver.read_to_end(&mut arrived).expect("all of it");
            assert_eq!(arrived.len(), BYTES);
        })
    };
    let flows: Vec<_> = (0..FLOWS).map(connect).collect();
    flows.into_iter().for_each(|flow| flow.join().expect("a flow that ends well"));
}

/// Each host pins the same port to another path, by destination there and by source back.
pub(super) fn pinned() {
    const PINNED: u16 = 5060;
    let pin = |side, config: String| match side {
        Side::Left => with(&config, "two", "udp_dst = [53, '5060-5069']"),
        Side::Right => with(&config, "one", &format!("udp_src = [{PINNED}]\ntcp_src = [22]")),
    };
    let site = Site::start_with(TWO_LINKS, "scheduler = 'flow'", pin);
    let pins = [(Side::Left, 1, "udp_dst 53 5060-5069"), (Side::Right, 0, "udp_src 5060")];
    for (side, path, text) in pins {
        let told = site.path(side, path).pins.join(", ").replace(",", "");
        assert!(told.contains(text), "{told}");
    }
    // Of one flow after the other, each with a source port of its own: by their hashes they would
    // not all take the same path.
    let pinned_flows = || {
        let mut flows = (0..8).map(|_| stream(&site, Side::Left, 4, PINNED, packets(10, 1)));
        flows.by_ref().for_each(|flow| all_flawless([flow]));
    };
    assert_eq!(sent_during(&site, Side::Left, 0, pinned_flows), [0, 80]);
    let others =
        || all_flawless((0..32).map(|n| stream(&site, Side::Left, 4, 8000 + n, packets(10, 1))));
    let sent = sent_during(&site, Side::Left, 0, others);
    assert!(sent.iter().all(|packets| *packets > 0), "who has pins has a share too: {sent:?}");
    assert_eq!(sent.iter().sum::<u64>(), 320);
    assert!(sent.iter().all(|packets| packets % 10 == 0), "whole flows: {sent:?}");

    site.lab.link(1).set_blackout(Direction::Both, true);
    site.await_state(1, "down");
    assert_eq!(sent_during(&site, Side::Left, 0, pinned_flows), [80, 0], "rather than not at all");
    site.lab.link(1).set_blackout(Direction::Both, false);
    site.await_state(1, "up");
    assert_eq!(sent_during(&site, Side::Left, 0, pinned_flows), [0, 80], "back where it belongs");

    let back = || answers(&site, PINNED);
    assert_eq!(sent_during(&site, Side::Right, 0, back), [8, 0], "by source port");
}

/// Sends one packet from that port of the right host to each of eight ports of the left one.
fn answers(site: &Site, port: u16) {
    let from = (inner(Side::Right, 4), port);
    let source = site.lab.right().run(|| UdpSocket::bind(from)).expect("a socket");
    for number in 0..8 {
        let at = (inner(Side::Left, 4), 9000 + number);
        let sink = site.lab.left().run(|| UdpSocket::bind(at)).expect("a socket");
        sink.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        source.send_to(&[1; 20], at).expect("room");
        let (len, peer) = sink.recv_from(&mut [0; 100]).expect("a packet");
        assert_eq!((len, peer.port()), (20, port));
    }
}
