//! A server that knows its clients by their keys, or by invitations.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpt_control::{Client, ErrorKind, PeerStatus, Reply, Request};
use mpt_lab::topology::Side;
use mpt_proto::{InvitationSecret, PrivateKey};
use tempfile::TempDir;

use crate::disagree::await_named;
use crate::site::{QUICK, Site, TWO_LINKS, daemon, eventually, ping, threads_line};
use crate::suite::{Test, skip};

pub(crate) const TESTS: &[Test] = &[
    ("clients::two_that_were_invited_join_and_are_known_from_then_on", invited),
    ("clients::they_come_and_go_by_command", commands),
    ("clients::a_faulty_file_concerns_its_client_alone", faulty),
    ("clients::a_server_gets_another_key_while_it_runs", another_key),
    ("clients::a_clock_that_has_gone_back_is_named", clock),
];

const SERVER_KEY: u8 = 9;

fn key(number: u8) -> PrivateKey {
    PrivateKey::new([number; 32])
}

fn secret(number: u8) -> InvitationSecret {
    InvitationSecret::new([number; 32])
}

/// A server at the right, and at the left two tunnels, one for each client: the first in 10.9.0.0/24 by the first link, the
/// other in 10.8.0.0/24 by the second.
struct Clients {
    site: Site,
    folder: TempDir,
}

impl Clients {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("peers.d")).expect("a folder");
        Self { site: Site::links_only(TWO_LINKS, ""), folder }
    }

    /// A file that nobody else can read.
    fn secret_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    }

    fn peers(&self) -> PathBuf {
        self.folder.path().join("peers.d")
    }

    fn start_server(&mut self) {
        let private = self.secret_file("server.key", &key(SERVER_KEY).to_base64());
        let config = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24', '10.8.0.1/24']\n\
             private_key_file = '{}'\n{}[[tunnel.accept]]\nname = 'client'\npeers = '{}'\nforget = 2\n{QUICK}",
            private.display(),
            threads_line(),
            self.peers().display(),
        );
        self.site.start_daemon_with(Side::Right, &config);
    }

    /// The clients with these keys; with invitations if `invited`.
    fn start_clients(&mut self, keys: [u8; 2], invited: bool) {
        let config = self.config(keys, invited);
        self.site.start_daemon_with(Side::Left, &config);
    }

    /// The configuration of both.
    fn config(&self, keys: [u8; 2], invited: bool) -> String {
        let topology = self.site.lab.topology();
        let tunnel = |at: usize| {
            let own = self.secret_file(&format!("{at}.key"), &key(keys[at]).to_base64());
            let invitation = self.folder.path().join(format!("{at}.invitation"));
            if invited {
                let secret = secret(at as u8 + 1);
                self.secret_file(&format!("{at}.invitation"), &secret.to_base64());
            }
            format!(
                "[[tunnel]]\nname = 'mpt{at}'\naddresses = ['10.{net}.0.2/24']\nprivate_key_file = '{}'\n{}\
                 [[tunnel.connection]]\nname = 'server{at}'\npeer = ['10.{net}.0.1']\npublic_key = '{}'\n\
                 invitation_file = '{}'\nlocal_port = {}\n\
                 [[tunnel.connection.path]]\nname = 'only'\nlocal = '{}'\nremote = '{}'\n{QUICK}",
                own.display(),
                threads_line(),
                key(SERVER_KEY).public(),
                invitation.display(),
                4754 + at,
                topology.address(Side::Left, at),
                topology.known_address(Side::Right, at),
                net = net(at),
            )
        };
        tunnel(0) + &tunnel(1)
    }

    fn await_up(&self, clients: &[usize]) {
        for &at in clients {
            eventually(&format!("client {at} is connected"), || {
                let tunnels = self.site.status(Side::Left).tunnels;
                let paths = &tunnels[at].connections[0].paths;
                paths.iter().all(|path| path.state == "up") && self.connected(at)
            });
        }
    }

    /// Whether the server has a connection to a client whose path is up.
    fn connected(&self, at: usize) -> bool {
        let connections = self.site.status(Side::Right).tunnels.remove(0).connections;
        let name = format!("client-{at}");
        let mut connections = connections.iter().filter(|connection| connection.name == name);
        connections.any(|connection| connection.paths.iter().any(|path| path.state == "up"))
    }

    /// How often the server has dropped something for this reason.
    fn dropped(&self, reason: &str) -> u64 {
        let tunnel = self.site.status(Side::Right).tunnels.remove(0);
        let of = |drops: &std::collections::BTreeMap<String, u64>| drops.get(reason).copied();
        let connections = tunnel.connections.iter().filter_map(|it| of(&it.drops));
        connections.chain(of(&tunnel.drops)).sum()
    }

    fn ask(&self, request: &Request) -> Reply {
        let mut client = Client::connect(self.site.daemon(Side::Right).socket()).expect("a daemon");
        client.request(request).expect("an answer")
    }

    fn list(&self) -> Vec<PeerStatus> {
        let reply = self.ask(&Request::Peers {});
        let Reply::Peers { peers } = reply else { panic!("{reply:?}") };
        peers
    }

    fn pings(&self, at: usize) {
        let report = ping(self.site.lab.left(), server(at), 10);
        assert_eq!(report.lost, 0, "client {at}");
    }
}

fn net(at: usize) -> usize {
    9 - at
}

/// The server's address in the network of a client.
fn server(at: usize) -> IpAddr {
    IpAddr::from([10, net(at) as u8, 0, 1])
}

fn write_invitation(folder: &Path, at: usize) {
    let text = format!(
        "addresses = ['10.{}.0.2']\ninvitation = '{}'\ninvitation_expires = 2100-01-01T00:00:00Z\n",
        net(at),
        secret(at as u8 + 1).hash()
    );
    fs::write(folder.join(format!("{at}.toml")), text).expect("a file");
}

fn invited() {
    let mut clients = Clients::new();
    (0..2).for_each(|at| write_invitation(&clients.peers(), at));
    clients.start_server();
    clients.start_clients([1, 2], true);
    clients.await_up(&[0, 1]);
    (0..2).for_each(|at| clients.pings(at));
    for (at, peer) in clients.list().iter().enumerate() {
        let expected = key(at as u8 + 1).public().to_string();
        assert_eq!(peer.public_key, Some(expected.clone()), "{peer:?}");
        assert_eq!((&peer.invitation_expires, peer.connection.is_some()), (&None, true));
        assert!(peer.heard_seconds.is_some_and(|ago| ago < 60.0), "it has just answered: {peer:?}");
        let text = fs::read_to_string(clients.peers().join(format!("{at}.toml"))).expect("a file");
        assert!(text.contains(&expected) && !text.contains("invitation"), "{text}");
    }

    // The address of the other client is that of this host, too; but it does not belong to this tunnel.
    let before = clients.dropped("inner_source");
    let from = (IpAddr::from([10, 8, 0, 2]), 0);
    let socket = clients.site.lab.left().run(|| UdpSocket::bind(from)).expect("a socket");
    socket.send_to(b"hello", (server(0), 9)).expect("it is sent");
    eventually("it is dropped by the server", || clients.dropped("inner_source") > before);

    // Somebody else finds the invitation of the second one.
    clients.site.end_daemon(Side::Left);
    eventually("both are gone", || !clients.connected(0) && !clients.connected(1));
    clients.start_clients([1, 3], true);
    clients.await_up(&[0]);
    eventually("it is refused", || clients.dropped("handshake_invitation") > 0);
    let tunnel = clients.site.status(Side::Right).tunnels.remove(0);
    let told = tunnel.events.iter().any(|event| event.text.contains("the invitation"));
    assert!(told, "{:?}", tunnel.events);
    await_named(&clients.site, Side::Right, "invitation", "is used, expired, or not of this host");
    let asks = |problem: &mpt_control::Problem| {
        problem.code == "silent" && problem.remedy.starts_with("is that used or expired?")
    };
    eventually("the client says what may be the cause", || {
        clients.site.status(Side::Left).tunnels[1].problems.iter().any(asks)
    });
    assert!(!clients.connected(1));

    // What the server knows outlives it, and the clients need no invitation any more.
    clients.site.end_daemon(Side::Left);
    clients.site.end_daemon(Side::Right);
    clients.start_server();
    for at in 0..2 {
        fs::remove_file(clients.folder.path().join(format!("{at}.invitation"))).expect("removed");
    }
    clients.start_clients([1, 2], false);
    clients.await_up(&[0, 1]);
    (0..2).for_each(|at| clients.pings(at));
}

/// A request for a client, as its file would be.
fn add(at: usize) -> Request {
    let settings = format!(
        "public_key = '{}'\naddresses = ['10.{}.0.2']\n",
        key(at as u8 + 1).public(),
        net(at)
    );
    Request::PeerAdd { template: None, peer: at.to_string(), settings }
}

/// Commands know the paths that no file lists by the names that the status shows.
fn paths_of_accepted_connections(clients: &Clients) {
    let connection = || clients.site.status(Side::Right).tunnels.remove(0).connections.remove(0);
    let (owner, path) = (connection().name, connection().paths.remove(0).name);
    let weigh = |owner: Option<&str>, path: &str| {
        clients.ask(&Request::Path {
            connection: owner.map(str::to_owned),
            path: path.to_owned(),
            status: None,
            weight: Some(4),
            priority: None,
        })
    };
    let Reply::Changed { changes } = weigh(None, &path) else {
        panic!("a weight is said to mean nothing")
    };
    assert!(changes[0].contains("no effect"), "{changes:?}");
    assert_eq!(connection().paths[0].weight, 4);
    for owner in [None, Some(owner.as_str())] {
        let Reply::Error { kind, message, .. } = weigh(owner, "WRONG") else { panic!("a refusal") };
        assert_eq!(kind, ErrorKind::NoSuchPath);
        assert_eq!(message, format!("no path `WRONG`: there is {path}"));
    }
}

fn changed(reply: Reply) -> Vec<String> {
    let Reply::Changed { changes } = reply else { panic!("{reply:?}") };
    changes
}

fn commands() {
    let mut clients = Clients::new();
    clients.start_server();
    clients.start_clients([1, 2], false);
    await_named(&clients.site, Side::Right, "public_key", "has a public key that no connection");
    assert!(clients.dropped("handshake_unknown") > 1);
    assert!(clients.list().is_empty());
    assert_eq!(changed(clients.ask(&add(0))), ["client 0: added"]);
    clients.await_up(&[0]);
    assert!(!clients.connected(1));
    paths_of_accepted_connections(&clients);
    // The client that runs beside it is not disturbed.
    let stream = |clients: &Clients| clients.pings(0);
    stream(&clients);
    assert_eq!(changed(clients.ask(&add(1))), ["client 1: added"]);
    clients.await_up(&[1]);
    stream(&clients);
    let Reply::Error { kind: ErrorKind::Unavailable, .. } = clients.ask(&add(1)) else {
        panic!("it is there")
    };
    let remove = Request::PeerRemove { template: None, peer: "1".into() };
    assert_eq!(changed(clients.ask(&remove)), ["client 1: removed"]);
    assert!(!clients.connected(1), "its session has ended");
    assert!(!clients.peers().join("1.toml").exists());
    stream(&clients);
    let Reply::Error { kind: ErrorKind::NoSuchPeer, .. } = clients.ask(&remove) else {
        panic!("it is gone")
    };
    assert_eq!(clients.list().len(), 1);
}

fn faulty() {
    let mut clients = Clients::new();
    fs::write(clients.peers().join("bad.toml"), "addresses = 5\n").expect("a file");
    clients.start_server();
    clients.start_clients([1, 2], false);
    assert_eq!(changed(clients.ask(&add(0))), ["client 0: added"]);
    clients.await_up(&[0]);
    let Request::PeerAdd { settings, .. } = add(0) else { return };
    fs::write(clients.peers().join("same.toml"), settings).expect("a file");
    let reply = clients.ask(&Request::PeersReload {});
    let Reply::Error { kind: ErrorKind::BadConfig, report: Some(report), .. } = reply else {
        panic!("{reply:?}")
    };
    assert!(report.contains("bad.toml:1:") && report.contains("same.toml:1:"), "{report}");
    let wrong = Request::PeerAdd { template: None, peer: "../x".into(), settings: String::new() };
    let Reply::Error { kind: ErrorKind::BadConfig, .. } = clients.ask(&wrong) else {
        panic!("no name")
    };
    assert!(clients.connected(0));
    clients.pings(0);
}

fn another_key() {
    let mut clients = Clients::new();
    clients.start_server();
    clients.start_clients([1, 2], false);
    assert_eq!(changed(clients.ask(&add(0))), ["client 0: added"]);
    clients.await_up(&[0]);
    let reload = |clients: &Clients, number: u8| {
        clients.secret_file("server.key", &key(number).to_base64());
        let changes = changed(clients.ask(&Request::Reload {}));
        let public = key(number).public().to_string();
        assert!(changes.len() == 1 && changes[0].contains(&public), "{changes:?}");
        assert!(clients.connected(0), "what there is goes on");
        clients.pings(0);
    };
    reload(&clients, SERVER_KEY + 1);
    clients.site.end_daemon(Side::Left);
    clients.start_clients([1, 2], false);
    eventually("who knows the old key is a stranger", || clients.dropped("handshake_mac") > 0);
    assert!(!clients.connected(0));
    clients.secret_file("server.key", &key(SERVER_KEY).to_base64());
    assert_eq!(changed(clients.ask(&Request::Reload {})).len(), 1);
    clients.await_up(&[0]);
    assert!(changed(clients.ask(&Request::Reload {})).is_empty(), "the same key again");
}

/// Has a program see another time of day: the time of the kernel and `SHIFT` seconds more.
const SHIFTED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec += atol(getenv("SHIFT"));
    return result;
}
"#;

/// A program in this folder that is the daemon, with a clock that is a day behind.
fn a_day_behind(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("shift.c"), folder.join("shift.so"));
    fs::write(&source, SHIFTED).expect("a file");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    if !compile.output().is_ok_and(|output| output.status.success()) {
        skip("there is no C compiler");
    }
    let program = folder.join("behind");
    let text = format!(
        "#!/bin/sh\nSHIFT=-86400 LD_PRELOAD={} exec {} \"$@\"\n",
        library.display(),
        daemon().display()
    );
    fs::write(&program, text).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    program
}

/// What a client sends whose clock has gone back cannot be told from what somebody has recorded: the server says so.
fn clock() {
    let mut clients = Clients::new();
    for at in 0..2 {
        let text = format!(
            "public_key = '{}'\naddresses = ['10.{}.0.2']\n",
            key(at as u8 + 1).public(),
            net(at)
        );
        fs::write(clients.peers().join(format!("{at}.toml")), text).expect("a file");
    }
    let behind = a_day_behind(clients.folder.path());
    clients.start_server();
    clients.start_clients([1, 2], false);
    clients.await_up(&[0, 1]);
    clients.site.end_daemon(Side::Left);
    // As long as it has the connections, the server asks, too, and all is well.
    eventually("the server has forgotten them", || {
        clients.site.status(Side::Right).tunnels.remove(0).connections.is_empty()
    });
    let config = clients.config([1, 2], false);
    clients.site.start_daemon_by(Side::Left, &config, &behind);
    let problem = await_named(&clients.site, Side::Right, "clock", "are older than its last one");
    assert!(problem.remedy.contains("is the clock there right?"), "{problem:?}");
    let asks = |problem: &mpt_control::Problem| {
        problem.code == "silent" && problem.remedy.contains("is the clock right here?")
    };
    eventually("the client says what may be the cause", || {
        clients.site.status(Side::Left).tunnels[0].problems.iter().any(asks)
    });
    clients.site.end_daemon(Side::Left);
    clients.start_clients([1, 2], false);
    clients.await_up(&[0, 1]);
    eventually("all is well again", || {
        clients.site.status(Side::Right).tunnels.remove(0).problems.is_empty()
    });
}
