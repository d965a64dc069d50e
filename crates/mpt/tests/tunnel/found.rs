//! A client that says where its server is, and finds its uplinks by itself; the server has a template.

use mpt_control::{Client, PathStatus, Reply, Request};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::names;
use crate::site::{QUICK, assert_flawless_between, eventually, eventually_or, threads_line};
use crate::suite::Test;
use crate::uplinks::{
    LTE, SERVER, Uplinks, add_address, add_default, default_route, netlink, remove, server_config,
    stream, tunnel, unanswered,
};

pub(crate) const TESTS: &[Test] = &[
    ("found::every_interface_with_a_route_to_the_server_has_a_path", every_uplink),
    ("found::a_path_goes_with_the_default_route_and_comes_with_it", route),
    ("found::paths_come_and_go_with_their_interfaces", interfaces),
    ("found::found_paths_obey_commands_and_reloads", commands),
    ("found::a_connection_without_paths_waits_for_its_peer", learning),
    ("found::both_ip_versions_of_a_name_are_tried", versions),
    ("found::a_source_that_the_template_does_not_name_has_no_path", sources),
];

/// The client's file, with further lines of its connection.
fn client(more: &str) -> String {
    tunnel(1, &format!("remote = '{SERVER}'\nframing = 'plain'\n{QUICK}{more}"))
}

/// The server's file.
fn server() -> String {
    format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24', 'fd00:9::2/64']\n{}\
         [[tunnel.accept]]\nname = 'guest'\npeers = ['10.9.0.0/24']\nforget = 3\n\
         framing = 'plain'\nreorder = {{ max_delay = 1 }}\n{QUICK}",
        threads_line()
    )
}

fn start(world: &mut Uplinks, more: &str) {
    world.start_server(&server());
    world.start_client(&client(more));
}

/// The client's paths, each with its state.
fn paths(world: &Uplinks) -> Vec<(String, String)> {
    let paths = world.tunnel(Side::Left).connections.remove(0).paths;
    let mut paths: Vec<_> = paths.into_iter().map(|path| (path.name, path.state)).collect();
    paths.sort();
    paths
}

/// Waits until the client has these paths and no others, each in this state.
fn await_paths(world: &Uplinks, wanted: &[(&str, &str)]) {
    let wanted: Vec<_> =
        wanted.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect();
    let mut last = Vec::new();
    let reached = eventually_or(|| {
        last = paths(world);
        last == wanted
    });
    assert!(reached, "{last:?}, not {wanted:?}: {}", world.daemon(Side::Left).log());
}

/// Waits until the server has so many paths, all up.
fn await_server(world: &Uplinks, count: usize) {
    eventually(&format!("the server has {count} paths"), || {
        let connections = world.tunnel(Side::Right).connections;
        let paths: Vec<_> = connections.into_iter().flat_map(|of| of.paths).collect();
        paths.len() == count && paths.iter().all(|path| path.state == "up")
    });
}

/// Asserts that packets arrive once and in order, and says how many of them each of these paths took.
fn shares<const N: usize>(world: &Uplinks, names: [&str; N]) -> [u64; N] {
    let sent = || names.map(|name| world.path(Side::Left, name).sent.packets);
    let before = sent();
    let daemons = [world.daemon(Side::Left), world.daemon(Side::Right)];
    let flow = || -> udp::Stream { stream(&world.client, &world.server, "10.9.0.2") };
    assert_flawless_between(daemons, flow);
    let after = sent();
    std::array::from_fn(|place| after[place] - before[place])
}

fn every_uplink() {
    let mut world = Uplinks::new();
    start(&mut world, "[tunnel.connection.interface.wwan0]\nweight = 3\n");
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    await_server(&world, 2);
    let [eth0, wwan0] = shares(&world, ["eth0", "wwan0"]);
    assert!((95..=115).contains(&eth0) && (290..=310).contains(&wwan0), "{eth0} and {wwan0}");
}

/// In a session, too, where further paths are learned.
fn sources() {
    let mut world = Uplinks::new();
    let session = |file: &str| file.replace("framing = 'plain'", "framing = 'extended'");
    let named = session(&server()).replace("forget = 3", "forget = 3\nsources = ['192.0.2.0/24']");
    world.start_server(&named);
    world.start_client(&session(&client("")));
    eventually("the other one is refused", || {
        let log = world.daemon(Side::Right).log();
        log.contains("198.51.100.") && log.contains("is not among the `sources` of template")
    });
    await_server(&world, 1);
    let up: Vec<_> = paths(&world).into_iter().filter(|(_, state)| state == "up").collect();
    assert_eq!(up, [("eth0".to_owned(), "up".to_owned())]);
}

fn route() {
    let mut world = Uplinks::new();
    start(&mut world, "");
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    let id = || {
        let connection = world.tunnel(Side::Left).connections.remove(0);
        connection.paths.iter().find(|path| path.name == "wwan0").map(|path| path.id)
    };
    let before = id();
    let without_route = || {
        world.client.run(|| {
            let route = default_route("wwan0", "198.51.100.1", Some(200));
            netlink().remove_route_in(&route).expect("it is gone");
        });
        world.await_cause("wwan0", &format!("no route leads to {SERVER} through interface wwan0"));
    };
    let with_route = || world.client.run(|| add_default("wwan0", "198.51.100.1", Some(200)));
    // For a moment only: it is the same path.
    without_route();
    with_route();
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    assert_eq!(id(), before);

    without_route();
    let [eth0] = shares(&world, ["eth0"]);
    assert!(eth0 >= 400, "{eth0}");
    await_paths(&world, &[("eth0", "up")]);
    await_server(&world, 1);
    with_route();
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    await_server(&world, 2);
    let [_, wwan0] = shares(&world, ["eth0", "wwan0"]);
    assert!((195..=215).contains(&wwan0), "{wwan0}");
}

fn interfaces() {
    let mut world = Uplinks::without_uplinks();
    start(&mut world, "");
    await_paths(&world, &[]);
    world.plug_fibre();
    await_paths(&world, &[("eth0", "up")]);
    world.plug_lte(LTE);
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    await_server(&world, 2);
    let [_, wwan0] = shares(&world, ["eth0", "wwan0"]);
    assert!((195..=215).contains(&wwan0), "{wwan0}");
    world.client.run(|| remove("eth0"));
    world.await_cause("eth0", "there is no interface eth0");
    shares(&world, ["wwan0"]);
    await_paths(&world, &[("wwan0", "up")]);
}

fn commands() {
    let mut world = Uplinks::new();
    start(&mut world, "exclude = ['wwan*']\n");
    await_paths(&world, &[("eth0", "up")]);
    world.reload(Side::Left, &client("interfaces = ['wwan?', 'eth*']\n"));
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    let mut control = Client::connect(world.daemon(Side::Left).socket()).expect("a daemon");
    let mut ask = |request| control.request(&request).expect("an answer");
    let set = |status| Request::path_status(None::<&str>, "wwan0", status);
    assert_eq!(ask(set(PathStatus::Off)), Reply::Done);
    await_paths(&world, &[("eth0", "up"), ("wwan0", "off")]);
    let [eth0] = shares(&world, ["eth0"]);
    assert!(eth0 >= 400, "{eth0}");
    assert_eq!(ask(set(PathStatus::Available)), Reply::Done);
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    let weight = Request::Path {
        connection: None,
        path: "wwan0".into(),
        status: None,
        weight: Some(3),
        priority: None,
    };
    assert_eq!(ask(weight), Reply::Done);
    let [eth0, wwan0] = shares(&world, ["eth0", "wwan0"]);
    assert!((95..=115).contains(&eth0) && (290..=310).contains(&wwan0), "{eth0} and {wwan0}");
    let Reply::Config { text } = ask(Request::Config {}) else { panic!("no settings") };
    assert!(text.contains("wwan?") && !text.contains("[[tunnel.connection.path]]"), "{text}");

    world.reload(Side::Left, &client("exclude = ['eth0']\n"));
    await_paths(&world, &[("wwan0", "up")]);
}

/// A client that does not say where it is, with which only extended framing can speak.
fn learning() {
    let mut world = Uplinks::new();
    let server = |more: &str| tunnel(2, &format!("framing = 'auto'\n{more}"));
    let connection = |world: &Uplinks| world.tunnel(Side::Right).connections.remove(0);
    world.start_server(&server(""));
    assert!(connection(&world).paths.is_empty());
    world.start_client(&client(""));
    await_paths(&world, &[("eth0", "probing"), ("wwan0", "probing")]);
    // With paths it is one like any other.
    let id = connection(&world).id;
    let paths = server_config("", QUICK)
        .split_once("[[tunnel.connection.path]]")
        .expect("paths")
        .1
        .to_owned();
    let configured = server(&format!("\n[[tunnel.connection.path]]{paths}"));
    let Reply::Changed { changes } = world.reload(Side::Right, &configured) else {
        panic!("a refusal")
    };
    assert_eq!(changes.len(), 2, "{changes:?}");
    await_paths(&world, &[("eth0", "up"), ("wwan0", "up")]);
    assert_eq!(connection(&world).id, id);
    shares(&world, ["eth0", "wwan0"]);
    world.reload(Side::Right, &server(""));
    eventually("it learns again", || connection(&world).paths.is_empty());
}

/// By IPv6 the server can be reached through the first uplink, and by the second nothing comes back.
fn versions() {
    const NAME: &str = "server.example.org";
    const SERVER_V6: &str = "2001:db8:3::5";
    names::write("resolv.conf", "");
    names::write("hosts", &format!("{SERVER_V6} {NAME}\n{SERVER} {NAME}\n"));
    let mut world = Uplinks::new();
    world.server.run(|| add_address("eth0", SERVER_V6));
    // Without the second address, a router does not ask its neighbours for theirs.
    world.internet.run(|| ["2001:db8:3::1", "fe80::1"].map(|own| add_address("server", own)));
    world.server.run(|| add_default("eth0", "2001:db8:3::1", None));
    for (uplink, link, net) in [("eth0", "fibre", 1), ("wwan0", "lte", 2)] {
        let (own, router) = (format!("2001:db8:{net}::7"), format!("2001:db8:{net}::1"));
        world.client.run(|| add_address(uplink, &own));
        // The second router is none.
        if link == "fibre" {
            world.internet.run(|| [router.as_str(), "fe80::1"].map(|own| add_address(link, own)));
        }
        world.client.run(|| add_default(uplink, &router, Some(net * 100)));
    }
    eventually("the server answers by IPv6", || unanswered(&world.client, SERVER_V6) == 0);
    start(&mut world, "");
    let config = client("").replace(&format!("'{SERVER}'"), &format!("'{NAME}'"));
    world.reload(Side::Left, &config);
    await_paths(
        &world,
        &[("eth0", "up"), ("eth0-v6", "up"), ("wwan0", "up"), ("wwan0-v6", "probing")],
    );
    let [v4, v6, _] = shares(&world, ["eth0", "eth0-v6", "wwan0"]);
    assert!(v4 < 20 && v6 > 150, "IPv4 stands by: {v4} and {v6}");
    await_paths(&world, &[("eth0", "up"), ("eth0-v6", "up"), ("wwan0", "up")]);
}
