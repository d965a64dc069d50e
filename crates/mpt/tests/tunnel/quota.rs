//! Paths that may carry only so much in a month.

use std::path::Path;
use std::time::Duration;

use mpt_control::{PathState, QuotaState, Request};
use mpt_lab::emulator::Direction;
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;
use tempfile::TempDir;

use crate::site::{Site, TWO_LINKS, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("quota::what_is_carried_is_counted_and_a_restart_goes_on", counted),
    ("quota::a_folder_that_cannot_be_written_harms_nothing", unwritable),
    ("quota::a_quota_can_be_changed_while_its_path_carries", changed),
];

/// Bytes of each packet of the stream, and how many there are: half of them take the second path.
const LEN: usize = 1000;
const PACKETS: u64 = 4000;

/// The configuration of a side, with a quota for the second path, if there is one, and a folder for what is kept.
fn with(config: &str, quota: Option<&str>, folder: &Path) -> String {
    let (first, second) = config.split_once("name = 'two'").expect("a second path");
    let quota = quota.map(|quota| format!("\nquota = '{quota}'")).unwrap_or_default();
    format!("[daemon]\nstate_dir = '{}'\n{first}name = 'two'{quota}{second}", folder.display())
}

/// A site where one host has a quota of 1 MB for its second path.
fn start(owner: Side, folder: &Path) -> Site {
    Site::start_with(TWO_LINKS, "", |side, config| {
        if side == owner { with(&config, Some("1 MB"), folder) } else { config }
    })
}

fn send(site: &Site) {
    let rate = 8_000_000;
    let time = Duration::from_micros(PACKETS * LEN as u64 * 8 * 1_000_000 / rate);
    site.stream(4, udp::Options::at_rate(rate, LEN, time)).finish().expect("a report");
}

fn second(site: &Site) -> PathState {
    site.path(Side::Left, 1)
}

fn quota(site: &Site) -> QuotaState {
    second(site).quota.expect("a quota")
}

/// What a path has carried in both directions, in bytes of IP packets, but for what came without inner packets.
fn volume(path: &PathState) -> u64 {
    let counts = [path.sent, path.control_sent, path.received];
    counts.iter().map(|count| count.bytes + 28 * count.packets).sum()
}

fn counted() {
    let folder = TempDir::new().expect("a folder");
    let mut site = start(Side::Left, folder.path());
    assert_eq!(quota(&site).bytes, 1_000_000);
    assert!(site.path(Side::Left, 0).quota.is_none());
    assert!(!second(&site).standby);
    send(&site);
    let carried = volume(&second(&site));
    // Half of the stream are 2 MB, but on a busy host this path may get less.
    assert!(carried > 1_200_000, "{carried}: about half of the stream");
    eventually("it is counted", || quota(&site).used >= carried);
    let found = quota(&site);
    assert!(found.used < carried + 100_000, "{} of {carried}", found.used);
    assert!(found.used_up && found.ends.is_some() && found.interface.is_none(), "{found:?}");
    eventually("it stands by", || second(&site).standby);
    let log = site.daemon(Side::Left).log();
    assert_eq!(log.matches("the quota of 1.00 MB is used up").count(), 1, "{log}");

    // It carries nothing more, also after a restart, unless no other path is up.
    for _ in 0..2 {
        let before = second(&site).sent.packets;
        site.assert_flawless(4);
        assert_eq!(second(&site).sent.packets, before);
        site.end_daemon(Side::Left);
        let config = with(&site.config(Side::Left), Some("1 MB"), folder.path());
        site.start_daemon_with(Side::Left, &config);
        site.await_all_up();
        let used = quota(&site).used;
        assert!(used >= found.used && second(&site).standby, "{used}");
    }
    site.lab.link(0).set_blackout(Direction::Both, true);
    site.await_state(0, "down");
    assert_eq!(site.ping(4, 10).lost, 0);
    assert!(second(&site).sent.packets >= 10);
}

fn unwritable() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").expect("a file");
    let mut site = start(Side::Left, &file);
    send(&site);
    eventually("it is counted", || quota(&site).used_up);
    site.assert_flawless(4);
    assert_eq!(site.ping(4, 10).lost, 0);
    site.end_daemon(Side::Left);
}

/// The host that has the quota receives.
fn changed() {
    let folder = TempDir::new().expect("a folder");
    let site = start(Side::Right, folder.path());
    let second = || site.path(Side::Right, 1);
    let quota = || second().quota.expect("a quota");
    send(&site);
    eventually("nothing is left", || quota().used_up);
    let daemon = site.daemon(Side::Right);
    let reload = |quota| {
        daemon.configure(&with(&site.config(Side::Right), quota, folder.path())).expect("a file");
        daemon.change(&Request::Reload {}).expect("a reload");
    };
    reload(Some("1 TB"));
    let found = quota();
    assert!(found.used > 1_900_000 && !found.used_up && found.surcharge_ms == 0, "{found:?}");
    assert!(!second().standby, "the core knows");
    reload(Some("1 MB"));
    assert!(quota().used_up && second().standby);
    reload(None);
    assert!(second().quota.is_none() && !second().standby);
    let before = second().sent.packets;
    assert_eq!(site.ping(4, 10).lost, 0);
    assert!(second().sent.packets > before, "answers take it again");
}
