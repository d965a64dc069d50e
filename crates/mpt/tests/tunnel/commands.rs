//! The command ports of daemons whose peers are originals: taken by others, taken over from data and left to
//! data, and shared by connections with keys of their own.

use std::net::UdpSocket;

use mpt_control::{CommandStatus, Event, PathStatus, Request};
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_original::{Auth, AuthKind, Command, Key, Message, Round, Step};

use crate::site::{PATIENCE, QUICK, Site, TWO_LINKS, eventually, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("original::data_comes_to_the_port_that_commands_came_to", || exchange_ports(65050, 65051)),
    ("original::commands_come_to_the_port_that_data_came_to", || exchange_ports(4755, 4754)),
    ("original::a_tunnel_starts_without_its_command_port", taken),
    ("original::connections_are_asked_for_with_each_key", keys),
    ("original::a_peer_that_speaks_seldom_is_not_silent", seldom),
];

/// So long that nothing but a command takes a path down within a test.
const PATIENT: &str = "keepalive = 0.1\ndead_time = 60\n";

fn original(config: &str, side: Side, more: &str) -> String {
    let peer = inner(if side == Side::Left { Side::Right } else { Side::Left }, 4);
    let (before, rest) = config.split_once("peer = [").expect("a connection");
    let (_, behind) = rest.split_once('\n').expect("a line");
    let kind = format!("{more}\npeer = 'mpt-original'\npeer_addresses = ['{peer}']");
    format!("{before}{kind}\n{behind}").replace(QUICK, PATIENT)
}

/// What is known of a side's commands.
fn commands(site: &Site, side: Side) -> CommandStatus {
    site.status(side).tunnels.remove(0).commands.expect("commands")
}

/// Switches a path of the left host off, and waits until the right one has heard of it by command.
fn tell(site: &Site) {
    site.daemon(Side::Left).set_path("two", PathStatus::Off).expect("a path");
    let told = || site.path(Side::Right, 1).cause;
    eventually("it is told", || told().as_deref() == Some("the peer says that it is down"));
}

/// One reload of the left host gives data and commands these ports, one of which the other had.
fn exchange_ports(data: u16, command: u16) {
    let site = Site::start_with(TWO_LINKS, "", |side, config| original(&config, side, ""));
    let right = format!("remote_port = {data}\nremote_command_port = {command}");
    let left = format!("local_port = {data}\ncommand_port = {command}");
    for (side, ports) in [(Side::Right, right), (Side::Left, left)] {
        let config = original(&site.config(side), side, &ports);
        site.daemon(side).configure(&config).expect("a file");
        site.daemon(side).change(&Request::Reload {}).expect("a reload that leaves nothing undone");
    }
    let CommandStatus { local, absent, .. } = commands(&site, Side::Left);
    assert!(absent.is_empty(), "{absent:?}");
    assert_eq!(local.len(), 2, "{local:?}");
    assert!(local.iter().all(|at| at.ends_with(&format!(":{command}"))), "{local:?}");
    for path in site.connection(Side::Left).paths {
        assert_eq!(path.local.rsplit(':').next(), Some(&*data.to_string()), "{path:?}");
    }
    site.await_all_up();
    site.assert_flawless(4);
    tell(&site);
}

/// An original sends when its interval says so: nothing is missed before the dead time.
fn seldom() {
    let mut site = Site::links_only(TWO_LINKS, "");
    for link in 0..2 {
        site.lab.link(link).set_blackout(Direction::Both, true);
    }
    let config = original(&site.config(Side::Left), Side::Left, "");
    let config = config.replace(PATIENT, "keepalive = 2\ndead_time = 6\n");
    site.start_daemon_with(Side::Left, &config);
    let of = |event: &Event| event.text.contains("nothing arrives from");
    let mut told = None;
    eventually("it is silent", || {
        told = site.status(Side::Left).tunnels.remove(0).events.into_iter().find(of);
        told.is_some()
    });
    let told = told.expect("it was found");
    assert!(told.at_seconds >= 6.0, "{told:?}");
}

/// Another program has the command port of one path.
fn taken() {
    let mut site = Site::links_only(TWO_LINKS, "");
    let host = site.lab.left();
    let (one, two) = (host.address(0), host.address(1));
    let other = host.run(|| UdpSocket::bind((two, 65050)).expect("a socket"));
    for side in [Side::Right, Side::Left] {
        let config = original(&site.config(side), side, "");
        site.start_daemon_with(side, &config);
    }
    site.await_all_up();
    site.assert_flawless(4);
    let CommandStatus { local, absent, .. } = commands(&site, Side::Left);
    assert_eq!(local, [format!("{one}:65050")]);
    assert_eq!(absent.keys().collect::<Vec<_>>(), [&format!("{two}:65050")]);
    drop(other);
    eventually("it is had", || commands(&site, Side::Left).local.len() == 2);
    assert_eq!(commands(&site, Side::Left).absent.len(), 0);
    tell(&site);
}

/// Two connections of the left host permit it, each with a key of its own.
fn keys() {
    const KEYS: [&str; 2] =
        ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];
    let lines =
        |key: &str| format!("accept_create = true\nauth = {{ type = 'sha256', key = '{key}' }}");
    let mut site = Site::links_only(TWO_LINKS, "");
    let config = original(&site.config(Side::Left), Side::Left, &lines(KEYS[0]));
    let (_, path) = config.split_once("[[tunnel.connection.path]]").expect("paths");
    let second = format!(
        "[[tunnel.connection]]\nname = 'second'\npeer = 'mpt-original'\n\
         peer_addresses = ['10.9.0.3']\nlocal_port = 4755\n{}\n[[tunnel.connection.path]]{path}",
        lines(KEYS[1])
    );
    site.start_daemon_with(Side::Left, &format!("{config}{second}"));
    let (left, right) = (site.lab.left().address(0), site.lab.right().address(0));
    let socket = site.lab.right().run(|| UdpSocket::bind((right, 0)).expect("a socket"));
    socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    for key in KEYS {
        let auth = Auth::Sha256(Key::new(key).expect("a key"));
        // Tunnel addresses that have no connection.
        let (initiator, responder) = ([10, 9, 0, 4].into(), inner(Side::Left, 4));
        let step = Step::Open { command: Command::Create, down: false, size: 100 };
        let message = Message { auth: AuthKind::Sha256, cookie: 0, initiator, responder, step };
        socket.send_to(&message.emit(&auth), (left, 65050)).expect("room in the socket");
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).expect("an answer");
        assert_eq!(auth.verify(&buffer[..length]), Ok(()));
        let answer = Message::parse(&buffer[..length]).expect("a message").step;
        assert_eq!(
            (answer.round(), answer),
            (Round::Two, Step::Proceed { command: Command::Create, size: 100 })
        );
    }
}
