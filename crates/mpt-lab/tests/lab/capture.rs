//! What a capture's file holds: every packet at either end of a link, with what became of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mpt_lab::capture::{Capture, Summary};
use mpt_sim::link::DropReason;
use pcap_parser::OptionCode;
use pcap_parser::pcapng::{Block, parse_block_le};

use crate::world::{Test, belongings, eventually, lab, pair, receive, send};

pub(crate) const TESTS: &[Test] = &[
    ("a_capture_has_every_packet_at_both_ends_of_a_link", both_ends),
    ("a_capture_sees_the_same_at_a_device_as_at_the_link", same_at_the_device),
    ("a_capture_cuts_packets_and_says_how_long_they_were", snap),
    ("a_capture_that_cannot_be_is_refused_and_leaves_nothing", refused),
];

/// A packet of a file, with the name of its interface.
#[derive(Clone, Debug)]
struct Packet {
    interface: String,
    at: Duration,
    out: bool,
    bytes: Vec<u8>,
    length: u32,
    comment: String,
}

/// Reads a file with a parser that is not ours.
fn read(file: &Path) -> Vec<Packet> {
    let bytes = fs::read(file).unwrap();
    let mut rest = bytes.as_slice();
    let mut interfaces = Vec::new();
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let (after, block) = parse_block_le(rest).unwrap();
        rest = after;
        if let Block::InterfaceDescription(interface) = &block {
            interfaces.push(interface.if_name().unwrap().unwrap().to_owned());
        }
        let Block::EnhancedPacket(packet) = &block else { continue };
        let option = |code| {
            let option = packet.options.iter().find(|option| option.code == OptionCode(code))?;
            Some(option.value[..option.len.into()].to_vec())
        };
        let (seconds, nanos) = packet.decode_ts(0, 1_000_000_000);
        packets.push(Packet {
            interface: interfaces[packet.if_id as usize].clone(),
            at: Duration::new(seconds.into(), nanos),
            out: option(2).unwrap()[0] & 3 == 2,
            bytes: packet.data[..packet.caplen as usize].to_vec(),
            length: packet.origlen,
            comment: option(1).map_or(String::new(), |text| String::from_utf8(text).unwrap()),
        });
    }
    packets
}

/// Where a file can be written.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn both_ends() {
    const PACKETS: u32 = 200;
    let lab =
        lab("[[link]]\nname = 'wire'\ndelay_ms = 30\nforward = { loss = 0.3, delay_ms = 30 }\n\
                   [[link]]\nname = 'idle'");
    let (left, right) = pair(&lab, 0);
    let folder = folder();
    let file = folder.path().join("a.pcapng");
    let capture = Capture::start(&lab, &file, &[]).unwrap();
    for number in 0..PACKETS {
        send(&left, number);
    }
    send(&right, 7);
    assert_eq!(receive(&left), 7);
    let stats = || lab.link(0).report().forward.stats;
    eventually("all packets have left the link", || {
        let stats = stats();
        stats.offered.packets == u64::from(PACKETS) && stats.in_flight.packets == 0
    });
    let Summary { interfaces, .. } = capture.finish().unwrap();

    let packets = read(&file);
    let at = |name: &str, out| {
        let all = packets.iter().cloned();
        all.filter(|packet| packet.interface == name && packet.out == out).collect::<Vec<_>>()
    };
    let (entered, left_it) = (at("left wire", true), at("right wire", false));
    assert_eq!(entered.len(), PACKETS as usize);
    let lost = entered.iter().filter(|packet| packet.comment == "lost").count() as u64;
    assert_eq!(lost, stats().drops(DropReason::Loss).packets);
    assert!(lost > 0);
    let survivors: Vec<_> = entered.iter().filter(|packet| packet.comment.is_empty()).collect();
    assert_eq!(survivors.len(), left_it.len());
    for (before, after) in survivors.iter().zip(&left_it) {
        assert_eq!(before.bytes, after.bytes);
        assert!(after.at >= before.at + Duration::from_millis(30), "{before:?} {after:?}");
    }
    assert_eq!((at("right wire", true).len(), at("left wire", false).len()), (1, 1));
    assert!(packets.is_sorted_by_key(|packet| packet.at), "not in the order of time");

    let told: Vec<_> = interfaces
        .iter()
        .map(|interface| (interface.name.as_str(), interface.packets, interface.dropped))
        .collect();
    let here = u64::from(PACKETS) + 1;
    let there = left_it.len() as u64 + 1;
    let expected = [("left wire", here, 0), ("right wire", there, 0), ("left idle", 0, 0)];
    assert_eq!(told[..3], expected);

    // After the end the link continues, and nothing is added.
    send(&left, 1);
    send(&right, 1);
    receive(&left);
    assert_eq!(read(&file).len(), packets.len());
}

fn same_at_the_device() {
    let lab = lab("[[link]]\nname = 'wire'\nversion = 6");
    let (left, right) = pair(&lab, 0);
    let folder = folder();
    let file = folder.path().join("a.pcapng");
    let capture = Capture::start(&lab, &file, &["wire"]).unwrap();
    for number in 0..50 {
        send(&left, number);
        assert_eq!(receive(&right), number);
        send(&right, number);
        assert_eq!(receive(&left), number);
    }
    let summary = capture.finish().unwrap();
    assert_eq!((summary.packets(), summary.dropped()), (400, 0), "{summary:?}");
    // Each packet four times: at both ends, by the link and by the device.
    let packets = read(&file);
    for name in ["left wire", "right wire"] {
        for out in [false, true] {
            let mut here: Vec<_> = packets
                .iter()
                .filter(|packet| packet.interface == name && packet.out == out)
                .map(|packet| &packet.bytes)
                .collect();
            assert_eq!(here.len(), 100, "{name} {out}");
            here.sort();
            assert!(here.chunks(2).all(|twins| twins[0] == twins[1]), "{name} {out}");
        }
    }
}

fn snap() {
    let lab = lab("[[link]]\nname = 'wire'");
    let (left, right) = pair(&lab, 0);
    let folder = folder();
    let file = folder.path().join("a.pcapng");
    let capture = Capture::start_with(&lab, &file, &["wire"], 60).unwrap();
    left.send(&[0xab; 1000]).unwrap();
    right.recv(&mut [0; 2000]).unwrap();
    capture.finish().unwrap();
    let packets = read(&file);
    assert_eq!(packets.len(), 4);
    for packet in packets {
        assert_eq!((packet.bytes.len(), packet.length), (60, 1028), "{packet:?}");
        assert_eq!(packet.bytes[28..], [0xab; 32]);
    }
}

fn refused() {
    let lab = lab("[[link]]\nname = 'wire'");
    let folder = folder();
    let file = |name: &str| folder.path().join(name);
    let before = belongings();
    let start = |name, tuns: &[&str]| Capture::start(&lab, &file(name), tuns);
    let text = |capture: anyhow::Result<Capture>| format!("{:#}", capture.unwrap_err());
    assert!(text(start("no/such/folder", &[])).contains("No such file"));
    assert!(text(start("a", &["mpt0"])).contains("neither host has a device `mpt0`"));
    let first = start("b", &["wire"]).unwrap();
    assert!(text(start("c", &["wire"])).contains("another capture of this link is running"));
    drop(first);
    start("d", &["wire"]).unwrap().finish().unwrap();
    eventually("threads and descriptors are gone", || belongings() == before);
}
