//! How fast datagrams leave, as a real queue shows it.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use mpt_io::netlink::{Error, Netlink, TokenBucket};
use mpt_io::poll::{Events, Interest, Poll};
use mpt_io::udp::{EgressRate, MAX_SUPER, Options, SendBatch, Socket};

use super::{addr, stage};
use crate::world::{LO, PATIENCE};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[
    ("udp::egress_rate::a_shaped_interface_shows_its_rate", shaped),
    ("udp::egress_rate::an_interface_that_is_not_shaped_shows_none", unshaped),
];

/// Bytes of payload of every datagram, and of the headers around it: UDP, IPv4, Ethernet.
const PAYLOAD: usize = 1400;
const HEADERS: usize = 8 + 20 + 14;

/// A sender that sends all that fits, and a receiver.
struct Stream {
    socket: Socket,
    send_batch: SendBatch,
    egress_rate: EgressRate,
    begun: Instant,
    writable: Poll,
    /// Full soon, and then the kernel drops; but it keeps away ICMP errors.
    _sink: UdpSocket,
}

impl Stream {
    fn open() -> Self {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote: SocketAddr = sink.local_addr().unwrap();
        let socket = Options { buffer_bytes: 1 << 20, ..Options::new(addr("127.0.0.1:0")) };
        let socket = Socket::open(&socket).unwrap();
        let writable = Poll::new().unwrap();
        writable.add(&socket, 0, Interest::WRITABLE).unwrap();
        Self {
            socket,
            send_batch: SendBatch::new(remote, None),
            egress_rate: EgressRate::new(),
            begun: Instant::now(),
            writable,
            _sink: sink,
        }
    }

    /// Sends this many datagrams as soon as the queue has space.
    fn send(&mut self, datagrams: usize) {
        let ready = self.writable.wait(&mut Events::with_capacity(1), Some(PATIENCE)).unwrap();
        assert_eq!(ready, 1, "the queue never egress_rates");
        for _ in 0..datagrams {
            stage(&mut self.send_batch, &[7; PAYLOAD]);
        }
        let sent = self.socket.send_watched(
            &mut self.send_batch,
            &mut self.egress_rate,
            self.begun.elapsed(),
        );
        assert_eq!((sent.failed, sent.too_big), (0, 0));
    }
}

fn shaped() -> Outcome {
    let bucket = TokenBucket { rate: 12_500_000, burst: 32 << 10, queue: 4 << 20 };
    match Netlink::open().unwrap().add_token_bucket(LO, bucket) {
        Err(Error::NotFound { .. }) => {
            return Err(Skip("this kernel has no token bucket filter".into()));
        }
        other => other.unwrap(),
    }
    let expected = bucket.rate as usize * PAYLOAD / (PAYLOAD + HEADERS);
    let fits = |rate: u64| (expected / 2..=expected * 2).contains(&(rate as usize));
    let mut stream = Stream::open();
    let deadline = Instant::now() + PATIENCE;
    // A machine that stands still may spoil one sample, but not one after the other.
    while !stream.egress_rate.rate().is_some_and(fits) {
        assert!(Instant::now() < deadline, "{:?} instead of {expected}", stream.egress_rate.rate());
        stream.send(40);
    }
    let limit = stream.egress_rate.send_batch_limit();
    assert!((PAYLOAD..4 * PAYLOAD).contains(&limit), "a fifth of a millisecond: {limit}");
    Ok(())
}

fn unshaped() -> Outcome {
    let mut stream = Stream::open();
    for _ in 0..2000 {
        stream.send(40);
    }
    assert_eq!(
        (stream.egress_rate.rate(), stream.egress_rate.send_batch_limit()),
        (None, MAX_SUPER)
    );
    Ok(())
}
