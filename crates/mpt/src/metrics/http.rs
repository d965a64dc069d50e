//! As much of HTTP/1.1 (RFC 9112) as one page needs.

/// Longest head of a request in bytes, and all of it that is ever kept.
pub(super) const MAX_HEAD: usize = 8 << 10;

/// What the bytes received so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The beginning of a request.
    Unfinished,
    /// A request of this many bytes, and the answer it is to have.
    Request { length: usize, answer: Answer, stay: bool },
    /// Nothing that could be gone on from.
    Bad(Answer),
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Page,
    BadRequest,
    NotFound,
    WrongMethod,
    TooLarge,
    Busy,
}

/// Reads the head of a request at the beginning of `bytes`.
pub(super) fn read(bytes: &[u8]) -> Head {
    // RFC 9112 section 2.2: empty lines before a request are passed over.
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut lines = Lines { bytes, place: blank };
    let Some(first) = lines.next() else {
        return unfinished(bytes);
    };
    let Some(request) = request_line(first) else {
        return Head::Bad(Answer::BadRequest);
    };
    let mut host = 0;
    let mut body = false;
    let mut stay = request.stay;
    loop {
        let Some(line) = lines.next() else {
            return unfinished(bytes);
        };
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = field(line) else {
            return Head::Bad(Answer::BadRequest);
        };
        match name.to_ascii_lowercase().as_str() {
            "host" => host += 1,
            "content-length" => body |= value != "0",
            "transfer-encoding" => body = true,
            "connection" => {
                stay &= !value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"));
            }
            _ => {}
        }
    }
    // RFC 9112 section 3.2: a request of this version names one host.
    if host > 1 || (request.stay && host == 0) {
        return Head::Bad(Answer::BadRequest);
    }
    // A body is not read, so what follows it could not be told from it.
    Head::Request { length: lines.place, answer: request.answer, stay: stay && !body }
}

/// The bytes of an answer; `page` is called if it is wanted.
pub(super) fn write(answer: Answer, stay: bool, page: &mut dyn FnMut() -> String) -> Vec<u8> {
    let (status, kind, body) = match answer {
        Answer::Page => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", page())
        }
        Answer::BadRequest => ("400 Bad Request", PLAIN, "this is no request\n".to_owned()),
        Answer::NotFound => ("404 Not Found", PLAIN, "there is only /metrics\n".to_owned()),
        Answer::WrongMethod => {
            ("405 Method Not Allowed\r\nAllow: GET", PLAIN, "there is only GET\n".to_owned())
        }
        Answer::TooLarge => (
            "431 Request Header Fields Too Large",
            PLAIN,
            format!("a request has at most {MAX_HEAD} bytes\n"),
        ),
        Answer::Busy => (
            "503 Service Unavailable\r\nRetry-After: 1",
            PLAIN,
            "others are being served: try again later\n".to_owned(),
        ),
    };
    let connection = if stay { "keep-alive" } else { "close" };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: {connection}\r\n\r\n{body}"
    )
    .into_bytes()
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn unfinished(bytes: &[u8]) -> Head {
    if bytes.len() < MAX_HEAD { Head::Unfinished } else { Head::Bad(Answer::TooLarge) }
}

struct RequestLine {
    answer: Answer,
    /// HTTP/1.1: the connection stays, and a host is named.
    stay: bool,
}

fn request_line(line: &[u8]) -> Option<RequestLine> {
    let text = std::str::from_utf8(line).ok()?;
    let mut parts = text.split(' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || method.is_empty() || !method.bytes().all(is_token) {
        return None;
    }
    let stay = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return None,
    };
    // RFC 9112 section 3.2.2: a proxy's form, with the host in front.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |place| &rest[place..]),
        None => target,
    };
    let path = path.split('?').next().unwrap_or_default();
    if !path.starts_with('/') && path != "*" {
        return None;
    }
    let answer = match (path, method) {
        ("/metrics", "GET") => Answer::Page,
        ("/metrics", _) => Answer::WrongMethod,
        _ => Answer::NotFound,
    };
    Some(RequestLine { answer, stay })
}

/// A field's name and value. RFC 9112 section 5.1: nothing stands between the name and the colon.
fn field(line: &[u8]) -> Option<(&str, &str)> {
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    (!name.is_empty() && name.bytes().all(is_token)).then(|| (name, value.trim()))
}

/// What names are made of: RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Finished lines without their ends.
struct Lines<'b> {
    bytes: &'b [u8],
    place: usize,
}

impl<'b> Iterator for Lines<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let rest = self.bytes.get(self.place..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.place += end + 1;
        let line = &rest[..end];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_the_page() {
        let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\nGET";
        let length = text.len() - 3;
        assert_eq!(read(text), Head::Request { length, answer: Answer::Page, stay: true });
        for cut in 0..length {
            assert_eq!(read(&text[..cut]), Head::Unfinished, "{cut}");
        }
    }

    #[test]
    fn who_asks_for_what_and_stays() {
        for (text, answer, stay) in [
            ("GET /metrics?x=1 HTTP/1.1\r\nhost:a\r\n\r\n", Answer::Page, true),
            ("GET http://a:1/metrics HTTP/1.1\nHost: a:1\n\n", Answer::Page, true),
            ("\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n", Answer::Page, false),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
                Answer::Page,
                false,
            ),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", Answer::Page, true),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", Answer::Page, false),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                Answer::Page,
                false,
            ),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Answer::NotFound, true),
            ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", Answer::NotFound, true),
            ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", Answer::NotFound, true),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", Answer::NotFound, true),
            ("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Answer::WrongMethod, true),
            (
                "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                Answer::WrongMethod,
                false,
            ),
        ] {
            let Head::Request { answer: found, stay: stays, .. } = read(text.as_bytes()) else {
                panic!("{text:?}: {:?}", read(text.as_bytes()));
            };
            assert_eq!((found, stays), (answer, stay), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_known_by_its_first_bad_line() {
        for text in [
            "hello\n",
            "GET /metrics\r\n",
            "GET /metrics HTTP/2\r\n",
            "GET  /metrics HTTP/1.1\r\n",
            "GET metrics HTTP/1.1\r\n",
            "G(T /metrics HTTP/1.1\r\n",
            "\x16\x03\x01\u{2}\n",
            "GET /metrics HTTP/1.1\r\nHost : a\r\n",
            "GET /metrics HTTP/1.1\r\nno colon\r\n",
            "GET /metrics HTTP/1.1\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        ] {
            assert_eq!(read(text.as_bytes()), Head::Bad(Answer::BadRequest), "{text:?}");
        }
        assert_eq!(read(b"GET /\xff HTTP/1.1\r\n"), Head::Bad(Answer::BadRequest));
    }

    #[test]
    fn a_head_has_a_limit() {
        let endless = vec![b'x'; MAX_HEAD - 1];
        assert_eq!(read(&endless), Head::Unfinished);
        let endless = vec![b'x'; MAX_HEAD];
        assert_eq!(read(&endless), Head::Bad(Answer::TooLarge));
    }
}
