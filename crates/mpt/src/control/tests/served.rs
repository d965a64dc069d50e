//! A control socket that is really served, and visitors who do as they are told.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_control::{Client, ErrorKind, Event, PathStatus, Reply, Request, TunnelStatus, codec};
use mpt_io::poll::{Events, Poll, Waker};

use crate::config;
use crate::control::daemon::Tunnel;
use crate::control::{Daemon, Listener, Server};

/// How long a test waits for what should come at once, on a machine that stands still at times.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Length of the status of a pretended tunnel: more than the kernel keeps for a slow visitor, which
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
            let tunnels = vec![Pretended::new("mpt0"), Pretended::new("mpt1")];
            let daemon = Daemon::new(&settings(), tunnels);
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
            daemon.into_tunnels().into_iter().flat_map(|tunnel| tunnel.set.into_inner()).collect()
        });
        Self { path, stop, waker, thread: Some(thread), _dir: dir }
    }

    /// A visitor who has said nothing yet.
    pub(super) fn visit(&self) -> Visitor {
        Visitor::new(&self.path)
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

/// A tunnel of which only `mpt0` answers.
struct Pretended {
    name: &'static str,
    set: RefCell<Vec<String>>,
}

impl Pretended {
    fn new(name: &'static str) -> Self {
        Self { name, set: RefCell::default() }
    }
}

impl Tunnel for Pretended {
    fn name(&self) -> &str {
        self.name
    }

    fn status(&self) -> Option<TunnelStatus> {
        let event = Event { text: "x".repeat(LONG), ..Event::default() };
        (self.name == "mpt0").then(|| TunnelStatus {
            name: self.name.into(),
            events: vec![event],
            ..TunnelStatus::default()
        })
    }

    fn set_path_status(&self, connection: &str, path: &str, status: PathStatus) -> bool {
        self.set.borrow_mut().push(format!("{connection}/{path} {status}"));
        true
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

fn settings() -> config::Settings {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, FILE).unwrap();
    config::load(file.path()).unwrap()
}

/// A visitor byte by byte.
pub(super) struct Visitor {
    pub(super) stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Visitor {
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
            Reply::Error { kind, message } => {
                assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
                kind
            }
            reply @ (Reply::Done | Reply::Status { .. } | Reply::Version { .. }) => {
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
