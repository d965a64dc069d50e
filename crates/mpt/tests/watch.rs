//! `mpt status --watch` as its users meet it: the real binary on a terminal of the test's own.
//!
//! The daemon is a test double. It answers every client until it is stopped.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_control::{ConnectionState, PathState, Reply, Status, TunnelStatus, codec};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;

/// How long anything may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_terminal_is_given_back_as_it_was() {
    let daemon = Daemon::new();
    for end in ["q", "\x1b", "\x03", "TERM", "HUP"] {
        let mut watch = Watch::start(&daemon.socket);
        let before = watch.settings();
        watch.wait_for("server");
        watch.wait_for("Enter focus");
        assert_ne!(watch.settings().local_flags, before.local_flags, "keys come one by one");
        match end {
            "TERM" => watch.signal(Signal::SIGTERM),
            "HUP" => watch.signal(Signal::SIGHUP),
            keys => watch.type_in(keys),
        }
        let (status, text) = watch.end();
        assert_eq!(status.code(), Some(0), "{end:?}");
        assert!(text.contains("\x1b[?1049h"), "the screen behind it is kept: {end:?}");
        assert!(text.contains("\x1b[?1049l") && text.contains("\x1b[?25h"), "{end:?}: {text:?}");
        // What `settings` compared is compared again once the process is gone.
        assert!(text.ends_with("settings restored"), "{end:?}");
    }
}

#[test]
fn a_daemon_that_leaves_is_waited_for() {
    let mut daemon = Daemon::new();
    let mut watch = Watch::start(&daemon.socket);
    watch.wait_for("server");
    daemon.leave();
    watch.wait_for("no answer");
    daemon.come_back();
    watch.wait_for("process");
    watch.type_in("q");
    assert_eq!(watch.end().0.code(), Some(0));
}

#[test]
fn without_a_terminal_the_error_suggests_json() {
    let daemon = Daemon::new();
    let output = mpt(&daemon.socket, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("mpt: ") && text.contains("--watch --json"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn programs_get_a_line_per_interval_until_they_go() {
    let daemon = Daemon::new();
    let mut lines = mpt(&daemon.socket, &["--json", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(lines.stdout.take().unwrap());
    for _ in 0..3 {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status: Status = serde_json::from_str(&line).unwrap();
        assert_eq!(status.tunnels[0].name, "mpt0");
    }
    drop(reader);
    assert_eq!(wait(&mut lines).code(), Some(0));
}

#[test]
fn a_reader_that_goes_is_noticed_between_lines() {
    let daemon = Daemon::new();
    let mut lines = mpt(&daemon.socket, &["--json", "--interval", "3600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(lines.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    assert_eq!(lines.try_wait().unwrap(), None);
    drop(reader);
    assert_eq!(wait(&mut lines).code(), Some(0));
}

#[test]
fn lines_go_on_when_the_daemon_is_back() {
    let mut daemon = Daemon::new();
    let mut lines = mpt(&daemon.socket, &["--json", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(lines.stdout.take().unwrap());
    let mut complaints = BufReader::new(lines.stderr.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    daemon.leave();
    let mut complaint = String::new();
    complaints.read_line(&mut complaint).unwrap();
    assert!(complaint.starts_with("mpt: ") && complaint.contains("retrying"), "{complaint}");
    daemon.come_back();
    let asked = daemon.asked();
    while daemon.asked() < asked + 2 {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0);
    }
    drop(reader);
    assert_eq!(wait(&mut lines).code(), Some(0));
    let mut rest = String::new();
    complaints.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "one complaint per leave");
}

#[test]
fn without_a_daemon_there_is_nothing_to_watch() {
    let directory = tempfile::tempdir().unwrap();
    let output = mpt(&directory.path().join("none"), &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no daemon listens"));
}

#[test]
fn intervals_have_bounds() {
    for interval in ["0", "0.09", "3601", "-1", "soon", "NaN"] {
        let interval = format!("--interval={interval}");
        let output = mpt(Path::new("none"), &[&interval]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{interval}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("seconds") && text.lines().count() == 1, "{text}");
    }
}

fn mpt(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
    command.args(["status", "--watch"]).args(arguments).arg("--socket").arg(socket);
    command.stdin(Stdio::null());
    command
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it does not end");
        }
        thread::yield_now();
    }
}

/// A watch on its own terminal.
struct Watch {
    child: Child,
    /// The end of the terminal where the person sits.
    seat: File,
    /// The other end, kept open so that the settings of the terminal outlive the watch.
    terminal: Option<OwnedFd>,
    before: Termios,
    /// What was written since it was last waited for anything, and all of it.
    shown: mpsc::Receiver<Vec<u8>>,
    unseen: String,
    all: String,
}

impl Watch {
    fn start(socket: &Path) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = mpt(socket, &["--interval", "0.1"]);
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        let seat = File::from(pty.master);
        let (sender, shown) = mpsc::channel();
        let mut reader = seat.try_clone().unwrap();
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (unseen, all) = (String::new(), String::new());
        Self { child, seat, terminal: Some(pty.slave), before, shown, unseen, all }
    }

    fn settings(&self) -> Termios {
        tcgetattr(self.terminal.as_ref().unwrap()).unwrap()
    }

    /// Waits until `text` is written that was not waited past already.
    fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.unseen.find(text) {
                self.unseen.drain(..place + text.len());
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(chunk) = self.shown.recv_timeout(left) else {
                panic!("`{text}` does not come: {:?}", self.unseen);
            };
            self.take(&chunk);
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        let text = String::from_utf8_lossy(chunk);
        self.unseen.push_str(&text);
        self.all.push_str(&text);
    }

    fn type_in(&mut self, keys: &str) {
        self.seat.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// How it ended and all that was written, with a path update that the settings are what they were.
    fn end(mut self) -> (ExitStatus, String) {
        let status = wait(&mut self.child);
        let restored = self.settings() == self.before;
        // All writers are closed, so the stream ends.
        drop(self.terminal.take());
        while let Ok(chunk) = self.shown.recv_timeout(PATIENCE) {
            self.take(&chunk);
        }
        if restored {
            self.all.push_str("settings restored");
        }
        (status, std::mem::take(&mut self.all))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon that sends every client the same.
struct Daemon {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    served: Arc<Served>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Served {
    leaving: AtomicBool,
    clients: Mutex<Vec<UnixStream>>,
    asked: Mutex<u64>,
}

impl Daemon {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("control.sock");
        let mut daemon =
            Self { _directory: directory, socket, served: Arc::default(), thread: None };
        daemon.come_back();
        daemon
    }

    fn come_back(&mut self) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let served = Arc::new(Served {
            asked: Mutex::new(*self.served.asked.lock().unwrap()),
            ..Served::default()
        });
        self.served = Arc::clone(&served);
        self.thread = Some(thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if served.leaving.load(Ordering::SeqCst) {
                    return;
                }
                served.clients.lock().unwrap().push(stream.try_clone().unwrap());
                let served = Arc::clone(&served);
                thread::spawn(move || serve(&stream, &served.asked));
            }
        }));
    }

    /// Disconnects all clients and stops listening.
    fn leave(&mut self) {
        self.served.leaving.store(true, Ordering::SeqCst);
        drop(UnixStream::connect(&self.socket));
        self.thread.take().unwrap().join().unwrap();
        for client in self.served.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
        std::fs::remove_file(&self.socket).unwrap();
    }

    fn asked(&self) -> u64 {
        *self.served.asked.lock().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.leave();
        }
    }
}

fn serve(mut stream: &UnixStream, asked: &Mutex<u64>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while let Ok(1..) = lines.read_line(&mut line) {
        line.clear();
        let count = {
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        let path = PathState { name: "fibre".into(), state: "up".into(), ..PathState::default() };
        let connection = ConnectionState {
            name: "server".into(),
            paths: vec![path],
            ..ConnectionState::default()
        };
        let tunnel = TunnelStatus {
            name: "mpt0".into(),
            connections: vec![connection],
            ..TunnelStatus::default()
        };
        let status = Status {
            pid: 11,
            uptime_seconds: count as f64,
            tunnels: vec![tunnel],
            ..Status::default()
        };
        let reply = Reply::Status { status: Box::new(status) };
        if stream.write_all(&codec::encode_reply(&reply).unwrap()).is_err() {
            return;
        }
    }
}
