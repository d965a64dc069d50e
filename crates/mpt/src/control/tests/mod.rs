//! The control socket with clients of every kind, served by tunnels that are only pretended.

mod limits;
mod served;

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use mpt_control::codec::MAX_REQUEST;
use mpt_control::{ErrorKind, PathStatus, Reply, Request};
use nix::fcntl::{Flock, FlockArg};
use proptest::prelude::*;

use super::Listener;
use crate::server::{BindError, Lock};
use served::{LONG, PATIENCE, RawClient, Served};

/// The user and group `nobody` of most systems; any but root's will do.
const NOBODY: u32 = 65534;

/// The variable by which the child learns where the socket is.
const SOCKET: &str = "MPT_TEST_SOCKET";

#[test]
fn the_file_is_0600_and_goes_with_the_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/control.sock");
    let listener = Listener::bind(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    drop(listener);
    assert!(!path.exists());
    assert!(!path.parent().unwrap().exists());
    assert!(dir.path().exists());
}

#[test]
fn a_directory_that_was_there_stays() {
    let dir = tempfile::tempdir().unwrap();
    drop(Listener::bind(&dir.path().join("control.sock")).unwrap());
    assert!(dir.path().exists());
}

#[test]
fn the_socket_of_a_dead_daemon_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let served = Served::bind(&path);
    assert!(matches!(served.ask(&Request::Version {}), Reply::Version { .. }));
}

#[test]
fn the_socket_of_a_living_daemon_is_left_alone() {
    let served = Served::start();
    let error = Listener::bind(&served.path).unwrap_err();
    assert!(matches!(error, BindError::Living { .. }), "{error:?}");
    assert!(error.to_string().contains("already"), "{error}");
    assert!(matches!(served.ask(&Request::Version {}), Reply::Version { .. }));
}

#[test]
fn the_socket_of_a_daemon_too_busy_to_accept_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    assert!(matches!(Listener::bind(&path).unwrap_err(), BindError::Living { .. }));
    drop(waiting);
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(Listener::bind(&path).unwrap_err(), BindError::NoSocket { .. }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn the_socket_of_a_successor_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let first = Listener::bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let second = Listener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
}

#[test]
fn other_users_cannot_block_the_start_by_a_lock() {
    let dir = tempfile::tempdir().unwrap();
    let directory = File::open(dir.path()).unwrap();
    let _held = Flock::lock(directory, FlockArg::LockExclusive).unwrap();
    let path = dir.path().join("control.sock");
    let (bound, wait) = mpsc::channel();
    thread::spawn(move || bound.send(Listener::bind(&path)));
    let listener = wait.recv_timeout(PATIENCE).expect("the start waits for somebody").unwrap();
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["control.sock"], "the lock is gone");
    drop(listener);
}

#[test]
fn a_daemon_that_is_taking_the_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let lock = Lock::take(&path).unwrap().unwrap();
    let error = Listener::bind(&path).unwrap_err();
    assert!(matches!(error, BindError::Locked { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("control.sock.lock") && text.contains("try again"), "{text}");
    assert!(!path.exists());
    drop(lock);
    drop(Listener::bind(&path).unwrap());
}

#[test]
fn requests_are_answered_in_order_on_one_connection() {
    let served = Served::start();
    let mut client = served.visit();
    // All at once, and the last line cut in two.
    let path = r#"{"request":"path","path":"fibre","status":"off"}"#;
    client.send(format!("{{\"request\":\"version\"}}\n{path}\n{{\"request\":").as_bytes());
    assert!(matches!(client.reply(), Reply::Version { .. }));
    assert_eq!(client.reply(), Reply::Done);
    client.send(b"\"status\"}\n");
    let Reply::Status { status } = client.reply() else { panic!("no status") };
    assert_eq!(status.tunnels[0].name, "mpt0");
    assert_eq!(status.silent_tunnels, ["mpt1"]);
    assert_eq!((status.control.clients, status.control.requests), (1, 3));
    assert_eq!(served.stop(), ["server/fibre off"]);
}

#[test]
fn a_client_that_has_said_all_still_gets_the_answers() {
    let served = Served::start();
    let mut client = served.visit();
    client.send(b"{\"request\":\"version\"}\n{\"request\":\"version\"}\n{\"requ");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(matches!(client.reply(), Reply::Version { .. }));
    assert!(matches!(client.reply(), Reply::Version { .. }));
    assert!(client.is_over());
}

#[test]
fn a_path_is_found_by_its_name_where_that_is_enough() {
    let served = Served::start();
    let set = |connection: Option<&str>, path: &str| {
        served.ask(&Request::path_status(connection, path, PathStatus::Off))
    };
    assert_eq!(set(None, "fibre"), Reply::Done);
    // It is the last one of its connection.
    let Reply::Changed { changes } = set(Some("other"), "radio") else { panic!("a warning") };
    assert!(changes[0].contains("no path in service any more"), "{changes:?}");
    for (reply, kind, text) in [
        (set(None, "radio"), ErrorKind::AmbiguousPath, "server, other"),
        (set(None, "wire"), ErrorKind::NoSuchPath, "there are fibre, radio"),
        (set(Some("other"), "fibre"), ErrorKind::NoSuchPath, "there is radio"),
        (set(Some("nobody"), "fibre"), ErrorKind::NoSuchConnection, "there are server, other"),
    ] {
        let Reply::Error { kind: found, message, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(found, kind);
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(served.stop(), ["server/fibre off", "other/radio off"]);
}

#[test]
fn garbage_is_one_error_per_line_and_the_connection_stays_open() {
    let served = Served::start();
    let mut client = served.visit();
    for garbage in [
        &b"\n"[..],
        b"hello\n",
        b"\xff\xfe\0\n",
        b"{\"request\":\"reboot\"}\n",
        b"{\"request\":\"status\",\"verbose\":1}\n",
        b"[[[[[[\n",
    ] {
        client.send(garbage);
        assert_eq!(client.error(), ErrorKind::BadRequest);
    }
    assert_eq!(served.refused("malformed"), 6);
    client.send(b"{\"request\":\"version\"}\n");
    assert!(matches!(client.reply(), Reply::Version { .. }));
}

#[test]
fn an_oversized_line_is_one_error_and_the_connection_stays_open() {
    let served = Served::start();
    let mut client = served.visit();
    let mut line = vec![b'x'; 10 * MAX_REQUEST];
    line.push(b'\n');
    client.send(&line);
    assert_eq!(client.error(), ErrorKind::BadRequest);
    client.send(b"{\"request\":\"version\"}\n");
    assert!(matches!(client.reply(), Reply::Version { .. }));
    assert_eq!(served.refused("too_long"), 1);
}

#[test]
fn a_client_that_does_not_read_does_not_block_others_and_costs_one_reply() {
    let served = Served::start();
    let stuck = served.visit();
    stuck.stream.set_nonblocking(true).unwrap();
    // Until the daemon reads no more, because a reply is not taken.
    let start = Instant::now();
    let mut full = 0;
    while full < 100 {
        match (&stuck.stream).write(b"{\"request\":\"status\"}\n") {
            Ok(_) => full = 0,
            Err(_) => full += 1,
        }
        assert!(matches!(served.ask(&Request::Version {}), Reply::Version { .. }));
        assert!(start.elapsed() < PATIENCE, "the daemon takes requests without end");
    }
}

#[test]
fn replies_arrive_whole_however_late_they_are_taken() {
    let served = Served::start();
    let mut slow = served.visit();
    slow.send(b"{\"request\":\"status\"}\n{\"request\":\"status\"}\n{\"request\":\"version\"}\n");
    // By now the first reply waits for its client, unless it was never begun.
    assert!(matches!(served.ask(&Request::Version {}), Reply::Version { .. }));
    for _ in 0..2 {
        let Reply::Status { status } = slow.reply() else { panic!("no status") };
        assert_eq!(status.tunnels[0].events[0].text.len(), LONG);
    }
    assert!(matches!(slow.reply(), Reply::Version { .. }));
}

#[test]
fn a_client_with_an_incomplete_line_does_not_block_others() {
    let served = Served::start();
    let mut slow = served.visit();
    for byte in b"{\"request\":\"version\"}" {
        slow.send(&[*byte]);
        assert!(matches!(served.ask(&Request::Version {}), Reply::Version { .. }));
    }
    slow.send(b"\n");
    assert!(matches!(slow.reply(), Reply::Version { .. }));
}

#[test]
fn other_users_are_refused_whatever_the_mode_of_the_file() {
    let served = Served::start();
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    for path in [&served.path, served.path.parent().unwrap()] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    // The child is this very program, by a name that needs no search permission on its directory.
    let status = Command::new("/proc/self/exe")
        .args(["--exact", "control::tests::another_user_is_refused", "--ignored"])
        .env(SOCKET, &served.path)
        .uid(NOBODY)
        .gid(NOBODY)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(served.refused("not_allowed"), 1);
}

#[test]
#[ignore = "run as another user by the test above"]
fn another_user_is_refused() {
    assert_eq!(nix::unistd::geteuid().as_raw(), NOBODY);
    let mut client = RawClient::new(Path::new(&std::env::var_os(SOCKET).unwrap()));
    assert_eq!(client.error(), ErrorKind::NotAllowed);
    assert!(client.is_over());
}

#[test]
fn a_user_who_is_not_the_daemons_is_refused() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root is never refused");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut listener = Listener::bind(&dir.path().join("control.sock")).unwrap();
    listener.set_owner(nix::unistd::geteuid().as_raw() + 1);
    let served = Served::serve(listener, None);
    let mut client = served.visit();
    assert_eq!(client.error(), ErrorKind::NotAllowed);
    assert!(client.is_over());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_answered_line_by_line(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let served = Served::start();
        let mut client = served.visit();
        client.send(&bytes);
        client.send(b"\n");
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
        for _ in 0..lines {
            prop_assert_eq!(client.error(), ErrorKind::BadRequest);
        }
        client.send(b"{\"request\":\"version\"}\n");
        let understood = matches!(client.reply(), Reply::Version { .. });
        prop_assert!(understood);
    }
}
