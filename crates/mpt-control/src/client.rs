//! A blocking client of the daemon.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;

use crate::codec::{self, CodecError, Lines};
use crate::{Reply, Request};

/// How long [`Client`] waits for an answer. The daemon answers within milliseconds; a tunnel that
/// does not is left out of the status long before this.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the daemon's control socket. Blocking, with a bound on every wait.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    socket: PathBuf,
    timeout: Duration,
    lines: Lines,
    /// Bytes that came after the end of the latest reply.
    rest: Vec<u8>,
}

/// Why there is no reply. Each message says what to do next.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No daemon listens there.
    #[error(
        "no daemon listens on {}: start one with `mpt run FILE`, or name its socket with --socket PATH",
        .socket.display()
    )]
    NotRunning {
        /// The socket's path.
        socket: PathBuf,
    },
    /// The file system does not let this user connect.
    #[error("not allowed to connect to {}: run as root, or as the user of the daemon", .socket.display())]
    NotAllowed {
        /// The socket's path.
        socket: PathBuf,
    },
    /// The daemon did not answer in time.
    #[error("the daemon on {} did not answer within {} s: see its log", .socket.display(), .timeout.as_secs_f64())]
    Timeout {
        /// The socket's path.
        socket: PathBuf,
        /// How long was waited.
        timeout: Duration,
    },
    /// The daemon hung up without an answer.
    #[error("the daemon on {} closed the connection without an answer: see its log", .socket.display())]
    Closed {
        /// The socket's path.
        socket: PathBuf,
    },
    /// The answer is none, or the request makes no line.
    #[error("no sensible answer on {}: {error}: is it the control socket of an mpt daemon?", .socket.display())]
    Codec {
        /// The socket's path.
        socket: PathBuf,
        /// What is wrong with the line.
        error: CodecError,
    },
    /// Anything else that the kernel reported.
    #[error("cannot talk to the daemon on {}: {error}", .socket.display())]
    Io {
        /// The socket's path.
        socket: PathBuf,
        /// What the kernel reported.
        error: io::Error,
    },
}

impl Client {
    /// Connects to the daemon that listens at `socket`, with [`DEFAULT_TIMEOUT`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect(socket: impl AsRef<Path>) -> Result<Self, ClientError> {
        Self::connect_timeout(socket, DEFAULT_TIMEOUT)
    }

    /// Connects to the daemon that listens at `socket`. Neither connecting nor a later request takes
    /// longer than `timeout`, which must not be zero.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect_timeout(
        socket: impl AsRef<Path>,
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let socket = socket.as_ref().to_path_buf();
        // The send timeout also bounds connect(2), which would wait without limit while the backlog
        // of a hanging daemon is full; unix(7), socket(7).
        let connect = || -> io::Result<UnixStream> {
            let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            stream.set_write_timeout(Some(timeout))?;
            stream.connect(&SockAddr::unix(&socket)?)?;
            Ok(stream.into())
        };
        match connect() {
            Ok(stream) => {
                let lines = Lines::new(codec::MAX_REPLY);
                Ok(Self { stream, socket, timeout, lines, rest: Vec::new() })
            }
            Err(error) => Err(classify(error, socket, timeout)),
        }
    }

    /// Sends `request` and waits for its reply. [`Reply::Error`] is a reply, not an error here.
    ///
    /// After an error the connection is of no use any more.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn request(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let line = codec::encode_request(request).map_err(|error| self.codec(error))?;
        // A refused client gets the reason before the daemon disconnects, so there may be an answer
        // although the request could not be written.
        let written = self.stream.write_all(&line);
        match self.read_line(deadline) {
            Ok(line) => codec::decode_reply(&line).map_err(|error| self.codec(error)),
            Err(error) => Err(match written {
                Ok(()) => error,
                Err(error) => classify(error, self.socket.clone(), self.timeout),
            }),
        }
    }

    fn read_line(&mut self, deadline: Instant) -> Result<Vec<u8>, ClientError> {
        let mut chunk = [0; 16 << 10];
        loop {
            let rest = std::mem::take(&mut self.rest);
            let mut bytes = rest.as_slice();
            if let Some(line) = self.lines.take(&mut bytes) {
                self.rest = bytes.to_vec();
                return line.map_err(|error| self.codec(error));
            }
            let count = self.read(&mut chunk, deadline)?;
            if count == 0 {
                return Err(ClientError::Closed { socket: self.socket.clone() });
            }
            self.rest.extend_from_slice(&chunk[..count]);
        }
    }

    fn read(&mut self, chunk: &mut [u8], deadline: Instant) -> Result<usize, ClientError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let read = if left.is_zero() {
                Err(io::ErrorKind::TimedOut.into())
            } else {
                self.stream.set_read_timeout(Some(left)).and_then(|()| self.stream.read(chunk))
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(classify(error, self.socket.clone(), self.timeout)),
                Ok(count) => return Ok(count),
            }
        }
    }

    fn codec(&self, error: CodecError) -> ClientError {
        ClientError::Codec { socket: self.socket.clone(), error }
    }
}

fn classify(error: io::Error, socket: PathBuf, timeout: Duration) -> ClientError {
    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) {
        ClientError::NotRunning { socket }
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        ClientError::NotAllowed { socket }
    } else if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        ClientError::Timeout { socket, timeout }
    } else if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        ClientError::Closed { socket }
    } else {
        ClientError::Io { socket, error }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn several_requests_on_one_connection() {
        let (_dir, path, listener) = listen();
        let daemon = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut seen = Vec::new();
            for reply in [Reply::Done, Reply::Version { version: "1".into() }] {
                seen.push(codec::decode_request(lines.next().unwrap().unwrap().as_bytes()));
                stream.write_all(&codec::encode_reply(&reply).unwrap()).unwrap();
            }
            seen.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        });
        let mut client = Client::connect(&path).unwrap();
        assert_eq!(client.request(&Request::Status {}).unwrap(), Reply::Done);
        assert_eq!(
            client.request(&Request::Version {}).unwrap(),
            Reply::Version { version: "1".into() }
        );
        assert_eq!(daemon.join().unwrap(), [Request::Status {}, Request::Version {}]);
    }

    #[test]
    fn a_missing_daemon_is_reported() {
        let (_dir, path, listener) = listen();
        drop(listener);
        for path in [path.clone(), path.with_file_name("none")] {
            let error = Client::connect(&path).unwrap_err();
            assert!(matches!(error, ClientError::NotRunning { .. }), "{error:?}");
            assert!(error.to_string().contains("mpt run"), "{error}");
        }
    }

    #[test]
    fn a_silent_daemon_is_not_waited_for() {
        let (_dir, path, _listener) = listen();
        let mut client = Client::connect_timeout(&path, Duration::from_millis(30)).unwrap();
        let error = client.request(&Request::Status {}).unwrap_err();
        assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
    }

    #[test]
    fn a_full_backlog_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match Client::connect_timeout(&path, Duration::from_millis(30)) {
                Ok(client) => waiting.push(client),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100, "the backlog has no end");
        };
        assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
    }

    #[test]
    fn a_reason_sent_before_disconnecting_is_read() {
        let (_dir, path, listener) = listen();
        let mut client = Client::connect(&path).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let refusal = Reply::error(ErrorKind::Busy, "later");
        stream.write_all(&codec::encode_reply(&refusal).unwrap()).unwrap();
        drop(stream);
        assert_eq!(client.request(&Request::Status {}).unwrap(), refusal);
    }

    #[test]
    fn disconnect_and_garbage_are_distinguished() {
        let (_dir, path, listener) = listen();
        let mut client = Client::connect(&path).unwrap();
        drop(listener.accept().unwrap());
        let error = client.request(&Request::Status {}).unwrap_err();
        assert!(matches!(error, ClientError::Closed { .. }), "{error:?}");

        let mut client = Client::connect(&path).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap();
        let error = client.request(&Request::Status {}).unwrap_err();
        assert!(matches!(error, ClientError::Codec { .. }), "{error:?}");
    }

    fn listen() -> (tempfile::TempDir, PathBuf, UnixListener) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        (dir, path, listener)
    }
}
