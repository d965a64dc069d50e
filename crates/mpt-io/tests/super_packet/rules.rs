//! One rule at a time: what keeps two packets apart. And all of them together, at random.

use mpt_io::tun::{Coalescer, Offloads};
use proptest::prelude::*;

use crate::flow::{ACK, CWR, FIN, Flow, Ip, PSH, Transport};
use crate::wire::Recorder;

/// A change to the flow that the second packet belongs to.
type Change = (&'static str, fn(&mut Flow));

const TO_ALL: &[Change] = &[
    ("source port", |flow| flow.ports.0 ^= 1),
    ("destination port", |flow| flow.ports.1 ^= 1),
    ("type of service", |flow| flow.tos ^= 4),
    ("congestion mark", |flow| flow.tos ^= 1),
    ("hop limit", |flow| flow.hops ^= 1),
    ("flow label, or identification", |flow| match &mut flow.ip {
        Ip::V4 { identification, .. } => *identification = identification.wrapping_add(1),
        Ip::V6 { flow_label, .. } => *flow_label ^= 1,
    }),
    ("permission to fragment, or an extension", |flow| match &mut flow.ip {
        Ip::V4 { dont_fragment, .. } => *dont_fragment = false,
        Ip::V6 { extensions, .. } => {
            extensions.push(crate::flow::Extension { number: 60, len: 0 });
        }
    }),
    ("IPv4 options, or another extension", |flow| match &mut flow.ip {
        Ip::V4 { options, .. } => *options = vec![1; 4],
        Ip::V6 { extensions, .. } => {
            extensions.push(crate::flow::Extension { number: 0, len: 0 });
        }
    }),
];

const TO_TCP: &[Change] = &[
    ("sequence number", |flow| tcp(flow, |sequence, _, _, _, _| *sequence ^= 1)),
    ("acknowledgement", |flow| {
        let Transport::Tcp { ack, .. } = &mut flow.transport else { return };
        *ack += 1;
    }),
    ("window", |flow| tcp(flow, |_, window, _, _, _| *window += 1)),
    ("urgent pointer", |flow| tcp(flow, |_, _, _, urgent, _| *urgent += 1)),
    ("timestamp", |flow| tcp(flow, |_, _, _, _, options| options[7] ^= 1)),
    ("length of options", |flow| tcp(flow, |_, _, _, _, options| options.extend([1; 4]))),
    ("FIN", |flow| tcp(flow, |_, _, flags, _, _| *flags |= FIN)),
    ("no ACK", |flow| tcp(flow, |_, _, flags, _, _| *flags &= !ACK)),
    ("ECE", |flow| tcp(flow, |_, _, flags, _, _| *flags |= 0x40)),
    ("CWR", |flow| tcp(flow, |_, _, flags, _, _| *flags |= CWR)),
];

fn tcp(flow: &mut Flow, change: fn(&mut u32, &mut u16, &mut u8, &mut u16, &mut Vec<u8>)) {
    if let Transport::Tcp { sequence, window, flags, urgent, options, .. } = &mut flow.transport {
        change(sequence, window, flags, urgent, options);
    }
}

/// How many writes these packets take in one burst; they must come out as they went in.
fn writes(packets: &[Vec<u8>]) -> usize {
    let device = Recorder::new(Offloads::ALL);
    let mut coalescer = Coalescer::new();
    packets.iter().for_each(|packet| coalescer.push(&device, packet));
    coalescer.flush(&device);
    assert_eq!(device.packets(), packets);
    device.writes().len()
}

/// Every flow, and how many packets of it go ahead of the one that counts: the second of a run is
/// looked at in another way than those behind it.
fn after_one_or_two() -> impl Iterator<Item = (Flow, usize)> {
    Flow::mergeable().into_iter().flat_map(|flow| [(flow.clone(), 1), (flow, 2)])
}

#[test]
fn each_rule_alone_keeps_packets_apart() {
    for (flow, before) in after_one_or_two() {
        let next = flow.continued(before * 100, before as u16);
        let packets = |second: &Flow| {
            [flow.packets(&vec![1; before * 100], 100), second.packets(&[2; 100], 100)].concat()
        };
        assert_eq!(writes(&packets(&next)), 1, "unchanged: {flow:?}");
        let to_tcp = if flow.is_tcp() { TO_TCP } else { &[] };
        for (what, change) in TO_ALL.iter().chain(to_tcp) {
            let mut other = next.clone();
            change(&mut other);
            assert_eq!(writes(&packets(&other)), 2, "{what} after {before}: {other:?}");
        }
    }
}

#[test]
fn other_addresses_keep_packets_apart() {
    for (flow, before) in after_one_or_two() {
        let (start, len) = if matches!(flow.ip, Ip::V4 { .. }) { (12, 4) } else { (8, 16) };
        for address in [start, start + len] {
            let mut packets = flow.packets(&vec![1; (before + 1) * 100], 100);
            // Checksums do not mind the order of words.
            packets[before][address..address + len].rotate_left(2);
            assert_eq!(writes(&packets), 2);
        }
    }
}

#[test]
fn flags_that_segmentation_would_move_keep_packets_apart() {
    const CHANGES: [Change; 2] = [
        ("CWR", |flow| tcp(flow, |_, _, flags, _, _| *flags |= CWR)),
        ("FIN", |flow| tcp(flow, |_, _, flags, _, _| *flags |= FIN)),
    ];
    for (what, change) in CHANGES {
        let mut flow = Flow::tcp4();
        change(&mut flow);
        let both = [flow.clone(), flow.continued(100, 1)];
        let packets = both.map(|flow| flow.packets(&[1; 100], 100)).concat();
        assert_eq!(writes(&packets), 2, "{what} in both");
    }
}

#[test]
fn a_longer_packet_does_not_continue_a_run() {
    for (flow, before) in after_one_or_two() {
        let longer = flow.continued(before * 100, before as u16).packets(&[2; 101], 101);
        assert_eq!(writes(&[flow.packets(&vec![1; before * 100], 100), longer].concat()), 2);
    }
}

#[test]
fn packets_without_payload_are_not_merged() {
    for flow in Flow::mergeable() {
        let run = flow.packets(&[1; 200], 100);
        let more = flow.continued(200, 2).packets(&[1; 200], 100);
        assert_eq!(writes(&[run, vec![flow.empty()], more].concat()), 3);
    }
}

#[test]
fn corruption_stays_what_it_is() {
    for flow in Flow::mergeable() {
        for (bad, merged) in [3, 2, 2, 3].into_iter().enumerate() {
            let mut packets = flow.packets(&[1; 400], 100);
            *packets[bad].last_mut().unwrap() ^= 0x10;
            let device = Recorder::new(Offloads::ALL);
            let mut coalescer = Coalescer::new();
            packets.iter().for_each(|packet| coalescer.push(&device, packet));
            coalescer.flush(&device);
            assert_eq!(device.packets(), packets, "not a bit mended");
            let alone = device
                .writes()
                .iter()
                .any(|(header, packet)| *packet == packets[bad] && !header.needs_checksum());
            assert!(alone, "the kernel is not told to trust it");
            assert_eq!(coalescer.counters().corrupt, 1);
            assert_eq!(coalescer.counters().merged, merged, "{bad}");
        }
    }
}

#[test]
fn a_wrong_ip_checksum_stays_wrong() {
    for flow in [Flow::tcp4(), Flow::udp4()] {
        for wrong in [1, 2] {
            let mut packets = flow.packets(&[1; 300], 100);
            packets[wrong][10] ^= 1;
            assert_eq!(writes(&packets), 4 - wrong);
        }
    }
}

#[test]
fn other_forms_of_a_right_checksum_survive() {
    // No UDP checksum at all.
    let mut packets = Flow::udp4().packets(&[1; 200], 100);
    for packet in &mut packets {
        packet[26..28].fill(0);
    }
    assert_eq!(writes(&packets), 2);
    // All ones in TCP and IPv4, where segmentation would write zero.
    let flow = Flow::tcp4();
    let mut packets = flow.packets(&[0; 200], 100);
    let field = flow.checksum_at().1;
    let checksum = packets[1][field..field + 2].to_vec();
    let end = packets[1].len();
    packets[1].splice(end - 2.., checksum);
    packets[1][field..field + 2].fill(0xff);
    assert_eq!(writes(&packets), 2);
    packets[1][field..field + 2].fill(0);
    assert_eq!(writes(&packets), 1, "zero is what segmentation writes");
    // An identification that makes the sum of the IPv4 header all ones.
    let second = flow.packets(&[0; 200], 100).remove(1);
    let word = |at: usize| u16::from_be_bytes([second[at], second[at + 1]]);
    let sum = u32::from(word(4)) + u32::from(word(10));
    let identification = (sum as u16).wrapping_add((sum >> 16) as u16);
    let ip = Ip::V4 {
        identification: identification.wrapping_sub(1),
        dont_fragment: true,
        options: vec![],
    };
    let mut packets = Flow { ip, ..flow }.packets(&[0; 200], 100);
    assert_eq!(packets[1][10..12], [0, 0]);
    assert_eq!(writes(&packets), 1);
    packets[1][10..12].fill(0xff);
    assert_eq!(writes(&packets), 2);
}

#[test]
fn fragments_other_protocols_and_trailing_bytes_are_not_merged() {
    let flow = Flow::udp4();
    let fix = |packet: &mut Vec<u8>| {
        packet[10..12].fill(0);
        let mut header = etherparse::Ipv4Header::from_slice(packet).unwrap().0;
        header.header_checksum = header.calc_header_checksum();
        packet.splice(..20, header.to_bytes());
    };
    for change in [
        |packet: &mut Vec<u8>| packet[6] |= 0x20,
        |packet: &mut Vec<u8>| packet[7] = 8,
        |packet: &mut Vec<u8>| packet[9] = 1,
        |packet: &mut Vec<u8>| {
            // A shorter length, and a checksum that agrees to it.
            packet[25] -= 1;
            packet[27] += 1;
        },
        |packet: &mut Vec<u8>| packet[3] -= 1,
        |packet: &mut Vec<u8>| packet.push(0),
        |packet: &mut Vec<u8>| packet.truncate(27),
        |packet: &mut Vec<u8>| packet.truncate(3),
    ] {
        let mut packets = flow.packets(&[1; 200], 100);
        for packet in &mut packets {
            change(packet);
            if packet.len() > 20 {
                fix(packet);
            }
        }
        assert_eq!(writes(&packets), 2);
    }
}

/// One packet in a random sequence: which flow sends it, how long it is, and what is done to it.
#[derive(Clone, Debug)]
struct Step {
    flow: usize,
    len: usize,
    pushed: bool,
    change: Option<prop::sample::Index>,
    damage: Option<(prop::sample::Index, u8)>,
    lost: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![6 => Just(100_usize), 2 => Just(60), 1 => Just(0), 1 => 1..200_usize];
    let rarely = |odds| prop::option::weighted(odds, any::<prop::sample::Index>());
    let damage = prop::option::weighted(0.1, (any::<prop::sample::Index>(), any::<u8>()));
    let flow = prop_oneof![4 => Just(0_usize), 1 => 0..4_usize];
    let step =
        (flow, len, prop::bool::weighted(0.1), rarely(0.1), damage, prop::bool::weighted(0.05));
    let step = step.prop_map(|(flow, len, pushed, change, damage, lost)| Step {
        flow,
        len,
        pushed,
        change,
        damage,
        lost,
    });
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn packets_come_out_in_order_and_unchanged(steps in steps(), turn in 0..4_usize) {
        let mut flows = Flow::mergeable();
        flows.rotate_left(turn);
        let mut packets = Vec::new();
        for step in steps {
            let mut flow = flows[step.flow].clone();
            flows[step.flow] = flow.continued(step.len, 1);
            if step.pushed {
                tcp(&mut flow, |_, _, flags, _, _| *flags |= PSH);
            }
            if let Some(change) = step.change {
                let changes = [TO_ALL, TO_TCP].concat();
                changes[change.index(changes.len())].1(&mut flow);
            }
            let (header, packet) = flow.partial(&vec![step.len as u8; step.len]);
            let mut packet = crate::wire::split(&header, &packet).remove(0);
            if let Some((place, byte)) = step.damage {
                let place = place.index(packet.len());
                packet[place] = byte;
            }
            if !step.lost {
                packets.push(packet);
            }
        }
        writes(&packets);
    }
}
