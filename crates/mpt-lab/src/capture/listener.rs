//! A capture at an interface of a host, by a packet socket with its own thread.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use mpt_io::packet;
use mpt_io::poll::{Events, Interest, Poll, Waker};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use socket2::Socket;

use crate::emulator::tap::{Origin, Tap, Way};
use crate::lab::Host;

/// Room for packets that wait for the thread, in bytes: 60 ms at 1 Gbit/s.
const BUFFER: usize = 8 << 20;
/// The longest packet that an interface passes on, super-packets included.
const LONGEST: usize = 1 << 16;
/// How the kernel marks what the host itself has sent, from `linux/if_packet.h`.
const PACKET_OUTGOING: u8 = 4;

const SOCKET: u64 = 0;
const STOP: u64 = 1;

/// A capturing thread. It runs until it is stopped.
#[derive(Debug)]
pub(super) struct Listener {
    waker: Waker,
    thread: JoinHandle<io::Result<()>>,
}

impl Listener {
    /// Listens at the interface `index` of a host. Of each packet the kernel copies `snap` bytes.
    pub(super) fn start(
        host: &Host,
        index: u32,
        tap: Tap,
        origin: Origin,
        snap: usize,
    ) -> Result<Self> {
        let socket = host.run(|| packet::open(index)).context("cannot open a packet socket")?;
        let ear = Ear { socket, tap, origin, buffer: vec![0; snap.min(LONGEST)] };
        ear.prepare().context("cannot prepare a packet socket")?;
        let poll = Poll::new().context("cannot wait for packets")?;
        poll.add(&ear.socket, SOCKET, Interest::READABLE).context("cannot wait for packets")?;
        let waker = Waker::new(&poll, STOP).context("cannot wait for packets")?;
        let thread = thread::Builder::new()
            .name("capture".into())
            .spawn(move || ear.listen(&poll))
            .context("cannot start the thread of a capture")?;
        Ok(Self { waker, thread })
    }

    /// Ends it, after it has taken what had passed before.
    pub(super) fn stop(self) -> io::Result<()> {
        self.waker.wake();
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread of a capture failed")))
    }
}

/// What the thread has.
struct Ear {
    socket: Socket,
    tap: Tap,
    origin: Origin,
    buffer: Vec<u8>,
}

impl Ear {
    fn prepare(&self) -> io::Result<()> {
        setsockopt(&self.socket, ReceiveTimestampns, &true)?;
        // Beyond the system's limit, which only an administrator may do.
        if setsockopt(&self.socket, RcvBufForce, &BUFFER).is_err() {
            self.socket.set_recv_buffer_size(BUFFER)?;
        }
        Ok(())
    }

    fn listen(mut self, poll: &Poll) -> io::Result<()> {
        let mut events = Events::with_capacity(2);
        loop {
            poll.wait(&mut events, None)?;
            while self.take_one()? {}
            if events.iter().any(|event| event.token == STOP) {
                break;
            }
        }
        self.tap.drop_unseen(packet::dropped(&self.socket)?.into());
        Ok(())
    }

    /// Whether there was a packet.
    fn take_one(&mut self) -> io::Result<bool> {
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        // The kernel then returns the length of the packet, not of the part that fit.
        let flags = MsgFlags::MSG_TRUNC;
        let fd = self.socket.as_raw_fd();
        let message = match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), flags) {
            Ok(message) => message,
            // The interface was switched off; it may come on again.
            Err(Errno::ENETDOWN | Errno::EINTR) => return Ok(true),
            Err(Errno::EAGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let outgoing = message.address.is_some_and(|from| from.pkttype() == PACKET_OUTGOING);
        let stamp = message.cmsgs()?.find_map(|message| {
            let ControlMessageOwned::ScmTimestampns(at) = message else { return None };
            Some(Duration::from(at))
        });
        let length = message.bytes;
        let way = if outgoing { Way::Out } else { Way::In };
        let packet = &self.buffer[..length.min(self.buffer.len())];
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let at = stamp.unwrap_or_else(|| self.origin.now());
        self.tap.put(at, way, packet, length, String::new());
        Ok(true)
    }
}
