//! Lines: the framing of messages in the stream.
//!
//! A message is one JSON object on one line that ends with a line feed. A line longer than its limit
//! is skipped up to its line feed while nothing of it is kept, so memory stays bounded whatever is
//! sent, and the line after it is understood again.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::{Reply, Request};

/// Longest request in bytes, the line feed apart: enough for the settings of a connection with 64
/// paths, which take some 10 kB.
pub const MAX_REQUEST: usize = 64 << 10;

/// Longest reply in bytes, the line feed apart. A status takes about 700 bytes per path, so this
/// leaves room for more than 10000 paths.
pub const MAX_REPLY: usize = 8 << 20;

/// A line that is no message, or a message that makes no line.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The line is longer than the limit.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The line is not JSON, or not the JSON of such a message.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

/// Puts the stream back into lines, in bounded memory.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    held: Vec<u8>,
    skipping: bool,
}

impl Lines {
    /// For lines of at most `limit` bytes, the line feed apart.
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), skipping: false }
    }

    /// Takes bytes from the front of `bytes` until a line is complete or nothing is left.
    ///
    /// Returns the line without its line feed, or `None` when all bytes were consumed and the line
    /// is incomplete. A line that is too long is one error, reported at its end; all of it is
    /// skipped.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Option<Result<Vec<u8>, CodecError>> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (part, rest) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (*bytes, &bytes[bytes.len()..]),
        };
        *bytes = rest;
        if self.skipping || self.held.len() + part.len() > self.limit {
            self.held = Vec::new();
            self.skipping = true;
        } else {
            self.held.extend_from_slice(part);
        }
        end?;
        if std::mem::take(&mut self.skipping) {
            return Some(Err(CodecError::TooLong { limit: self.limit }));
        }
        Some(Ok(std::mem::take(&mut self.held)))
    }

    /// Bytes held of the line that is not complete yet; at most the limit.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether a line has begun and not ended.
    pub fn is_within_line(&self) -> bool {
        self.skipping || !self.held.is_empty()
    }
}

/// The line of a request, line feed included.
///
/// # Errors
/// [`CodecError::TooLong`] beyond [`MAX_REQUEST`].
pub fn encode_request(request: &Request) -> Result<Vec<u8>, CodecError> {
    encode(request, MAX_REQUEST)
}

/// The line of a reply, line feed included.
///
/// # Errors
/// [`CodecError::TooLong`] beyond [`MAX_REPLY`].
pub fn encode_reply(reply: &Reply) -> Result<Vec<u8>, CodecError> {
    encode(reply, MAX_REPLY)
}

/// The request in a line.
///
/// # Errors
/// [`CodecError::Malformed`] for anything that is no request; its text says where and why.
pub fn decode_request(line: &[u8]) -> Result<Request, CodecError> {
    decode(line, MAX_REQUEST)
}

/// The reply in a line.
///
/// # Errors
/// [`CodecError::Malformed`] for anything that is no reply.
pub fn decode_reply(line: &[u8]) -> Result<Reply, CodecError> {
    decode(line, MAX_REPLY)
}

fn encode<T: Serialize>(message: &T, limit: usize) -> Result<Vec<u8>, CodecError> {
    let mut line = serde_json::to_vec(message)?;
    if line.len() > limit {
        return Err(CodecError::TooLong { limit });
    }
    line.push(b'\n');
    Ok(line)
}

fn decode<T: DeserializeOwned>(line: &[u8], limit: usize) -> Result<T, CodecError> {
    if line.len() > limit {
        return Err(CodecError::TooLong { limit });
    }
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PathStatus;

    #[test]
    fn lines_come_out_as_they_went_in_however_they_are_cut() {
        let stream = b"one\n\ntwo\nthree";
        for size in 1..=stream.len() {
            let mut lines = Lines::new(5);
            assert_eq!(feed(&mut lines, stream.chunks(size)), ["one", "", "two"]);
            assert_eq!(lines.held(), 5);
        }
    }

    #[test]
    fn an_overlong_line_is_one_error_and_the_next_line_is_understood() {
        let mut stream = vec![b'x'; 100_000];
        stream.extend_from_slice(b"\nabc\n");
        for size in [1, 7, 4096, stream.len()] {
            let mut lines = Lines::new(5);
            assert_eq!(feed(&mut lines, stream.chunks(size)), ["<too long>", "abc"]);
            assert!(!lines.is_within_line());
            assert!(feed(&mut lines, [&b"1234567"[..]]).is_empty());
            assert!(lines.is_within_line());
            assert_eq!(lines.held(), 0);
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes() {
        assert_eq!(feed(&mut Lines::new(5), [&b"12345\n"[..]]), ["12345"]);
        assert_eq!(feed(&mut Lines::new(5), [&b"123456\n"[..]]), ["<too long>"]);
    }

    #[test]
    fn a_request_too_long_to_be_read_is_not_written() {
        let request = Request::path_status(None::<&str>, "x".repeat(MAX_REQUEST), PathStatus::Off);
        assert!(matches!(encode_request(&request), Err(CodecError::TooLong { .. })));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let line = "[".repeat(MAX_REQUEST);
        assert!(matches!(decode_request(line.as_bytes()), Err(CodecError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn random_bytes_are_lines_in_bounded_memory(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        ) {
            let mut lines = Lines::new(64);
            let mut found = 0;
            for chunk in &chunks {
                let mut bytes = chunk.as_slice();
                while let Some(line) = lines.take(&mut bytes) {
                    found += 1;
                    if let Ok(line) = line {
                        prop_assert!(line.len() <= 64);
                        let _ = decode_request(&line);
                        let _ = decode_reply(&line);
                    }
                }
                prop_assert!(bytes.is_empty());
                prop_assert!(lines.held() <= 64);
            }
            let feeds = chunks.iter().flatten().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(found, feeds);
        }

        #[test]
        fn damaged_requests_are_never_a_panic(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let request = Request::path_status(Some("server"), "fibre", PathStatus::Off);
            let mut line = encode_request(&request).unwrap();
            let at = at.index(line.len());
            line[at] = byte;
            line.truncate(cut.index(line.len() + 1));
            if let Ok(understood) = decode_request(&line) {
                let is_path = matches!(understood, Request::Path { .. });
                prop_assert!(is_path, "{:?}", understood);
            }
        }

        #[test]
        fn every_request_survives_the_line(
            connection in prop::option::of(any::<String>()),
            path in any::<String>(),
            off in any::<bool>(),
        ) {
            let status = if off { PathStatus::Off } else { PathStatus::Available };
            let request = Request::path_status(connection, path, status);
            let line = encode_request(&request).unwrap();
            let (feed, body) = line.split_last().unwrap();
            prop_assert_eq!(*feed, b'\n');
            prop_assert!(!body.contains(&b'\n'));
            prop_assert_eq!(decode_request(body).unwrap(), request);
        }
    }

    fn feed<'a>(lines: &mut Lines, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut found = Vec::new();
        for mut bytes in chunks {
            while let Some(line) = lines.take(&mut bytes) {
                found.push(match line {
                    Ok(line) => String::from_utf8(line).unwrap(),
                    Err(_) => "<too long>".into(),
                });
            }
        }
        found
    }
}
