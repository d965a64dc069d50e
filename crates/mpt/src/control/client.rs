//! One client: lines in, lines out, never more than one request at a time.
//!
//! A client costs the daemon at most one line of a request, one chunk behind it and one reply. As
//! long as a reply has not been taken, nothing more is read; who is slow waits for himself.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mpt_control::codec::{CodecError, Lines, MAX_REQUEST};
use mpt_io::poll::Interest;

/// How long a client may say nothing.
const IDLE: Duration = Duration::from_secs(60);

/// How long a client may take to finish a line once begun, or to take a reply.
const BUSY: Duration = Duration::from_secs(10);

/// Bytes read at once; requests are mostly shorter.
const CHUNK: usize = 4096;

/// A connected client.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    lines: Lines,
    /// Bytes read that belong to lines after the one last taken.
    ahead: Vec<u8>,
    /// What is left of the reply.
    reply: Vec<u8>,
    /// The client will send nothing more.
    ended: bool,
    waiting: Waiting,
    deadline: Instant,
}

/// What the client is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Ask something.
    Idle,
    /// Finish the line.
    Line,
    /// Take the reply.
    Reply,
}

/// How a visit goes on.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is a line to answer.
    Line(Result<Vec<u8>, CodecError>),
    /// Nothing to do until the client is ready again.
    Wait,
    /// The visit is over.
    Over,
}

impl Client {
    pub(super) fn new(stream: UnixStream, now: Instant) -> Self {
        Self {
            stream,
            lines: Lines::new(MAX_REQUEST),
            ahead: Vec::new(),
            reply: Vec::new(),
            ended: false,
            waiting: Waiting::Idle,
            deadline: now + IDLE,
        }
    }

    /// Goes on where the visit stopped: the rest of the reply first, then the next line.
    pub(super) fn advance(&mut self) -> Turn {
        match self.flush() {
            Ok(true) => {}
            Ok(false) => return Turn::Wait,
            Err(_) => return Turn::Over,
        }
        if let Some(line) = self.take() {
            return Turn::Line(line);
        }
        match self.read() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Wait,
            Err(_) => return Turn::Over,
        }
        match self.take() {
            Some(line) => Turn::Line(line),
            None if self.ended => Turn::Over,
            None => Turn::Wait,
        }
    }

    /// Sends the reply to the line last taken, as much of it as goes; `false` ends the visit.
    pub(super) fn reply(&mut self, line: Vec<u8>) -> bool {
        self.reply = line;
        self.flush().is_ok()
    }

    /// What to wait for after this turn, the time for it running from its beginning.
    pub(super) fn interest(&mut self, now: Instant) -> Interest {
        let (waiting, patience, interest) = if !self.reply.is_empty() {
            (Waiting::Reply, BUSY, Interest::WRITABLE)
        } else if self.lines.is_within_line() {
            (Waiting::Line, BUSY, Interest::READABLE)
        } else {
            (Waiting::Idle, IDLE, Interest::READABLE)
        };
        if self.waiting != waiting || waiting == Waiting::Idle {
            self.waiting = waiting;
            self.deadline = now + patience;
        }
        // The next line may be here already, and the kernel cannot tell that. The stream takes a
        // reply at once, so waiting to write means: after the others have had their turn.
        if self.ahead.is_empty() { interest } else { Interest::WRITABLE }
    }

    /// When the client will have taken too long.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    fn take(&mut self) -> Option<Result<Vec<u8>, CodecError>> {
        let ahead = std::mem::take(&mut self.ahead);
        let mut bytes = ahead.as_slice();
        let line = self.lines.take(&mut bytes);
        self.ahead = bytes.to_vec();
        line
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.ended = count == 0;
                    self.ahead.extend_from_slice(&chunk[..count]);
                    return Ok(());
                }
            }
        }
    }

    /// Whether nothing is left of the reply.
    fn flush(&mut self) -> io::Result<bool> {
        while !self.reply.is_empty() {
            match self.stream.write(&self.reply) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => drop(self.reply.drain(..count)),
            }
        }
        self.reply = Vec::new();
        Ok(true)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
