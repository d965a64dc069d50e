//! A path dies in any direction, by accident or on command, and comes back.

use std::process::Command;
use std::time::Duration;

use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_lab::traffic::{tcp, udp};

use crate::site::{SHORT, Site, TWO_LINKS, assert_flawless, change_interface, daemon, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_path_cut_in_both_directions", || cut(Direction::Both, "silent", "silent")),
    ("a_path_cut_forward_only", || cut(Direction::Forward, "does not hear us", "silent")),
    ("a_path_cut_backward_only", || cut(Direction::Backward, "silent", "does not hear us")),
    ("an_interface_switched_off_and_on", interface),
    ("a_tcp_flow_survives_the_loss_of_each_path_in_turn", tcp_in_turn),
    ("a_path_switched_off_by_hand_loses_nothing", by_hand),
    ("all_paths_cut_and_back", all),
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
    let address = inner(Side::Right, 4);
    let sink = site
        .lab
        .right()
        .run(|| tcp::Sink::listen(tcp::Transport::Tcp, address, None))
        .expect("a sink");
    let remote = sink.address();
    let source =
        site.lab.left().run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"));
    let flow = tcp::Flow::start(sink, source.expect("a source"), Duration::from_secs(8));
    let flow = flow.expect("a flow");
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
