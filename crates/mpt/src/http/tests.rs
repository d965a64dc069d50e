//! Requests as clients write them, and others.

use super::quality;
use super::request::{Fault, MAX_BODY, MAX_FIELDS, MAX_HEAD, Method, Request, parse};
use super::response::Response;
use crate::server::Then;

#[test]
fn a_request_ends_where_it_ends() {
    let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\nGET";
    let length = text.len() - 3;
    let (taken, request) = parse(text, 0).unwrap();
    assert_eq!(taken, length);
    let request = request.unwrap();
    assert_eq!((request.method, request.path.as_str()), (Method::Get, "/metrics"));
    assert_eq!(request.host.as_deref(), Some("localhost"));
    assert_eq!(request.accept.as_deref(), Some("*/*"));
    assert!(request.keep_alive && request.body == Some(Vec::new()));
    for cut in 0..length {
        assert_eq!(parse(&text[..cut], 0), None, "{cut}");
    }
}

#[test]
fn what_is_asked_for_and_whether_the_connection_stays() {
    for (text, path, stays) in [
        ("GET /metrics?x=1 HTTP/1.1\r\nhost:a\r\n\r\n", "/metrics", true),
        ("GET http://a:1/metrics HTTP/1.1\nHost: a:1\n\n", "/metrics", true),
        ("\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n", "/metrics", false),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", "/metrics", false),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "/metrics", true),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "/", true),
        ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", "/metrics/", true),
        ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "/", true),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "*", true),
        ("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "/metrics", true),
        ("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "/a", false),
        ("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "/a", false),
    ] {
        let request = request(text.as_bytes()).unwrap();
        assert_eq!((request.path.as_str(), request.keep_alive), (path, stays), "{text:?}");
        assert_eq!(request.method == Method::Head, text.starts_with("HEAD"), "{text:?}");
        assert_eq!(request.body.is_none(), text.starts_with("POST"), "{text:?}");
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
        "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 3\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\n",
    ] {
        assert_eq!(request(text.as_bytes()), Err(Fault::Malformed), "{text:?}");
    }
}

#[test]
fn a_head_has_a_limit() {
    let mut endless = vec![b'x'; MAX_HEAD - 1];
    assert_eq!(parse(&endless, 0), None);
    endless.push(b'x');
    assert_eq!(request(&endless), Err(Fault::TooLarge));
    // Nor does a larger read raise the limit.
    endless.extend(b" /metrics HTTP/1.0\r\n\r\n");
    assert_eq!(request(&endless), Err(Fault::TooLarge));

    let text = |fields| ["GET / HTTP/1.0\r\n", &"a: b\r\n".repeat(fields), "\r\n"].concat();
    assert!(request(text(MAX_FIELDS).as_bytes()).is_ok());
    assert_eq!(request(text(MAX_FIELDS + 1).as_bytes()), Err(Fault::TooLarge));
}

#[test]
fn a_body_is_waited_for_and_has_a_limit() {
    let head =
        |length: &str| format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let text = head("5") + "helloGET";
    let end = text.len() - 3;
    for cut in 0..end {
        assert_eq!(parse(&text.as_bytes()[..cut], MAX_BODY), None, "{cut}");
    }
    let (taken, request) = parse(text.as_bytes(), MAX_BODY).unwrap();
    let request = request.unwrap();
    assert_eq!(
        (taken, request.body.as_deref(), request.keep_alive),
        (end, Some(&b"hello"[..]), true)
    );
    for length in
        [(MAX_BODY + 1).to_string(), "99999999999999999999".into(), "+5".into(), "x".into()]
    {
        let text = head(&length);
        let (taken, request) = parse(text.as_bytes(), MAX_BODY).unwrap();
        let request = request.unwrap();
        assert_eq!(
            (taken, request.body, request.keep_alive),
            (text.len(), None, false),
            "{length}"
        );
    }
}

#[test]
fn the_most_specific_range_says_what_a_client_wants() {
    let open = |accept| quality(accept, "application/openmetrics-text", "1.0.0");
    let plain = |accept| quality(accept, "text/plain", "0.0.4");
    for (accept, wanted) in [
        (None, (1000, 1000)),
        (Some(""), (1000, 1000)),
        (Some("*/*"), (1000, 1000)),
        (Some("text/plain"), (0, 1000)),
        (Some("text/*;q=0.5, */*;q=0.1"), (100, 500)),
        (Some("Text/Plain; Version=0.0.4; q=0.3"), (0, 300)),
        (Some("application/openmetrics-text"), (1000, 0)),
        (Some("application/openmetrics-text;version=0.0.1"), (0, 0)),
        (Some("application/openmetrics-text;q=0, */*"), (0, 1000)),
        (Some("application/openmetrics-text; version=\"1.0.0\"; q=0.8, */*;q=0.2"), (800, 200)),
        (Some("text/html, image/png"), (0, 0)),
        (Some("text/plain;q=2, text/plain;q=x, text/plain;q"), (0, 0)),
        // As Prometheus 3 asks.
        (
            Some(
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,\
                 text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            ),
            (600, 300),
        ),
    ] {
        assert_eq!((open(accept), plain(accept)), wanted, "{accept:?}");
    }
}

#[test]
fn an_answer_to_head_has_the_length_and_no_body() {
    let get = request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let head = request(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let answer = Response::found("text/html", "<p>".into()).with("X-A", "b");
    let text = |reply: &[u8]| String::from_utf8(reply.to_vec()).unwrap();
    let reply = answer.reply(Some(&get));
    assert_eq!(reply.then, Then::Next);
    assert_eq!(
        text(&reply.bytes),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\
         Cache-Control: no-store\r\nX-A: b\r\nConnection: keep-alive\r\n\r\n<p>"
    );
    let reply = answer.reply(Some(&head));
    assert_eq!(reply.then, Then::Close);
    assert!(text(&reply.bytes).ends_with("Connection: close\r\n\r\n"));
    assert!(text(&reply.bytes).contains("Content-Length: 3\r\n"));
    let reply = answer.begin();
    assert_eq!(reply.then, Then::More);
    assert!(!text(&reply.bytes).contains("Content-Length"), "its end is the connection's");
    let refused = text(&Response::wrong_method("GET, HEAD").reply(Some(&get)).bytes);
    assert!(refused.contains("Allow: GET, HEAD\r\n"), "{refused}");
    assert!(refused.ends_with("\r\n\r\nonly GET and HEAD are allowed\n"), "{refused}");
    let refused = text(&Response::wrong_method("POST").reply(Some(&get)).bytes);
    assert!(refused.ends_with("\r\n\r\nonly POST is allowed\n"), "{refused}");
}

fn request(bytes: &[u8]) -> Result<Request, Fault> {
    parse(bytes, 0).unwrap_or_else(|| panic!("{bytes:?} is incomplete")).1
}
