//! A thousand connections of one daemon.
//!
//! The figures that are printed are those of a release build and an otherwise idle machine:
//! `cargo test --release -p mpt --test tunnel thousand -- --nocapture`.

use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use mpt_control::{Client, Reply, Request, Status};
use mpt_io::netlink::Netlink;
use mpt_lab::daemon::Daemon;
use mpt_lab::netns::Namespace;

use crate::router::{await_running, set_up};
use crate::site::{PATIENCE, daemon, eventually, threads_line};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] =
    &[("a_thousand_idle_connections_cost_little_time_and_known_memory", thousand)];

const CONNECTIONS: usize = 1000;

/// Long enough that a fiftieth of it is twenty of the 10 ms in which processor time is counted.
const WATCHED: Duration = Duration::from_secs(10);

/// What a daemon may take to start or to take in a changed file. Only a release build is held to it.
const QUICKLY: Duration = Duration::from_secs(2);

fn outer(host: usize) -> IpAddr {
    IpAddr::from([10, 1, 0, host as u8])
}

/// The configuration of one of two hosts: connections to the other that their keys tell apart, each for
/// another port.
fn config(own: usize) -> String {
    let peer = 3 - own;
    let mut config =
        format!("[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.{own}/24']\n{}", threads_line());
    for number in 0..CONNECTIONS {
        let _ = write!(
            config,
            "[[tunnel.connection]]\nname = 'c{number}'\npeer = ['10.9.0.{peer}']\nkey = {number}\n\
             match = {{ protocol = 'udp', ports = [{}] }}\n\
             [[tunnel.connection.path]]\nname = 'only'\nlocal = '{}'\nremote = '{}'\n",
            10_000 + number,
            outer(own),
            outer(peer)
        );
    }
    config
}

#[expect(clippy::print_stderr, reason = "figures for who runs it")]
fn thousand() {
    let [left, right] =
        [(); 2].map(|()| Namespace::new().unwrap_or_else(|error| panic!("{error:#}")));
    left.run(|| {
        let mut netlink = Netlink::open().expect("a netlink socket");
        netlink.add_veth("wire", "wire", Some(right.as_fd())).expect("a pair");
    });
    for (host, number) in [(&left, 1), (&right, 2)] {
        host.run(|| set_up("wire", outer(number)));
    }
    [&left, &right].into_iter().for_each(|host| host.run(|| await_running("wire")));

    let mut daemons = Vec::new();
    for (host, number) in [(&left, 1), (&right, 2)] {
        let (config, begin) = (config(number), Instant::now());
        let started = Daemon::start_in(host, &[], "one of a crowd", &config, &daemon());
        daemons.push(started.unwrap_or_else(|error| panic!("{error:#}")));
        report(&format!("start-up {}", number), begin.elapsed());
    }
    eventually("all paths are up", || daemons.iter().all(|daemon| all_up(&status(daemon))));

    for daemon in &daemons {
        reload(daemon);
    }
    let used = || daemons.iter().map(|d| d.cpu_time().expect("a running daemon"));
    let before: Vec<_> = used().collect();
    let begin = Instant::now();
    std::thread::sleep(WATCHED);
    let watched = begin.elapsed();
    for (after, before) in used().zip(before) {
        let share = (after - before).as_secs_f64() / watched.as_secs_f64();
        eprintln!("{CONNECTIONS} idle connections: {:.2} % of a core", share * 100.0);
        // Another's load on the processor makes this one slower, and more so without optimization.
        let limit = if cfg!(debug_assertions) { 0.5 } else { 0.06 };
        assert!(share < limit, "{share}");
    }
    for daemon in &daemons {
        let begin = Instant::now();
        let status = status(daemon);
        report("status", begin.elapsed());
        assert!(all_up(&status), "nobody fell silent");
        let resident = daemon.resident_bytes().expect("a running daemon");
        let tunnel = &status.tunnels[0];
        let each = tunnel.connections.iter().map(|connection| connection.memory_bytes);
        let most = each.clone().max().unwrap_or(0);
        let sum = each.sum::<u64>();
        eprintln!(
            "memory: {most} bytes per connection at most, {} bytes in the tunnel, {resident} resident",
            tunnel.memory_bytes
        );
        assert!((1000..200_000).contains(&most), "{most}");
        assert!(tunnel.memory_bytes >= sum, "{} in all of it", tunnel.memory_bytes);
        assert!(sum < resident, "{sum} bytes accounted for, {resident} resident");
    }
}

fn all_up(status: &Status) -> bool {
    let connections = &status.tunnels[0].connections;
    connections.len() == CONNECTIONS
        && connections.iter().all(|connection| connection.paths[0].state == "up")
}

fn status(daemon: &Daemon) -> Status {
    let reply = client(daemon).request(&Request::Status {}).expect("an answer");
    let Reply::Status { status } = reply else { panic!("{reply:?}") };
    *status
}

/// A client that waits as long as a busy machine takes without optimization.
fn client(daemon: &Daemon) -> Client {
    Client::connect_timeout(daemon.socket(), PATIENCE).expect("a daemon")
}

/// Has one connection of all get another weight.
fn reload(daemon: &Daemon) {
    let file = daemon.socket().with_file_name("mpt.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    fs::write(&file, text + "weight = 7\n").expect("another configuration");
    let begin = Instant::now();
    let reply = client(daemon).request(&Request::Reload {}).expect("an answer");
    report("reload", begin.elapsed());
    let Reply::Changed { changes } = reply else { panic!("{reply:?}") };
    assert_eq!(changes.len(), 1, "{changes:?}");
}

#[expect(clippy::print_stderr, reason = "figures for who runs it")]
fn report(what: &str, took: Duration) {
    eprintln!("{CONNECTIONS} connections: {what} in {:.0} ms", took.as_secs_f64() * 1000.0);
    assert!(cfg!(debug_assertions) || took < QUICKLY, "{what} took {took:?}");
}
