//! One QUIC flow that wants all the room there is, measured where it arrives.
//!
//! QUIC (RFC 9000) is what a growing part of the Internet sends with, and it does not forgive like a
//! kernel's TCP: a packet overtaken by three others counts as lost (RFC 9002 section 6.1.1), and few
//! implementations learn from having been wrong. So it shows what order of arrival is worth. The library
//! is quinn, as it comes, with its own choice of everything but the windows (see [`Source::connect`]).
//!
//! [`Sink`] and [`Source`] are two UDP sockets, made inside the namespaces of their hosts.
//! [`Flow::start`] makes a thread for either, each with a runtime that has this one thread, and waits
//! until they have shaken hands. From then on the source fills one unidirectional stream until the
//! deadline, and the sink reads it in order and keeps a [`Series`]. A network that died meanwhile ends
//! nothing: there is no idle time-out, and the silence is in the series.

mod congestion;
mod ends;
mod peers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{Connection, ConnectionStats, ReadError, VarInt, WriteError};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::processor::thread_time;
use super::series::Series;
pub use congestion::{Congestion, UnknownCongestion};
pub use ends::{SetupError, Sink, Source};
use peers::Peer;

/// How long the two ends may take to find each other.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes handed over at once.
const BLOCK: usize = 128 * 1024;

/// Pieces of the stream taken over at once. A piece is what one packet carried.
const PIECES: usize = 64;

/// What became of one flow.
#[derive(Clone, Debug)]
pub struct Report {
    /// Deliveries to the receiving application, in the order of the stream.
    pub series: Series,
    /// Packets the sender sent, those of the handshake included.
    pub sent_packets: u64,
    /// Packets the sender took for lost, rightly or not.
    pub lost_packets: u64,
    /// Smoothed round-trip time at the end of the run, as the sender saw it.
    pub rtt: Duration,
    /// What the sender controlled its congestion window with.
    pub congestion: Congestion,
    /// Processor time, user and system, of the thread that sent, from the start of the run. It
    /// includes encryption.
    pub sender_processor: Duration,
    /// Processor time, user and system, of the thread that received, from the start of the run.
    pub receiver_processor: Duration,
    /// Why the flow ended before its time, if it did.
    pub failure: Option<String>,
}

/// A flow whose ends have found each other and wait to begin.
pub struct Ready {
    received: Arc<AtomicU64>,
    congestion: Congestion,
    source: Connection,
    sink: Connection,
    sender: Starting<Sent>,
    receiver: Starting<Received>,
}

/// A flow under way.
#[derive(Debug)]
pub struct Flow {
    received: Arc<AtomicU64>,
    congestion: Congestion,
    run: Run,
    sender: Option<JoinHandle<Option<Sent>>>,
    receiver: Option<JoinHandle<Option<Received>>>,
}

impl Ready {
    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// The ends did not find each other within ten seconds, or could not be set up at all.
    pub fn connect(sink: Sink, source: Source) -> Result<Self, SetupError> {
        let remote = sink.address();
        let congestion = source.congestion();
        let [sink, source] = peers::pair(sink, source)?;
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        let receiver = Starting::new("quic-sink", sink, |run| receive(run, counter))?;
        let sender = Starting::new("quic-source", source, send)?;

        let (source, sink) = (sender.connected(), receiver.connected());
        let (source, sink) = match (source, sink) {
            (Ok(source), Ok(sink)) => (source, sink),
            (Err(why), _) | (_, Err(why)) => {
                // The end that waits for the start is notified that there is none.
                let (sender, receiver) = (sender.give_up(), receiver.give_up());
                drop((sender.join(), receiver.join()));
                return Err(SetupError::Handshake { remote, why });
            }
        };
        Ok(Self { received, congestion, source, sink, sender, receiver })
    }

    /// Starts sending until `length` after `origin`, which is the beginning of the report's series. Flows
    /// that run together have one origin, so that their series can be added.
    pub fn begin(self, origin: Instant, length: Duration) -> Flow {
        let Self { received, congestion, source, sink, sender, receiver } = self;
        let run = Run { origin, length, source, sink };
        let sender = Some(sender.begin(run.clone()));
        let receiver = Some(receiver.begin(run.clone()));
        Flow { received, congestion, run, sender, receiver }
    }
}

impl Flow {
    /// Shakes hands, then starts sending for `length`.
    ///
    /// # Errors
    ///
    /// As [`Ready::connect`].
    pub fn start(sink: Sink, source: Source, length: Duration) -> Result<Self, SetupError> {
        Ok(Ready::connect(sink, source)?.begin(Instant::now(), length))
    }

    /// Bytes the receiving application has got so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for the end of the run. It comes by itself, at the deadline at the latest.
    pub fn finish(mut self) -> Report {
        let received = self.receiver.take().and_then(|thread| thread.join().ok().flatten());
        let sent = self.sender.take().and_then(|thread| thread.join().ok().flatten());
        let received = received.unwrap_or_else(|| Received {
            series: Series::new(Duration::ZERO),
            processor: Duration::ZERO,
            failure: Some("the receiving thread failed".into()),
        });
        let sent = sent.unwrap_or_else(|| Sent {
            statistics: ConnectionStats::default(),
            processor: Duration::ZERO,
            failure: Some("the sending thread failed".into()),
        });
        Report {
            series: received.series,
            sent_packets: sent.statistics.path.sent_packets,
            lost_packets: sent.statistics.path.lost_packets,
            rtt: sent.statistics.path.rtt,
            congestion: self.congestion,
            sender_processor: sent.processor,
            receiver_processor: received.processor,
            failure: sent.failure.or(received.failure),
        }
    }
}

impl Drop for Flow {
    /// A dropped flow stops at once, with its threads.
    fn drop(&mut self) {
        self.run.abort();
        if let Some(thread) = self.receiver.take() {
            drop(thread.join());
        }
        if let Some(thread) = self.sender.take() {
            drop(thread.join());
        }
    }
}

/// What both threads of a flow share.
#[derive(Clone, Debug)]
struct Run {
    origin: Instant,
    length: Duration,
    /// The sending end of the connection.
    source: Connection,
    /// The receiving end of the connection.
    sink: Connection,
}

impl Run {
    /// Ends the run for both, without a packet: the network between may be the reason.
    fn abort(&self) {
        for end in [&self.source, &self.sink] {
            end.close(VarInt::from_u32(0), b"the run is over");
        }
    }

    fn is_over(&self) -> bool {
        self.origin.elapsed() >= self.length
    }

    fn deadline(&self) -> tokio::time::Instant {
        (self.origin + self.length).into()
    }
}

/// A thread that does the handshake and then waits for the start of the run.
struct Starting<T> {
    handshake: mpsc::Receiver<Result<Connection, String>>,
    begin: oneshot::Sender<Run>,
    thread: JoinHandle<Option<T>>,
}

impl<T: Send + 'static> Starting<T> {
    fn new<F: Future<Output = T> + Send>(
        name: &str,
        peer: Peer,
        work: impl FnOnce(Run) -> F + Send + 'static,
    ) -> Result<Self, SetupError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(SetupError::Runtime)?;
        let (told, handshake) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        let body = async move {
            let (_endpoint, connection) = match peer.connect(CONNECT).await {
                Ok(connected) => connected,
                Err(why) => {
                    // There is no receiver if the other end has failed before.
                    let _ = told.send(Err(why));
                    return None;
                }
            };
            told.send(Ok(connection)).ok()?;
            // While waiting here, the runtime continues with the rest of the handshake.
            let run = begun.await.ok()?;
            Some(work(run).await)
        };
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || runtime.block_on(body))
            .map_err(SetupError::Runtime)?;
        Ok(Self { handshake, begin, thread })
    }

    /// Waits for the handshake, which has its own time limit.
    fn connected(&self) -> Result<Connection, String> {
        self.handshake.recv().unwrap_or_else(|_| Err("the thread of one end failed".into()))
    }

    fn begin(self, run: Run) -> JoinHandle<Option<T>> {
        // A thread that is gone has its failure reported when it is joined.
        let _ = self.begin.send(run);
        self.thread
    }

    fn give_up(self) -> JoinHandle<Option<T>> {
        self.thread
    }
}

struct Received {
    series: Series,
    processor: Duration,
    failure: Option<String>,
}

async fn receive(run: Run, total: Arc<AtomicU64>) -> Received {
    let before = thread_time();
    let mut series = Series::new(run.length);
    let reading = read(&run, &mut series, &total);
    // The deadline is no failure.
    let end = timeout_at(run.deadline(), reading).await.unwrap_or(Ok(()));
    if end.is_err() {
        run.abort();
    }
    series.finish();
    let failure = end.err().map(|error| format!("receiving: {error}"));
    Received { series, processor: thread_time() - before, failure }
}

async fn read(run: &Run, series: &mut Series, total: &AtomicU64) -> Result<(), ReadError> {
    let mut stream = run.sink.accept_uni().await?;
    let mut pieces: [Bytes; PIECES] = std::array::from_fn(|_| Bytes::new());
    while !run.is_over() {
        let Some(count) = stream.read_chunks(&mut pieces).await? else { break };
        let bytes = pieces[..count].iter().map(Bytes::len).sum();
        series.on_delivery(run.origin.elapsed(), bytes);
        total.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    Ok(())
}

struct Sent {
    statistics: ConnectionStats,
    processor: Duration,
    failure: Option<String>,
}

async fn send(run: Run) -> Sent {
    let before = thread_time();
    let writing = write(&run);
    let end = timeout_at(run.deadline(), writing).await.unwrap_or(Ok(()));
    if end.is_err() {
        run.abort();
    }
    let failure = end.err().map(|error| format!("sending: {error}"));
    Sent { statistics: run.source.stats(), processor: thread_time() - before, failure }
}

async fn write(run: &Run) -> Result<(), WriteError> {
    let mut stream = run.source.open_uni().await?;
    // The library keeps a reference until the bytes have been acknowledged, and no copy.
    let block = Bytes::from(vec![0x5a; BLOCK]);
    while !run.is_over() {
        stream.write_chunk(block.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    const BRIEF: Duration = Duration::from_millis(600);

    #[test]
    fn a_flow_over_loopback_delivers_and_ends_by_itself() {
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let report = start(address, Congestion::default(), BRIEF).finish();
            assert_eq!(report.failure, None, "{address}");
            assert_eq!(report.series.length(), BRIEF);
            assert!(report.series.goodput(Duration::ZERO) > 1e6, "{address}");
            assert!(report.sent_packets > report.lost_packets && !report.rtt.is_zero());
            assert!(!report.sender_processor.is_zero() && !report.receiver_processor.is_zero());
        }
    }

    #[test]
    fn every_congestion_control_carries_and_is_named() {
        for congestion in [Congestion::Bbr, Congestion::Cubic, Congestion::NewReno] {
            let report = start(Ipv4Addr::LOCALHOST.into(), congestion, BRIEF).finish();
            assert_eq!((report.congestion, report.failure), (congestion, None));
            assert!(report.series.goodput(Duration::ZERO) > 1e6, "{congestion}");
        }
    }

    #[test]
    fn flows_run_beside_each_other_and_count_their_own() {
        let flows = [(); 3].map(|()| start(Ipv4Addr::LOCALHOST.into(), Congestion::Cubic, BRIEF));
        for flow in flows {
            let counter = Arc::clone(&flow.received);
            let report = flow.finish();
            let sum: u64 = report.series.samples().iter().map(|sample| sample.bytes).sum();
            let counted = counter.load(Ordering::Relaxed);
            // The last pieces may come past the deadline: counted, but no longer part of the run.
            assert!(sum > 0 && sum <= counted, "{sum} of {counted}");
        }
    }

    #[test]
    fn a_flow_with_a_failed_end_ends_early_with_an_error() {
        let flow = start(Ipv4Addr::LOCALHOST.into(), Congestion::Cubic, Duration::from_secs(60));
        let began = Instant::now();
        flow.run.sink.close(VarInt::from_u32(7), b"enough");
        let report = flow.finish();
        assert!(report.failure.is_some());
        assert!(began.elapsed() < Duration::from_secs(50), "it did not sit out its time");
    }

    #[test]
    fn a_dropped_flow_stops() {
        let flow = start(Ipv4Addr::LOCALHOST.into(), Congestion::Cubic, Duration::from_secs(600));
        let counter = Arc::clone(&flow.received);
        drop(flow);
        assert_eq!(Arc::strong_count(&counter), 1, "both threads are gone");
    }

    fn start(address: IpAddr, congestion: Congestion, length: Duration) -> Flow {
        let sink = Sink::listen(address, None).unwrap();
        let source = Source::connect(sink.address(), None, congestion).unwrap();
        Flow::start(sink, source, length).unwrap()
    }
}
