//! Accepted connections: a server that accepts the peers that match its template.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use mpt_control::{Client, ConnectionState, Reply, Request};
use mpt_lab::topology::Side;
use mpt_lab::traffic::{tcp, udp};

use crate::site::{
    QUICK, SHORT, Site, TWO_LINKS, assert_flawless, change_interface, eventually, inner,
    threads_line,
};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_template_lets_a_client_in_with_all_its_uplinks", both_uplinks),
    ("an_accepted_client_that_starts_again_goes_on", starts_again),
    ("an_accepted_client_with_another_address_goes_on", another_address),
    ("an_accepted_client_whose_translator_forgets_goes_on", translator_forgets),
    ("who_is_one_too_many_is_refused_counted_and_told", too_many),
    ("connection_requests_above_the_rate_are_refused", too_fast),
    ("accepted_connections_obey_commands", commands),
    ("an_accepted_client_that_is_configured_later_changes_over", configured),
    ("whom_a_template_let_in_goes_with_its_socket_only", reloaded),
    ("a_download_is_shared_out_by_the_weights_of_the_client", weights_of_the_client),
    ("a_configured_weight_of_a_template_wins", weight_of_the_template),
];

/// The server's configuration, whose paths are as fast to be found dead and forgotten as the tests
/// need; with further lines of its template.
fn server(more: &str) -> String {
    format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24', 'fd00:9::2/64']\n{}\
         [[tunnel.accept]]\nname = 'guest'\npeers = ['10.9.0.0/24']\nforget = 1\n\
         reorder = {{ max_delay = 1 }}\n{QUICK}{more}",
        threads_line()
    )
}

/// A client at the left with a path by each link, and a server at the right that knows only its template.
fn start(topology: &str, edit: impl Fn(String) -> String) -> Site {
    let site = Site::start_with(topology, "", |side, config| match side {
        Side::Left => edit(config),
        Side::Right => server(""),
    });
    eventually("the client is let in with both paths", || accepted(&site).is_some_and(all_up(2)));
    site.await_all_up();
    site
}

/// The connection of the client at the server.
fn accepted(site: &Site) -> Option<ConnectionState> {
    let mut connections = site.status(Side::Right).tunnels.remove(0).connections;
    assert!(connections.len() <= 1, "{connections:?}");
    connections.pop()
}

fn all_up(paths: usize) -> impl Fn(ConnectionState) -> bool {
    move |connection| {
        connection.paths.len() == paths && connection.paths.iter().all(|path| path.state == "up")
    }
}

fn both_uplinks() {
    for addressing in ["per-link", "one-server"] {
        let site = start(&format!("addressing = '{addressing}'\n{TWO_LINKS}"), |config| config);
        let connection = accepted(&site).expect("a connection");
        assert_eq!(connection.name, "guest-10.9.0.1");
        assert_eq!(connection.accepted_by.as_deref(), Some("guest"));
        let names = |link| format!("{}:4754", site.lab.left().address(link));
        let mut paths: Vec<_> = connection.paths.iter().map(|path| path.name.clone()).collect();
        paths.sort();
        assert_eq!(paths, [names(0), names(1)]);
        site.assert_flawless(4);
        backwards(&site);
        let connection = accepted(&site).expect("a connection");
        for path in &connection.paths {
            assert!(path.sent.packets > 100 && path.received.packets > 100, "{path:?}");
        }
        let Reply::Config { text } = ask(&site, &Request::Config {}) else { panic!("no settings") };
        assert!(text.contains("'guest'") || text.contains("\"guest\""), "{text}");
        assert!(!text.contains("guest-10.9.0.1"), "{text}");
    }
}

/// Asserts that the client's packets arrive once and in order on a connection that has carried none of
/// them. Its numbers begin with the first packet that arrives; were that one of a stream, it could have
/// overtaken the one before it on the other path.
fn assert_flawless_at_first(site: &Site) {
    assert_eq!(site.ping(4, 1).lost, 0);
    site.assert_flawless(4);
}

/// Sends numbered packets from right to left.
fn backwards(site: &Site) {
    let sink = site.lab.left().run(|| udp::Sink::bind(inner(Side::Left, 4))).expect("a sink");
    let remote = sink.address();
    let source = site.lab.right().run(|| udp::Source::connect(remote)).expect("a source");
    assert_flawless(udp::Stream::start(sink, source, SHORT).expect("a stream"));
}

fn ask(site: &Site, request: &Request) -> Reply {
    let mut client = Client::connect(site.daemon(Side::Right).socket()).expect("a daemon");
    client.request(request).expect("an answer")
}

fn starts_again() {
    let mut site = start(TWO_LINKS, |config| config);
    let before = accepted(&site).expect("a connection");
    site.end_daemon(Side::Left);
    site.start_daemon(Side::Left);
    eventually("both paths are up again", || {
        site.connection(Side::Left).paths.iter().all(|path| path.state == "up")
            && accepted(&site).is_some_and(all_up(2))
    });
    assert_eq!(accepted(&site).expect("a connection").id, before.id, "the same connection");
    site.assert_flawless(4);
    backwards(&site);
    site.end_daemon(Side::Left);
    eventually("who is silent is forgotten", || accepted(&site).is_none());
    site.start_daemon(Side::Left);
    eventually("and let in again", || accepted(&site).is_some_and(all_up(2)));
    site.await_all_up();
    site.assert_flawless(4);
}

/// The paths of the client without their own addresses.
fn by_interface(site: &Site, config: String) -> String {
    let mut config = config;
    for (index, link) in site.lab.topology().links.iter().enumerate() {
        let local = format!("local = '{}'\n", site.lab.left().address(index));
        config = config.replace(&local, &format!("interface = '{}'\n", link.name));
    }
    config
}

fn another_address() {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.start_daemon_with(Side::Right, &server(""));
    let config = by_interface(&site, site.config(Side::Left));
    site.start_daemon_with(Side::Left, &config);
    eventually("the client is let in", || accepted(&site).is_some_and(all_up(2)));
    let IpAddr::V4(old) = site.lab.left().address(0) else { panic!("not IPv4") };
    let new = Ipv4Addr::from_bits(old.to_bits() + 6);
    change_interface(site.lab.left(), "one", |link, index| {
        link.remove_address(index, old.into(), 24)?;
        link.add_address(index, new.into(), 24)
    });
    let name = format!("{new}:4754");
    eventually("the new address has a path, and the old one none", || {
        accepted(&site).is_some_and(|connection| {
            connection.paths.iter().any(|path| path.name == name) && all_up(2)(connection)
        })
    });
    site.await_all_up();
    site.assert_flawless(4);
    backwards(&site);
}

fn translator_forgets() {
    let links = TWO_LINKS.replacen("delay_ms", "nat = true\ndelay_ms", 1);
    let site = start(&links, |config| config);
    let id = accepted(&site).expect("a connection").id;
    let ports = || -> Vec<String> {
        let paths = accepted(&site).map(|connection| connection.paths).unwrap_or_default();
        paths.into_iter().map(|path| path.name).collect()
    };
    let before = ports();
    site.lab.link(0).rebind();
    eventually("another port has a path, and the old one none", || {
        let after = ports();
        after != before && accepted(&site).is_some_and(all_up(2))
    });
    site.await_all_up();
    assert_eq!(accepted(&site).expect("a connection").id, id, "the same connection");
    site.assert_flawless(4);
    backwards(&site);
}

/// A server with these limits, and no client yet.
fn limited(limits: &str) -> Site {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.start_daemon_with(Side::Right, &server(limits));
    site
}

/// A connect request from the client's first address for a tunnel address, from an unused port.
fn request(site: &Site, peer: u8) {
    let (from, to) = (site.lab.left().address(0), site.lab.right().address(0));
    let socket = site.lab.left().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    socket.send_to(&keepalive(peer), (to, 4754)).expect("room in the socket");
}

/// How many datagrams the server dropped for this reason.
fn drops(site: &Site, reason: &str) -> u64 {
    site.status(Side::Right).tunnels[0].drops.get(reason).copied().unwrap_or(0)
}

fn too_many() {
    let mut site = limited("max_connections = 1\nmax_paths = 2\n");
    site.start_daemon(Side::Left);
    eventually("the client is let in", || accepted(&site).is_some_and(all_up(2)));
    request(&site, 99);
    eventually("another client is refused", || drops(&site, "accept_full") == 1);
    request(&site, 1);
    eventually("a third path is refused", || drops(&site, "accept_full") == 2);
    request(&site, 2);
    eventually("the server lets in nobody as itself", || drops(&site, "unknown_source") > 0);
    let events = site.status(Side::Right).tunnels.remove(0).events;
    let told = events.iter().filter(|event| event.text.contains("refuses")).count();
    assert_eq!(told, 1, "one refusal is told, the others are counted: {events:?}");
    assert_eq!(accepted(&site).map(|connection| connection.paths.len()), Some(2));
    site.assert_flawless(4);
}

fn too_fast() {
    let mut site = limited("max_rate = 4\n");
    let connections = |site: &Site| site.status(Side::Right).tunnels[0].connections.len() as u64;
    for peer in 100..150 {
        request(&site, peer);
    }
    eventually("all but the first are refused", || {
        connections(&site) + drops(&site, "accept_rate") >= 50
    });
    assert!(drops(&site, "accept_rate") >= 40, "{}", drops(&site, "accept_rate"));
    eventually("who never came back is forgotten", || connections(&site) == 0);
    site.start_daemon(Side::Left);
    eventually("a client is let in", || accepted(&site).is_some_and(all_up(2)));
    site.assert_flawless(4);
}

/// A keepalive from a tunnel address to the server's.
fn keepalive(peer: u8) -> Vec<u8> {
    let mut datagram = vec![0, 0, 8, 0, 0xa1, 1, 0, 0, 0, 4, 0, 0];
    for host in [peer, 2] {
        datagram.extend(Ipv4Addr::new(10, 9, 0, host).to_ipv6_mapped().octets());
    }
    datagram
}

fn reloaded() {
    let site = start(TWO_LINKS, |config| config);
    let id = accepted(&site).expect("a connection").id;
    change_file(&site, "forget = 1", "forget = 2\nmax_paths = 3");
    site.assert_flawless(4);
    assert_eq!(accepted(&site).expect("a connection").id, id, "the same connection");
    change_file(&site, "max_paths = 3", "max_paths = 3\nlocal_port = 4755");
    assert!(accepted(&site).is_none(), "it was let in by another socket");
    change_file(&site, "local_port = 4755", "");
    eventually("the client is let in again", || accepted(&site).is_some_and(all_up(2)));
    site.await_all_up();
    assert_flawless_at_first(&site);
}

fn configured() {
    let site = start(TWO_LINKS, |config| config);
    let accepted_as = accepted(&site).expect("a connection");
    assert_eq!(accepted_as.name, "guest-10.9.0.1");
    // With the same socket as the template.
    let config = site.config(Side::Right);
    let (_, connection) = config.split_once("[[tunnel.connection]]").expect("a connection");
    let lines = connection.lines().filter(|line| !line.starts_with("local = "));
    let connection = format!("[[tunnel.connection]]{}\n", lines.collect::<Vec<_>>().join("\n"));
    change_file(&site, "[[tunnel.accept]]", &format!("{connection}[[tunnel.accept]]"));
    site.await_all_up();
    // There is one connection, and the client is not accepted in addition.
    assert_flawless_at_first(&site);
    backwards(&site);
    let configured_as = accepted(&site).expect("a connection");
    assert_eq!(configured_as.name, "peer");
    assert_ne!(configured_as.id, accepted_as.id);

    change_file(&site, &connection, "");
    eventually("the client is let in again", || {
        accepted(&site)
            .is_some_and(|connection| connection.name == accepted_as.name && all_up(2)(connection))
    });
    site.await_all_up();
    assert_flawless_at_first(&site);
}

/// Changes the server's configuration file, and has it read again.
fn change_file(site: &Site, from: &str, to: &str) {
    let file = site.daemon(Side::Right).socket().with_file_name("mpt.toml");
    let text = std::fs::read_to_string(&file).expect("a configuration");
    assert!(text.contains(from), "{text}");
    std::fs::write(&file, text.replace(from, to)).expect("another configuration");
    let reply = ask(site, &Request::Reload {});
    assert!(matches!(reply, Reply::Changed { .. }), "{reply:?}");
}

fn commands() {
    let site = start(TWO_LINKS, |config| config);
    let name = accepted(&site).expect("a connection").name;
    let path = format!("{}:4754", site.lab.left().address(0));
    let off =
        Request::path_status(Some(name.as_str()), path.as_str(), mpt_control::PathStatus::Off);
    assert_eq!(ask(&site, &off), Reply::Done);
    eventually("the path is off", || {
        let paths = accepted(&site).map(|connection| connection.paths).unwrap_or_default();
        paths.iter().any(|other| other.name == path && other.state == "off")
    });
    site.assert_flawless(4);
    backwards(&site);
    let before = accepted(&site).expect("a connection").id;
    let remove = Request::ConnectionRemove { connection: name };
    assert!(matches!(ask(&site, &remove), Reply::Changed { .. }));
    eventually("the peer is accepted again", || {
        accepted(&site).is_some_and(|connection| connection.id != before && all_up(2)(connection))
    });
    site.await_all_up();
    assert_flawless_at_first(&site);
}

/// Links of 40 and 10 Mbit/s, and a client that gives its paths weights to match.
fn unequal(more: &str) -> Site {
    let links = TWO_LINKS.replacen("rate_mbps = 50", "rate_mbps = 40", 1);
    let links = links.replacen("rate_mbps = 50", "rate_mbps = 10", 1);
    let site = Site::start_with(&links, "", |side, config| match side {
        Side::Left => config
            .replace("name = 'one'\n", "name = 'one'\nweight = 40\n")
            .replace("name = 'two'\n", "name = 'two'\nweight = 10\n"),
        Side::Right => server(more),
    });
    eventually("the client is let in with both paths", || accepted(&site).is_some_and(all_up(2)));
    site.await_all_up();
    site
}

/// The weights that the server has for the client's paths, in the order of the links.
fn weights(site: &Site) -> [u64; 2] {
    by_link(site, |path| path.weight)
}

fn by_link(site: &Site, of: impl Fn(&mpt_control::PathState) -> u64) -> [u64; 2] {
    let paths = accepted(site).expect("a connection").paths;
    [0, 1].map(|link| {
        let name = format!("{}:4754", site.lab.left().address(link));
        paths.iter().find(|path| path.name == name).map_or(0, &of)
    })
}

/// The first link's part of the datagrams by which the server sends what the client downloads.
fn first_share(site: &Site) -> f64 {
    let sent = || by_link(site, |path| path.sent.packets);
    let before = sent();
    let address = inner(Side::Left, 4);
    let (client, server) = (site.lab.left(), site.lab.right());
    let listen = || tcp::Sink::listen(tcp::Transport::Tcp, address, None);
    let sink = client.run(listen).expect("a sink");
    let connect = || tcp::Source::connect(tcp::Transport::Tcp, sink.address(), None, "cubic");
    let source = server.run(connect).expect("a source");
    let flow = tcp::Flow::start(sink, source, Duration::from_secs(1)).expect("a flow");
    let report = flow.finish();
    assert_eq!(report.failure, None);
    let after = sent();
    let [one, two] = [0, 1].map(|path| (after[path] - before[path]) as f64);
    assert!(one + two > 100.0, "{before:?} to {after:?}");
    one / (one + two)
}

fn weights_of_the_client() {
    let site = unequal("");
    eventually("the client's weights are obeyed", || weights(&site) == [40, 10]);
    let share = first_share(&site);
    assert!((0.78..=0.82).contains(&share), "40 of 50: {share}");

    let weight = |connection: Option<String>, path: String, weight| Request::Path {
        connection,
        path,
        status: None,
        weight: Some(weight),
        priority: None,
    };
    let mut client = Client::connect(site.daemon(Side::Left).socket()).expect("a daemon");
    let reply = client.request(&weight(None, "two".into(), 40)).expect("an answer");
    assert_eq!(reply, Reply::Done);
    eventually("what the client changes is obeyed", || weights(&site) == [40, 40]);
    let share = first_share(&site);
    assert!((0.48..=0.52).contains(&share), "40 of 80: {share}");

    let name = accepted(&site).expect("a connection").name;
    let path = format!("{}:4754", site.lab.left().address(0));
    assert_eq!(ask(&site, &weight(Some(name), path, 1)), Reply::Done);
    eventually("what the server's operator says wins", || weights(&site) == [1, 40]);
}

fn weight_of_the_template() {
    let site = unequal("weight = 3\n");
    let share = first_share(&site);
    assert!((0.48..=0.52).contains(&share), "3 of 6: {share}");
    assert_eq!(weights(&site), [3, 3]);
}
