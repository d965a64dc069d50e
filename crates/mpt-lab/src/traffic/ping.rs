//! ICMP echo: delay only, on an idle network.
//!
//! A raw socket, since unprivileged namespaces do not allow the datagram kind. One thread sends at
//! its interval and reads in between. Over IPv4 the kernel hands the IP header along and leaves the
//! checksum to us (RFC 792); over IPv6 it is the other way round (RFC 3542 section 3.1).

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::PATIENCE;
use super::jitter::Jitter;
use super::spread::Spread;

/// Echo request and reply over IPv4 (RFC 792).
const V4: (u8, u8) = (8, 0);

/// Echo request and reply over IPv6 (RFC 4443 sections 4.1 and 4.2).
const V6: (u8, u8) = (128, 129);

/// Bytes of an echo message: the header, and 56 bytes of data, the usual size.
const MESSAGE: usize = 8 + 56;

/// How long the last request waits for its reply.
const GRACE: Duration = Duration::from_secs(1);

/// The most requests one run may have, given by the 16 bits of the sequence field.
pub const MOST_REQUESTS: u32 = 1 << 16;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many requests, at most [`MOST_REQUESTS`].
    pub count: u32,
    /// Time between two requests.
    pub interval: Duration,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Requests sent.
    pub sent: u32,
    /// Requests never answered.
    pub lost: u32,
    /// Further answers to requests that had been answered.
    pub duplicated: u32,
    /// Round-trip time in milliseconds; `None` without an answer.
    pub rtt_ms: Option<Spread>,
    /// Variation of successive round-trip times in milliseconds; `None` below two answers.
    pub jitter_ms: Option<Jitter>,
}

/// The asking end.
#[derive(Debug)]
pub struct Source {
    socket: Socket,
    remote: IpAddr,
}

impl Source {
    /// Makes the socket in the namespace of the calling thread. Needs CAP_NET_RAW there.
    pub fn connect(remote: IpAddr) -> io::Result<Self> {
        let (domain, protocol) = match remote {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.connect(&SocketAddr::new(remote, 0).into())?;
        Ok(Self { socket, remote })
    }
}

/// A run of requests under way.
#[derive(Debug)]
pub struct Ping {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Ping {
    /// Starts asking.
    pub fn start(source: Source, options: Options) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("ping".into())
            .spawn(move || ask(source, options, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Waits for the end of the run: the last reply, or one second after the last request.
    pub fn finish(mut self) -> io::Result<Report> {
        let report = self.thread.take().and_then(|thread| thread.join().ok());
        report.unwrap_or_else(|| Err(io::Error::other("the ping thread failed")))
    }
}

impl Drop for Ping {
    /// A dropped run stops at once.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn ask(mut source: Source, options: Options, stop: &AtomicBool) -> io::Result<Report> {
    let identifier = identifier(&source);
    let mut ledger = Ledger::default();
    let mut buffer = vec![0; 2048];
    let count = options.count.min(MOST_REQUESTS) as usize;
    let origin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let sent = ledger.requests.len();
        let now = origin.elapsed();
        let due = options.interval.saturating_mul(u32::try_from(sent).unwrap_or(u32::MAX));
        if sent < count && now >= due {
            let message = request(source.remote, identifier, sent as u16);
            // A request the kernel refuses (no route just now) is sent and lost, as for ping(8).
            let _refused = source.socket.write(&message);
            ledger.requests.push(Request { sent: now, answered: false });
            continue;
        }
        let end = ledger.requests.last().map_or(Duration::ZERO, |last| last.sent) + GRACE;
        let next = if sent < count { due } else { end };
        let wait = next.saturating_sub(now);
        if sent == count && (wait.is_zero() || ledger.is_complete()) {
            break;
        }
        // A timeout of zero would mean to wait for ever.
        source.socket.set_read_timeout(Some(wait.clamp(Duration::from_micros(1), PATIENCE)))?;
        let Ok(bytes) = source.socket.read(&mut buffer) else {
            continue;
        };
        let received = origin.elapsed();
        if let Some(number) = answer(source.remote, identifier, &buffer[..bytes]) {
            ledger.on_answer(number, received);
        }
    }
    Ok(ledger.report())
}

/// Distinguishes this run's replies from others: raw sockets receive every reply of the namespace.
///
/// The descriptor's number differs between sockets open at once, the process id between processes.
fn identifier(source: &Source) -> u16 {
    use std::os::fd::AsRawFd;
    (std::process::id() as u16).rotate_left(8) ^ source.socket.as_raw_fd() as u16
}

#[derive(Debug, Default)]
struct Ledger {
    requests: Vec<Request>,
    /// Milliseconds, in order of arrival.
    rtts: Vec<f64>,
    duplicated: u32,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    sent: Duration,
    answered: bool,
}

impl Ledger {
    fn on_answer(&mut self, number: u16, received: Duration) {
        let Some(request) = self.requests.get_mut(usize::from(number)) else {
            return;
        };
        if std::mem::replace(&mut request.answered, true) {
            self.duplicated += 1;
        } else {
            self.rtts.push(received.saturating_sub(request.sent).as_secs_f64() * 1e3);
        }
    }

    fn is_complete(&self) -> bool {
        self.rtts.len() == self.requests.len()
    }

    fn report(&self) -> Report {
        let sent = self.requests.len();
        Report {
            sent: sent as u32,
            lost: (sent - self.rtts.len()) as u32,
            duplicated: self.duplicated,
            rtt_ms: Spread::of(&self.rtts),
            jitter_ms: Jitter::of(&self.rtts),
        }
    }
}

/// An echo request, its checksum filled in where the kernel does not do it.
fn request(remote: IpAddr, identifier: u16, number: u16) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    message[0] = if remote.is_ipv4() { V4.0 } else { V6.0 };
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&number.to_be_bytes());
    if remote.is_ipv4() {
        let checksum = checksum(&message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    message
}

/// The number of the request a received packet answers, if it is an answer to this run.
fn answer(remote: IpAddr, identifier: u16, packet: &[u8]) -> Option<u16> {
    let (message, reply) = match remote {
        IpAddr::V4(_) => {
            let header = usize::from(packet.first()? & 0x0f) * 4;
            (packet.get(header..)?, V4.1)
        }
        IpAddr::V6(_) => (packet, V6.1),
    };
    let &[kind, 0, _, _, id_high, id_low, high, low, ..] = message else {
        return None;
    };
    let ours = kind == reply && u16::from_be_bytes([id_high, id_low]) == identifier;
    ours.then(|| u16::from_be_bytes([high, low]))
}

/// The Internet checksum (RFC 1071) of a message of even length.
fn checksum(message: &[u8]) -> u16 {
    let words =
        message.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn the_checksum_of_a_message_with_its_checksum_is_zero() {
        let message = request(Ipv4Addr::LOCALHOST.into(), 0xbeef, 0x0102);
        assert_ne!(message[2..4], [0, 0]);
        assert_eq!(checksum(&message), 0);
    }

    #[test]
    fn only_replies_to_this_run_count() {
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        let mut reply = request(v6, 7, 300);
        assert_eq!(answer(v6, 7, &reply), None, "a request is no reply");
        reply[0] = V6.1;
        assert_eq!(answer(v6, 7, &reply), Some(300));
        assert_eq!(answer(v6, 8, &reply), None, "another run's");
        assert_eq!(answer(v6, 7, &reply[..7]), None, "cut off");

        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        let mut packet = vec![0x46; 24];
        packet.extend([0, 0, 0, 0, 0, 7, 0, 9]);
        assert_eq!(answer(v4, 7, &packet), Some(9), "after a header with options");
        assert_eq!(answer(v4, 7, &packet[..20]), None);
        assert_eq!(answer(v4, 7, &[]), None);
    }

    #[test]
    fn the_ledger_distinguishes_lost_from_duplicated() {
        let mut ledger = Ledger::default();
        for number in 0..3 {
            let sent = Duration::from_millis(number * 10);
            ledger.requests.push(Request { sent, answered: false });
        }
        for (number, at) in [(0, 5), (2, 27), (2, 28), (900, 30)] {
            ledger.on_answer(number, Duration::from_millis(at));
        }
        let report = ledger.report();
        assert_eq!((report.sent, report.lost, report.duplicated), (3, 1, 1));
        assert_eq!(report.rtt_ms.unwrap().max, 7.0);
        assert_eq!(report.jitter_ms.unwrap().mean, 2.0);
    }
}
