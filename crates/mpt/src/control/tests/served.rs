//! A control socket that is really served, and clients who do as they are told.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_control::{
    Client, ErrorKind, Event, Explanation, Reply, Request, TraceMark, TunnelStatus, codec,
};
use mpt_io::poll::{Events, Poll, Waker};

use crate::config;
use crate::control::{Listener, Server};
use crate::daemon::{Daemon, Host};
use crate::tunnel::TraceAnswer;

/// How long a test waits for what should come at once, on a machine that stands still at times.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Length of the status of a pretended tunnel: more than the kernel keeps for a slow client, which
/// is some 200 kB by default.
pub(super) const LONG: usize = 1 << 20;

/// A control socket being served, with the pretended tunnels of [`FILE`] behind it.
pub(super) struct Served {
    pub(super) path: PathBuf,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<Vec<String>>>,
    _dir: Option<tempfile::TempDir>,
}

/// Two tunnels; both have a path `radio`.
const FILE: &str = r#"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24"]
[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2"]
path = [{ name = "fibre", remote = "192.0.2.1" }, { name = "radio", remote = "192.0.2.2" }]

[[tunnel]]
name = "mpt1"
addresses = ["10.8.0.1/24"]
[[tunnel.connection]]
name = "other"
local_port = 4755
peer = ["10.8.0.2"]
path = [{ name = "radio", remote = "192.0.2.3" }]
"#;

impl Served {
    pub(super) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = Listener::bind(&dir.path().join("control.sock")).unwrap();
        Self::serve(listener, Some(dir))
    }

    pub(super) fn bind(path: &Path) -> Self {
        Self::serve(Listener::bind(path).unwrap(), None)
    }

    pub(super) fn serve(listener: Listener, dir: Option<tempfile::TempDir>) -> Self {
        let path = listener.path().to_path_buf();
        let poll = Poll::new().unwrap();
        let waker = Waker::new(&poll, Server::FIRST_FREE_TOKEN).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut server = Server::new(listener, &poll).unwrap();
        let thread = thread::spawn(move || {
            let (host, file) = (Pretending::default(), PathBuf::new());
            let mut daemon = Daemon::start(host, file, settings(), Box::new(|_| ())).unwrap();
            let mut events = Events::with_capacity(8);
            while !stopped.load(Ordering::Relaxed) {
                poll.wait(&mut events, None).unwrap();
                let now = Instant::now();
                for event in events.iter() {
                    server.handle(event, &poll, now, &mut |request, control| {
                        daemon.answer(request, control)
                    });
                }
            }
            let set = daemon.host().0.set.clone();
            daemon.stop();
            set
        });
        Self { path, stop, waker, thread: Some(thread), _dir: dir }
    }

    /// A client who has said nothing yet.
    pub(super) fn visit(&self) -> RawClient {
        RawClient::new(&self.path)
    }

    /// The reply to one request on a connection of its own.
    pub(super) fn ask(&self, request: &Request) -> Reply {
        Client::connect_timeout(&self.path, PATIENCE).unwrap().request(request).unwrap()
    }

    /// How often the socket counted that refusal.
    pub(super) fn refused(&self, name: &str) -> u64 {
        let Reply::Status { status } = self.ask(&Request::Status {}) else { panic!("no status") };
        status.control.refused.get(name).copied().unwrap_or(0)
    }

    /// What was set on the tunnels.
    pub(super) fn stop(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || thread::panicking());
        }
    }
}

/// A machine that writes down what is wanted. Of its tunnels only `mpt0` answers.
#[derive(Default)]
struct Pretending {
    set: Vec<String>,
}

impl Host for Pretending {
    type Tunnel = config::Tunnel;

    fn start(&mut self, settings: &config::Tunnel) -> anyhow::Result<config::Tunnel> {
        Ok(settings.clone())
    }

    fn stop(&mut self, _: config::Tunnel) {}

    fn can_become(&self, _: &config::Tunnel, _: &config::Tunnel) -> bool {
        true
    }

    fn change(&mut self, tunnel: &mut config::Tunnel, new: &config::Tunnel) -> anyhow::Result<()> {
        for (was, is) in tunnel.connections.iter().zip(&new.connections) {
            for (was, is) in was.paths.iter().zip(&is.paths).filter(|(was, is)| was != is) {
                assert_eq!(was.name, is.name);
                let connection = &new.connections[0].name;
                self.set.push(format!("{connection}/{} {}", is.name, is.status));
            }
        }
        tunnel.clone_from(new);
        Ok(())
    }

    fn name<'t>(&self, tunnel: &'t config::Tunnel) -> &'t str {
        &tunnel.name
    }

    fn status(&self, tunnel: &config::Tunnel) -> Option<TunnelStatus> {
        let event = Event { text: "x".repeat(LONG), ..Event::default() };
        (tunnel.name == "mpt0").then(|| TunnelStatus {
            name: tunnel.name.clone(),
            events: vec![event],
            ..TunnelStatus::default()
        })
    }

    fn explain(&self, _: &config::Tunnel, _: Option<&str>) -> Option<Vec<Explanation>> {
        None
    }

    fn trace(
        &self,
        _: &config::Tunnel,
        _: Option<&str>,
        _: Option<TraceMark>,
    ) -> Option<TraceAnswer> {
        None
    }

    fn failure(&self, _: &config::Tunnel) -> Option<String> {
        None
    }
}

fn settings() -> config::Settings {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, FILE).unwrap();
    config::load(file.path()).unwrap()
}

/// A client byte by byte.
pub(super) struct RawClient {
    pub(super) stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl RawClient {
    pub(super) fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Self { stream, lines }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(super) fn reply(&mut self) -> Reply {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).unwrap();
        assert_eq!(line.pop(), Some(b'\n'), "the daemon hung up");
        codec::decode_reply(&line).unwrap()
    }

    pub(super) fn error(&mut self) -> ErrorKind {
        match self.reply() {
            Reply::Error { kind, message, .. } => {
                assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
                kind
            }
            reply @ (Reply::Changed { .. }
            | Reply::Config { .. }
            | Reply::Done
            | Reply::Explanation { .. }
            | Reply::Peers { .. }
            | Reply::Status { .. }
            | Reply::Trace { .. }
            | Reply::Version { .. }
            | Reply::WebToken { .. }) => {
                panic!("{reply:?}")
            }
        }
    }

    /// Whether the daemon has hung up; waits for it.
    pub(super) fn is_over(&mut self) -> bool {
        match self.lines.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
