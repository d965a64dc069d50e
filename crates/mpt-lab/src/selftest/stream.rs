//! Numbered packets through one link, and when each was sent and arrived.
//!
//! Both threads read one clock, so one-way delays need no synchronisation. Memory is bounded by the
//! timetable: 24 bytes for each packet that arrived.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::HEADERS;
use crate::stop::Stop;

/// How long a blocked read waits before it looks at the clock and at the stop flag again.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long the sink listens on after the last packet was sent: far beyond the delays that are set, and
/// beyond what a full queue holds.
const GRACE: Duration = Duration::from_millis(400);

/// A thread that runs so much after its time was held up by more than a timer.
const STALL: Duration = Duration::from_millis(1);

/// Room in the sink's socket: 100 Mbit/s for 150 ms.
const BUFFER: usize = 4 << 20;

/// What is sent, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    /// Bytes of a whole IP packet.
    size: usize,
    /// Time from one burst to the next.
    interval: Duration,
    /// Packets that leave at once.
    burst: u32,
}

impl Timetable {
    /// IP packets of `size` bytes at a rate, in bursts.
    pub(super) fn new(size: usize, packets_per_second: f64, burst: u32) -> Self {
        let interval = Duration::from_secs_f64(f64::from(burst) / packets_per_second);
        Self { size, interval, burst }
    }

    /// How many packets that is in a time.
    pub(super) fn packets(&self, length: Duration) -> u64 {
        let bursts = length.as_nanos() / self.interval.as_nanos().max(1);
        u64::try_from(bursts).unwrap_or(u64::MAX) * u64::from(self.burst)
    }
}

/// What arrived of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Packets that the sending kernel took.
    pub(super) sent: u64,
    /// Bytes of each as a whole IP packet.
    pub(super) size: usize,
    /// For each packet in the order of arrival: when it was sent and when it arrived, after the start.
    pub(super) times: Vec<(Duration, Duration)>,
    /// From when until when the sending thread should have run and did not.
    pub(super) stalls: Vec<(Duration, Duration)>,
}

impl Arrivals {
    /// One-way delays in milliseconds, in the order of arrival.
    pub(super) fn delays_ms(&self) -> Vec<f64> {
        self.times.iter().map(delay_ms).collect()
    }

    /// The same without packets that were under way while the sending thread was held up. Where the
    /// whole machine stands still, they are late whatever the link does.
    pub(super) fn undisturbed_delays_ms(&self) -> Vec<f64> {
        let disturbed = |&&(sent, arrived): &&(Duration, Duration)| {
            self.stalls.iter().any(|&(from, until)| sent < until && arrived >= from)
        };
        self.times.iter().filter(|times| !disturbed(times)).map(delay_ms).collect()
    }
}

fn delay_ms(&(sent, arrived): &(Duration, Duration)) -> f64 {
    arrived.saturating_sub(sent).as_secs_f64() * 1e3
}

/// A socket on a free port of `address`, in the namespace of the calling thread.
pub(super) fn sink(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Beyond the machine's limit only the right to do so helps; else as much as there is.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER)?;
    }
    Ok(socket)
}

/// A socket that sends to `remote` from the namespace of the calling thread.
pub(super) fn source(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if remote.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(remote)?;
    Ok(socket)
}

#[derive(Default)]
struct Sent {
    packets: u64,
    stalls: Vec<(Duration, Duration)>,
}

/// A stream under way. It ends by itself.
pub(super) struct Stream {
    size: usize,
    sender: JoinHandle<Sent>,
    receiver: JoinHandle<Vec<(Duration, Duration)>>,
}

impl Stream {
    /// Starts both threads.
    pub(super) fn start(
        source: UdpSocket,
        sink: UdpSocket,
        timetable: Timetable,
        length: Duration,
        stop: &Stop,
    ) -> io::Result<Self> {
        let origin = Instant::now();
        let sent_all = Arc::new(AtomicBool::new(false));
        let (sending, receiving) = (stop.clone(), stop.clone());
        let done = Arc::clone(&sent_all);
        let most = usize::try_from(timetable.packets(length)).unwrap_or(usize::MAX);
        let receiver = thread::Builder::new()
            .name("selftest-sink".into())
            .spawn(move || receive(&sink, origin, most, &done, &receiving))?;
        let sender = thread::Builder::new().name("selftest-source".into()).spawn(move || {
            let sent = send(&source, origin, timetable, length, &sending);
            sent_all.store(true, Ordering::Release);
            sent
        })?;
        Ok(Self { size: timetable.size, sender, receiver })
    }

    /// Waits for the end. A thread that failed has sent or received nothing.
    pub(super) fn finish(self) -> Arrivals {
        let sent = self.sender.join().unwrap_or_default();
        let times = self.receiver.join().unwrap_or_default();
        Arrivals { sent: sent.packets, size: self.size, times, stalls: sent.stalls }
    }
}

fn send(
    source: &UdpSocket,
    origin: Instant,
    timetable: Timetable,
    length: Duration,
    stop: &Stop,
) -> Sent {
    let mut payload = vec![0; timetable.size - HEADERS];
    let mut sent = Sent::default();
    let bursts = timetable.packets(length) / u64::from(timetable.burst);
    for burst in 0..bursts {
        let due = timetable.interval.saturating_mul(u32::try_from(burst).unwrap_or(u32::MAX));
        let wait = due.saturating_sub(origin.elapsed());
        thread::sleep(wait);
        let now = origin.elapsed();
        // Who comes late from an earlier stall has not been held up again.
        if !wait.is_zero() && now > due + STALL {
            sent.stalls.push((due, now));
        }
        if stop.check().is_err() {
            break;
        }
        for _ in 0..timetable.burst {
            let now = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            payload[..8].copy_from_slice(&now.to_be_bytes());
            sent.packets += u64::from(source.send(&payload).is_ok());
        }
    }
    sent
}

fn receive(
    sink: &UdpSocket,
    origin: Instant,
    most: usize,
    sent_all: &AtomicBool,
    stop: &Stop,
) -> Vec<(Duration, Duration)> {
    let mut times = Vec::with_capacity(most);
    let mut payload = [0; 2048];
    let mut silent_since = Instant::now();
    while times.len() < most && stop.check().is_ok() {
        let Ok(bytes) = sink.recv(&mut payload) else {
            if sent_all.load(Ordering::Acquire) && silent_since.elapsed() > GRACE {
                break;
            }
            continue;
        };
        let now = origin.elapsed();
        silent_since = Instant::now();
        if let Some(sent) = payload[..bytes].first_chunk() {
            times.push((Duration::from_nanos(u64::from_be_bytes(*sent)), now));
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn everything_sent_over_loopback_arrives_with_its_times() {
        let sink = sink(Ipv4Addr::LOCALHOST.into()).unwrap();
        let source = source(sink.local_addr().unwrap()).unwrap();
        let timetable = Timetable::new(200, 2000.0, 5);
        let length = Duration::from_millis(100);
        let stream = Stream::start(source, sink, timetable, length, &Stop::default()).unwrap();
        let arrivals = stream.finish();
        assert_eq!((arrivals.sent, arrivals.times.len(), arrivals.size), (200, 200, 200));
        assert!(arrivals.times.iter().all(|(sent, arrived)| arrived >= sent));
        assert!(arrivals.times.is_sorted_by_key(|&(_, arrived)| arrived));
        assert!(arrivals.times[199].0 >= Duration::from_micros(97_500), "{arrivals:?}");
    }

    #[test]
    fn packets_in_flight_during_a_stall_are_omitted() {
        let ms = Duration::from_millis;
        let times = vec![(ms(0), ms(10)), (ms(1), ms(11)), (ms(14), ms(29)), (ms(15), ms(25))];
        let arrivals = Arrivals { sent: 4, size: 0, times, stalls: vec![(ms(11), ms(15))] };
        assert_eq!(arrivals.undisturbed_delays_ms(), [10.0, 10.0]);
        assert_eq!(arrivals.delays_ms().len(), 4);
    }

    #[test]
    fn a_stopped_stream_ends_at_once() {
        let stop = Stop::default();
        stop.set();
        let sink = sink(Ipv4Addr::LOCALHOST.into()).unwrap();
        let source = source(sink.local_addr().unwrap()).unwrap();
        let timetable = Timetable::new(200, 1.0, 1);
        let day = Duration::from_secs(86_400);
        let arrivals = Stream::start(source, sink, timetable, day, &stop).unwrap().finish();
        assert_eq!(arrivals.sent, 0);
    }
}
