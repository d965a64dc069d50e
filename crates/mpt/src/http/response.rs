//! What is answered.

use super::request::{Fault, Method, Request};
use crate::server::{Reply, Then};

/// Text for people.
const PLAIN: &str = "text/plain; charset=utf-8";

/// An answer: a status, a body, and what is said about it. Nothing of it is to be kept by the client.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    status: &'static str,
    kind: &'static str,
    /// Further fields, each with its line's end.
    fields: String,
    body: String,
}

impl Response {
    /// The resource, which is of this kind.
    pub(crate) fn found(kind: &'static str, body: String) -> Self {
        Self { status: "200 OK", kind, fields: String::new(), body }
    }

    /// A line for people, with a status such as `404 Not Found`.
    pub(crate) fn line(status: &'static str, line: &str) -> Self {
        Self { status, kind: PLAIN, fields: String::new(), body: format!("{line}\n") }
    }

    /// The answer to what is no request.
    pub(crate) fn fault(fault: Fault) -> Self {
        match fault {
            Fault::Malformed => Self::line("400 Bad Request", "not an HTTP/1.1 request"),
            Fault::TooLarge => Self::line(
                "431 Request Header Fields Too Large",
                "a request has at most 8192 bytes and 64 header fields",
            ),
        }
    }

    /// The answer to a client for whom there is no place.
    pub(crate) fn busy(message: &str) -> Self {
        Self::line("503 Service Unavailable", message).with("Retry-After", "1")
    }

    /// Only `methods` are allowed.
    pub(crate) fn wrong_method(methods: &'static str) -> Self {
        let verb = if methods.contains(',') { "are" } else { "is" };
        let line = format!("only {} {verb} allowed", methods.replace(", ", " and "));
        Self::line("405 Method Not Allowed", &line).with("Allow", methods)
    }

    /// With a further field.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields = format!("{}{name}: {value}\r\n", self.fields);
        self
    }

    /// As it is sent to the client, whose request this was if it was one: after HEAD without the body (RFC 9110
    /// section 9.3.2).
    pub(crate) fn reply(&self, request: Option<&Request>) -> Reply {
        let keep_alive = request.is_some_and(|request| request.keep_alive);
        let with_body = request.is_none_or(|request| request.method != Method::Head);
        let (connection, then) =
            if keep_alive { ("keep-alive", Then::Next) } else { ("close", Then::Close) };
        let length = self.body.len();
        let mut bytes = self.head(&format!("Content-Length: {length}\r\n"), connection);
        if with_body {
            bytes.push_str(&self.body);
        }
        Reply { bytes: bytes.into_bytes(), then }
    }

    /// The beginning of a reply that is continued; its end is that of the connection.
    pub(crate) fn begin(&self) -> Reply {
        let bytes = self.head("", "close") + &self.body;
        Reply { bytes: bytes.into_bytes(), then: Then::More }
    }

    fn head(&self, length: &str, connection: &str) -> String {
        let Self { status, kind, fields, .. } = self;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}Cache-Control: no-store\r\n\
             {fields}Connection: {connection}\r\n\r\n"
        )
    }
}
