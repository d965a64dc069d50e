//! The socket itself: what it was granted, what it counts.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::offload::Offloads;
use crate::sockopt;

/// A UDP socket at one local address.
///
/// It can be shared: one thread may send while another receives.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    local: SocketAddr,
    connected: Option<SocketAddr>,
    icmp: bool,
    buffers: Buffers,
    segmentation: AtomicBool,
    coalescing: bool,
    step_downs: AtomicU64,
    pub(super) truncated: AtomicU64,
    pub(super) control_truncated: AtomicU64,
    pub(super) unknown_source: AtomicU64,
    pub(super) icmp_errors: AtomicU64,
}

/// Sizes of a socket's buffers in bytes, in the unit in which they are asked for. The kernel sets
/// aside twice as much, for its own bookkeeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Granted for receiving.
    pub receive: usize,
    /// Granted for sending.
    pub send: usize,
    /// Asked for, each way; 0 for the system's default.
    pub wanted: usize,
}

/// What a socket met with so far. All but `step_downs` are datagrams, and none of them was delivered,
/// except those under `control_truncated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received datagrams dropped because they were longer than the batch's slots.
    pub truncated: u64,
    /// Received datagrams whose local address or type of service may be missing, because control
    /// messages did not fit.
    pub control_truncated: u64,
    /// Received datagrams dropped because the kernel gave no source address for them.
    pub unknown_source: u64,
    /// Datagrams sent earlier that came back as ICMP errors (only of sockets that are connected or were
    /// opened to get them).
    pub icmp_errors: u64,
    /// Datagrams that the kernel dropped before they could be received, nearly always because the
    /// receive buffer was full. With coalescing it counts those that it dropped in one piece as one.
    pub kernel_drops: u64,
    /// Times that segmentation was given up because the kernel refused super-datagrams whose
    /// datagrams it took one by one.
    pub step_downs: u64,
}

impl Socket {
    pub(super) fn new(
        socket: socket2::Socket,
        connected: Option<SocketAddr>,
        icmp: bool,
        buffers: Buffers,
        offloads: Offloads,
    ) -> io::Result<Self> {
        let local = socket.local_addr()?.as_socket();
        Ok(Self {
            local: local.ok_or_else(|| io::Error::other("not an IP address"))?,
            socket,
            connected,
            icmp,
            buffers,
            segmentation: AtomicBool::new(offloads.segmentation),
            coalescing: offloads.coalescing,
            step_downs: AtomicU64::new(0),
            truncated: AtomicU64::new(0),
            control_truncated: AtomicU64::new(0),
            unknown_source: AtomicU64::new(0),
            icmp_errors: AtomicU64::new(0),
        })
    }

    /// The local address, with the port that the kernel chose if none was given.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The only remote address, if the socket was opened for one.
    pub fn connected(&self) -> Option<SocketAddr> {
        self.connected
    }

    /// Whether ICMP messages about earlier datagrams show as errors of sending and receiving.
    pub(super) fn meets_icmp(&self) -> bool {
        self.icmp || self.connected.is_some()
    }

    /// The buffers that were granted.
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// The offloads in force: those that were wanted, that the kernel has, and that it did not refuse
    /// since.
    pub fn offloads(&self) -> Offloads {
        Offloads {
            segmentation: self.segmentation.load(Ordering::Relaxed),
            coalescing: self.coalescing,
        }
    }

    /// What the socket met with so far. Asks the kernel for its part, so it is for reports, not for
    /// every packet.
    pub fn counters(&self) -> Counters {
        Counters {
            truncated: self.truncated.load(Ordering::Relaxed),
            control_truncated: self.control_truncated.load(Ordering::Relaxed),
            unknown_source: self.unknown_source.load(Ordering::Relaxed),
            icmp_errors: self.icmp_errors.load(Ordering::Relaxed),
            kernel_drops: self.kernel_drops(),
            step_downs: self.step_downs.load(Ordering::Relaxed),
        }
    }

    /// [`Counters::kernel_drops`] alone, with one system call.
    pub fn kernel_drops(&self) -> u64 {
        kernel_drops(&self.socket)
    }

    /// What the kernel still keeps of the datagrams that were sent, in bytes of its memory: they wait in
    /// the queue of the outgoing interface, or a network card has not said yet that it is done with them.
    /// That memory is their payload and headers and, for small ones, many times that.
    pub fn unsent(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the request takes a pointer to a C `int`, to which the kernel writes; it points to a
        // local that outlives the call.
        let result =
            unsafe { libc::ioctl(self.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        // An open socket always supports this request. If it fails, the caller can only assume an
        // empty queue.
        if result == -1 { 0 } else { u64::try_from(bytes).unwrap_or(0) }
    }

    /// Notes what a send batch showed besides the fate of its datagrams.
    pub(super) fn note_sent(&self, stepped_down: bool, icmp_errors: u64) {
        // Of two threads that find out at once, one steps down.
        if stepped_down && self.segmentation.swap(false, Ordering::Relaxed) {
            self.step_downs.fetch_add(1, Ordering::Relaxed);
        }
        if icmp_errors > 0 {
            self.icmp_errors.fetch_add(icmp_errors, Ordering::Relaxed);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Buffers {
    /// Asks for `wanted` bytes each way, past the system's limit if permitted, and reads back what
    /// that gave.
    pub(super) fn grant(socket: &socket2::Socket, wanted: usize) -> io::Result<Self> {
        if wanted > 0 {
            let bytes = i32::try_from(wanted).unwrap_or(i32::MAX);
            for (force, plain) in
                [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
            {
                // Forcing needs CAP_NET_ADMIN in the initial user namespace. The plain option never
                // fails; it gives as much as net.core.{r,w}mem_max allows.
                if sockopt::set(socket, libc::SOL_SOCKET, force, bytes).is_err() {
                    sockopt::set(socket, libc::SOL_SOCKET, plain, bytes)?;
                }
            }
        }
        let granted = |option| {
            let doubled = sockopt::get(socket, libc::SOL_SOCKET, option)?;
            Ok::<_, io::Error>(usize::try_from(doubled).unwrap_or(0) / 2)
        };
        let (receive, send) = (granted(libc::SO_RCVBUF)?, granted(libc::SO_SNDBUF)?);
        Ok(Self { receive, send, wanted })
    }
}

/// The kernel's own drop counter of the socket, as `SO_RXQ_OVFL` would report it, but without a
/// control message beside every datagram and without waiting for the next one.
fn kernel_drops(socket: &socket2::Socket) -> u64 {
    /// From `linux/socket.h`.
    const SO_MEMINFO: libc::c_int = 55;
    /// Place of the drops in the answer, from `linux/sock_diag.h`.
    const SK_MEMINFO_DROPS: usize = 8;
    let mut answer = [0; 64];
    let len = sockopt::read(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut answer).unwrap_or(0);
    let (words, _) = answer[..len].as_chunks::<4>();
    words.get(SK_MEMINFO_DROPS).map_or(0, |word| u64::from(u32::from_ne_bytes(*word)))
}
