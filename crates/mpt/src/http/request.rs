//! Requests in the bytes of a client.

use httparse::{EMPTY_HEADER, Error, Status};

use crate::server::Decode;

/// Longest head of a request in bytes.
pub(crate) const MAX_HEAD: usize = 8 << 10;

/// Longest body of a request in bytes, where bodies are read.
pub(super) const MAX_BODY: usize = 4 << 10;

/// Most fields of a request; browsers send about twenty.
pub(super) const MAX_FIELDS: usize = 64;

/// What is to be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Send it.
    Get,
    /// Send what would stand before it.
    Head,
    /// Do what the body says.
    Post,
    /// Something else.
    Other,
}

/// A request, as far as anything depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// What is to be done.
    pub(crate) method: Method,
    /// With what: a path that begins with `/`, or `*`. What comes after a `?` is left out.
    pub(crate) path: String,
    /// The host that the client means; none in HTTP/1.0.
    pub(crate) host: Option<String>,
    /// What it would rather be sent.
    pub(crate) accept: Option<String>,
    /// The page that asks, as browsers say.
    pub(crate) origin: Option<String>,
    /// How that page is related to this site, as browsers say: `same-origin`, `none`, or another word.
    pub(crate) fetch_site: Option<String>,
    /// What it may do, as it says.
    pub(crate) authorization: Option<String>,
    /// What the body is.
    pub(crate) content_type: Option<String>,
    /// The body; empty without one, none if it is not read.
    pub(crate) body: Option<Vec<u8>>,
    /// Whether the connection stays open.
    pub(crate) keep_alive: bool,
}

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They break the rules.
    Malformed,
    /// They have too many bytes or fields.
    TooLarge,
}

/// Finds requests. A part of one stays in the input, which has at most [`MAX_HEAD`] and `BODY` bytes.
/// A body of more than `BODY` bytes is not read, and the connection ends after the answer.
#[derive(Debug, Default)]
pub(crate) struct Decoder<const BODY: usize>;

impl Decoder<0> {
    /// Where nothing depends on bodies.
    pub(crate) const NO_BODY: usize = 0;
    /// Where they say what is to be done.
    pub(crate) const WITH_BODY: usize = MAX_BODY;
}

impl<const BODY: usize> Decode for Decoder<BODY> {
    type Request = Result<Request, Fault>;

    fn decode(&mut self, input: &mut Vec<u8>) -> Option<Self::Request> {
        let (length, request) = parse(input, BODY)?;
        input.drain(..length);
        Some(request)
    }

    fn is_partial(&self) -> bool {
        false
    }
}

/// Parses the request at the beginning of `bytes` and returns its length, or `None` if it is incomplete and
/// not too long. After a fault nothing more is read, because the following bytes could belong to the request.
pub(super) fn parse(bytes: &[u8], most: usize) -> Option<(usize, Result<Request, Fault>)> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let fault = |fault| Some((bytes.len(), Err(fault)));
    match request.parse(&bytes[..bytes.len().min(MAX_HEAD)]) {
        Ok(Status::Complete(head)) => {
            let Some((mut request, length)) = understand(&request) else {
                return fault(Fault::Malformed);
            };
            let length = length.filter(|length| *length <= most);
            match length {
                Some(length) => {
                    let end = head + length;
                    request.body = Some(bytes.get(head..end)?.to_vec());
                    Some((end, Ok(request)))
                }
                None => {
                    request.keep_alive = false;
                    Some((head, Ok(request)))
                }
            }
        }
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => fault(Fault::TooLarge),
        Err(_) => fault(Fault::Malformed),
    }
}

/// What a head says, and the length of the body that follows if it says so.
fn understand(request: &httparse::Request<'_, '_>) -> Option<(Request, Option<usize>)> {
    let method = match request.method? {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => Method::Other,
    };
    let target = request.path?;
    // RFC 9112 section 3.2.2: a proxy's form, with the host in front.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    };
    let path = path.split('?').next().unwrap_or_default();
    if !path.starts_with('/') && path != "*" {
        return None;
    }
    let fields = |name: &'static str| {
        let fields = request.headers.iter();
        fields.filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    };
    let joined = |name| {
        let values: Option<Vec<&str>> =
            fields(name).map(|value| std::str::from_utf8(value).ok()).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.join(", "))
    };
    // RFC 9112 section 3.2: a request of HTTP/1.1 names one host.
    let persistent = request.version? == 1;
    let hosts = fields("host").count();
    if hosts > 1 || (persistent && hosts == 0) {
        return None;
    }
    let lengths: Vec<&[u8]> = fields("content-length").collect();
    let length = match lengths.as_slice() {
        _ if fields("transfer-encoding").count() > 0 => None,
        [] => Some(0),
        [length] => std::str::from_utf8(length).ok().and_then(digits),
        // RFC 9112 section 6.3: a client that says two lengths may hide a request in the body.
        _ => return None,
    };
    let close = fields("connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
    let request = Request {
        method,
        path: path.to_owned(),
        host: joined("host"),
        accept: joined("accept"),
        origin: joined("origin"),
        fetch_site: joined("sec-fetch-site"),
        authorization: joined("authorization"),
        content_type: joined("content-type"),
        body: None,
        keep_alive: persistent && !close,
    };
    Some((request, length))
}

/// A number without a sign, as `Content-Length` is.
fn digits(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
