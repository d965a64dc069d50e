//! Which packet takes which path, and which connection: flows, pins, tiers and matches.
//!
//! What went where is read off the paths' own counters, and off the links where it is about single
//! flows. The counters leave keepalives out.

mod claims;
mod connections;
mod flows;
mod reloaded;
mod tiers;
mod trace;

use std::net::SocketAddr;
use std::time::Duration;

use mpt_control::{ConnectionState, PathState};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{Site, assert_flawless, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("flows_keep_to_one_path_each_and_so_in_order", flows::in_order),
    ("pinned_ports_take_their_path_while_it_is_up", flows::pinned),
    ("a_path_that_stands_by_takes_over_and_gives_back", tiers::standby),
    ("a_loss_is_not_waited_for_on_a_path_that_stands_by", tiers::idle),
    ("udp_goes_by_one_connection_and_tcp_by_another", connections::combined),
    ("the_first_connection_that_matches_carries", claims::the_first_that_matches),
    ("a_reload_moves_a_port_to_another_connection", reloaded::other_match),
];

/// Two links of which one takes 30 ms longer.
const SKEWED: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\n\
                      [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 32\n";

/// A configuration in which a path has further settings.
fn with(config: &str, path: &str, settings: &str) -> String {
    let name = format!("name = '{path}'\n");
    assert_eq!(config.matches(&name).count(), 1, "{config}");
    config.replace(&name, &format!("{name}{settings}\n"))
}

/// Small packets for some time, one each `interval_ms`.
fn packets(count: u32, interval_ms: u64) -> udp::Options {
    let interval = Duration::from_millis(interval_ms);
    udp::Options { interval, size: 200, length: interval * count }
}

/// Sends numbered packets from a host to a port of the other one.
fn stream(from: &Site, side: Side, version: u8, port: u16, options: udp::Options) -> udp::Stream {
    let to = if side == Side::Left { Side::Right } else { Side::Left };
    let address = SocketAddr::new(inner(to, version), port);
    let sink = from.lab.host(to).run(|| udp::Sink::bind_port(address)).expect("a sink");
    let remote = sink.address();
    let source = from.lab.host(side).run(|| udp::Source::connect(remote)).expect("a source");
    udp::Stream::start(sink, source, options).expect("a stream")
}

/// Waits for streams and asserts that each arrived in full, once and in order.
fn all_flawless(streams: impl IntoIterator<Item = udp::Stream>) {
    streams.into_iter().for_each(assert_flawless);
}

/// How many inner packets went out on each path of a connection while something was done.
fn sent_during(site: &Site, side: Side, connection: usize, work: impl FnOnce()) -> Vec<u64> {
    let sent = || -> Vec<u64> {
        let paths = connection_of(site, side, connection).paths;
        paths.iter().map(|path: &PathState| path.sent.packets).collect()
    };
    let before = sent();
    work();
    sent().iter().zip(before).map(|(after, before)| after - before).collect()
}

fn connection_of(site: &Site, side: Side, connection: usize) -> ConnectionState {
    site.status(side).tunnels.remove(0).connections.remove(connection)
}
