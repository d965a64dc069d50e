//! A daemon with a thousand connections: started, and changed while it runs.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mpt_control::Request;
use mpt_lab::topology::Side;

use super::change;
use crate::site::{Site, threads_line};

const CONNECTIONS: usize = 1000;

/// What must not be taken much longer than it takes a machine that stands still at times: whatever grows
/// with the square of the connections takes minutes.
const LIMIT: Duration = Duration::from_secs(20);

const LINK: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\n";

/// Connections distinguished by their keys, from `first` on; those of `heavy` have another weight.
fn config(site: &Site, first: usize, heavy: &[usize]) -> String {
    let topology = site.lab.topology();
    let (local, remote) = (topology.address(Side::Left, 0), topology.address(Side::Right, 0));
    let mut config =
        format!("[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/16']\n{}", threads_line());
    for number in first..first + CONNECTIONS {
        let (high, low) = (number / 250, number % 250 + 1);
        let weight = if heavy.contains(&number) { 7 } else { 1 };
        let _ = write!(
            config,
            "[[tunnel.connection]]\nname = 'c{number}'\npeer = ['10.9.{}.{low}']\nkey = {number}\n\
             [[tunnel.connection.path]]\nname = 'one'\nlocal = '{local}'\nremote = '{remote}'\n\
             weight = {weight}\nkeepalive = 5\n",
            100 + high,
        );
    }
    config
}

#[expect(clippy::print_stderr, reason = "figures for who runs it")]
pub(super) fn connections() {
    let mut site = Site::links_only(LINK, "");
    let side = Side::Left;
    let (file, start) = (config(&site, 0, &[]), Instant::now());
    site.start_daemon_with(side, &file);
    report("start", start.elapsed());
    let reload = |what: &str, file: &str, expected: usize| {
        site.daemon(side).configure(file).expect("a file");
        let start = Instant::now();
        let changes = change(&site, side, &Request::Reload {});
        report(what, start.elapsed());
        assert_eq!(changes.len(), expected, "{what}");
    };
    reload("reload without a change", &config(&site, 0, &[]), 0);
    reload("reload with one changed", &config(&site, 0, &[500]), 1);
    let half: Vec<usize> = (0..CONNECTIONS / 2).collect();
    reload("reload with 501 changed", &config(&site, 0, &half), CONNECTIONS / 2 + 1);
    reload("reload with 200 gone, 200 come", &config(&site, 200, &half), 400);
    let status = site.status(side).tunnels.remove(0);
    assert_eq!(status.connections.len(), CONNECTIONS);
    let memory = site.daemon(side).resident_bytes().expect("a process");
    eprintln!("  the whole daemon has {} MB", memory / 1_000_000);
}

#[expect(clippy::print_stderr, reason = "figures for who runs it")]
fn report(what: &str, time: Duration) {
    eprintln!("  {what}: {} ms", time.as_millis());
    assert!(time < LIMIT, "{what} took {time:?}");
}
