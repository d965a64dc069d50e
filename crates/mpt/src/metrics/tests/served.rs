//! The exporter over TCP. The test sets its clock, so that no test waits for a timeout.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_io::poll::{Events, Poll};

use super::super::exporter::{Exporter, MAX_CLIENTS};
use crate::http::MAX_HEAD;
use crate::server::MAX_REFUSED;

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// How long anything may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn one_connection_serves_many_pages() {
    let served = Served::new("page one\n");
    let mut client = served.visit();
    for _ in 0..3 {
        client.write_all(GET).unwrap();
        let reply = read_reply(&mut client);
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.contains("Content-Type: text/plain; version=0.0.4;"), "{reply}");
        assert!(reply.contains("Connection: keep-alive"), "{reply}");
        assert!(reply.ends_with("\r\n\r\npage one\n"), "{reply}");
    }
    assert_eq!(served.pages(), 1, "one is handed out for half a second");
}

#[test]
fn the_format_is_the_one_that_is_accepted() {
    let served = Served::new("page");
    let mut client = served.visit();
    for (accept, kind) in [
        (
            "application/openmetrics-text;version=1.0.0",
            "application/openmetrics-text; version=1.0.0",
        ),
        ("text/plain", "text/plain; version=0.0.4"),
        ("image/png", "text/plain; version=0.0.4"),
    ] {
        let get = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
        client.write_all(get.as_bytes()).unwrap();
        let reply = read_reply(&mut client);
        assert!(reply.contains(&format!("Content-Type: {kind}; charset=utf-8\r\n")), "{reply}");
        assert!(reply.contains("Vary: Accept\r\n"), "{reply}");
    }
    assert_eq!(served.pages(), 2, "one is made for each format");
}

#[test]
fn requests_that_come_together_are_answered_one_after_the_other() {
    let served = Served::new("page");
    let mut client = served.visit();
    let other = b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(&[GET, other, last, GET].concat()).unwrap();
    let text = read_all(&mut client);
    let statuses: Vec<&str> = text.matches("HTTP/1.1 200 OK").collect();
    assert_eq!(statuses.len(), 2, "nothing is answered after a close: {text}");
    let place = |what| text.find(what).unwrap();
    assert!(place("200 OK") < place("404 Not Found"), "{text}");
    assert_eq!(served.pages(), 1, "one is handed out for half a second");
}

#[test]
fn a_page_larger_than_any_buffer_arrives_whole() {
    let page = "0123456789abcdef\n".repeat(1 << 20);
    let served = Served::new(&page);
    let mut client = served.visit();
    client.write_all(GET).unwrap();
    let reply = read_reply(&mut client);
    assert_eq!(reply.split_once("\r\n\r\n").unwrap().1, page);
}

#[test]
fn other_resources_and_methods_get_an_error() {
    let served = Served::new("page");
    for (request, status) in [
        (&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], "404 Not Found"),
        (
            b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            "405 Method Not Allowed",
        ),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\x01\n", "400 Bad Request"),
        (b"\n\n\nnonsense\n", "400 Bad Request"),
    ] {
        let mut client = served.visit();
        client.write_all(request).unwrap();
        let reply = read_reply(&mut client);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{reply}");
        assert_eq!(reply.contains("Allow: GET, HEAD\r\n"), status.starts_with("405"), "{reply}");
    }
    assert_eq!(served.pages(), 0);
}

#[test]
fn head_is_answered_with_the_fields_of_get_and_no_body() {
    let served = Served::new("page one\n");
    let mut client = served.visit();
    client.write_all(GET).unwrap();
    let get = read_reply(&mut client);
    // What follows is the head of the next reply, so the one before had no body.
    let head = b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = b"HEAD /other HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(&[&head[..], last].concat()).unwrap();
    let text = read_all(&mut client);
    let rest = text.strip_prefix(get.strip_suffix("page one\n").unwrap()).expect(&text);
    assert!(rest.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
    assert!(rest.ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn a_request_without_end_is_refused_and_the_reason_arrives() {
    let served = Served::new("page");
    let mut client = served.visit();
    // Far more than is read: what is in flight when the answer is written must not destroy it.
    let flood = vec![b'a'; 64 * MAX_HEAD];
    let mut sender = client.try_clone().unwrap();
    let sending = thread::spawn(move || {
        sender.write_all(&flood)?;
        sender.shutdown(Shutdown::Write)
    });
    let reply = read_reply(&mut client);
    assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
    sending.join().unwrap().unwrap();
    let rest = client.read(&mut [0]).unwrap();
    assert_eq!(rest, 0, "an end, and no connection torn down");
    served.wait_for_clients(0);
}

#[test]
fn a_slow_request_times_out() {
    let served = Served::new("page");
    let mut client = served.visit();
    served.wait_for_clients(1);
    // A letter every four seconds.
    let mut letters = 0;
    for letter in GET {
        if client.write_all(&[*letter]).is_err() || served.clients() == 0 {
            break;
        }
        letters += 1;
        served.wait_for_turns(3);
        served.later(4);
        served.wait_for_turns(3);
    }
    assert!((2..=4).contains(&letters), "{letters} letters in ten seconds");
    served.wait_for_clients(0);
    assert_eq!(read_all(&mut client), "");
}

#[test]
fn a_client_that_does_not_read_the_page_times_out() {
    let served = Served::new(&"x".repeat(32 << 20));
    let mut client = served.visit();
    client.write_all(GET).unwrap();
    while served.pages() == 0 {
        thread::yield_now();
    }
    served.later(29);
    served.wait_for_turns(3);
    assert_eq!(served.clients(), 1);
    served.later(2);
    served.wait_for_clients(0);
}

#[test]
fn a_connection_may_be_idle_between_requests() {
    let served = Served::new("page");
    let mut client = served.visit();
    client.write_all(GET).unwrap();
    read_reply(&mut client);
    served.wait_for_turns(3);
    served.later(60);
    served.wait_for_turns(3);
    client.write_all(GET).unwrap();
    read_reply(&mut client);
    served.wait_for_turns(3);
    served.later(91);
    served.wait_for_clients(0);
}

#[test]
fn the_number_of_clients_is_bounded() {
    let served = Served::new("page");
    let idle: Vec<TcpStream> = (0..MAX_CLIENTS).map(|_| served.visit()).collect();
    served.wait_for_clients(MAX_CLIENTS);
    let mut refused = served.visit();
    let reply = read_reply(&mut refused);
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    assert!(reply.contains("\r\n\r\ntoo many metrics clients (8): "), "{reply}");
    drop(refused);
    served.wait_for_clients(MAX_CLIENTS);

    // Those who do not even take the refusal are bounded too.
    let crowd: Vec<TcpStream> = (0..3 * MAX_REFUSED).map(|_| served.visit()).collect();
    served.wait_for_turns(10);
    assert!(served.clients() <= MAX_CLIENTS + MAX_REFUSED, "{}", served.clients());
    drop((idle, crowd));
    served.wait_for_clients(0);
    let mut client = served.visit();
    client.write_all(GET).unwrap();
    assert!(read_reply(&mut client).starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_client_idle_longest_makes_room_and_not_one_being_served() {
    let served = Served::new(&"x".repeat(32 << 20));
    // One who does not take the page has been silent for longest, and still is no idle client.
    let mut served_first = served.visit();
    served_first.write_all(GET).unwrap();
    served.wait_until(|| served.pages() == 1);
    let mut idle: Vec<TcpStream> = Vec::new();
    for count in 2..=MAX_CLIENTS {
        idle.push(served.visit());
        served.wait_for_clients(count);
    }
    served.later(2);
    // The first of those who came to wait asks at last, so the second is the idlest.
    idle[0].write_all(GET).unwrap();
    assert!(read_reply(&mut idle[0]).starts_with("HTTP/1.1 200 "));
    idle[2].write_all(&GET[..4]).unwrap();
    served.wait_for_turns(3);
    served.later(2);

    let mut late = served.visit();
    late.write_all(GET).unwrap();
    assert!(read_reply(&mut late).starts_with("HTTP/1.1 200 "));
    assert_eq!(served.clients(), MAX_CLIENTS);
    assert_eq!(read_all(&mut idle[1]), "", "it was sent away");
    for stayed in [0, 2] {
        let rest = if stayed == 2 { &GET[4..] } else { GET };
        idle[stayed].write_all(rest).unwrap();
        assert!(read_reply(&mut idle[stayed]).starts_with("HTTP/1.1 200 "));
    }
    assert!(read_reply(&mut served_first).starts_with("HTTP/1.1 200 "));

    // A client that begins a request and does not go on is treated like one that sends nothing.
    for client in &mut idle[3..] {
        client.write_all(&GET[..4]).unwrap();
    }
    served.wait_for_turns(3);
    served.later(2);
    let mut crowd: Vec<TcpStream> = (0..MAX_CLIENTS).map(|_| served.visit()).collect();
    for client in &mut crowd {
        client.write_all(GET).unwrap();
        assert!(read_reply(client).starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let poll = Poll::new().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:127.0.0.1]:0"] {
        let error = Exporter::open(address.parse().unwrap(), &poll, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{address}");
        assert!(error.to_string().contains("loopback"), "{error}");
    }
    let exporter = Exporter::open("127.0.0.1:0".parse().unwrap(), &poll, 1).unwrap();
    let taken = exporter.local_addr().unwrap();
    let error = Exporter::open(taken, &poll, 2).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

/// An exporter at work in a thread of its own.
struct Served {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    /// What its clock shows, in seconds.
    clock: AtomicU64,
    turns: AtomicUsize,
    clients: AtomicUsize,
    pages: AtomicUsize,
}

impl Served {
    fn new(text: &str) -> Self {
        let poll = Poll::new().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut exporter = Exporter::open(listen, &poll, 7).unwrap();
        let address = exporter.local_addr().unwrap();
        let shared: Arc<Shared> = Arc::default();
        let (seen, text) = (Arc::clone(&shared), text.to_owned());
        let begin = Instant::now();
        let thread = thread::spawn(move || {
            let mut events = Events::with_capacity(4);
            // Its clock does not go by itself, so that nothing depends on how fast this machine is.
            while !seen.over.load(Ordering::SeqCst) {
                poll.wait(&mut events, Some(Duration::from_millis(1))).unwrap();
                let clock = Duration::from_secs(seen.clock.load(Ordering::SeqCst));
                let now = begin + clock;
                for event in events.iter() {
                    exporter.handle(event, &poll, now, &mut |_| {
                        seen.pages.fetch_add(1, Ordering::SeqCst);
                        text.clone()
                    });
                }
                exporter.handle_timeout(&poll, now);
                seen.clients.store(exporter.clients(), Ordering::SeqCst);
                seen.turns.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    fn visit(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn pages(&self) -> usize {
        self.shared.pages.load(Ordering::SeqCst)
    }

    fn clients(&self) -> usize {
        self.shared.clients.load(Ordering::SeqCst)
    }

    fn later(&self, seconds: u64) {
        self.shared.clock.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Waits until the exporter has looked round so many times.
    fn wait_for_turns(&self, count: usize) {
        let end = self.shared.turns.load(Ordering::SeqCst) + count;
        self.wait_until(|| self.shared.turns.load(Ordering::SeqCst) >= end);
    }

    fn wait_for_clients(&self, count: usize) {
        self.wait_until(|| self.clients() == count);
    }

    fn wait_until(&self, mut there: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !there() {
            assert!(Instant::now() < deadline, "{} clients", self.clients());
            thread::yield_now();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the exporter panicked");
    }
}

/// One reply, head and body.
fn read_reply(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.unwrap().parse().unwrap();
            // Only as much as was asked for is there.
            assert!(body.len() <= length, "{text}");
            let missing = length - body.len();
            if missing == 0 {
                return text.into_owned();
            }
            drop(text);
            let end = bytes.len();
            bytes.resize(end + missing, 0);
            stream.read_exact(&mut bytes[end..]).unwrap();
            continue;
        }
        drop(text);
        let count = stream.read(&mut chunk).unwrap();
        assert_ne!(count, 0, "it ends: {bytes:?}");
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// All that comes until the end, or until the connection is torn down.
fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8(bytes).unwrap()
}
