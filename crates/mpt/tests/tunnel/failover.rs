//! A path dies in any direction, by accident or on command, and comes back.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use mpt_lab::emulator::{Direction, DirectionReport, Report};
use mpt_lab::topology::Side;
use mpt_lab::traffic::{tcp, udp};
use mpt_sim::link::DropReason;

use crate::site::{
    PATIENCE, QUICK, SHORT, Site, TWO_LINKS, assert_flawless, change_interface, daemon, inner,
};
use crate::suite::{Test, figure};

pub(crate) const TESTS: &[Test] = &[
    ("a_path_cut_in_both_directions", || cut(Direction::Both, "silent", "silent")),
    ("a_path_cut_forward_only", || cut(Direction::Forward, "does not hear us", "silent")),
    ("a_path_cut_backward_only", || cut(Direction::Backward, "silent", "does not hear us")),
    ("an_interface_switched_off_and_on", interface),
    ("a_tcp_flow_survives_the_loss_of_each_path_in_turn", tcp_in_turn),
    ("a_path_switched_off_by_hand_loses_nothing", by_hand),
    ("all_paths_cut_and_back", all),
    ("senders_are_told_when_no_path_is_up", || unreachable("")),
    ("senders_are_told_when_no_path_is_up_in_extended_framing", || {
        unreachable("framing = 'extended'\n")
    }),
    ("failover::a_lost_carrier_that_both_ends_see", || carrier(&[Side::Left, Side::Right])),
    ("failover::a_lost_carrier_that_the_sender_sees", || carrier(&[Side::Left])),
    ("failover::a_lost_carrier_that_the_receiver_sees", || carrier(&[Side::Right])),
    ("failover::a_black_hole_forward", || black_hole(Direction::Forward)),
    ("failover::a_black_hole_backward", || black_hole(Direction::Backward)),
    ("failover::a_black_hole_both_ways", || black_hole(Direction::Both)),
];

fn cut(direction: Direction, left: &str, right: &str) {
    let site = Site::start(TWO_LINKS, "");
    site.assert_flawless(4);
    site.lab.link(1).set_blackout(direction, true);
    site.await_state(1, "down");
    for (side, cause) in [(Side::Left, left), (Side::Right, right)] {
        let told = site.path(side, 1).cause.unwrap_or_default();
        assert!(told.contains(cause), "{side:?}: {told}");
    }
    assert_eq!(site.path(Side::Left, 0).state, "up", "the other one is not blamed");
    let before = site.path(Side::Left, 1).sent.packets;
    site.assert_flawless(4);
    site.assert_flawless(6);
    assert_eq!(site.path(Side::Left, 1).sent.packets, before, "it is left");

    site.lab.link(1).set_blackout(direction, false);
    site.await_all_up();
    site.assert_flawless(4);
    assert!(site.path(Side::Left, 1).sent.packets >= before + 190, "it is used again");
}

fn interface() {
    let names = ["one", "two"];
    let site = Site::start_with(TWO_LINKS, "", |_, config| {
        let weigh = |config: String, (name, weight): (&str, u32)| {
            config.replace(
                &format!("name = '{name}'"),
                &format!("name = '{name}'\nweight = {weight}"),
            )
        };
        names.into_iter().zip(1..).fold(config, weigh)
    });
    let sent = |path| site.path(Side::Left, path).sent.packets;
    let events_of = |path| {
        [Side::Left, Side::Right].map(|side| {
            let events = site.status(side).tunnels.remove(0).events;
            events.iter().filter(|event| event.path.as_deref() == Some(path)).count()
        })
    };
    for (off, on) in [(1, 0), (0, 1)] {
        let events_before = events_of(names[on]);
        let switch = |up| {
            let host = site.lab.left();
            change_interface(host, names[off], |netlink, index| netlink.set_up(index, up));
        };
        switch(false);
        site.await_state(off, "down");
        let before = sent(off);
        [4, 6].map(|version| site.stream(version, SHORT)).into_iter().for_each(assert_flawless);
        assert_eq!(sent(off), before, "it is left");

        switch(true);
        site.await_all_up();
        let before = [sent(0), sent(1)];
        site.assert_flawless(4);
        let [one, two] = [sent(0) - before[0], sent(1) - before[1]];
        assert!(two.abs_diff(2 * one) <= 3, "weights 1 and 2: {one} and {two}");
        assert_eq!(events_of(names[on]), events_before, "the other one was up all the time");
    }
}

fn tcp_in_turn() {
    let site = Site::start(TWO_LINKS, "");
    let flow = flow(&site, Duration::from_secs(8));
    for path in [0, 1] {
        site.lab.link(path).set_blackout(Direction::Both, true);
        site.await_state(path, "down");
        let before = flow.received();
        crate::site::eventually("bytes arrive over the other path", || {
            flow.received() > before + 100_000
        });
        site.lab.link(path).set_blackout(Direction::Both, false);
        site.await_state(path, "up");
    }
    assert_eq!(flow.finish().failure, None);
}

fn by_hand() {
    let site = Site::start(TWO_LINKS, "");
    let options = udp::Options {
        interval: Duration::from_millis(1),
        size: 500,
        length: Duration::from_secs(2),
    };
    let stream = site.stream(4, options);
    let path = |what: &str| {
        let socket = site.daemon(Side::Left).socket();
        let mut command = Command::new(daemon());
        command.args(["path", what, "two", "--socket"]).arg(socket);
        let output = command.output().expect("mpt runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    path("down");
    crate::site::eventually("the peer leaves it", || site.path(Side::Right, 1).state == "down");
    assert_eq!(site.path(Side::Left, 1).state, "off");
    let cause = site.path(Side::Right, 1).cause.unwrap_or_default();
    assert!(cause.contains("switched off by the peer"), "{cause}");
    path("up");
    site.await_all_up();
    // What is still on a path that is being left may be overtaken: no one waits for it any more.
    let order = stream.finish().expect("a report").order;
    assert_eq!((order.lost, order.duplicated), (0, 0), "{order:?}");
}

fn all() {
    let site = Site::start(TWO_LINKS, "");
    for link in 0..2 {
        site.lab.link(link).set_blackout(Direction::Both, true);
    }
    (0..2).for_each(|path| site.await_state(path, "down"));
    let pings = site.ping(4, 5);
    assert_eq!(pings.lost, 5);
    assert!(site.connection(Side::Left).drops["no_path"] >= 5);
    for link in 0..2 {
        site.lab.link(link).set_blackout(Direction::Both, false);
    }
    site.await_all_up();
    site.assert_flawless(4);
}

/// Who connects while no path is up is told at once, and does not wait for minutes; the log says so once.
fn unreachable(connection: &str) {
    let site = Site::start(TWO_LINKS, connection);
    site.lab.links().iter().for_each(|link| link.set_blackout(Direction::Both, true));
    (0..2).for_each(|path| site.await_state(path, "down"));
    for version in [4, 6] {
        let to = SocketAddr::new(inner(Side::Right, version), 9);
        let connect = || TcpStream::connect_timeout(&to, PATIENCE);
        let error = site.lab.left().run(connect).expect_err("nobody can answer");
        assert_eq!(error.kind(), io::ErrorKind::HostUnreachable, "IPv{version}: {error}");
    }
    let words = "connection peer: no path is up: packets to the peer are dropped";
    let log = site.daemon(Side::Left).log();
    let warned = log.lines().filter(|line| line.contains("WARN") && line.contains(words));
    assert_eq!(warned.count(), 1, "{log}");
    site.lab.links().iter().for_each(|link| link.set_blackout(Direction::Both, false));
    site.await_all_up();
    site.assert_flawless(4);
}

/// A TCP flow from left to right.
fn flow(site: &Site, length: Duration) -> tcp::Flow {
    let address = inner(Side::Right, 4);
    let sink = site.lab.right().run(|| tcp::Sink::listen(tcp::Transport::Tcp, address, None));
    let sink = sink.expect("a sink");
    let remote = sink.address();
    let source =
        site.lab.left().run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"));
    tcp::Flow::start(sink, source.expect("a source"), length).expect("a flow")
}

/// When the second path fails, counted from the start of a flow: past its slow start.
const FAILURE: Duration = Duration::from_millis(1500);

/// Two daemons with the default timers and the default order.
fn with_default_timers(links: &str) -> Site {
    let plain = |_, config: String| config.replace(QUICK, "");
    Site::start_with(links, "reorder = { window = 4096 }", plain)
}

/// Waits for the moment of the failure.
fn await_failure(began: Instant) {
    std::thread::sleep(FAILURE.saturating_sub(began.elapsed()));
}

/// So many looks at the counters in a row that find them unchanged take longer than any packet's way.
const QUIET: u32 = 30;

/// What became of the inner packets that one host sent the other.
struct Toll {
    /// Those that never came and were not pushed out of a link's queue either, as those of any TCP are.
    lost: u64,
    resent: u64,
    /// Of these, those that had come before.
    copies: u64,
    overflowed: u64,
}

impl Toll {
    /// Counted when nothing is on its way any more, or held.
    fn of(
        site: &Site,
        [from, to]: [Side; 2],
        direction: impl Fn(Report) -> DirectionReport,
    ) -> Self {
        let count = || {
            let sent = site.connection(from).counters.transmitted.packets;
            (sent, site.connection(to).counters.received.packets)
        };
        let (mut last, mut same) = (count(), 0);
        crate::site::eventually("nothing moves any more", || {
            let before = std::mem::replace(&mut last, count());
            same = if last == before { same + 1 } else { 0 };
            same == QUIET
        });
        let (sent, delivered) = last;
        let links = [0, 1].map(|link| direction(site.lab.link(link).report()));
        let overflowed = links.map(|link| link.stats.drops(DropReason::Queue).packets).iter().sum();
        Self {
            lost: (sent - delivered).saturating_sub(overflowed),
            resent: [0, 1].map(|path| site.path(from, path).resent).iter().sum(),
            copies: site.connection(to).drops.get("duplicate").copied().unwrap_or_default(),
            overflowed,
        }
    }
}

impl fmt::Display for Toll {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, resent, copies, overflowed } = self;
        write!(
            formatter,
            "{lost} lost, {resent} sent again ({copies} in vain), {overflowed} overflowed"
        )
    }
}

/// The memory of a TCP sender, in bytes, and the queue of a link: what is outstanding is enough to fill both
/// paths, and fits the queue of one with whatever is sent again when the other fails. So no link drops
/// anything, and whatever is missing has been lost with the path.
const OUTSTANDING: &str = "4096 400000 400000";
const QUEUE: &str = "queue_bytes = 2000000";

/// Whether the emulator was kept from running for a while, and so the daemons perhaps too.
fn stood_still(site: &Site) -> bool {
    let links = [0, 1].map(|link| site.lab.link(link).report());
    links.iter().any(|link| link.forward.stalls + link.backward.stalls > 0)
}

fn carrier(seen_by: &[Side]) {
    let links = TWO_LINKS.replace("delay_ms", &format!("{QUEUE}\ndelay_ms"));
    let site = with_default_timers(&links);
    let limited = || std::fs::write("/proc/sys/net/ipv4/tcp_wmem", OUTSTANDING);
    site.lab.left().run(limited).expect("a setting of the host");
    let began = Instant::now();
    let flow = flow(&site, 2 * FAILURE);
    await_failure(began);
    match seen_by {
        [side] => site.lab.link(1).set_carrier_of(*side, false),
        _ => site.lab.link(1).set_carrier(false),
    }
    site.await_state(1, "down");
    let noticed = began.elapsed() - FAILURE;
    for side in [Side::Left, Side::Right] {
        let cause = site.path(side, 1).cause.unwrap_or_default();
        let expected = match seen_by.contains(&side) {
            true => "interface two has no carrier",
            false => "the peer",
        };
        assert!(cause.contains(expected), "{side:?}: {cause}");
    }
    let report = flow.finish();
    assert_eq!(report.failure, None);
    let gap = report.series.longest_gap(FAILURE, 2 * FAILURE);
    let forward = Toll::of(&site, [Side::Left, Side::Right], |link| link.forward);
    let backward = Toll::of(&site, [Side::Right, Side::Left], |link| link.backward);
    let doubt = if stood_still(&site) { " (the machine stood still)" } else { "" };
    figure(&format!(
        "carrier loss seen by {seen_by:?} at {:.0} Mbit/s: longest gap {gap:.1?}, both ends knew after \
         {noticed:.1?}{doubt}; data: {forward}; acknowledgements: {backward}",
        report.series.rate(FAILURE / 2, FAILURE) / 1e6
    ));
    // What a machine that stands still adds to a few milliseconds and one round trip is not the daemons'
    // doing. Without following carriers it takes a second, in which the path loses some 4,000 packets.
    let [most, longest] = if stood_still(&site) { [500, 500] } else { [1, 150] };
    assert!(forward.lost + backward.lost <= most, "{forward}; {backward}");
    assert!(gap <= Duration::from_millis(longest), "{gap:?}");

    site.lab.link(1).set_carrier(true);
    site.await_all_up();
    let order = site.stream(4, SHORT).finish().expect("a report").order;
    figure(&format!("after its return: {} of 400 packets reordered", order.reordered));
    assert_eq!(order.lost, 0);
}

fn black_hole(direction: Direction) {
    const LENGTH: Duration = Duration::from_secs(5);
    let site = with_default_timers(TWO_LINKS);
    let began = Instant::now();
    let flow = flow(&site, LENGTH);
    await_failure(began);
    site.lab.link(1).set_blackout(direction, true);
    site.await_state(1, "down");
    let noticed = began.elapsed() - FAILURE;
    let report = flow.finish();
    assert_eq!(report.failure, None);
    let gap = report.series.longest_gap(FAILURE, LENGTH);
    site.lab.link(1).set_blackout(direction, false);
    let mended = Instant::now();
    site.await_all_up();
    figure(&format!(
        "black hole, {direction:?}, at {:.0} Mbit/s: longest gap {gap:.1?}, both ends knew after \
         {noticed:.1?}, back {:.1?} after the end",
        report.series.rate(FAILURE / 2, FAILURE) / 1e6,
        mended.elapsed()
    ));
    assert!(gap <= Duration::from_millis(2500), "{gap:?}");
    assert_eq!(site.stream(4, SHORT).finish().expect("a report").order.lost, 0);
}
