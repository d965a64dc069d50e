//! The site over its sockets. The test sets its clock, so that no test waits for a timeout.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_control::{
    ConnectionState, ErrorKind, Event, Explanation, PathState, PathStatus, Problem, QuotaState,
    Reply, Request, Status, Traffic, TunnelStatus,
};
use mpt_io::poll::{Events, Poll};
use serde_json::{Value, json};

use super::site::{MAX_CLIENTS, MAX_STREAMS, Site};
use super::{Backend, Token};
use crate::config::Listen;

/// How long anything may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn the_page_is_one_small_file_that_wants_nothing_from_elsewhere() {
    let served = Served::start();
    let (head, page) = served.ask("GET / HTTP/1.1\r\nHost: localhost:9480\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(page.len() <= 200_000, "{} bytes", page.len());
    assert!(!page.contains("{{"), "everything was put in its place");
    let policy = field(&head, "Content-Security-Policy").unwrap();
    let (_, rest) = policy.split_once("script-src 'nonce-").unwrap();
    let nonce = rest.split('\'').next().unwrap();
    assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2, "the script and the style");
    for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(field(&head, "Access-Control-Allow-Origin"), None, "no other site may read it");
    for reference in ["src=", "href=\"h", "url(", "@import", "import(", ".innerHTML"] {
        assert!(!page.contains(reference), "{reference}");
    }
    let (again, _) = served.ask("GET / HTTP/1.1\r\nHost: localhost:9480\r\n\r\n");
    assert!(!again.contains(nonce), "it is used once");
    let (head, _) = served.ask("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("Allow: GET, HEAD\r\n"), "{head}");
    let (head, _) = served.ask("GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

/// Under DNS rebinding a name of the attacker leads here, and browsers say that name.
#[test]
fn only_names_of_this_host_are_answered() {
    let served = Served::start();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9480", "127.1.2.3", "[::1]:80"]
    {
        let (head, _) = served.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{host}: {head}");
    }
    for host in [
        "attacker.example",
        "attacker.example:9480",
        "localhost.attacker.example",
        "127.0.0.1.attacker.example",
        "192.0.2.1:9480",
        "[2001:db8::1]:9480",
        "[::1",
        "",
    ] {
        let allowed = host == "[::1";
        for request in [
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("POST /path HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"),
        ] {
            if allowed {
                continue;
            }
            let (head, body) = served.ask(&request);
            assert!(head.starts_with("HTTP/1.1 421 "), "{request}: {head}");
            assert!(body.contains("localhost"), "{body}");
        }
    }
    let (head, _) = served.ask("GET / HTTP/1.0\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 421 "), "no host: {head}");
    assert_eq!(served.shared.asked.load(Ordering::SeqCst), 0, "the daemon was asked nothing");
}

#[test]
fn pages_of_other_sites_get_nothing() {
    let served = Served::start();
    for field in [
        "Origin: http://attacker.example",
        "Origin: http://localhost:8000",
        "Origin: https://localhost:9480",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let host = "Host: localhost:9480\r\n";
        let token = served.token();
        for request in [
            format!("GET /events HTTP/1.1\r\n{host}{field}\r\n\r\n"),
            format!(
                "POST /path HTTP/1.1\r\n{host}{field}\r\nAuthorization: Bearer {token}\r\n\
                 Content-Length: 0\r\n\r\n"
            ),
            format!("OPTIONS /path HTTP/1.1\r\n{host}{field}\r\n\r\n"),
        ] {
            let (head, _) = served.ask(&request);
            assert!(head.starts_with("HTTP/1.1 403 "), "{request}: {head}");
            assert!(!head.contains("Access-Control"), "{head}");
        }
    }
    let (head, _) = served.change(
        "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n",
        r#"{"connection":"server","path":"fibre","status":"off"}"#,
    );
    assert!(head.starts_with("HTTP/1.1 200 "), "its own page may: {head}");
}

#[test]
fn changes_need_the_token() {
    let served = Served::start();
    let body = r#"{"connection":"server","path":"fibre","status":"off"}"#;
    let request = |authorization: &str| {
        format!(
            "POST /path HTTP/1.1\r\nHost: localhost\r\n{authorization}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let (head, reason) = served.ask(&request(""));
    assert!(
        head.starts_with("HTTP/1.1 401 ") && reason.contains("mpt web token"),
        "{head}{reason}"
    );
    let token = served.token();
    for wrong in
        ["Bearer ", "Bearer 0", &format!("Basic {token}"), &format!("Bearer {}", &token[1..])]
    {
        let (head, _) = served.ask(&request(&format!("Authorization: {wrong}\r\n")));
        let status = if wrong.starts_with("Basic") || wrong == "Bearer " { "401" } else { "403" };
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{wrong}: {head}");
    }
    assert!(served.shared.changes.lock().unwrap().is_empty());
    let (head, _) = served.ask(&request(&format!("Authorization: bearer {token}\r\n")));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let changes = served.shared.changes.lock().unwrap().clone();
    assert_eq!(changes, [Request::path_status(Some("server"), "fibre", PathStatus::Off)]);
}

#[test]
fn only_the_status_or_the_weight_of_a_path_can_be_changed() {
    let served = Served::start();
    for wrong in [
        "",
        "[]",
        r#"{"request":"reload"}"#,
        r#"{"connection":"server","path":"fibre"}"#,
        r#"{"connection":"server","status":"off"}"#,
        r#"{"connection":"server","path":"fibre","status":"up"}"#,
        r#"{"connection":"server","path":"fibre","status":"off","weight":1}"#,
        r#"{"connection":"server","path":"fibre","status":"off","priority":1}"#,
        r#"{"connection":"server","path":"fibre","weight":-1}"#,
        r#"{"connection":"server","path":"fibre","weight":70000}"#,
    ] {
        let (head, _) = served.change("", wrong);
        assert!(head.starts_with("HTTP/1.1 400 "), "{wrong}: {head}");
    }
    let (head, _) = served.change("", &format!("{{\"path\":\"{}\"}}", "x".repeat(5000)));
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    let (head, _) = served.change("Content-Type: text/plain\r\n", r#"{"connection":"a"}"#);
    assert!(head.starts_with("HTTP/1.1 415 "), "a form of another site can send this: {head}");
    assert!(served.shared.changes.lock().unwrap().is_empty());
    let (head, reason) =
        served.change("", r#"{"connection":"server","path":"nowhere","weight":7}"#);
    assert!(head.starts_with("HTTP/1.1 409 ") && reason.contains("no such path"), "{head}{reason}");
    let (head, _) = served.change("", r#"{"connection":"server","path":"fibre","weight":7}"#);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

/// As at the command line: that a weight has no effect, or that no path is in service any more.
#[test]
fn what_is_to_be_known_of_a_change_is_said() {
    let served = Served::start();
    let body = r#"{"connection":"server","path":"fibre","weight":7}"#;
    let (head, said) = served.change("", body);
    assert!(head.starts_with("HTTP/1.1 200 ") && said.trim().is_empty(), "{head}{said}");
    let notes = ["the weight has no effect".to_owned(), "look at the priority".to_owned()];
    *served.shared.notes.lock().unwrap() = notes.to_vec();
    let (head, said) = served.change("", body);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(said, "the weight has no effect; look at the priority\n");
}

#[test]
fn problems_are_told_with_their_connection_or_tunnel() {
    let served = Served::start();
    let state = served.watch().event();
    let tunnel = &state["tunnels"][0];
    let remedy = "set the same `key`";
    assert_eq!(tunnel["problems"], json!([format!("somebody has another key: {remedy}")]));
    let of = &tunnel["connections"][0];
    assert_eq!(of["problems"], json!([format!("path fibre: the peer has another key: {remedy}")]));
}

#[test]
fn who_watches_is_told_every_second() {
    let served = Served::start();
    let mut stream = served.watch();
    let first = stream.event();
    assert_eq!(first["tunnels"][0]["connections"][0]["paths"][0]["sent"], Value::Null);
    let quota = &first["tunnels"][0]["connections"][0]["paths"][0]["quota"];
    assert_eq!(quota, "2.50 MB of 10.0 MB used (25.0 %), the clock is not set");
    assert_eq!(first["events"][0]["text"], "server/fibre: is up");
    let words = &first["tunnels"][0]["connections"][0]["words"];
    assert_eq!(words[0], "connection server of tunnel mpt0, the last 0 ms", "{words}");
    assert!(words[1].as_str().unwrap().ends_with("Nothing was sent."), "{words}");
    for _ in 0..3 {
        served.later(1000);
        let next = stream.event();
        let path = &next["tunnels"][0]["connections"][0]["paths"][0];
        // 1000 bytes more for each second.
        assert_eq!(path["sent"], 8000.0, "{next}");
        assert_eq!(path["share"], 1.0);
    }
    // A second page is told what is known already.
    let asked = served.shared.asked.load(Ordering::SeqCst);
    let mut second = served.watch();
    second.event();
    assert_eq!(served.shared.asked.load(Ordering::SeqCst), asked, "the daemon is asked once");
    drop((stream, second));
    served.wait_until(|| served.clients() == (0, 0));
    let asked = served.shared.asked.load(Ordering::SeqCst);
    served.later(5000);
    served.wait_for_turns(5);
    assert_eq!(served.shared.asked.load(Ordering::SeqCst), asked, "nobody watches");
    assert_eq!(served.watch().event()["tunnels"][0]["drops"], Value::Null, "rates begin anew");
}

#[test]
fn one_that_does_not_read_misses_events_and_is_closed() {
    let served = Served::start();
    served.shared.padding.store(8 << 20, Ordering::SeqCst);
    let mut slow = served.watch();
    served.wait_until(|| served.clients() == (1, 1));
    for _ in 0..9 {
        served.later(1000);
        served.wait_for_turns(3);
    }
    assert_eq!(served.clients(), (1, 1), "it has ten seconds");
    served.later(2000);
    served.wait_until(|| served.clients() == (0, 0));
    // What was under way is no more than one event.
    let mut rest = Vec::new();
    let _ = slow.stream.read_to_end(&mut rest);
    assert!(rest.len() < 10 << 20, "{} bytes", rest.len());
}

#[test]
fn the_number_of_those_who_watch_is_bounded() {
    let served = Served::start();
    let mut streams: Vec<Stream> = (0..MAX_STREAMS).map(|_| served.watch()).collect();
    served.wait_until(|| served.clients() == (MAX_STREAMS, MAX_STREAMS));
    let (head, reason) = served.ask("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 503 ") && reason.contains("too many pages"),
        "{head}{reason}"
    );
    // There is room for the page and changes, and nobody who watches is displaced.
    let idle: Vec<TcpStream> = (0..3 * MAX_CLIENTS).map(|_| served.connect()).collect();
    served.wait_until(|| served.clients().0 >= MAX_CLIENTS);
    served.wait_for_turns(5);
    served.later(2000);
    served.wait_for_turns(3);
    let (head, _) = served.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for stream in &mut streams {
        stream.event();
    }
    drop((idle, streams));
    served.wait_until(|| served.clients().1 == 0);
    served.watch().event();
}

#[test]
fn a_page_of_very_many_connections_stays_small() {
    let served = Served::start();
    served.shared.connections.store(1000, Ordering::SeqCst);
    let state = served.watch().event();
    assert_eq!(state["tunnels"][0]["connections"].as_array().unwrap().len(), 64);
    assert_eq!(state["more"], 936);
}

#[test]
fn only_loopback_addresses_and_unix_sockets_are_listened_on() {
    let poll = Poll::new().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:127.0.0.1]:0"] {
        let listen = Listen::Address(address.parse().unwrap());
        let error = Site::open(&listen, &poll, 1).unwrap_err();
        assert!(error.to_string().contains("loopback"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let served = Served::at(Listen::Socket(path.clone()));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("<title>mpt"), "{text}");
    let error = Site::open(&Listen::Socket(path.clone()), &poll, 1).unwrap_err();
    assert!(error.to_string().contains("`listen` in [web]"), "{error}");
    drop(served);
    assert!(!path.exists(), "it goes with the site");
}

/// A site at work in a thread of its own.
struct Served {
    address: Option<SocketAddr>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    over: AtomicBool,
    /// What its clock shows, in milliseconds.
    clock: AtomicU64,
    turns: AtomicUsize,
    connected: AtomicUsize,
    streaming: AtomicUsize,
    /// How often the daemon was asked for its status.
    asked: AtomicUsize,
    /// Connections that it has.
    connections: AtomicUsize,
    /// Bytes that its version has, to make events long.
    padding: AtomicUsize,
    changes: Mutex<Vec<Request>>,
    /// What it says of changes.
    notes: Mutex<Vec<String>>,
    token: Token,
}

/// A daemon that sends 1000 bytes per second.
struct Pretended<'s>(&'s Shared);

impl Backend for Pretended<'_> {
    fn status(&mut self) -> Status {
        let shared = self.0;
        shared.asked.fetch_add(1, Ordering::SeqCst);
        let clock = shared.clock.load(Ordering::SeqCst);
        let path = PathState {
            name: "fibre".into(),
            state: "up".into(),
            sent: Traffic { packets: 1, bytes: clock },
            quota: Some(QuotaState { bytes: 10_000_000, used: 2_500_000, ..QuotaState::default() }),
            ..PathState::default()
        };
        let connection = ConnectionState {
            name: "server".into(),
            paths: vec![path],
            ..ConnectionState::default()
        };
        let event = Event {
            connection: Some("server".into()),
            path: Some("fibre".into()),
            text: "connection server: path fibre is up".into(),
            ..Event::default()
        };
        let problem = |connection: Option<&str>, path: Option<&str>, text: &str| Problem {
            connection: connection.map(Into::into),
            path: path.map(Into::into),
            text: text.into(),
            remedy: "set the same `key`".into(),
            ..Problem::default()
        };
        let problems = vec![
            problem(Some("server"), Some("fibre"), "the peer has another key"),
            problem(None, None, "somebody has another key"),
        ];
        let tunnel = TunnelStatus {
            name: "mpt0".into(),
            problems,
            connections: vec![connection; shared.connections.load(Ordering::SeqCst)],
            events: vec![event],
            ..TunnelStatus::default()
        };
        Status {
            pid: 1,
            version: "x".repeat(shared.padding.load(Ordering::SeqCst)),
            uptime_seconds: clock as f64 / 1000.0,
            tunnels: vec![tunnel],
            ..Status::default()
        }
    }

    fn explain(&mut self) -> Result<Vec<Explanation>, String> {
        let (tunnel, connection) = ("mpt0".into(), "server".into());
        Ok(vec![Explanation { tunnel, connection, ..Explanation::default() }])
    }

    fn allows(&self, token: &str) -> bool {
        self.0.token.is(token)
    }

    fn change(&mut self, request: Request) -> Reply {
        if matches!(&request, Request::Path { path, .. } if path == "nowhere") {
            return Reply::error(ErrorKind::NoSuchPath, "no such path");
        }
        self.0.changes.lock().unwrap().push(request);
        match self.0.notes.lock().unwrap().clone() {
            changes if changes.is_empty() => Reply::Done,
            changes => Reply::Changed { changes },
        }
    }
}

impl Served {
    fn start() -> Self {
        Self::at(Listen::Address("127.0.0.1:0".parse().unwrap()))
    }

    fn at(listen: Listen) -> Self {
        let poll = Poll::new().unwrap();
        let mut site = Site::open(&listen, &poll, 7).unwrap();
        let address = matches!(listen, Listen::Address(_)).then(|| site.local_addr());
        let shared = Arc::new(Shared {
            over: AtomicBool::new(false),
            clock: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
            streaming: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            connections: AtomicUsize::new(1),
            padding: AtomicUsize::new(5),
            changes: Mutex::new(Vec::new()),
            notes: Mutex::new(Vec::new()),
            token: Token::new().unwrap(),
        });
        let seen = Arc::clone(&shared);
        let begin = Instant::now();
        let thread = thread::spawn(move || {
            let mut events = Events::with_capacity(4);
            // Its clock does not go by itself, so that nothing depends on how fast this machine is.
            while !seen.over.load(Ordering::SeqCst) {
                poll.wait(&mut events, Some(Duration::from_millis(1))).unwrap();
                let clock = Duration::from_millis(seen.clock.load(Ordering::SeqCst));
                let now = begin + clock;
                for event in events.iter() {
                    site.handle(event, &poll, now, &mut Pretended(&seen));
                }
                site.handle_timeout(&poll, now, &mut Pretended(&seen));
                assert!(site.wait(now).is_none_or(|wait| wait <= super::site::INTERVAL));
                let (connected, streaming) = site.clients();
                seen.connected.store(connected, Ordering::SeqCst);
                seen.streaming.store(streaming, Ordering::SeqCst);
                seen.turns.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    fn token(&self) -> String {
        self.shared.token.as_str().to_owned()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address.unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Head and body of the answer to a request.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Some(length) = field(head, "Content-Length")
                && body.len() >= length.parse().unwrap()
            {
                return (format!("{head}\r\n"), body.to_owned());
            }
            let count = stream.read(&mut chunk).unwrap();
            assert_ne!(count, 0, "it ends: {text}");
            text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
    }

    /// The answer to a change with the token and further fields.
    fn change(&self, fields: &str, body: &str) -> (String, String) {
        let kind =
            if fields.contains("Content-Type") { "" } else { "Content-Type: application/json\r\n" };
        self.ask(&format!(
            "POST /path HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{kind}{fields}\
             Content-Length: {}\r\n\r\n{body}",
            self.token(),
            body.len()
        ))
    }

    fn watch(&self) -> Stream {
        let mut stream = self.connect();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Stream { stream, text: String::new() }
    }

    fn clients(&self) -> (usize, usize) {
        let Shared { connected, streaming, .. } = &*self.shared;
        (connected.load(Ordering::SeqCst), streaming.load(Ordering::SeqCst))
    }

    fn later(&self, milliseconds: u64) {
        self.shared.clock.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Waits until the site has looked round so many times.
    fn wait_for_turns(&self, count: usize) {
        let end = self.shared.turns.load(Ordering::SeqCst) + count;
        self.wait_until(|| self.shared.turns.load(Ordering::SeqCst) >= end);
    }

    fn wait_until(&self, mut there: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !there() {
            assert!(Instant::now() < deadline, "{:?} clients", self.clients());
            thread::yield_now();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the site panicked");
    }
}

/// A stream of events.
struct Stream {
    stream: TcpStream,
    /// What was received and not taken.
    text: String,
}

impl Stream {
    fn event(&mut self) -> Value {
        let mut chunk = [0; 65536];
        loop {
            if let Some((_, rest)) = self.text.split_once("data: ")
                && let Some((event, rest)) = rest.split_once("\n\n")
            {
                let event = serde_json::from_str(event).unwrap();
                self.text = rest.to_owned();
                return event;
            }
            let count = self.stream.read(&mut chunk).unwrap();
            assert_ne!(count, 0, "it ends: {}", self.text);
            self.text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
    }
}

fn field<'t>(head: &'t str, name: &str) -> Option<&'t str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
