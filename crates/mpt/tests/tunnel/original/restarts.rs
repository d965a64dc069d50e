//! Either end begins again, and with it its numbers.

use std::time::Duration;

use mpt_lab::topology::Side;

use super::machine;
use super::meeting::{Meeting, TERMS};

/// The original detects a restart by a number of 50 or less.
pub(super) fn ours() {
    let mut meeting = Meeting::start(TERMS);
    // Beyond what could be a restart.
    meeting.assert_flawless(Side::Left);
    meeting.site.end_daemon(Side::Left);
    meeting.start_ours();
    meeting.await_all_up();
    assert_eq!(meeting.ping(Side::Left, 10), 0);
    let (known, late) = {
        let machine = meeting.peer().machine();
        (machine.reorder().restarts, machine.reorder().late)
    };
    assert_eq!((known, late), (1, 0));
    meeting.assert_flawless(Side::Left);
    meeting.assert_flawless(Side::Right);
}

/// The original begins again, after it was missed or before, and after many packets or few.
pub(super) fn peers() {
    let mut meeting = Meeting::start(TERMS);
    for (missed, packets) in [(false, 200), (true, 200), (false, 10)] {
        let stream = meeting.stream(Side::Right, Duration::from_millis(packets));
        assert_eq!(stream.finish().expect("a report").order.lost, 0);
        meeting.end_peer();
        if missed {
            (0..2).for_each(|path| meeting.await_ours(path, "down"));
        }
        // It takes our numbers, which continue, for early ones, and waits for those before them.
        meeting.start_peer_with(|settings| settings.delay = Duration::from_millis(100));
        if missed {
            (0..2).for_each(|path| meeting.await_status(path, machine::OK));
            (0..2).for_each(|path| meeting.await_ours(path, "up"));
        }
        let report = meeting.stream(Side::Right, Duration::from_millis(200)).finish();
        let report = report.expect("a report");
        let drops = meeting.site.connection(Side::Left).drops;
        let what = format!("{missed}, {packets}: {:?}, {drops:?}", report.order);
        assert_eq!((report.order.lost, report.order.duplicated), (0, 0), "{what}");
        let held = report.delay_ms.expect("packets came").max;
        assert!(held < 2000.0, "{what}: {held} ms");
        assert_eq!((meeting.ping(Side::Left, 10), meeting.ping(Side::Right, 10)), (0, 0));
    }
}
