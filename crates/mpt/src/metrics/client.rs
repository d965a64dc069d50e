//! One client: requests in, pages out, never more than one at a time.
//!
//! A client costs the daemon at most one head of a request and one page. As long as a page has not
//! been taken, nothing more is read, and there is an end to every wait.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mpt_io::poll::Interest;

use super::http::{self, Answer, Head, MAX_HEAD};

/// How long the first request, or a request once begun, may take.
const ASKING: Duration = Duration::from_secs(10);

/// How long a client that was served may wait before it asks again; longer than most intervals.
const IDLE: Duration = Duration::from_secs(90);

/// How long a page may take.
const TAKING: Duration = Duration::from_secs(30);

/// How long what somebody says who is not listened to any more is passed over, so that the answer
/// is not lost: RFC 9112 section 9.6.
const LEAVING: Duration = Duration::from_secs(2);

/// Bytes passed over at once.
const CHUNK: usize = 4096;

/// A connected client.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    /// What was received and not answered. At most [`MAX_HEAD`] bytes.
    asked: Vec<u8>,
    /// What is answered, and how much of it has been taken.
    answer: Vec<u8>,
    taken: usize,
    phase: Phase,
    /// When the phase began.
    since: Instant,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing of a request is here.
    Idle,
    /// A part of one is.
    Asking,
    /// The answer is on its way; after it the client may ask again.
    Staying,
    /// The answer is on its way, and it is the last.
    Last,
    /// Nothing is said or listened to any more.
    Leaving,
}

impl Client {
    /// A client that has just come.
    pub(super) fn new(stream: TcpStream, now: Instant) -> Self {
        Self {
            stream,
            asked: Vec::new(),
            answer: Vec::new(),
            taken: 0,
            phase: Phase::Idle,
            since: now,
            deadline: now + ASKING,
        }
    }

    /// A client that is told to come another time.
    pub(super) fn refused(stream: TcpStream, now: Instant) -> Self {
        let mut client = Self::new(stream, now);
        client.answer(Answer::Busy, false, now, &mut String::new);
        client
    }

    /// Goes on where the visit stopped, one request at most; `false` is its end.
    pub(super) fn advance(&mut self, now: Instant, page: &mut dyn FnMut() -> String) -> bool {
        self.try_advance(now, page).unwrap_or(false)
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Interest {
        match self.phase {
            Phase::Idle | Phase::Asking | Phase::Leaving => Interest::READABLE,
            Phase::Staying | Phase::Last => Interest::WRITABLE,
        }
    }

    /// When the client will have taken too long.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Since when the client has been waited for: for a request, or for the rest of one.
    pub(super) fn waited_for(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Idle | Phase::Asking).then_some(self.since)
    }

    fn try_advance(&mut self, now: Instant, page: &mut dyn FnMut() -> String) -> io::Result<bool> {
        if self.phase == Phase::Leaving {
            return self.pass_over();
        }
        if !self.flush()? {
            return Ok(true);
        }
        if self.phase == Phase::Last {
            return self.leave(now);
        }
        // After an answer the next request may be here already, and the kernel cannot tell that.
        let ahead = self.phase == Phase::Staying && !self.asked.is_empty();
        if self.phase == Phase::Staying {
            self.wait(now, IDLE);
        }
        if !ahead && !self.read()? {
            return Ok(false);
        }
        match http::read(&self.asked) {
            Head::Unfinished => {
                let patience = self.deadline.saturating_duration_since(now).min(ASKING);
                self.wait(now, patience);
                return Ok(true);
            }
            Head::Request { length, answer, stay } => {
                self.asked.drain(..length);
                self.answer(answer, stay, now, page);
            }
            Head::Bad(answer) => self.answer(answer, false, now, page),
        }
        if !self.flush()? {
            return Ok(true);
        }
        if self.phase == Phase::Last {
            return self.leave(now);
        }
        // With more at hand the phase stays: writing is possible at once, which is the next turn.
        if self.asked.is_empty() {
            self.wait(now, IDLE);
        }
        Ok(true)
    }

    fn wait(&mut self, now: Instant, patience: Duration) {
        self.begin(if self.asked.is_empty() { Phase::Idle } else { Phase::Asking }, now);
        self.deadline = now + patience;
    }

    fn answer(
        &mut self,
        answer: Answer,
        stay: bool,
        now: Instant,
        page: &mut dyn FnMut() -> String,
    ) {
        self.answer = http::write(answer, stay, page);
        self.taken = 0;
        self.begin(if stay { Phase::Staying } else { Phase::Last }, now);
        self.deadline = now + TAKING;
    }

    fn begin(&mut self, phase: Phase, now: Instant) {
        if self.phase != phase {
            (self.phase, self.since) = (phase, now);
        }
    }

    /// Whether nothing is left of the answer.
    fn flush(&mut self) -> io::Result<bool> {
        while self.taken < self.answer.len() {
            match self.stream.write(&self.answer[self.taken..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => self.taken += count,
            }
        }
        self.answer = Vec::new();
        self.taken = 0;
        Ok(true)
    }

    /// Reads what there is room for; `false` if nothing will come any more.
    fn read(&mut self) -> io::Result<bool> {
        let kept = self.asked.len();
        self.asked.resize(MAX_HEAD, 0);
        let read = self.stream.read(&mut self.asked[kept..]);
        self.asked.truncate(kept + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(count) => Ok(count > 0),
            Err(error) if is_temporary(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn leave(&mut self, now: Instant) -> io::Result<bool> {
        self.stream.shutdown(Shutdown::Write)?;
        self.asked = Vec::new();
        self.begin(Phase::Leaving, now);
        self.deadline = now + LEAVING;
        Ok(true)
    }

    /// Passes over what is still said, a bounded amount at a time; `false` when that has an end.
    fn pass_over(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut [0; CHUNK]) {
            Ok(count) => Ok(count > 0),
            Err(error) if is_temporary(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
