//! One TCP flow that wants all the room there is, measured where it arrives.
//!
//! [`Sink`] and [`Source`] are the two sockets, made inside the namespaces of their hosts.
//! [`Flow::start`] then runs two threads: the source writes until the deadline, the sink reads and
//! keeps a [`Series`]. Both block for at most a moment, so that a flow through a network that died ends on
//! time all the same, with the silence in its series. The connection is reset at the end: nothing
//! lingers in a namespace that is about to disappear.

mod ends;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::series::Series;
pub use ends::{SetupError, Sink, Source};

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
    /// Segments the sender's kernel sent again.
    pub retransmits: u64,
    /// Smoothed round-trip time at the end of the run, as the sender's kernel saw it.
    pub rtt: Duration,
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
}

impl Flow {
    /// Starts sending for `length`, counted from this call.
    pub fn start(sink: Sink, source: Source, length: Duration) -> Result<Self, SetupError> {
        let incoming = sink.accept()?;
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let run = Run { origin: Instant::now(), length, stop: Arc::clone(&stop) };

        let mut flow = Self { received: Arc::clone(&received), stop, sender: None, receiver: None };
        let receiving = run.clone();
        flow.receiver = Some(spawn("tcp-sink", move || receive(incoming, &receiving, &received))?);
        flow.sender = Some(spawn("tcp-source", move || send(source.stream, &run))?);
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
            failure: Some("the receiving thread failed".into()),
        });
        let sent = sent.unwrap_or_else(|| Sent {
            retransmits: 0,
            rtt: Duration::ZERO,
            failure: Some("the sending thread failed".into()),
        });
        Report {
            series: received.series,
            retransmits: sent.retransmits,
            rtt: sent.rtt,
            failure: sent.failure.or(received.failure),
        }
    }
}

impl Drop for Flow {
    /// A flow that nobody waits for stops within a moment, and its threads with it.
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
    failure: Option<String>,
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
    Received { series, failure }
}

struct Sent {
    retransmits: u64,
    rtt: Duration,
    failure: Option<String>,
}

fn send(mut stream: TcpStream, run: &Run) -> Sent {
    let block = vec![0; BLOCK];
    let mut failure = None;
    while run.elapsed().is_some() {
        match stream.write(&block) {
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            // The sink closes first at the end of a run, which resets the connection.
            Err(_) if run.elapsed().is_none() => break,
            Err(error) => {
                failure = Some(format!("sending: {error}"));
                break;
            }
        }
    }
    match mpt_io::tcp_info::tcp_info(&stream) {
        Ok(info) => Sent { retransmits: info.retransmits_total.into(), rtt: info.rtt, failure },
        Err(error) => Sent {
            retransmits: 0,
            rtt: Duration::ZERO,
            failure: failure.or(Some(format!("TCP_INFO: {error}"))),
        },
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
            let sink = Sink::listen(address, None).unwrap();
            let source = Source::connect(sink.address(), None, CUBIC).unwrap();
            let report = Flow::start(sink, source, BRIEF).unwrap().finish();
            assert_eq!(report.failure, None, "{address}");
            assert_eq!(report.series.length(), BRIEF);
            assert!(report.series.goodput(Duration::ZERO) > 1e6, "{address}");
        }
    }

    #[test]
    fn what_the_flow_counts_while_running_is_what_it_reports() {
        let sink = Sink::listen(Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(sink.address(), None, CUBIC).unwrap();
        let flow = Flow::start(sink, source, BRIEF).unwrap();
        let counter = Arc::clone(&flow.received);
        let report = flow.finish();
        let sum: u64 = report.series.samples().iter().map(|sample| sample.bytes).sum();
        let counted = counter.load(Ordering::Relaxed);
        // A last read may end past the deadline: counted, but no longer part of the run.
        assert!(sum <= counted && counted - sum <= BLOCK as u64, "{sum} of {counted}");
    }

    #[test]
    fn a_flow_whose_sink_dies_ends_early_and_says_so() {
        let sink = Sink::listen(Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(sink.address(), None, CUBIC).unwrap();
        drop(sink.accept().unwrap());
        let run = Run {
            origin: Instant::now(),
            length: Duration::from_secs(60),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let sent = send(source.stream, &run);
        assert!(sent.failure.is_some());
        assert!(run.elapsed().is_some(), "it did not sit out the minute");
    }

    #[test]
    fn a_dropped_flow_stops() {
        let sink = Sink::listen(Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = Source::connect(sink.address(), None, CUBIC).unwrap();
        let flow = Flow::start(sink, source, Duration::from_secs(600)).unwrap();
        let stop = Arc::clone(&flow.stop);
        drop(flow);
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&stop), 1, "both threads are gone");
    }
}
