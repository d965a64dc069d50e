//! One file being fetched.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::SockAddr;
use suppaftp::{FtpError, FtpResult, FtpStream};

use super::FILE;
use super::client::{Client, Sockets};
use crate::traffic::PATIENCE;
use crate::traffic::series::Series;

/// Bytes per read. Large enough to cost few system calls, small enough to stay in cache.
const BLOCK: usize = 128 * 1024;
/// A socket's time limit cannot be zero.
const LEAST: Duration = Duration::from_millis(1);

/// What became of one download.
#[derive(Clone, Debug)]
pub struct Report {
    /// Bytes of the file that arrived.
    pub bytes: u64,
    /// From the request for the file (RETR) to its last byte, or to the end if that never came.
    pub duration: Duration,
    /// Deliveries to the client, counted from the request; as long as `duration`, in whole samples.
    pub series: Series,
    /// Why the file is not complete, if it is not.
    pub failure: Option<String>,
}

/// A download under way.
#[derive(Debug)]
pub struct Download {
    run: Arc<Run>,
    sockets: Sockets,
    thread: Option<JoinHandle<Report>>,
}

impl Download {
    /// Starts fetching. Whatever happens it ends after `limit`, counted from this call.
    ///
    /// # Errors
    ///
    /// The kernel gives no thread or no further descriptor.
    pub fn start(client: Client, limit: Duration) -> io::Result<Self> {
        let Client { session, sockets, bytes } = client;
        let run = Arc::new(Run {
            deadline: Instant::now() + limit,
            limit,
            wanted: bytes,
            received: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            requested: OnceLock::new(),
        });
        let (running, reading) = (Arc::clone(&run), sockets.try_clone()?);
        let thread = thread::Builder::new()
            .name("ftp-download".into())
            .spawn(move || fetch(session, reading, &running))?;
        Ok(Self { run, sockets, thread: Some(thread) })
    }

    /// Bytes of the file that have arrived so far.
    pub fn received(&self) -> u64 {
        self.run.received.load(Ordering::Relaxed)
    }

    /// Whether it is over, so that [`finish`](Self::finish) would not wait.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the last byte, for the deadline at the longest.
    pub fn finish(mut self) -> Report {
        let report = self.thread.take().and_then(|thread| thread.join().ok());
        report.unwrap_or_else(|| Report {
            bytes: self.received(),
            duration: Duration::ZERO,
            series: Series::new(Duration::ZERO),
            failure: Some("the downloading thread failed".into()),
        })
    }
}

impl Drop for Download {
    /// A dropped download stops at once, with its thread.
    fn drop(&mut self) {
        self.run.stop.store(true, Ordering::Relaxed);
        self.sockets.shut_down();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What the thread and its owner share.
#[derive(Debug)]
struct Run {
    deadline: Instant,
    limit: Duration,
    wanted: u64,
    received: AtomicU64,
    stop: AtomicBool,
    /// When the file was asked for.
    requested: OnceLock<Instant>,
}

impl Run {
    /// Time to the deadline, as a time limit for a socket.
    fn rest(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(LEAST)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    fn since_request(&self) -> Duration {
        self.requested.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Why the run ended before the file did.
    fn unfinished(&self) -> String {
        let (received, wanted) = (self.received.load(Ordering::Relaxed), self.wanted);
        let limit = self.limit.as_secs_f64();
        format!(
            "{received} of {wanted} bytes had arrived when the time was over, after {limit:.1} s"
        )
    }
}

fn fetch(session: FtpStream, sockets: Sockets, run: &Arc<Run>) -> Report {
    let mut series = Series::new(run.limit);
    let mut last = Duration::ZERO;
    let result = transfer(session, sockets, run, |at, bytes| {
        series.on_delivery(at, bytes);
        last = at;
    });
    let failure = match result {
        Ok(()) => None,
        Err(_) if run.is_over() => Some(run.unfinished()),
        Err(error) => Some(error.to_string()),
    };
    let duration = if failure.is_none() { last } else { run.since_request() };
    series.finish_at(duration);
    Report { bytes: run.received.load(Ordering::Relaxed), duration, series, failure }
}

/// Asks for the file and reads all of it.
fn transfer(
    session: FtpStream,
    sockets: Sockets,
    run: &Arc<Run>,
    mut deliver: impl FnMut(Duration, usize),
) -> FtpResult<()> {
    let control = sockets.control.try_clone().map_err(FtpError::ConnectionError)?;
    control.set_read_timeout(Some(run.rest())).map_err(FtpError::ConnectionError)?;
    let joining = Arc::clone(run);
    let mut session = session.passive_stream_builder(move |address| {
        join(&sockets, address, &joining).map_err(FtpError::ConnectionError)
    });
    let mut file = session.retr_as_stream(FILE)?;
    let mut block = vec![0; BLOCK];
    let result = loop {
        if run.is_over() {
            break Err(io::ErrorKind::TimedOut.into());
        }
        match file.read(&mut block) {
            Ok(0) => break Ok(()),
            Ok(bytes) => {
                deliver(run.since_request(), bytes);
                run.received.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => break Err(error),
        }
    };
    if let Err(error) = result {
        // Without this, dropping the file would wait for the server's last reply.
        let _ = control.shutdown(std::net::Shutdown::Both);
        return Err(FtpError::ConnectionError(error));
    }
    control.set_read_timeout(Some(run.rest())).map_err(FtpError::ConnectionError)?;
    file.finish()?;
    let received = run.received.load(Ordering::Relaxed);
    if received == run.wanted {
        return Ok(());
    }
    let short = format!("the server sent {received} bytes of {} and reported success", run.wanted);
    Err(FtpError::ConnectionError(io::Error::new(io::ErrorKind::UnexpectedEof, short)))
}

/// Opens the data connection; the request for the file is the next thing that the client sends.
fn join(sockets: &Sockets, address: SocketAddr, run: &Run) -> io::Result<TcpStream> {
    sockets.data.connect_timeout(&SockAddr::from(address), run.rest())?;
    sockets.data.set_linger(Some(Duration::ZERO))?;
    sockets.data.set_read_timeout(Some(PATIENCE))?;
    sockets.control.set_read_timeout(Some(run.rest()))?;
    let data = sockets.data.try_clone()?;
    // A session fetches once.
    let _ = run.requested.set(Instant::now());
    Ok(data.into())
}

/// True for the errors of a socket that merely has nothing to do.
fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
