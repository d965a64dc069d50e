//! Offloads: whatever leaves together and arrives together, datagram by datagram it is the same.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc;

use mpt_io::netlink::Netlink;
use mpt_io::udp::{
    MAX_SEGMENTS, MAX_SUPER, Offloads, Options, Receive, ReceiveOptions, SendBatch, Sent, Socket,
};
use mpt_io::{ethtool, interface};

use super::{Got, LOOPBACKS, addr, ip, lengths, receive, stage};
use crate::world::{PATIENCE, other_host, readable};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[
    ("udp::offload::what_is_in_force_is_reported", in_force),
    ("udp::offload::send_batches_arrive_exact_under_every_combination", combinations),
    ("udp::offload::send_batches_arrive_exact_over_pass_through_and_wire_like_cables", cables),
    ("udp::offload::a_super_datagram_may_be_as_large_as_the_kernel_takes", boundaries),
    ("udp::offload::a_limit_cuts_shorter_runs", limit),
    ("udp::offload::a_socket_shared_by_remotes_keeps_them_apart", shared),
    ("udp::offload::refused_segmentation_is_stepped_down_for", stepped_down),
    ("udp::offload::coalesced_datagrams_that_do_not_fit_are_counted", truncated),
];

/// Every combination.
pub(crate) const OFFLOADS: [Offloads; 4] = [
    Offloads { segmentation: false, coalescing: false },
    Offloads { segmentation: true, coalescing: false },
    Offloads { segmentation: false, coalescing: true },
    Offloads { segmentation: true, coalescing: true },
];

const ALL: Offloads = OFFLOADS[3];

fn open(local: &str, offloads: Offloads) -> Result<Socket, Skip> {
    let Offloads { segmentation, coalescing } = offloads;
    let options =
        Options { buffer_bytes: 4 << 20, segmentation, coalescing, ..Options::new(addr(local)) };
    let socket = Socket::open(&options).unwrap();
    match socket.offloads() == offloads {
        true => Ok(socket),
        false => Err(Skip(format!("this kernel has only {:?}", socket.offloads()))),
    }
}

/// Lengths and types of service that meet every reason to cut a send batch.
fn mixed() -> Vec<(usize, u8)> {
    let mut datagrams = vec![(1400, 0); 5];
    datagrams.extend([(700, 0), (1400, 0), (1400, 2), (1400, 2), (1400, 3), (1401, 3), (1, 3)]);
    datagrams.extend([(60, 0xb8); MAX_SEGMENTS + 6]);
    datagrams.extend([(59, 0xb8), (59, 0xb9), (2, 0xb9), (3, 0xb9), (1400, 0), (1399, 0)]);
    datagrams
}

/// Number of runs in [`mixed`].
const MIXED_RUNS: usize = 10;

/// What a datagram of this number says. Neighbours differ, and so does every byte from the next.
fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 7 + at * 3) as u8).collect()
}

fn send(socket: &Socket, send_batch: &mut SendBatch, datagrams: &[(usize, u8)]) -> Sent {
    for (number, (len, tos)) in datagrams.iter().enumerate() {
        send_batch.set_tos(*tos);
        stage(send_batch, &content(number, *len));
    }
    let sent = socket.send(send_batch);
    assert!(send_batch.is_empty());
    assert_eq!(sent.datagrams, datagrams.len(), "{sent:?}");
    assert_eq!(sent.bytes, datagrams.iter().map(|(len, _)| len).sum());
    sent
}

/// Takes in at least `count` datagrams. Says what they are and into how many slots they came.
fn take_in(socket: &Socket, count: usize) -> (Vec<Got>, usize) {
    let coalescing = socket.offloads().coalescing;
    let mut batch = Receive::new(&ReceiveOptions { coalescing, ..ReceiveOptions::default() });
    let (mut got, mut slots) = (Vec::new(), 0);
    while got.len() < count {
        readable(socket);
        slots += socket.receive(&mut batch).unwrap();
        got.extend(batch.datagrams().map(|datagram| Got {
            payload: datagram.payload.to_vec(),
            remote: datagram.remote,
            local: datagram.local,
            tos: datagram.tos,
        }));
    }
    let counters = socket.counters();
    assert_eq!((counters.truncated, counters.control_truncated, counters.kernel_drops), (0, 0, 0));
    (got, slots)
}

fn assert_exact(got: &[Got], datagrams: &[(usize, u8)], near: &Socket, far: &Socket) {
    assert_eq!(got.len(), datagrams.len());
    for (number, (got, (len, tos))) in got.iter().zip(datagrams).enumerate() {
        assert_eq!(got.payload, content(number, *len), "datagram {number}");
        assert_eq!((got.tos, got.remote), (*tos, near.local_addr()), "datagram {number}");
        assert_eq!(got.local, Some(far.local_addr().ip()));
    }
}

fn in_force() -> Outcome {
    for any in LOOPBACKS {
        for offloads in OFFLOADS {
            let socket = open(any, offloads)?;
            assert_eq!((socket.offloads(), socket.counters().step_downs), (offloads, 0));
        }
    }
    Ok(())
}

fn combinations() -> Outcome {
    let datagrams = mixed();
    for any in LOOPBACKS {
        for near_offloads in OFFLOADS {
            for far_offloads in OFFLOADS {
                let (near, far) = (open(any, near_offloads)?, open(any, far_offloads)?);
                let mut send_batch = SendBatch::new(far.local_addr(), None);
                for _ in 0..3 {
                    let sent = send(&near, &mut send_batch, &datagrams);
                    let (got, slots) = take_in(&far, datagrams.len());
                    assert_exact(&got, &datagrams, &near, &far);
                    // The loopback interface passes super-datagrams whole and makes none itself.
                    let (messages, slots_expected) =
                        match (near_offloads.segmentation, far_offloads.coalescing) {
                            (false, _) => (datagrams.len(), datagrams.len()),
                            (true, false) => (MIXED_RUNS, datagrams.len()),
                            (true, true) => (MIXED_RUNS, MIXED_RUNS),
                        };
                    assert_eq!((sent.messages, slots), (messages, slots_expected));
                }
                assert_eq!(near.counters().step_downs, 0);
            }
        }
    }
    Ok(())
}

/// Two hosts, joined by a cable that passes super-datagrams whole or, like a wire, cuts them and puts
/// them together again at the far end.
fn cables() -> Outcome {
    for wire_like in [false, true] {
        for (near_ip, far_ip, prefix) in
            [("192.0.2.1", "192.0.2.2", 24), ("2001:db8::1", "2001:db8::2", 64)]
        {
            for offloads in OFFLOADS {
                cable(wire_like, near_ip, far_ip, prefix, offloads)?;
            }
        }
    }
    Ok(())
}

fn cable(
    wire_like: bool,
    near_ip: &'static str,
    far_ip: &'static str,
    prefix: u8,
    offloads: Offloads,
) -> Outcome {
    let join = move |end: &str, address| {
        for feature in ethtool::features(end).unwrap() {
            // The receiving end coalesces only if the sending end segments no TCP either.
            let segmentation = feature.name.ends_with("-segmentation");
            let named = ["tx-tcp", "tx-udp-seg"].iter().any(|name| feature.name.starts_with(name));
            if segmentation && named && feature.changeable {
                ethtool::set_feature(end, &feature.name, !wire_like).unwrap();
            }
        }
        ethtool::set_feature(end, "rx-gro", wire_like).unwrap();
        let mut netlink = Netlink::open().unwrap();
        let index = interface::index(end).unwrap();
        netlink.set_up(index, true).unwrap();
        netlink.add_address(index, ip(address), prefix).unwrap();
        assert!(netlink.wait_for_address(ip(address), PATIENCE).unwrap());
        open(&std::net::SocketAddr::new(ip(address), 0).to_string(), offloads)
    };
    let (plug, plugged) = mpsc::channel();
    let (netns, host) = other_host(move || {
        plugged.recv().unwrap();
        join("far", far_ip)
    });
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", Some(netns.as_fd())).unwrap();
    plug.send(()).unwrap();
    let near = join("near", near_ip)?;
    let far = host.join().unwrap()?;

    let mut send_batch = SendBatch::new(far.local_addr(), None);
    send(&near, &mut send_batch, &[(1, 0)]); // finds the neighbour's address
    take_in(&far, 1);
    let (datagrams, rounds) = (mixed(), 10);
    let mut slots = 0;
    for _ in 0..rounds {
        send(&near, &mut send_batch, &datagrams);
        let (got, more) = take_in(&far, datagrams.len());
        assert_exact(&got, &datagrams, &near, &far);
        slots += more;
    }
    assert_eq!(near.counters().step_downs, 0);
    // Whether neighbours meet in the queue of a wire-like end is the kernel's affair, but a
    // super-datagram's always do.
    match offloads {
        Offloads { coalescing: false, .. } => assert_eq!(slots, rounds * datagrams.len()),
        Offloads { segmentation: true, .. } => assert!(slots < rounds * datagrams.len()),
        Offloads { segmentation: false, .. } => {}
    }
    netlink.remove_link(interface::index("near").unwrap()).unwrap();
    Ok(())
}

fn boundaries() -> Outcome {
    let with_last = |len, count, last| {
        let mut datagrams = vec![(len, 0); count];
        datagrams.push((last, 0));
        datagrams
    };
    for any in LOOPBACKS {
        let (near, far) = (open(any, ALL)?, open(any, ALL)?);
        let mut send_batch = SendBatch::new(far.local_addr(), Some(near.local_addr().ip()));
        for (datagrams, runs) in [
            (vec![(1, 0); MAX_SEGMENTS], 1),
            (vec![(1, 0); MAX_SEGMENTS + 1], 2),
            (vec![(1400, 0); 180], 4), // 46 at a time
            (with_last(1487, 44, MAX_SUPER - 44 * 1487), 1),
            (with_last(1487, 44, MAX_SUPER - 44 * 1487 + 1), 2),
            (with_last(100, 10, 1), 1),
            (with_last(100, 10, 99), 1),
            (with_last(100, 10, 101), 2),
            (vec![(MAX_SUPER, 0)], 1),
            (vec![(MAX_SUPER, 0); 3], 3),
            (vec![(MAX_SUPER / 2, 0); 2], 1),
        ] {
            let sent = send(&near, &mut send_batch, &datagrams);
            let (got, slots) = take_in(&far, datagrams.len());
            assert_exact(&got, &datagrams, &near, &far);
            assert_eq!((sent.messages, slots), (runs, runs), "{datagrams:?}");
        }
    }
    Ok(())
}

fn limit() -> Outcome {
    for any in LOOPBACKS {
        let (near, far) = (open(any, ALL)?, open(any, ALL)?);
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        for (limit, messages) in [(1, 12), (1000, 12), (2000, 6), (2999, 6), (12_000, 1)] {
            send_batch.set_limit(limit);
            let datagrams = [(1000, 0); 12];
            assert_eq!(send(&near, &mut send_batch, &datagrams).messages, messages, "{limit}");
            let (got, _) = take_in(&far, datagrams.len());
            assert_exact(&got, &datagrams, &near, &far);
        }
    }
    Ok(())
}

fn shared() -> Outcome {
    for any in LOOPBACKS {
        for offloads in OFFLOADS {
            let hub = open(any, offloads)?;
            let spokes = [open(any, offloads)?, open(any, offloads)?, open(any, offloads)?];
            // From one to many.
            for (spoke, len) in spokes.iter().zip([100, 200, 300]) {
                let mut send_batch = SendBatch::new(spoke.local_addr(), None);
                send(&hub, &mut send_batch, &[(len, 0); 20]);
            }
            for (spoke, len) in spokes.iter().zip([100, 200, 300]) {
                assert_exact(&take_in(spoke, 20).0, &[(len, 0); 20], &hub, spoke);
            }
            // From many to one, in turn.
            let turns = [(0, 100), (1, 100), (2, 100), (0, 100), (1, 50)];
            for (spoke, len) in turns {
                let mut send_batch = SendBatch::new(hub.local_addr(), None);
                send(&spokes[spoke], &mut send_batch, &[(len, 0); 10]);
            }
            let (got, slots) = take_in(&hub, 10 * turns.len());
            for (got, (spoke, len)) in got.chunks(10).zip(turns) {
                assert_exact(got, &[(len, 0); 10], &spokes[spoke], &hub);
            }
            assert_eq!(slots, if offloads == ALL { turns.len() } else { 10 * turns.len() });
        }
    }
    Ok(())
}

/// Over IPv4 the kernel refuses to segment what has no checksum.
fn stepped_down() -> Outcome {
    let far = open(LOOPBACKS[0], ALL)?;
    for connected in [false, true] {
        let connect = connected.then_some(far.local_addr());
        let near = Socket::open(&Options { connect, ..Options::new(addr(LOOPBACKS[0])) }).unwrap();
        assert!(near.offloads().segmentation);
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        let datagrams = mixed();
        assert_eq!(send(&near, &mut send_batch, &datagrams).messages, MIXED_RUNS);
        assert_exact(&take_in(&far, datagrams.len()).0, &datagrams, &near, &far);

        without_checksum(&near);
        for _ in 0..2 {
            assert_eq!(send(&near, &mut send_batch, &datagrams).messages, datagrams.len());
            assert_exact(&take_in(&far, datagrams.len()).0, &datagrams, &near, &far);
            assert_eq!(near.offloads(), Offloads { segmentation: false, coalescing: true });
            assert_eq!(near.counters().step_downs, 1);
        }
        assert_eq!(near.counters().icmp_errors, 0);
    }
    Ok(())
}

fn without_checksum(socket: &Socket) {
    let yes: libc::c_int = 1;
    // SAFETY: the pointer and the length describe `yes`, which outlives the call and is only read.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

fn truncated() -> Outcome {
    for any in LOOPBACKS {
        let (near, far) = (open(any, ALL)?, open(any, ALL)?);
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        send(&near, &mut send_batch, &[(100, 1), (100, 1), (100, 1), (100, 1), (99, 1), (300, 0)]);
        let small = ReceiveOptions { slots: 8, spare: 0, slot_size: 250, coalescing: false };
        let mut batch = Receive::new(&small);
        readable(&far);
        assert_eq!(far.receive(&mut batch).unwrap(), 2);
        let got: Vec<_> = batch.coalesced().collect();
        assert_eq!(got.len(), 1);
        assert_eq!(
            (got[0].payload, got[0].stride),
            (&[content(0, 100), content(1, 100)].concat()[..], 100)
        );
        assert_eq!(got[0].tos, 1);
        assert_eq!(far.counters().truncated, 4, "three of the run and the long one");
        send(&near, &mut send_batch, &[(250, 0)]);
        assert_eq!(lengths(&receive(&far)), [250]);
    }
    Ok(())
}
