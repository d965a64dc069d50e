//! One client: requests in, replies out, one at a time; or a reply that is continued.
//!
//! A client costs the daemon at most one unfinished request, one chunk of input and one reply, or one part
//! of a reply that is continued: nothing more is read before it has been taken. Every phase has a time limit.

use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mpt_io::poll::Interest;
use socket2::Socket;

use super::Limits;

/// How long input is discarded after the last reply. Closing with unread input would be an error at the
/// client's end, over TCP one that can destroy the reply (RFC 9112 section 9.6).
const CLOSING: Duration = Duration::from_secs(2);

/// Bytes read at once; requests are mostly shorter.
const CHUNK: usize = 4096;

/// Finds requests in the bytes received.
pub(crate) trait Decode {
    /// What is answered: a request, or why the bytes are none.
    type Request;

    /// Takes the next request from the front of `input`, or `None` if more bytes are needed. What it
    /// keeps of an unfinished request, or leaves in `input`, must be bounded.
    fn decode(&mut self, input: &mut Vec<u8>) -> Option<Self::Request>;

    /// Whether the decoder itself holds a part of a request.
    fn is_partial(&self) -> bool;
}

/// The reply to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    /// What is sent.
    pub(crate) bytes: Vec<u8>,
    /// What comes after it.
    pub(crate) then: Then,
}

/// What comes after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next request.
    Next,
    /// The end of the connection.
    Close,
    /// More of the reply, from time to time, until the client leaves. What it still sends is ignored.
    More,
}

/// What one event of a client led to.
#[derive(Debug)]
pub(super) enum Turn<R> {
    /// There is a request to reply to.
    Request(R),
    /// Nothing to do until the next event.
    Wait,
    /// The connection has ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No byte of a request has arrived.
    Idle,
    /// A part of a request has.
    Request,
    /// A reply is being sent, or the next request is at hand already.
    Reply,
    /// All of a reply that is continued has been sent so far; input is discarded.
    More,
    /// The last reply has been sent; input is discarded.
    Closing,
}

/// A connected client.
#[derive(Debug)]
pub(super) struct Client<D> {
    socket: Socket,
    decoder: D,
    /// Bytes received and not decoded.
    input: Vec<u8>,
    /// The reply, and how much of it has been sent.
    reply: Vec<u8>,
    sent: usize,
    then: Then,
    phase: Phase,
    /// When the phase began.
    since: Instant,
    deadline: Instant,
    /// Connected only to be sent a refusal.
    pub(super) refused: bool,
}

impl<D: Decode> Client<D> {
    /// A client that has just connected. The socket must not block.
    pub(super) fn new(socket: Socket, decoder: D, now: Instant, limits: &Limits) -> Self {
        Self {
            socket,
            decoder,
            input: Vec::new(),
            reply: Vec::new(),
            sent: 0,
            then: Then::Next,
            phase: Phase::Idle,
            since: now,
            deadline: now + limits.first,
            refused: false,
        }
    }

    /// Continues with what the socket is ready for; at most one request at a time.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        limits: &Limits,
    ) -> io::Result<Turn<D::Request>> {
        match self.phase {
            Phase::Closing | Phase::More => {
                let ended = self.read(&mut [0; CHUNK])? == Some(0);
                return Ok(if ended { Turn::End } else { Turn::Wait });
            }
            Phase::Reply => {
                if !self.flush(now, limits)? || self.then != Then::Next {
                    return Ok(Turn::Wait);
                }
            }
            Phase::Idle | Phase::Request => {
                let mut chunk = [0; CHUNK];
                match self.read(&mut chunk)? {
                    None => return Ok(Turn::Wait),
                    Some(0) => return Ok(Turn::End),
                    Some(count) => self.input.extend_from_slice(&chunk[..count]),
                }
            }
        }
        if let Some(request) = self.decoder.decode(&mut self.input) {
            return Ok(Turn::Request(request));
        }
        self.wait(now, limits);
        Ok(Turn::Wait)
    }

    /// Sends the reply to the last request, as much of it as the kernel takes at once.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) fn reply(&mut self, reply: Reply, now: Instant, limits: &Limits) -> io::Result<()> {
        (self.reply, self.sent, self.then) = (reply.bytes, 0, reply.then);
        (self.phase, self.since, self.deadline) = (Phase::Reply, now, now + limits.reply);
        // With more input at hand the phase stays: writing is possible at once, so the next request has
        // its turn after the other clients had theirs.
        if self.flush(now, limits)? && self.then == Then::Next && self.input.is_empty() {
            self.wait(now, limits);
        }
        Ok(())
    }

    /// Whether it is sent a reply that is continued.
    pub(super) fn is_streaming(&self) -> bool {
        self.then == Then::More
    }

    /// Continues the reply, if the client has taken all there was so far: a client that is slow misses a part
    /// rather than making the daemon keep it. Returns whether it was sent.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) fn push(&mut self, part: &[u8], now: Instant, limits: &Limits) -> io::Result<bool> {
        if self.phase != Phase::More {
            return Ok(false);
        }
        self.reply(Reply { bytes: part.to_vec(), then: Then::More }, now, limits)?;
        Ok(true)
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Interest {
        match self.phase {
            Phase::Idle | Phase::Request | Phase::More | Phase::Closing => Interest::READABLE,
            Phase::Reply => Interest::WRITABLE,
        }
    }

    /// When the phase has lasted too long.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether all was said, and only the client's end of the connection is waited for.
    pub(super) fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }

    /// Since when the daemon waits for a request, or for the rest of one; `None` while it replies.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Idle | Phase::Request).then_some(self.since)
    }

    /// Whether bytes have arrived that were not read yet.
    pub(super) fn has_unread(&self) -> bool {
        self.socket.peek(&mut [MaybeUninit::uninit()]).is_ok_and(|count| count > 0)
    }

    fn wait(&mut self, now: Instant, limits: &Limits) {
        if self.decoder.is_partial() || !self.input.is_empty() {
            self.enter(Phase::Request, now, limits.request);
        } else {
            self.enter(Phase::Idle, now, limits.idle);
        }
    }

    /// Progress in a phase does not extend its time limit.
    fn enter(&mut self, phase: Phase, now: Instant, limit: Duration) {
        if self.phase != phase {
            (self.phase, self.since, self.deadline) = (phase, now, now + limit);
        }
    }

    /// Whether the whole reply has been sent; closes the connection after the last.
    fn flush(&mut self, now: Instant, limits: &Limits) -> io::Result<bool> {
        while self.sent < self.reply.len() {
            match self.socket.write(&self.reply[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_temporary(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        (self.reply, self.sent) = (Vec::new(), 0);
        match self.then {
            Then::Next => {}
            Then::Close => {
                self.socket.shutdown(Shutdown::Write)?;
                self.input = Vec::new();
                self.enter(Phase::Closing, now, CLOSING);
            }
            Then::More => {
                self.input = Vec::new();
                self.enter(Phase::More, now, limits.idle);
            }
        }
        Ok(true)
    }

    /// How many bytes were read, 0 at the end; `None` if there are none yet.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<Option<usize>> {
        match self.socket.read(chunk) {
            Ok(count) => Ok(Some(count)),
            Err(error) if is_temporary(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<D> AsFd for Client<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The event comes again, as waiting is level-triggered.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
