//! Keepalives are lost, or not sent, and come again.

use std::time::Duration;

use mpt_control::Event;
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;

use super::meeting::{Meeting, TERMS, Terms};
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

    // The original goes on with its keepalives, and uses the other path alone: so do we.
    let back = meeting.stream(Side::Right, Duration::from_secs(8));
    let uptime = || meeting.site.status(Side::Left).uptime_seconds;
    let begin = uptime();
    // A machine that stands still may have let a keepalive count; what the original sends elsewhere corrects that.
    eventually("some keepalives have come", || uptime() > begin + 4.0);
    let ours = || meeting.site.path(Side::Left, 1);
    let sent = ours().sent.packets;
    meeting.assert_flawless(Side::Left);
    assert_eq!(
        (ours().state.as_str(), ours().sent.packets),
        ("down", sent),
        "nothing is lost there"
    );
    assert_flawless(back);

    meeting.site.lab.link(1).set_blackout(Direction::Forward, false);
    meeting.await_all_up();
    for side in [Side::Left, Side::Right] {
        meeting.assert_flawless(side);
    }
    assert!(carried(1) >= before + 95, "it is used again");
}

/// The original's operator switches a path on, and its keepalives take their time.
pub(super) fn up_before_heard() {
    let meeting = Meeting::start(Terms { dead: 0, ..TERMS });
    meeting.switch(1, false);
    meeting.await_ours(1, "down");
    meeting.peer().machine().path(1).mute = true;
    meeting.switch(1, true);
    let is_up = |event: &Event| {
        event.path.as_deref() == Some("two") && event.text.contains("was down, is up")
    };
    eventually("the command does it", || {
        meeting.site.status(Side::Left).tunnels.remove(0).events.iter().any(is_up)
    });
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
