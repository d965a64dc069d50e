//! Datagrams through real sockets.

pub(crate) mod egress_rate;
pub(crate) mod offload;
pub(crate) mod open;

use std::net::{IpAddr, SocketAddr, UdpSocket};

use mpt_io::interface;
use mpt_io::netlink::Netlink;
use mpt_io::udp::{MAX_BATCH, Options, Receive, ReceiveOptions, SendBatch, Sent, Socket};

use crate::world::{LO, PATIENCE, readable};
use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("udp::a_send_batch_arrives_whole_and_in_order", a_send_batch_arrives),
    ("udp::type_of_service_travels_per_datagram", type_of_service),
    ("udp::a_shared_socket_answers_from_the_right_address", answers),
    ("udp::a_source_that_is_not_ours_is_counted", foreign_source),
    ("udp::oversized_datagrams_spare_their_neighbours", oversized),
    ("udp::a_full_send_buffer_is_counted", full_send_buffer),
    ("udp::a_full_receive_buffer_is_counted", full_receive_buffer),
    ("udp::truncated_datagrams_are_counted_and_left_out", truncated),
    ("udp::what_is_kept_stays_while_more_is_received", kept),
    ("udp::icmp_errors_cost_no_datagram", icmp_errors),
    ("udp::a_missing_route_fails_the_whole_send_batch", no_route),
];

/// One loopback address of each family.
const LOOPBACKS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn open(local: &str) -> Socket {
    Socket::open(&Options::new(addr(local))).unwrap()
}

fn stage(send_batch: &mut SendBatch, payload: &[u8]) {
    send_batch.reserve(payload.len()).unwrap().copy_from_slice(payload);
    send_batch.commit();
}

/// Sends one datagram of each of these lengths, its bytes all equal to its number.
fn send(socket: &Socket, send_batch: &mut SendBatch, lengths: &[usize]) -> Sent {
    for (number, len) in lengths.iter().enumerate() {
        stage(send_batch, &vec![number as u8; *len]);
    }
    let sent = socket.send(send_batch);
    assert!(send_batch.is_empty());
    assert_eq!(sent.datagrams + sent.full + sent.too_big + sent.failed, lengths.len());
    sent
}

/// A received datagram, kept.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    payload: Vec<u8>,
    remote: SocketAddr,
    local: Option<IpAddr>,
    tos: u8,
}

/// Everything that waits at `socket`, at least one datagram.
fn receive(socket: &Socket) -> Vec<Got> {
    receive_with(socket, &mut Receive::new(&ReceiveOptions::default()))
}

fn receive_with(socket: &Socket, batch: &mut Receive) -> Vec<Got> {
    readable(socket);
    let mut got = Vec::new();
    while socket.receive(batch).unwrap() > 0 {
        got.extend(batch.datagrams().map(|datagram| Got {
            payload: datagram.payload.to_vec(),
            remote: datagram.remote,
            local: datagram.local,
            tos: datagram.tos,
        }));
    }
    got
}

fn lengths(got: &[Got]) -> Vec<usize> {
    got.iter().map(|got| got.payload.len()).collect()
}

fn a_send_batch_arrives() -> Outcome {
    for any in LOOPBACKS {
        let (near, far) = (open(any), open(any));
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        let expected: Vec<usize> = (0..MAX_BATCH).map(|number| 1 + number * 20).collect();
        for _ in 0..3 {
            let sent = send(&near, &mut send_batch, &expected);
            assert_eq!((sent.datagrams, sent.bytes), (MAX_BATCH, expected.iter().sum()));
            let got = receive(&far);
            assert_eq!(lengths(&got), expected);
            for (number, got) in got.iter().enumerate() {
                assert!(got.payload.iter().all(|byte| usize::from(*byte) == number));
                assert_eq!((got.remote, got.tos), (near.local_addr(), 0));
                assert_eq!(got.local, Some(far.local_addr().ip()));
            }
        }
        assert!(socket2::SockRef::from(&near).nonblocking().unwrap());
    }
    Ok(())
}

fn type_of_service() -> Outcome {
    for any in LOOPBACKS {
        let (near, far) = (open(any), open(any));
        let mut send_batch = SendBatch::new(far.local_addr(), Some(near.local_addr().ip()));
        let expected = [0xb8, 0xb8, 0x02, 0x00, 0xff, 0x01];
        for tos in expected {
            send_batch.set_tos(tos);
            stage(&mut send_batch, b"x");
        }
        assert_eq!(near.send(&mut send_batch).datagrams, expected.len());
        assert_eq!(receive(&far).iter().map(|got| got.tos).collect::<Vec<_>>(), expected);
    }
    Ok(())
}

fn answers() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    for (any, addresses) in [
        ("0.0.0.0:0", [(ip("192.0.2.1"), 32), (ip("192.0.2.2"), 32)]),
        ("[::]:0", [(ip("2001:db8::1"), 128), (ip("2001:db8::2"), 128)]),
    ] {
        for (address, prefix) in addresses {
            netlink.add_address(LO, address, prefix).unwrap();
            assert!(netlink.wait_for_address(address, PATIENCE).unwrap());
        }
        let server = open(any);
        let clients = addresses.map(|(address, prefix)| {
            let remote = SocketAddr::new(address, server.local_addr().port());
            let client_ip = if prefix == 32 { ip("127.0.0.9") } else { ip("::1") };
            // Connected, so it takes an answer only from the address that it asked.
            let mut options = Options::new(SocketAddr::new(client_ip, 0));
            options.connect = Some(remote);
            let client = Socket::open(&options).unwrap();
            assert_eq!(client.connected(), Some(remote));
            let mut send_batch = SendBatch::new(remote, None);
            stage(&mut send_batch, b"question");
            assert_eq!(client.send(&mut send_batch).datagrams, 1);
            client
        });
        let questions = receive(&server);
        assert_eq!(questions.len(), 2);
        for question in questions {
            let mut send_batch = SendBatch::new(question.remote, question.local);
            stage(&mut send_batch, b"answer");
            assert_eq!(server.send(&mut send_batch).datagrams, 1);
        }
        for client in clients {
            assert_eq!(receive(&client)[0].remote, client.connected().unwrap());
        }
    }
    Ok(())
}

fn foreign_source() -> Outcome {
    for (any, foreign, remote) in
        [("0.0.0.0:0", "192.0.2.77", "127.0.0.1:9"), ("[::]:0", "2001:db8::77", "[::1]:9")]
    {
        let socket = open(any);
        let sent = send(&socket, &mut SendBatch::new(addr(remote), Some(ip(foreign))), &[10; 5]);
        assert_eq!(sent.failed, 5);
        let errno = sent.error.unwrap().raw_os_error().unwrap();
        assert!(matches!(errno, libc::EINVAL | libc::ENETUNREACH), "{errno}");
        assert_eq!(socket.counters().step_downs, 0, "that is not for the lack of segmentation");
    }
    Ok(())
}

fn oversized() -> Outcome {
    Netlink::open().unwrap().set_mtu(LO, 1500).unwrap();
    for (any, header) in [(LOOPBACKS[0], 28), (LOOPBACKS[1], 48)] {
        for (segmentation, connected) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let (far, largest) = (open(any), 1500 - header);
            let connect = connected.then_some(far.local_addr());
            let options = Options { connect, segmentation, ..Options::new(addr(any)) };
            let near = Socket::open(&options).unwrap();
            let mut send_batch = SendBatch::new(far.local_addr(), None);
            let sizes = [
                100,
                100,
                3000,
                3000,
                99,
                99,
                largest,
                largest,
                largest + 1,
                largest + 1,
                7,
                2000,
                8,
            ];
            let sent = send(&near, &mut send_batch, &sizes);
            assert_eq!((sent.datagrams, sent.too_big, sent.failed), (8, 5, 0), "{any}");
            assert_eq!(sent.messages, if segmentation { 5 } else { 8 });
            assert_eq!(lengths(&receive(&far)), [100, 100, 99, 99, largest, largest, 7, 8]);
            let counters = near.counters();
            assert_eq!((counters.icmp_errors, counters.step_downs), (0, 0));
        }
    }
    Ok(())
}

/// Datagrams for a neighbour that never answers wait for its address and so fill the buffer.
fn full_send_buffer() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", None).unwrap();
    let (near, far) = (interface::index("near").unwrap(), interface::index("far").unwrap());
    netlink.disable_address_generation(near).unwrap();
    netlink.add_address(near, ip("192.0.2.1"), 24).unwrap();
    netlink.add_address(near, ip("2001:db8::1"), 64).unwrap();
    netlink.set_up(near, true).unwrap();
    netlink.set_up(far, true).unwrap();
    for (any, remote) in [("192.0.2.1:0", "192.0.2.2:7"), ("[2001:db8::1]:0", "[2001:db8::2]:7")] {
        for segmentation in [false, true] {
            let options = Options { buffer_bytes: 4096, segmentation, ..Options::new(addr(any)) };
            let socket = Socket::open(&options).unwrap();
            let mut send_batch = SendBatch::new(addr(remote), None);
            // One super-datagram may exceed the buffer, but it leaves no room for another.
            let sent = send(&socket, &mut send_batch, &[1000; 64]);
            let more = send(&socket, &mut send_batch, &[1000; 64]);
            assert!(sent.datagrams > 0 && more.full > 0, "{sent:?} {more:?}");
            assert_eq!((sent.failed, sent.too_big, more.failed, more.too_big), (0, 0, 0, 0));
        }
    }
    Ok(())
}

fn full_receive_buffer() -> Outcome {
    for (segmentation, coalescing) in [(false, false), (true, false), (true, true)] {
        let options = Options { segmentation, coalescing, ..Options::new(addr(LOOPBACKS[0])) };
        let near = Socket::open(&options).unwrap();
        let far = Socket::open(&Options { buffer_bytes: 4096, ..options }).unwrap();
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        for _ in 0..2 {
            assert_eq!(send(&near, &mut send_batch, &[1000; 64]).datagrams, 64);
        }
        let got = receive(&far).len() as u64;
        let drops = far.counters().kernel_drops;
        match coalescing {
            false => assert!(drops > 0 && got + drops == 128, "{got} {drops}"),
            true => assert_eq!((got, drops), (64, 1), "a super-datagram is taken or dropped whole"),
        }
        assert_eq!(near.counters().kernel_drops, 0);
    }
    Ok(())
}

fn truncated() -> Outcome {
    for any in LOOPBACKS {
        let near = open(any);
        let options = Options { coalescing: false, ..Options::new(addr(any)) };
        let far = Socket::open(&options).unwrap();
        send(&near, &mut SendBatch::new(far.local_addr(), None), &[50, 101, 100, 5000, 60]);
        let mut batch =
            Receive::new(&ReceiveOptions { slots: 8, spare: 0, slot_size: 100, coalescing: false });
        readable(&far);
        assert_eq!(far.receive(&mut batch).unwrap(), 5, "taken from the socket");
        let lengths: Vec<_> = batch.datagrams().map(|datagram| datagram.payload.len()).collect();
        assert_eq!(lengths, [50, 100, 60]);
        let counters = far.counters();
        assert_eq!((counters.truncated, counters.control_truncated), (2, 0));
        assert_eq!(far.receive(&mut batch).unwrap(), 0);
        assert_eq!(batch.datagrams().count(), 0, "nothing of the last batch is left");
    }
    Ok(())
}

fn kept() -> Outcome {
    for any in LOOPBACKS {
        let (near, far) = (open(any), open(any));
        let mut send_batch = SendBatch::new(far.local_addr(), None);
        let mut batch = Receive::new(&ReceiveOptions { slots: 2, spare: 6, ..Default::default() });
        send(&near, &mut send_batch, &[10, 20, 10]);
        readable(&far);
        far.receive(&mut batch).unwrap();
        let second = batch.datagrams().nth(1).unwrap().payload;
        let (whole, part) = (batch.keep(second).unwrap(), batch.keep(&second[5..9]).unwrap());
        assert_eq!(batch.keep(&[0; 4]), None, "not from here");
        for _ in 0..10 {
            send(&near, &mut send_batch, &[30, 30, 30, 30, 40]);
            receive_with(&far, &mut batch);
            assert_eq!((batch.kept(&whole), batch.kept(&part)), (&[1; 20][..], &[1; 4][..]));
        }
        batch.release(whole);
        assert_eq!(batch.kept(&part), [1; 4]);
        batch.release(part);

        // Kept slots never starve the next receive.
        let mut all = Vec::new();
        for _ in 0..10 {
            send(&near, &mut send_batch, &[50]);
            readable(&far);
            assert_eq!(far.receive(&mut batch).unwrap(), 1);
            let datagram = batch.datagrams().next().unwrap();
            assert_eq!(datagram.payload, [0; 50]);
            all.extend(batch.keep(datagram.payload));
        }
        assert_eq!(all.len(), 2, "while more than four of eight are free, besides two in use");
        assert!(all.iter().all(|kept| batch.kept(kept) == [0; 50]));
        all.into_iter().for_each(|kept| batch.release(kept));
    }
    Ok(())
}

fn icmp_errors() -> Outcome {
    for any in LOOPBACKS {
        let far = UdpSocket::bind(any).unwrap();
        let remote = far.local_addr().unwrap();
        let options = Options { connect: Some(remote), ..Options::new(addr(any)) };
        let near = Socket::open(&options).unwrap();
        let mut send_batch = SendBatch::new(remote, None);
        let mut batch = Receive::new(&ReceiveOptions::default());

        drop(far);
        assert_eq!(send(&near, &mut send_batch, &[10]).datagrams, 1);
        readable(&near); // the ICMP error
        let far = UdpSocket::bind(remote).unwrap();
        assert_eq!(send(&near, &mut send_batch, &[10, 11]).datagrams, 2);
        assert_eq!(near.counters().icmp_errors, 1);
        assert_eq!(far.recv(&mut [0; 20]).unwrap(), 10);

        drop(far);
        assert_eq!(send(&near, &mut send_batch, &[10]).datagrams, 1);
        readable(&near);
        assert_eq!(near.receive(&mut batch).unwrap(), 0);
        assert_eq!(near.counters().icmp_errors, 2);
    }
    Ok(())
}

fn no_route() -> Outcome {
    for (any, remote) in [("0.0.0.0:0", "198.51.100.1:7"), ("[::]:0", "[2001:db8:9::1]:7")] {
        let socket = open(any);
        let sent = send(&socket, &mut SendBatch::new(addr(remote), None), &[10; 64]);
        assert_eq!(sent.failed, 64);
        assert_eq!(sent.error.unwrap().raw_os_error(), Some(libc::ENETUNREACH));
    }
    Ok(())
}
