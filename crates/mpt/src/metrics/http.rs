//! As much of HTTP/1.1 (RFC 9112) as one page needs.

use httparse::{EMPTY_HEADER, Error, Status};

/// Longest head of a request in bytes.
pub(super) const MAX_HEAD: usize = 8 << 10;

/// Most fields of a request; browsers send about twenty.
const MAX_FIELDS: usize = 64;

/// What is answered to a request, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) answer: Answer,
    /// The method is HEAD: the answer ends before the body (RFC 9110 section 9.3.2).
    head: bool,
    /// The connection stays open.
    pub(super) keep_alive: bool,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Page,
    BadRequest,
    NotFound,
    WrongMethod,
    TooLarge,
}

/// Parses the request at the beginning of `bytes` and returns the length of its head, or `None` if
/// it is incomplete and not longer than [`MAX_HEAD`].
pub(super) fn parse(bytes: &[u8]) -> Option<(usize, Request)> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    // After these nothing more is read, because the following bytes could belong to the request.
    let last = |answer| Some((bytes.len(), Request { answer, head: false, keep_alive: false }));
    match request.parse(&bytes[..bytes.len().min(MAX_HEAD)]) {
        Ok(Status::Complete(length)) => match understand(&request) {
            Some(request) => Some((length, request)),
            None => last(Answer::BadRequest),
        },
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => last(Answer::TooLarge),
        Err(_) => last(Answer::BadRequest),
    }
}

fn understand(request: &httparse::Request<'_, '_>) -> Option<Request> {
    let (method, target) = (request.method?, request.path?);
    // RFC 9112 section 3.2.2: a proxy's form, with the host in front.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    };
    let path = path.split('?').next().unwrap_or_default();
    if !path.starts_with('/') && path != "*" {
        return None;
    }
    let field = |name: &'static str| {
        let fields = request.headers.iter();
        fields.filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    };
    // RFC 9112 section 3.2: a request of HTTP/1.1 names one host.
    let persistent = request.version? == 1;
    let hosts = field("host").count();
    if hosts > 1 || (persistent && hosts == 0) {
        return None;
    }
    // A body is not read, so a following request could not be distinguished from it.
    let body = field("transfer-encoding").count() > 0
        || field("content-length").any(|length| length != b"0");
    let close = field("connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
    let answer = match (path, method) {
        ("/metrics", "GET" | "HEAD") => Answer::Page,
        ("/metrics", _) => Answer::WrongMethod,
        _ => Answer::NotFound,
    };
    Some(Request { answer, head: method == "HEAD", keep_alive: persistent && !body && !close })
}

/// The bytes of an answer, with `page` as the body if it is [`Answer::Page`].
pub(super) fn write(request: &Request, page: &str) -> Vec<u8> {
    let (status, body) = match request.answer {
        Answer::Page => ("200 OK", page),
        Answer::BadRequest => ("400 Bad Request", "not an HTTP/1.1 request\n"),
        Answer::NotFound => ("404 Not Found", "only /metrics exists\n"),
        Answer::WrongMethod => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD are allowed\n")
        }
        Answer::TooLarge => (
            "431 Request Header Fields Too Large",
            "a request has at most 8192 bytes and 64 header fields\n",
        ),
    };
    let kind = match request.answer {
        Answer::Page => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        Answer::BadRequest | Answer::NotFound | Answer::WrongMethod | Answer::TooLarge => PLAIN,
    };
    response(status, kind, request.keep_alive, body, !request.head)
}

/// The answer to a client for whom there is no place.
pub(super) fn busy(message: &str) -> Vec<u8> {
    let status = "503 Service Unavailable\r\nRetry-After: 1";
    response(status, PLAIN, false, &format!("{message}\n"), true)
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn response(status: &str, kind: &str, keep_alive: bool, body: &str, with_body: bool) -> Vec<u8> {
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let length = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: {connection}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_the_page() {
        let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\nGET";
        let length = text.len() - 3;
        let request = Request { answer: Answer::Page, head: false, keep_alive: true };
        assert_eq!(parse(text), Some((length, request)));
        for cut in 0..length {
            assert_eq!(parse(&text[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn the_answer_to_each_request_and_whether_the_connection_stays() {
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
            ("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Answer::Page, true),
            (
                "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                Answer::WrongMethod,
                false,
            ),
        ] {
            let (_, request) = parse(text.as_bytes()).unwrap_or_else(|| panic!("{text:?}"));
            assert_eq!((request.answer, request.keep_alive), (answer, stay), "{text:?}");
            assert_eq!(request.head, text.starts_with("HEAD"), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "hello\n",
            "GET /metrics\r\n",
            "GET /metrics HTTP/2\r\n",
            "GET  /metrics HTTP/1.1\r\n",
            "GET metrics HTTP/1.1\r\nHost: a\r\n\r\n",
            "G(T /metrics HTTP/1.1\r\n",
            "\x16\x03\x01\u{2}\n",
            "GET /metrics HTTP/1.1\r\nHost : a\r\n",
            "GET /metrics HTTP/1.1\r\nno colon\r\n",
            "GET /metrics HTTP/1.1\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        ] {
            assert_eq!(answer(text.as_bytes()), Some(Answer::BadRequest), "{text:?}");
        }
        assert_eq!(answer(b"GET /\x01 HTTP/1.1\r\n"), Some(Answer::BadRequest));
    }

    #[test]
    fn a_head_has_a_limit() {
        let mut endless = vec![b'x'; MAX_HEAD - 1];
        assert_eq!(answer(&endless), None);
        endless.push(b'x');
        assert_eq!(answer(&endless), Some(Answer::TooLarge));
        // Nor does a larger read raise the limit.
        endless.extend(b" /metrics HTTP/1.0\r\n\r\n");
        assert_eq!(answer(&endless), Some(Answer::TooLarge));

        let request =
            |fields| ["GET /metrics HTTP/1.0\r\n", &"a: b\r\n".repeat(fields), "\r\n"].concat();
        assert_eq!(answer(request(MAX_FIELDS).as_bytes()), Some(Answer::Page));
        assert_eq!(answer(request(MAX_FIELDS + 1).as_bytes()), Some(Answer::TooLarge));
    }

    fn answer(bytes: &[u8]) -> Option<Answer> {
        parse(bytes).map(|(_, request)| request.answer)
    }
}
