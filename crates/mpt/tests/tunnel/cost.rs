//! What an idle tunnel costs.

use std::time::Duration;

use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[("an_idle_tunnel_costs_next_to_nothing", idle)];

/// Long enough that 0.5 % of it is several of the 10 ms in which processor time is counted.
const WATCHED: Duration = Duration::from_secs(8);

fn idle() {
    let site = Site::start(TWO_LINKS, "");
    let daemon = site.daemon(Side::Left);
    let before = daemon.cpu_time().expect("a running daemon");
    std::thread::sleep(WATCHED);
    let used = daemon.cpu_time().expect("a running daemon") - before;
    let resident = daemon.resident_bytes().expect("a running daemon");
    assert!(used <= WATCHED / 200, "{used:?} of processor time in {WATCHED:?}");
    assert!(resident < 20 << 20, "{resident} bytes resident");
}
