//! A daemon that is only pretended and says what the test wants.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use mpt_control::{Reply, Request, Status, TunnelStatus, codec};

use crate::program::command;

/// A daemon that gives prepared replies, one per connection.
pub(crate) struct Pretended {
    directory: tempfile::TempDir,
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Request>>,
}

impl Pretended {
    pub(crate) fn new(replies: Vec<Reply>) -> Self {
        let count = replies.len();
        let daemon = Self::holding(replies);
        (0..count).for_each(|_| daemon.go_on());
        daemon
    }

    /// A daemon that waits for the test before each reply.
    pub(crate) fn holding(replies: Vec<Reply>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("control.sock")).unwrap();
        let (go_on, wait) = mpsc::channel();
        let thread = thread::spawn(move || {
            replies
                .into_iter()
                .map(|reply| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut line = String::new();
                    BufReader::new(&stream).read_line(&mut line).unwrap();
                    wait.recv().unwrap();
                    stream.write_all(&codec::encode_reply(&reply).unwrap()).unwrap();
                    codec::decode_request(line.as_bytes()).unwrap()
                })
                .collect()
        });
        Self { directory, go_on, thread }
    }

    pub(crate) fn go_on(&self) {
        self.go_on.send(()).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.arg("--socket").arg(self.directory.path().join("control.sock"));
        command
    }

    pub(crate) fn mpt(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn requests(self) -> Vec<Request> {
        self.thread.join().unwrap()
    }
}

pub(crate) fn status() -> Reply {
    let tunnel = TunnelStatus { name: "mpt0".into(), ..TunnelStatus::default() };
    Reply::Status {
        status: Box::new(Status {
            version: "9.8.7".into(),
            pid: 11,
            uptime_seconds: 5.0,
            tunnels: vec![tunnel],
            ..Status::default()
        }),
    }
}
