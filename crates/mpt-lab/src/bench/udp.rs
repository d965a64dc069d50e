//! UDP packets at a given rate, and how many of them arrive.
//!
//! The sender passes many packets per call to the kernel, each as a separate packet, without
//! super-packets, like most programs. It sends in small bursts with pauses; a prolonged pause is
//! not compensated, because the larger burst could overflow a queue.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, recvmmsg, sendmmsg, setsockopt, sockopt,
};
use socket2::{Domain, Socket, Type};

use super::search::Trial;
use crate::netns::Namespace;

/// Most packets per call.
const BATCH: usize = 64;
/// The time between two bursts at a given rate.
const REST: Duration = Duration::from_micros(100);
/// The longest time whose packets are sent in one burst.
const CATCH_UP: Duration = Duration::from_millis(1);
/// Silence after which no further packet is expected. A daemon that is behind by that much would
/// have run out of queue.
const SILENCE: Duration = Duration::from_millis(60);
/// Bytes wanted for the receiving socket, so that a moment without the processor loses nothing.
const RECEIVE_BUFFER: usize = 16 << 20;
/// A longer payload would not fit the MTU of any wire here.
const MAX_PAYLOAD: usize = 1472;

/// Sends packets of `size` bytes of payload from the left host to `remote` in the right one, at
/// `rate` packets per second or, if that is `None`, as fast as it can.
pub(super) fn trial(
    [left, right]: [&Namespace; 2],
    remote: IpAddr,
    size: usize,
    rate: Option<f64>,
    length: Duration,
) -> Result<Trial> {
    let sink = right.run(|| sink(remote)).context("cannot make a UDP socket")?;
    let address = sink.local_addr().ok().and_then(|address| address.as_socket());
    let address = address.ok_or_else(|| anyhow!("a UDP socket has no address"))?;
    let source = left.run(|| source(address)).context("cannot make a UDP socket")?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&sink, &over));
        let sent = send(&source, size, rate, length);
        over.store(true, Ordering::Relaxed);
        let received = receiver.join().map_err(|_| anyhow!("the UDP receiver failed"))?;
        let (received, sent) = (received.context("receiving UDP")?, sent.context("sending UDP")?);
        let rate = |packets: u64| packets as f64 / sent.time.as_secs_f64();
        Ok(Trial { sent: rate(sent.packets), received: rate(received) })
    })
}

fn sink(address: IpAddr) -> io::Result<Socket> {
    let socket = Socket::new(domain(address), Type::DGRAM, None)?;
    // Beyond the machine's limit only with a capability; without it, as much as there is.
    if setsockopt(&socket.as_fd(), sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    socket.set_read_timeout(Some(SILENCE))?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    Ok(socket)
}

fn source(remote: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(domain(remote.ip()), Type::DGRAM, None)?;
    socket.connect(&remote.into())?;
    Ok(socket)
}

fn domain(address: IpAddr) -> Domain {
    if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 }
}

/// What was sent, and in what time.
struct Sent {
    packets: u64,
    time: Duration,
}

/// Sends for `length`.
fn send(socket: &Socket, size: usize, rate: Option<f64>, length: Duration) -> io::Result<Sent> {
    // Without it the kernel may prolong each rest by 50 us.
    mpt_io::poll::set_timer_slack(Duration::from_nanos(1))?;
    let payload = [0_u8; MAX_PAYLOAD];
    let packets = [[IoSlice::new(&payload[..size.min(MAX_PAYLOAD)])]; BATCH];
    let mut headers = MultiHeaders::preallocate(BATCH, None);
    let start = Instant::now();
    let (mut sent, mut time, mut credit) = (0, Duration::ZERO, 0.0);
    while time < length {
        let Some(rate) = rate else {
            sent += hand_over(socket, &mut headers, &packets)?;
            time = start.elapsed();
            continue;
        };
        let now = start.elapsed();
        credit += rate * (now - time).min(CATCH_UP).as_secs_f64();
        time = now;
        while credit >= 1.0 {
            let count = (credit as usize).min(BATCH);
            sent += hand_over(socket, &mut headers, &packets[..count])?;
            credit -= count as f64;
        }
        thread::sleep(REST);
    }
    Ok(Sent { packets: sent, time })
}

/// Hands packets to the kernel and returns how many it took. Those that a full queue does not take
/// were not sent.
fn hand_over(
    socket: &Socket,
    headers: &mut MultiHeaders<()>,
    packets: &[[IoSlice<'_>; 1]],
) -> io::Result<u64> {
    let connected: [Option<()>; BATCH] = [None; BATCH];
    let none: [ControlMessage<'_>; 0] = [];
    let flags = MsgFlags::empty();
    match sendmmsg(socket.as_raw_fd(), headers, packets, connected, none, flags) {
        Ok(taken) => Ok(taken.count() as u64),
        Err(Errno::ENOBUFS | Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Counts packets until it is `over` and nothing comes any more.
fn receive(socket: &Socket, over: &AtomicBool) -> io::Result<u64> {
    let mut buffers = vec![[0_u8; MAX_PAYLOAD]; BATCH];
    let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
    let mut received = 0;
    loop {
        let mut slices: Vec<_> =
            buffers.iter_mut().map(|buffer| [IoSliceMut::new(&mut buffer[..])]).collect();
        let flags = MsgFlags::MSG_WAITFORONE;
        match recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None) {
            Ok(messages) => received += messages.count() as u64,
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) if over.load(Ordering::Relaxed) => return Ok(received),
            Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn what_is_sent_over_loopback_arrives_at_about_the_rate() {
        let sink = sink(Ipv4Addr::LOCALHOST.into()).unwrap();
        let source = source(sink.local_addr().unwrap().as_socket().unwrap()).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&sink, &over));
            let sent = send(&source, 64, Some(10e3), Duration::from_millis(200)).unwrap();
            over.store(true, Ordering::Relaxed);
            // A machine that stalls sends less, never more.
            let most = 10e3 * sent.time.as_secs_f64();
            assert!(sent.packets > 0 && sent.packets as f64 <= most, "{}", sent.packets);
            assert_eq!(receiver.join().unwrap().unwrap(), sent.packets);
        });
    }
}
