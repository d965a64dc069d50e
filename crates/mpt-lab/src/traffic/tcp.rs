//! One flow of TCP or Multipath TCP that wants all the room there is, measured where it arrives.
//!
//! [`Sink`] and [`Source`] are the two sockets, made inside the namespaces of their hosts.
//! [`Flow::start`] then runs two threads: the source writes until the deadline, the sink reads and
//! keeps a [`Series`]. Both block for at most a moment, so that a flow through a network that died ends on
//! time all the same, with the silence in its series. The connection is reset at the end: nothing
//! lingers in a namespace that is about to disappear.

mod ends;
mod transport;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::processor::thread_time;
use super::series::Series;
pub use ends::{SetupError, Sink, Source};
pub use transport::Transport;

/// The congestion control of every flow unless an experiment names another: that of the published
/// measurements, and what most of the Internet sends with.
pub const CUBIC: &str = "cubic";

/// Bytes per write and read. Large enough to cost few system calls, small enough to stay in cache.
const BLOCK: usize = 128 * 1024;

/// What became of one flow.
#[derive(Clone, Debug)]
pub struct Report {
    /// Deliveries to the receiving application.
    pub series: Series,
    /// Segments the sender's kernel sent again. `None` for Multipath TCP, of which `TCP_INFO` shows
    /// the first subflow alone.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time at the end of the run, as the sender's kernel saw it; for Multipath
    /// TCP that of the first subflow. `None` if the kernel no longer knew it.
    pub rtt: Option<Duration>,
    /// Processor time, user and system, of the thread that sent.
    pub sender_processor: Duration,
    /// Processor time, user and system, of the thread that received.
    pub receiver_processor: Duration,
    /// Why the flow ended before its time, if it did.
    pub failure: Option<String>,
}

/// A flow under way.
#[derive(Debug)]
pub struct Flow {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<Sent>>,
    receiver: Option<JoinHandle<Received>>,
    /// Keeps listening until the end: a further subflow of Multipath TCP begins with a separate
    /// SYN, which may arrive after its connection was accepted.
    _listening: Sink,
}

impl Flow {
    /// Starts sending for `length`, counted from this call.
    pub fn start(sink: Sink, source: Source, length: Duration) -> Result<Self, SetupError> {
        Self::start_at(Instant::now(), sink, source, length)
    }

    /// Starts sending until `length` after `origin`, which is the beginning of the report's series. Flows
    /// that run together have one origin, so that their series can be added.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_at(
        origin: Instant,
        sink: Sink,
        source: Source,
        length: Duration,
    ) -> Result<Self, SetupError> {
        let incoming = sink.accept()?;
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let run = Run { origin, length, stop: Arc::clone(&stop) };

        let mut flow = Self {
            received: Arc::clone(&received),
            stop,
            sender: None,
            receiver: None,
            _listening: sink,
        };
        let receiving = run.clone();
        flow.receiver = Some(spawn("tcp-sink", move || receive(incoming, &receiving, &received))?);
        flow.sender = Some(spawn("tcp-source", move || send(source, &run))?);
        Ok(flow)
    }

    /// Bytes the receiving application has got so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for the end of the run. It comes by itself, at the deadline at the latest.
    pub fn finish(mut self) -> Report {
        let received = self.receiver.take().and_then(|thread| thread.join().ok());
        let sent = self.sender.take().and_then(|thread| thread.join().ok());
        let received = received.unwrap_or_else(|| Received {
            series: Series::new(Duration::ZERO),
            processor: Duration::ZERO,
            failure: Some("the receiving thread failed".into()),
            _open: None,
        });
        let sent = sent.unwrap_or_else(|| Sent {
            retransmits: None,
            rtt: None,
            processor: Duration::ZERO,
            failure: Some("the sending thread failed".into()),
            _open: None,
        });
        Report {
            series: received.series,
            retransmits: sent.retransmits,
            rtt: sent.rtt,
            sender_processor: sent.processor,
            receiver_processor: received.processor,
            failure: sent.failure.or(received.failure),
        }
    }
}

impl Drop for Flow {
    /// A dropped flow stops at once, with its threads.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.receiver.take() {
            drop(thread.join());
        }
        if let Some(thread) = self.sender.take() {
            drop(thread.join());
        }
    }
}

/// What both threads of a flow share.
#[derive(Clone)]
struct Run {
    origin: Instant,
    length: Duration,
    stop: Arc<AtomicBool>,
}

impl Run {
    /// Time since the start, or `None` once the run is over.
    fn elapsed(&self) -> Option<Duration> {
        let elapsed = self.origin.elapsed();
        (elapsed < self.length && !self.stop.load(Ordering::Relaxed)).then_some(elapsed)
    }
}

struct Received {
    series: Series,
    processor: Duration,
    failure: Option<String>,
    /// Neither end closes before the other has had its last word: a connection that was reset is
    /// an error to an end that still reads, and of Multipath TCP nothing is left to be asked.
    _open: Option<TcpStream>,
}

fn receive(mut stream: TcpStream, run: &Run, total: &AtomicU64) -> Received {
    let mut series = Series::new(run.length);
    let mut block = vec![0; BLOCK];
    let failure = loop {
        if run.elapsed().is_none() {
            break None;
        }
        match stream.read(&mut block) {
            Ok(0) => break Some("the sender closed the connection early".into()),
            Ok(bytes) => {
                series.on_delivery(run.origin.elapsed(), bytes);
                total.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => break Some(format!("receiving: {error}")),
        }
    };
    run.stop.store(true, Ordering::Relaxed);
    series.finish();
    Received { series, processor: thread_time(), failure, _open: Some(stream) }
}

struct Sent {
    retransmits: Option<u64>,
    rtt: Option<Duration>,
    processor: Duration,
    failure: Option<String>,
    _open: Option<TcpStream>,
}

fn send(source: Source, run: &Run) -> Sent {
    let Source { mut stream, transport } = source;
    // Not zero: untouched memory maps to the kernel's single zero page, which the kernel copies
    // faster than an application's data.
    let block = vec![0x5a; BLOCK];
    let mut failure = None;
    while run.elapsed().is_some() {
        match stream.write(&block) {
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            Err(error) => {
                failure = Some(format!("sending: {error}"));
                break;
            }
        }
    }
    let info = mpt_io::tcp_info::tcp_info(&stream).ok();
    let retransmits = info.filter(|_| transport == Transport::Tcp);
    Sent {
        retransmits: retransmits.map(|info| info.retransmits_total.into()),
        rtt: info.map(|info| info.rtt).filter(|rtt| !rtt.is_zero()),
        processor: thread_time(),
        failure,
        _open: Some(stream),
    }
}

/// True for the errors of a socket that merely has nothing to do.
fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SetupError> {
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(SetupError::Thread)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    const BRIEF: Duration = Duration::from_millis(600);

    #[test]
    fn a_flow_over_loopback_delivers_and_ends_by_itself() {
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let sink = Sink::listen(Transport::Tcp, address, None).unwrap();
            let source = Source::connect(Transport::Tcp, sink.address(), None, CUBIC).unwrap();
            let report = Flow::start(sink, source, BRIEF).unwrap().finish();
            assert_eq!(report.failure, None, "{address}");
            assert_eq!(report.series.length(), BRIEF);
            assert!(report.series.goodput(Duration::ZERO) > 1e6, "{address}");
        }
    }

    #[test]
    fn a_flow_with_an_older_origin_has_a_late_beginning_and_the_same_end() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(Transport::Tcp, sink.address(), None, CUBIC).unwrap();
        let origin = Instant::now() - BRIEF / 2;
        let series = Flow::start_at(origin, sink, source, BRIEF).unwrap().finish().series;
        assert_eq!(series.length(), BRIEF);
        assert!(series.samples()[..2].iter().all(|sample| sample.bytes == 0), "{series:?}");
        assert!(series.goodput(BRIEF / 2) > 0.0);
    }

    #[test]
    fn what_the_flow_counts_while_running_is_what_it_reports() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(Transport::Tcp, sink.address(), None, CUBIC).unwrap();
        let flow = Flow::start(sink, source, BRIEF).unwrap();
        let counter = Arc::clone(&flow.received);
        let report = flow.finish();
        let sum: u64 = report.series.samples().iter().map(|sample| sample.bytes).sum();
        let counted = counter.load(Ordering::Relaxed);
        // A last read may end past the deadline: counted, but no longer part of the run.
        assert!(sum <= counted && counted - sum <= BLOCK as u64, "{sum} of {counted}");
    }

    #[test]
    fn a_flow_with_a_failed_sink_ends_early_with_an_error() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(Transport::Tcp, sink.address(), None, CUBIC).unwrap();
        drop(sink.accept().unwrap());
        let run = Run {
            origin: Instant::now(),
            length: Duration::from_secs(60),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let sent = send(source, &run);
        assert!(sent.failure.is_some());
        assert!(run.elapsed().is_some(), "it did not sit out the minute");
    }

    #[test]
    fn both_threads_pay_for_what_they_carry() {
        let report = loopback(Transport::Tcp);
        assert!(!report.sender_processor.is_zero() && !report.receiver_processor.is_zero());
        // Its own thread's time and not the process's: it cannot exceed the elapsed time.
        let longest = BRIEF + Duration::from_secs(10);
        assert!(report.sender_processor < longest && report.receiver_processor < longest);
        assert!(report.retransmits.is_some() && report.rtt.is_some());
    }

    #[test]
    fn an_mptcp_flow_reports_what_its_kernel_supports() {
        if let Err(error) = Transport::Mptcp.socket(Ipv4Addr::LOCALHOST.into()) {
            assert!(std::env::var_os("MPT_NO_SKIP").is_none(), "no Multipath TCP: {error}");
            return;
        }
        let report = loopback(Transport::Mptcp);
        assert_eq!((report.failure, report.retransmits), (None, None));
        assert!(report.series.goodput(Duration::ZERO) > 1e6);
        assert!(report.rtt.is_some());
    }

    #[test]
    fn a_dropped_flow_stops() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(Transport::Tcp, sink.address(), None, CUBIC).unwrap();
        let flow = Flow::start(sink, source, Duration::from_secs(600)).unwrap();
        let stop = Arc::clone(&flow.stop);
        drop(flow);
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&stop), 1, "both threads are gone");
    }

    fn loopback(transport: Transport) -> Report {
        let sink = Sink::listen(transport, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(transport, sink.address(), None, CUBIC).unwrap();
        Flow::start(sink, source, BRIEF).unwrap().finish()
    }
}
