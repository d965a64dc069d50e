//! What a datagram of somebody costs whom the server does not know.
//!
//! A stranger sends as fast as one thread can, from many ports, so that the kernel merges nothing. What counts is the
//! processor time of the server's process for each datagram that it has dropped: its own, and that with the kernel's work
//! for its system calls, which any program with a UDP port has to bear. What the kernel has dropped before is not counted.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::daemon::Daemon;
use crate::netns::Namespace;

/// From so many ports.
const PORTS: usize = 64;
/// The kernel counts processor time in ticks of 10 ms, of which there must be several.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// Headers of GRE with a key for EtherType 0x88B5, with and without a sequence number: data and control of sealed framing.
const DATA: [u8; 4] = [0x30, 0x00, 0x88, 0xb5];
const CONTROL: [u8; 4] = [0x20, 0x00, 0x88, 0xb5];
/// The byte behind it with the type of a handshake's first message.
const INITIATION: u8 = 3 << 4;

/// What a stranger sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgery {
    /// Data of 1400 bytes under an index that leads nowhere.
    Data,
    /// The first message of a handshake, as long as a true one, from somebody who does not know the server's public key. The
    /// server has to hash all of it.
    Initiation,
}

impl Forgery {
    pub(super) const ALL: [Self; 2] = [Self::Data, Self::Initiation];

    fn bytes(self) -> Vec<u8> {
        let (head, key, len) = match self {
            Self::Data => (DATA, 77_u32, 1400),
            // With the secret of an invitation, for one lane (section 9.2 of docs/protocol.md).
            Self::Initiation => (CONTROL, 0, 8 + 12 + 252),
        };
        let mut bytes = vec![0x55; len];
        bytes[..4].copy_from_slice(&head);
        bytes[4..8].copy_from_slice(&key.to_be_bytes());
        // With data, the sequence number stands first; type 0 is data, whatever the path.
        bytes[8..20].fill(0);
        if self == Self::Initiation {
            bytes[8] = INITIATION;
        }
        bytes
    }

    /// The reason for which the server drops it.
    fn reason(self) -> &'static str {
        match self {
            Self::Data => "unknown_index",
            Self::Initiation => "handshake_mac",
        }
    }
}

/// What each takes of the server.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// Microseconds of the program's own processor time.
    pub own_micros: f64,
    /// The same with the kernel's in system calls.
    pub with_kernel_micros: f64,
}

/// Has a stranger send such datagrams for a while.
///
/// # Errors
///
/// Datagrams are dropped for another reason than expected, or hardly any arrive.
pub(super) fn cost(
    forgery: Forgery,
    (host, at): (&Namespace, SocketAddr),
    server: (&Daemon, SocketAddr),
    length: Duration,
) -> Result<Cost> {
    let (daemon, to) = server;
    let open = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind(at)?;
        socket.connect(to)?;
        Ok(socket)
    };
    let sockets = host.run(|| (0..PORTS).map(|_| open()).collect::<std::io::Result<Vec<_>>>());
    let sockets = sockets.context("cannot open a socket")?;
    let datagram = forgery.bytes();
    let dropped = || -> Result<u64> {
        let status = daemon.status()?;
        Ok(status.tunnels[0].drops.get(forgery.reason()).copied().unwrap_or(0))
    };
    let (before, own, used) = (dropped()?, daemon.user_time()?, daemon.cpu_time()?);
    let begin = Instant::now();
    while begin.elapsed() < length {
        for socket in &sockets {
            // A full queue is the stranger's trouble.
            let _ = socket.send(&datagram);
        }
    }
    let (mut count, mut last) = (dropped()? - before, 0);
    while count != last {
        std::thread::sleep(super::TURN);
        (last, count) = (count, dropped()? - before);
    }
    let (own, used) = (daemon.user_time()? - own, daemon.cpu_time()? - used);
    ensure!(
        count > 0,
        "no datagram of a stranger was dropped as {}; there are {:?}",
        forgery.reason(),
        daemon.status()?.tunnels[0].drops
    );
    ensure!(used >= LEAST_TIME, "{count} datagrams in {used:?}: too few to measure");
    for socket in &sockets {
        socket.set_nonblocking(true).context("cannot look at a socket")?;
        let answer = socket.recv(&mut [0; 2048]);
        ensure!(answer.is_err(), "a stranger was answered: {answer:?}");
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    Ok(Cost { own_micros: each(own), with_kernel_micros: each(used) })
}
