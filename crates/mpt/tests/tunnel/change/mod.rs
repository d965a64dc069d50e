//! Changes of what runs, under traffic that must not notice them.
//!
//! Beside every change runs a stream of a thousand packets per second, over links so different that
//! an end that forgets what is still in flight breaks its order.

mod many;
mod reload;

use std::thread;
use std::time::{Duration, Instant};

use mpt_control::{ConnectionState, PathStatus, Request};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;
use nix::sys::signal::Signal;

use crate::site::{Machine, Site, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_stream_notices_no_reload", reloads),
    ("a_stream_notices_no_change_of_weights", weights),
    ("a_stream_notices_no_path_added_or_removed", paths),
    ("a_stream_notices_no_path_replaced", replaced),
    ("a_stream_notices_no_change_of_priorities", priorities),
    ("a_stream_notices_no_path_off_and_on", off_and_on),
    ("a_stream_notices_no_connection_beside_it", connections),
    ("a_reload_says_what_it_changes", reload::says),
    ("a_wrong_file_changes_nothing", reload::wrong),
    ("a_reload_refuses_what_a_start_refuses_and_says_what_it_did", reload::refuses),
    ("a_reload_keeps_what_was_done_by_command", reload::keeps),
    ("a_reload_replaces_what_cannot_change", reload::replaces),
    ("a_larger_mtu_than_the_buffers_starts_the_tunnel_again", reload::wider),
    ("tunnels_come_and_go_by_reload", reload::tunnels),
    ("the_page_of_metrics_comes_moves_and_goes", reload::metrics),
    ("a_thousand_connections_start_and_change_in_no_time", many::connections),
    ("what_runs_can_be_written_down", reload::written),
];

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// Links of which the second takes six times as long, and the third twice that.
const UNEVEN: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\n\
                      [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 12\n\
                      [[link]]\nname = 'three'\nrate_mbps = 50\ndelay_ms = 24\n";

/// Two daemons over [`UNEVEN`] links, of which they use the first two.
fn site() -> Site {
    Site::start_with(UNEVEN, "", |_, config| without_path(&config, "three"))
}

/// A configuration without one of its paths.
fn without_path(config: &str, name: &str) -> String {
    let (header, name) = ("[[tunnel.connection.path]]\n", format!("name = '{name}'\n"));
    let parts = config.split(header).filter(|part| !part.starts_with(&name));
    parts.collect::<Vec<_>>().join(header)
}

/// The keys of a path as they stand in the configuration.
fn path_settings(site: &Site, side: Side, name: &str) -> String {
    let (config, start) = (site.config(side), format!("name = '{name}'\n"));
    let mut parts = config.split("[[tunnel.connection.path]]\n");
    parts.find(|part| part.starts_with(&start)).expect("a path").to_owned()
}

/// Has a stream run while `change` is called over and over, each time with the number of calls before,
/// and asserts that it arrives in full and in order, without a new beginning of the sequence.
fn undisturbed(site: &Site, length: Duration, mut change: impl FnMut(u32)) {
    let (before, machine) = (site.connection(Side::Right), Machine::watch(site));
    let options = udp::Options { interval: Duration::from_millis(1), size: 200, length };
    let (stream, start) = (site.stream(4, options), Instant::now());
    let mut calls = 0;
    // What is done at the end of the stream is not seen by it.
    while start.elapsed() < length - Duration::from_millis(300) {
        change(calls);
        calls += 1;
    }
    assert!(calls >= machine.enough(site), "{calls} changes");
    let missing = machine.judge(site, stream);
    let after = site.connection(Side::Right);
    assert_eq!(after.reorder.counters["restarts"], 0, "{:?}", after.reorder);
    assert!(lost(&after) <= lost(&before) + missing, "{:?}", after.reorder);
    let number = |connection: &ConnectionState| connection.reorder.next.unwrap_or_default();
    let packets = options.packets();
    let came = after.counters.received.packets - before.counters.received.packets;
    assert!(came <= packets && came + missing >= packets, "{came} of {packets}");
    assert!(number(&after) >= number(&before) + came, "the sequence goes on: {after:?}");
}

/// The numbers that were given up.
fn lost(connection: &ConnectionState) -> u64 {
    let counters = connection.reorder.counters.iter();
    counters.filter(|(name, _)| name.starts_with("lost")).map(|(_, count)| count).sum()
}

fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

/// Has one side carry out a change.
fn change(site: &Site, side: Side, request: &Request) -> Vec<String> {
    site.daemon(side).change(request).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Sets something of a path at one side.
fn set(site: &Site, side: Side, path: &str, setting: Setting) {
    let (mut new_status, mut new_weight, mut new_priority) = (None, None, None);
    match setting {
        Setting::Priority(priority) => new_priority = Some(priority),
        Setting::Status(status) => new_status = Some(status),
        Setting::Weight(weight) => new_weight = Some(weight),
    }
    let request = Request::Path {
        connection: None,
        path: path.into(),
        status: new_status,
        weight: new_weight,
        priority: new_priority,
    };
    change(site, side, &request);
}

enum Setting {
    Priority(u8),
    Status(PathStatus),
    Weight(u16),
}

fn add(site: &Site, side: Side, path: &str) {
    let settings = path_settings(site, side, path);
    change(site, side, &Request::PathAdd { connection: None, settings });
}

fn remove(site: &Site, side: Side, path: &str) {
    change(site, side, &Request::PathRemove { connection: None, path: path.into() });
}

/// How many packets a side has sent on a path; 0 if it has no such path.
fn sent(site: &Site, side: Side, path: &str) -> u64 {
    let connection = site.connection(side);
    let path = connection.paths.iter().find(|other| other.name == path);
    path.map_or(0, |path| path.sent.packets)
}

/// Every reload finds the file changed in something that has nothing to do with the stream; first it is
/// asked for by request, then by signal.
fn reloads() {
    let site = site();
    let files = BOTH.map(|side| without_path(&site.config(side), "three"));
    let other = |number: u32| {
        let keepalive =
            if number.is_multiple_of(2) { "keepalive = 0.2" } else { "keepalive = 0.1" };
        files.each_ref().map(|file| {
            // The last path's, and something of the tunnel.
            let (front, back) = file.rsplit_once("keepalive = 0.1").expect("a path");
            let file = format!("{front}{keepalive}{back}");
            let clamp = format!("clamp_mss = {}\n[[tunnel.connection]]", number.is_multiple_of(2));
            file.replacen("[[tunnel.connection]]", &clamp, 1)
        })
    };
    undisturbed(&site, Duration::from_millis(1500), |number| {
        for (side, file) in BOTH.into_iter().zip(other(number)) {
            site.daemon(side).configure(&file).expect("a file");
            let changes = change(&site, side, &Request::Reload {});
            assert!(
                changes.iter().any(|change| change.contains("path two: keepalive")),
                "{changes:?}"
            );
        }
        pause(60);
    });
    let pids = BOTH.map(|side| i32::try_from(site.daemon(side).pid()).expect("a process id"));
    undisturbed(&site, Duration::from_millis(1500), |number| {
        for ((side, file), pid) in BOTH.into_iter().zip(other(number)).zip(pids) {
            site.daemon(side).configure(&file).expect("a file");
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGHUP)
                .expect("a signal");
            let keepalive = if number.is_multiple_of(2) { 0.2 } else { 0.1 };
            eventually("the daemon has read its file again", || {
                site.path(side, 1).keepalive == keepalive
            });
        }
        pause(60);
    });
}

fn weights() {
    let site = site();
    undisturbed(&site, Duration::from_secs(3), |number| {
        let [one, two] = [[1, 10_000], [10_000, 1], [1, 1], [3, 7]][number as usize % 4];
        for side in BOTH {
            set(&site, side, "one", Setting::Weight(one));
            set(&site, side, "two", Setting::Weight(two));
        }
        pause(100);
    });
    for path in ["one", "two"] {
        assert!(sent(&site, Side::Left, path) > 500, "both are used: {path}");
    }
}

/// The third path is added at one side, then at the other, used, and removed in the same order; the next
/// time the other side begins.
fn paths() {
    let site = site();
    let machine = Machine::watch(&site);
    let mut used = 0;
    undisturbed(&site, Duration::from_secs(3), |number| {
        let order = if number.is_multiple_of(2) { BOTH } else { [Side::Right, Side::Left] };
        order.into_iter().for_each(|side| add(&site, side, "three"));
        site.await_all_up();
        pause(100);
        used += u32::from(sent(&site, Side::Left, "three") > 10);
        order.into_iter().for_each(|side| remove(&site, side, "three"));
        pause(20);
    });
    assert!(used >= machine.enough(&site), "it carried packets {used} times");
    assert_eq!(site.connection(Side::Left).paths.len(), 2);
}

/// One side removes a path that is in use and adds it again under the same name, at once.
fn replaced() {
    let site = site();
    undisturbed(&site, Duration::from_millis(2500), |number| {
        let side = BOTH[number as usize % 2];
        let path = ["one", "two"][number as usize / 2 % 2];
        remove(&site, side, path);
        add(&site, side, path);
        site.await_all_up();
        pause(50);
    });
}

/// Each path in turn is on standby and carries, at both sides or at one.
fn priorities() {
    let site = site();
    undisturbed(&site, Duration::from_secs(3), |number| {
        let [one, two] = [[0, 1], [0, 0], [1, 0], [1, 1]][number as usize % 4];
        for side in BOTH {
            set(&site, side, "one", Setting::Priority(one));
            set(&site, side, "two", Setting::Priority(two));
        }
        // Longer than it takes the peer to see that nothing comes on a path.
        pause(300);
    });
}

fn off_and_on() {
    let site = site();
    undisturbed(&site, Duration::from_secs(3), |number| {
        let side = BOTH[number as usize % 2];
        let path = ["one", "two"][number as usize / 2 % 2];
        set(&site, side, path, Setting::Status(PathStatus::Off));
        pause(30);
        set(&site, side, path, Setting::Status(PathStatus::Available));
        site.await_all_up();
        pause(30);
    });
}

/// A connection with a path on the same socket comes and goes.
fn connections() {
    let site = site();
    undisturbed(&site, Duration::from_secs(2), |_| {
        for side in BOTH {
            let local = site.lab.topology().address(side, 0);
            let settings = format!(
                "name = 'beside'\npeer = ['10.9.0.99']\nkey = 9\n\
                 path = [{{ name = 'one', local = '{local}', remote = '198.18.1.99' }}]\n"
            );
            let changes = change(&site, side, &Request::ConnectionAdd { tunnel: None, settings });
            assert_eq!(changes, ["connection beside: added to tunnel mpt0"]);
        }
        pause(20);
        for side in BOTH {
            let connection = "beside".into();
            let changes = change(&site, side, &Request::ConnectionRemove { connection });
            assert_eq!(changes, ["connection beside: removed"]);
        }
        pause(20);
    });
}
