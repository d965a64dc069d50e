//! Keepalives are lost, or not sent, and come again.

use std::time::Duration;

use mpt_control::Event;
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;

use super::meeting::{Meeting, TERMS};
use super::settings::SECOND;
use super::{commands, machine};
use crate::site::{assert_flawless, eventually};

/// The original is silent on one path: we stop using it, and continue to send keepalives.
pub(super) fn silent() {
    let meeting = Meeting::start(TERMS);
    meeting.peer().machine().path(1).mute = true;
    let stream = meeting.stream(Side::Left, Duration::from_secs(1));
    meeting.await_ours(1, "down");
    let cause = meeting.site.path(Side::Left, 1).cause.unwrap_or_default();
    assert!(cause.contains("silent"), "{cause}");
    assert_flawless(stream);

    let carried = |path| meeting.carried(path);
    let (before, others) = (carried(1), carried(0));
    meeting.assert_flawless(Side::Left);
    assert_eq!((carried(1), carried(0)), (before, others + 200), "it is left");
    let keepalives = meeting.keepalives(1);
    eventually("keepalives go on while it is down", || meeting.keepalives(1) > keepalives + 5);
    assert_eq!(meeting.status(1), machine::OK, "which is what the original goes by");

    meeting.peer().machine().path(1).mute = false;
    meeting.await_ours(1, "up");
    meeting.assert_flawless(Side::Left);
    assert!(carried(1) >= before + 95, "it is used again");
}

/// Our keepalives are lost on one path: the original leaves it, and returns at the first that comes.
pub(super) fn unheard() {
    let meeting = Meeting::start(TERMS);
    meeting.site.lab.link(1).set_blackout(Direction::Forward, true);
    meeting.await_status(1, machine::DOWN);
    meeting.await_idle();
    assert_eq!(meeting.status(0), machine::OK, "the other one is not blamed");
    assert_eq!(meeting.peer().machine().commands.codes, [commands::DONE], "and tells us over it");
    let events = meeting.site.status(Side::Left).tunnels.remove(0).events;
    let said = |event: &Event| event.text.contains("the peer says that it is down");
    assert!(events.iter().any(said), "{events:?}");
    let carried = |path| meeting.peer().machine().path(path).carried;
    let before = carried(1);
    assert_flawless(meeting.stream(Side::Right, Duration::from_millis(200)));
    assert_eq!(carried(1), before, "it is left");

    meeting.site.lab.link(1).set_blackout(Direction::Forward, false);
    meeting.await_all_up();
    for side in [Side::Left, Side::Right] {
        meeting.assert_flawless(side);
    }
    assert!(carried(1) >= before + 95, "it is used again");
}

/// Nothing passes in either direction, on all paths.
pub(super) fn cut() {
    let meeting = Meeting::start(TERMS);
    // Commands about either path get no answer.
    meeting.peer().machine().commands.wait = SECOND / 10;
    let cut = |cut| {
        meeting.site.lab.links().iter().for_each(|link| link.set_blackout(Direction::Both, cut));
    };
    cut(true);
    for path in 0..2 {
        meeting.await_ours(path, "down");
        meeting.await_status(path, machine::DOWN);
    }
    let heard: Vec<_> = (0..2).map(|path| meeting.keepalives(path)).collect();
    cut(false);
    meeting.await_all_up();
    assert!((0..2).all(|path| meeting.keepalives(path) > heard[path]));
    assert_eq!((meeting.ping(Side::Left, 10), meeting.ping(Side::Right, 10)), (0, 0));
}

/// The original is configured to begin with a path that is down.
pub(super) fn down_at_first() {
    let mut meeting = Meeting::without_ours(TERMS);
    meeting.peer().machine().path(1).status = machine::DOWN;
    meeting.start_ours();
    meeting.await_all_up();
    meeting.assert_flawless(Side::Right);
}
