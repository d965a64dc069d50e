//! Extended framing between two daemons: a client that names its server, and a server that names nothing.

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{QUICK, assert_flawless_between, eventually, threads_line};
use crate::suite::Test;
use crate::uplinks::{SERVER, Uplinks, stream, tunnel};

pub(crate) const TESTS: &[Test] = &[
    ("sessions::a_server_that_names_nothing_bonds_the_uplinks_of_its_client", bonded),
    ("sessions::a_restarted_server_is_found_again", server_restarts),
    ("sessions::a_restarted_client_is_known_again", client_restarts),
    ("sessions::a_peer_that_knows_only_plain_framing_is_sent_that", falls_back),
];

/// The client's file.
fn client(framing: &str) -> String {
    tunnel(1, &format!("remote = '{SERVER}'\nframing = '{framing}'\n{QUICK}"))
}

/// The server's file: six lines that are needed, and the times of the tests.
fn server(framing: &str) -> String {
    format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24', 'fd00:9::2/64']\n{}\
         [[tunnel.connection]]\nname = 'van'\npeer = ['10.9.0.1', 'fd00:9::1']\n\
         framing = '{framing}'\n{QUICK}",
        threads_line()
    )
}

/// Waits until both ends have a session and both paths up.
fn await_session(world: &Uplinks) {
    eventually("both ends have a session and two paths that are up", || {
        [Side::Left, Side::Right].into_iter().all(|side| {
            let connection = world.tunnel(side).connections.remove(0);
            connection.framing == "extended"
                && connection.paths.len() == 2
                && connection.paths.iter().all(|path| path.state == "up")
        })
    });
}

/// Packets arrive once and in order in both directions.
fn assert_flawless(world: &Uplinks) {
    let daemons = || [world.daemon(Side::Left), world.daemon(Side::Right)];
    let there = || -> udp::Stream { stream(&world.client, &world.server, "10.9.0.2") };
    let back = || -> udp::Stream { stream(&world.server, &world.client, "10.9.0.1") };
    assert_flawless_between(daemons(), there);
    assert_flawless_between([daemons()[1], daemons()[0]], back);
}

fn bonded() {
    for framing in ["auto", "extended"] {
        let mut world = Uplinks::new();
        // By weights, because so little fits on one path.
        world.start_server(&(server(framing) + "scheduler = 'weighted'\n"));
        world.start_client(&(client(framing) + "scheduler = 'weighted'\n"));
        await_session(&world);
        assert_flawless(&world);
        for side in [Side::Left, Side::Right] {
            let paths = world.tunnel(side).connections.remove(0).paths;
            assert!(paths.iter().all(|path| path.sent.packets >= 100), "{paths:?}");
            eventually("feedback says what arrived in both directions", || {
                let paths = world.tunnel(side).connections.remove(0).paths;
                paths.iter().all(|path| {
                    let ways = [&path.from_peer, &path.to_peer];
                    ways.into_iter().all(|way| way.as_ref().is_some_and(|way| way.received >= 100))
                })
            });
        }
    }
}

fn server_restarts() {
    let mut world = Uplinks::new();
    world.start_server(&server("extended"));
    world.start_client(&client("extended"));
    await_session(&world);
    // Without a word to the client.
    drop(world.on_server.take());
    world.start_server(&server("extended"));
    await_session(&world);
    assert_flawless(&world);
}

fn client_restarts() {
    let mut world = Uplinks::new();
    world.start_server(&server("auto"));
    world.start_client(&client("auto"));
    await_session(&world);
    drop(world.on_client.take());
    world.start_client(&client("auto"));
    await_session(&world);
    assert_flawless(&world);
}

fn falls_back() {
    let mut world = Uplinks::new();
    world.start(["framing = 'auto'", "framing = 'plain'"], QUICK);
    world.await_both("lte", "up");
    let framing = || world.tunnel(Side::Left).connections.remove(0).framing;
    assert_eq!(framing(), "plain");
    let reason = world.tunnel(Side::Left).connections.remove(0).framing_reason;
    assert!(reason.is_some(), "it shows that there is no session");
    assert_flawless(&world);
}
