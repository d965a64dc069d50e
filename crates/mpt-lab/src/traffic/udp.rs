//! Numbered UDP packets by a timetable: what a tunnel does to traffic that does not adapt.
//!
//! Each packet carries the mark of its run, its number and the time it was sent, padded to the size
//! asked for. The source keeps a [`Timetable`]: most simply, packet n is due n intervals after the
//! start. One that was held up by the scheduler leaves at once, so that the mean rate holds. The sink
//! keeps an [`Order`] ledger, the one-way delay of every first copy, and a [`Series`].

mod timetable;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;

use super::PATIENCE;
use super::jitter::Jitter;
use super::order::{Order, Summary};
use super::series::Series;
use super::spread::Spread;
pub use timetable::{Departure, Options, Timetable};

/// How long the sink listens on after the last packet was sent: longer than any path of the lab
/// delays plus any hold time of the tunnel.
const GRACE: Duration = Duration::from_secs(1);

/// How long a stream that has arrived in full is listened to for copies.
const COPIES: Duration = Duration::from_millis(100);

/// Bytes of mark, number and time at the start of every payload, and so the smallest payload.
pub const HEADER: usize = 24;

/// The largest UDP payload over IPv4.
pub const LARGEST: usize = 65_507;

/// The most packets one run may have: bounds the memory for arrivals and ledger to about 160 MB.
pub const MOST_PACKETS: u64 = 10_000_000;

/// Room asked for in a receiving socket's buffer, in bytes: a tenth of a second at 320 Mbit/s.
const BUFFER: usize = 4 << 20;

/// The receiving end.
#[derive(Debug)]
pub struct Sink {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Sink {
    /// Binds a free port of `address`, in the namespace of the calling thread.
    pub fn bind(address: IpAddr) -> io::Result<Self> {
        Self::bind_port(SocketAddr::new(address, 0))
    }

    /// Binds this address and port, in the namespace of the calling thread.
    pub fn bind_port(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        widen(&socket)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where the source has to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The sending end.
#[derive(Debug)]
pub struct Source {
    socket: UdpSocket,
}

impl Source {
    /// Makes the sending socket in the namespace of the calling thread.
    pub fn connect(remote: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr =
            if remote.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(remote)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket })
    }
}

/// What became of the packets of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Payload bytes of first copies, over time.
    pub series: Series,
    /// Lost, doubled and overtaken packets.
    pub order: Summary,
    /// One-way delay in milliseconds; `None` if nothing arrived.
    pub delay_ms: Option<Spread>,
    /// One-way jitter in milliseconds; `None` if fewer than two packets arrived.
    pub jitter_ms: Option<Jitter>,
    /// Packets the sender's kernel refused. They were never sent.
    pub refused: u64,
    /// First copies, in order of arrival.
    pub arrivals: Vec<Arrival>,
}

/// A packet that arrived, its first copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Its number: how many were sent before it.
    pub number: u64,
    /// One-way delay in milliseconds.
    pub delay_ms: f64,
}

/// A stream under way.
#[derive(Debug)]
pub struct Stream {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<Sent>>,
    receiver: Option<JoinHandle<Received>>,
}

impl Stream {
    /// Starts sending, counted from this call.
    ///
    /// # Errors
    ///
    /// The kernel gave no thread.
    pub fn start(sink: Sink, source: Source, timetable: impl Into<Timetable>) -> io::Result<Self> {
        let timetable = timetable.into();
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let origin = Instant::now();
        let run = Run { timetable, origin, mark: mark(&sink, &source)?, stop: Arc::clone(&stop) };

        let mut stream = Self { received: received.clone(), stop, sender: None, receiver: None };
        let receiving = run.clone();
        stream.receiver = Some(spawn("udp-sink", move || receive(&sink, &receiving, &received))?);
        stream.sender = Some(spawn("udp-source", move || send(&source, &run))?);
        Ok(stream)
    }

    /// Payload bytes the receiving application has got so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for the end of the run, which comes by itself. An error is that of a thread that failed.
    pub fn finish(mut self) -> io::Result<Report> {
        let failed = || io::Error::other("a traffic thread failed");
        let sender = self.sender.take().and_then(|thread| thread.join().ok());
        let receiver = self.receiver.take().and_then(|thread| thread.join().ok());
        let sent = sender.ok_or_else(failed)?;
        let Received { series, order, arrivals } = receiver.ok_or_else(failed)?;
        let delays: Vec<f64> = arrivals.iter().map(|arrival| arrival.delay_ms).collect();
        Ok(Report {
            series,
            order: order.finish(sent.packets),
            delay_ms: Spread::of(&delays),
            jitter_ms: Jitter::of(&delays),
            refused: sent.refused,
            arrivals,
        })
    }
}

impl Drop for Stream {
    /// A dropped stream stops at once, with its threads.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.sender.take() {
            drop(thread.join());
        }
        if let Some(thread) = self.receiver.take() {
            drop(thread.join());
        }
    }
}

/// What both threads of a stream share.
#[derive(Clone)]
struct Run {
    timetable: Timetable,
    origin: Instant,
    mark: u64,
    stop: Arc<AtomicBool>,
}

impl Run {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Gives a receiving socket room, so that a stall of its thread loses nothing.
///
/// Beyond the limit of the namespace if the user is permitted to, or within it.
pub(super) fn widen(socket: &UdpSocket) -> io::Result<()> {
    match setsockopt(socket, RcvBufForce, &BUFFER) {
        Ok(()) => Ok(()),
        Err(_) => socket2::SockRef::from(socket).set_recv_buffer_size(BUFFER),
    }
}

/// Distinguishes this run's packets from those of an earlier one still in flight: the ports of both
/// ends.
fn mark(sink: &Sink, source: &Source) -> io::Result<u64> {
    let source = source.socket.local_addr()?;
    Ok(u64::from(sink.address.port()) << 16 | u64::from(source.port()))
}

struct Sent {
    packets: u64,
    refused: u64,
}

fn send(source: &Source, run: &Run) -> Sent {
    let mut payload = vec![0; run.timetable.largest()];
    let mut refused = 0;
    let mut packets = 0;
    for Departure { due, size } in (0..).map_while(|slot| run.timetable.departure(slot)) {
        if !sleep_until(run, due) {
            break;
        }
        let sent = u64::try_from(run.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        payload[..HEADER].copy_from_slice(&Stamp { mark: run.mark, number: packets, sent }.bytes());
        // A refused packet leaves its number to the next one, so that no refusal looks like a loss.
        match source.socket.send(&payload[..size]) {
            Ok(_) => packets += 1,
            Err(_) => refused += 1,
        }
    }
    Sent { packets, refused }
}

/// Sleeps until `due` after the start, in short pieces; false if the run was stopped meanwhile.
fn sleep_until(run: &Run, due: Duration) -> bool {
    while !run.is_stopped() {
        let wait = due.saturating_sub(run.origin.elapsed());
        if wait.is_zero() {
            return true;
        }
        std::thread::sleep(wait.min(PATIENCE));
    }
    false
}

struct Received {
    series: Series,
    order: Order,
    arrivals: Vec<Arrival>,
}

fn receive(sink: &Sink, run: &Run, total: &AtomicU64) -> Received {
    let mut series = Series::new(run.timetable.length());
    let mut order = Order::new(run.timetable.packets());
    let mut arrivals = Vec::new();
    let mut payload = vec![0; LARGEST];
    let mut missing = run.timetable.packets();
    let mut end = run.timetable.length() + GRACE;
    while run.origin.elapsed() < end && !run.is_stopped() {
        // A pause or an ICMP error reported on the socket: check the clock and continue.
        let Ok(bytes) = sink.socket.recv(&mut payload) else {
            continue;
        };
        let now = run.origin.elapsed();
        let Some(stamp) = Stamp::read(&payload[..bytes]).filter(|stamp| stamp.mark == run.mark)
        else {
            continue;
        };
        if order.on_arrival(stamp.number) {
            let delay = now.saturating_sub(Duration::from_nanos(stamp.sent));
            arrivals.push(Arrival { number: stamp.number, delay_ms: delay.as_secs_f64() * 1e3 });
            series.on_delivery(now, bytes);
            total.fetch_add(bytes as u64, Ordering::Relaxed);
            missing -= 1;
            if missing == 0 {
                end = end.min(now + COPIES);
            }
        }
    }
    series.finish();
    Received { series, order, arrivals }
}

/// The first bytes of every payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    mark: u64,
    number: u64,
    /// Nanoseconds since the start of the run.
    sent: u64,
}

impl Stamp {
    fn bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.mark.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sent.to_be_bytes());
        bytes
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (mark, rest) = payload.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        Some(Self {
            mark: u64::from_be_bytes(*mark),
            number: u64::from_be_bytes(*number),
            sent: u64::from_be_bytes(*sent),
        })
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(body)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_stream_over_loopback_loses_doubles_and_reorders_nothing() {
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let options = Options::at_rate(1_000_000, 500, Duration::from_millis(500));
            let (sink, source) = ends(address);
            let report = Stream::start(sink, source, options).unwrap().finish().unwrap();
            let order = report.order;
            assert_eq!((order.sent, order.received, order.lost), (125, 125, 0), "{address}");
            assert_eq!((order.duplicated, order.reordered, report.refused), (0, 0, 0), "{address}");
            assert!(report.delay_ms.is_some() && report.jitter_ms.is_some());
        }
    }

    #[test]
    fn packets_leave_by_the_timetable_each_with_its_size() {
        let sizes = [1000, HEADER, 300];
        let due = Duration::from_millis(20);
        let departures = sizes.map(|size| Departure { due, size });
        let timetable = Timetable::listed(departures.to_vec(), Duration::from_millis(100));
        let (sink, source) = ends(Ipv4Addr::LOCALHOST.into());
        let report = Stream::start(sink, source, timetable).unwrap().finish().unwrap();
        let numbers: Vec<_> = report.arrivals.iter().map(|arrival| arrival.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let bytes: u64 = report.series.samples().iter().map(|sample| sample.bytes).sum();
        assert!(bytes == 0 || bytes == 1324, "all within the run, unless the machine stalled");
        assert!(report.series.longest_gap(Duration::ZERO, report.series.length()) >= due);
    }

    #[test]
    fn strange_packets_are_not_counted() {
        let options = Options::at_rate(100_000, 100, Duration::from_millis(300));
        let (sink, source) = ends(Ipv4Addr::LOCALHOST.into());
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(&[0xff; 100], sink.address()).unwrap();
        stranger.send_to(&[1], sink.address()).unwrap();
        let report = Stream::start(sink, source, options).unwrap().finish().unwrap();
        assert_eq!(report.order.received, report.order.sent);
        assert_eq!((report.order.duplicated, report.order.foreign), (0, 0));
    }

    #[test]
    fn stamps_survive_the_wire_and_short_payloads_are_none() {
        let stamp = Stamp { mark: 1, number: u64::MAX, sent: 3 };
        assert_eq!(Stamp::read(&stamp.bytes()), Some(stamp));
        assert_eq!(Stamp::read(&stamp.bytes()[..HEADER - 1]), None);
    }

    fn ends(address: IpAddr) -> (Sink, Source) {
        let sink = Sink::bind(address).unwrap();
        let source = Source::connect(sink.address()).unwrap();
        (sink, source)
    }
}
