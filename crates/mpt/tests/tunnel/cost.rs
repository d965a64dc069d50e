//! What a tunnel takes of its host: processor time, memory, socket buffers, room for its log.

use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;
use nix::sys::socket::{
    AddressFamily, GetSockOpt, SetSockOpt, SockFlag, SockType, getsockopt, setsockopt, socket,
    sockopt,
};

use crate::site::{QUICK, SHORT, Site, TWO_LINKS};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("an_idle_tunnel_costs_next_to_nothing", idle),
    ("late_packets_leave_no_trace_in_the_log", log),
    ("socket_buffers_are_as_large_as_the_host_permits", buffers),
];

/// Long enough that 0.5 % of it is several of the 10 ms in which processor time is counted.
const WATCHED: Duration = Duration::from_secs(8);

/// With the default keepalive and dead time.
fn idle() {
    let site = Site::start_with(TWO_LINKS, "", |_, config| config.replace(QUICK, ""));
    let daemon = site.daemon(Side::Left);
    let before = daemon.cpu_time().expect("a running daemon");
    std::thread::sleep(WATCHED);
    let used = daemon.cpu_time().expect("a running daemon") - before;
    let resident = daemon.resident_bytes().expect("a running daemon");
    assert!(used <= WATCHED / 200, "{used:?} of processor time in {WATCHED:?}");
    // Of a build without optimisation, most of which is its program.
    assert!(resident < 32 << 20, "{resident} bytes resident");
}

fn log() {
    let links = "[[link]]\nname = 'one'\n[[link]]\nname = 'two'\ndelay_ms = 60\njitter_ms = 40\n";
    let reorder = "reorder = { window = 64, max_delay = 0.01, late = 'drop' }";
    let site = Site::start(links, reorder);
    // Of a path that a busy machine leaves unheard for its dead time, there may be lines.
    let lines = |side| {
        let log = site.daemon(side).log();
        log.lines()
            .filter(|line| !line.contains(" is down (") && !line.contains(", is up "))
            .count()
    };
    let before = [lines(Side::Left), lines(Side::Right)];
    let options = udp::Options { length: Duration::from_secs(1), ..SHORT };
    site.stream(4, options).finish().expect("a report");
    let late = site.connection(Side::Right).drops["late"];
    assert!(late > 100, "{late}");
    let after = [lines(Side::Left), lines(Side::Right)];
    assert_eq!(after, before, "{}", site.daemon(Side::Right).log());
}

fn buffers() {
    let site = Site::start(TWO_LINKS, "");
    for socket in &site.status(Side::Left).tunnels[0].sockets {
        let wanted = socket.wanted;
        assert!(wanted >= 1 << 20, "more than any system's default: {wanted}");
        let receive =
            site.lab.left().run(|| granted(sockopt::RcvBufForce, sockopt::RcvBuf, wanted));
        let send = site.lab.left().run(|| granted(sockopt::SndBufForce, sockopt::SndBuf, wanted));
        assert_eq!((socket.receive_buffer, socket.send_buffer), (receive, send));
    }
}

/// What a socket in this host gets that asks for so many bytes, by force or else politely.
fn granted<F, P>(force: F, polite: P, wanted: u64) -> u64
where
    F: SetSockOpt<Val = usize>,
    P: SetSockOpt<Val = usize> + GetSockOpt<Val = usize> + Copy,
{
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::empty(), None);
    let (socket, bytes) = (socket.expect("a socket"), wanted as usize);
    if setsockopt(&socket, force, &bytes).is_err() {
        setsockopt(&socket, polite, &bytes).expect("as much as is allowed");
    }
    // The kernel doubles what it grants, for its own needs (socket(7)).
    getsockopt(&socket, polite).expect("a size") as u64 / 2
}
