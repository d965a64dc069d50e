//! What is behind the hosts: networks, the whole Internet, and the rules and routes for them.

use std::fs;

use mpt_control::Reply;
use mpt_io::netlink::{Leaving, Route, Rule};
use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use nix::sys::signal::Signal;

use crate::site::{QUICK, assert_flawless, daemon, eventually};
use crate::suite::Test;
use crate::uplinks::{
    DESK, FIBRE, LTE, SERVER, STORE, Uplinks, client_config, forward, index, ip, netlink, remove,
    remove_address, server_config, server_path, stream, switch, tunnel, unanswered,
};

pub(crate) const TESTS: &[Test] = &[
    ("routing::two_sites_with_hosts_behind_them", sites),
    ("routing::a_network_that_somebody_else_routes", taken),
    ("routing::what_somebody_else_removes_is_put_back", removed),
    ("routing::everything_through_the_tunnel_but_the_tunnel", default_route),
    ("routing::a_killed_daemon_leaves_nothing_that_lasts", killed),
    ("routing::the_filter_that_would_drop_the_answers_is_told", filter),
];

const BEHIND_CLIENT: &str = "networks = ['10.1.0.0/24']";
const BEHIND_SERVER: &str = "networks = ['10.2.0.0/24']";
const EVERYTHING: &str = "networks = ['0.0.0.0/0', '::/0']";

/// Where a packet without a mark leaves a host: the number of the interface.
fn leaves(host: &Namespace, address: &str) -> Option<u32> {
    let way = host.run(|| netlink().way_of(ip(address), Leaving::default()));
    way.ok().flatten().map(|way| way.index)
}

fn tunnel_of(host: &Namespace) -> u32 {
    host.run(|| index("mpt0"))
}

fn rules(host: &Namespace) -> Vec<Rule> {
    host.run(|| netlink().rules().expect("the rules"))
}

fn sites() {
    let mut world = Uplinks::new();
    for host in [&world.client, &world.server] {
        host.run(|| forward(true));
    }
    world.start([BEHIND_SERVER, BEHIND_CLIENT], QUICK);
    world.await_both("lte", "up");
    assert_eq!(leaves(&world.client, STORE), Some(tunnel_of(&world.client)));
    assert_eq!(leaves(&world.server, DESK), Some(tunnel_of(&world.server)));
    assert_flawless(stream(&world.desk, &world.store, STORE));
    assert_flawless(stream(&world.store, &world.desk, DESK));

    // The desk asks from a network that is no longer the client's.
    let server = server_config("", QUICK);
    let reply = world.reload(Side::Right, &server);
    assert!(matches!(reply, Reply::Changed { .. }), "{reply:?}");
    assert_ne!(leaves(&world.server, DESK), Some(tunnel_of(&world.server)), "the route is gone");
    assert_eq!(unanswered(&world.desk, STORE), 5);
    let drops = world.tunnel(Side::Right).connections.remove(0).drops;
    // A busy machine may lose one on its way to the server.
    assert!((1..=5).contains(&drops["inner_source"]), "{drops:?}");

    world.reload(Side::Right, &server_config(BEHIND_CLIENT, QUICK));
    assert_eq!(leaves(&world.server, DESK), Some(tunnel_of(&world.server)));
    assert_flawless(stream(&world.desk, &world.store, STORE));

    for daemon in [world.on_client.take(), world.on_server.take()] {
        assert!(daemon.expect("a daemon").terminate().expect("an end").success());
    }
    let uplink = world.client.run(|| index("eth0"));
    assert_eq!(leaves(&world.client, STORE), Some(uplink), "by the default route again");
}

fn taken() {
    let mut world = Uplinks::new();
    world.start_server(&server_config("", QUICK));
    let other = || Route::new((ip("10.2.0.0"), 24), index("lan"), Some(ip(DESK)));
    world.client.run(|| netlink().add_route_in(&other()).expect("a route"));
    let config = client_config(BEHIND_SERVER, QUICK);
    let refused =
        mpt_lab::daemon::Daemon::start_in(&world.client, &[], "client", &config, &daemon());
    let error = format!("{:#}", refused.expect_err("the route is taken"));
    for words in ["10.2.0.0/24", "ip route del 10.2.0.0/24"] {
        assert!(error.contains(words), "{error}");
    }
    let left = world.client.run(|| netlink().link("mpt0").expect("an answer"));
    assert!(left.is_none(), "nothing remains");

    // So does a reload, as a whole.
    world.start_client(&client_config("", QUICK));
    world.await_both("fibre", "up");
    let reply = world.reload(Side::Left, &config);
    let told = format!("{reply:?}");
    assert!(told.contains("10.2.0.0/24") && told.contains("ip route del"), "{told}");
    assert_ne!(leaves(&world.client, STORE), Some(tunnel_of(&world.client)));
    world.client.run(|| netlink().remove_route_in(&other()).expect("it is gone"));
    let reply = world.reload(Side::Left, &config);
    assert!(matches!(reply, Reply::Changed { .. }), "{reply:?}");
    eventually("the route is installed", || {
        leaves(&world.client, STORE) == Some(tunnel_of(&world.client))
    });
}

fn removed() {
    let mut world = Uplinks::new();
    for host in [&world.client, &world.server] {
        host.run(|| forward(true));
    }
    world.start([BEHIND_SERVER, BEHIND_CLIENT], QUICK);
    world.await_both("fibre", "up");
    let number = tunnel_of(&world.client);
    let logged = |world: &Uplinks, words: &str| {
        let daemon = world.daemon(Side::Left);
        eventually(words, || daemon.log().contains(words));
    };
    let store = Route::new((ip("10.2.0.0"), 24), number, None);
    world.client.run(|| netlink().remove_route_in(&store).expect("it is gone"));
    eventually("the route is back", || leaves(&world.client, STORE) == Some(number));
    logged(&world, "the route to 10.2.0.0/24 was removed, but not by MPT");
    assert_eq!(unanswered(&world.desk, STORE), 0);

    // With the only address of its version all routes of that version are removed, without
    // notifications.
    for address in ["10.9.0.1", "fd00:9::1"] {
        world.client.run(|| remove_address("mpt0", address));
        logged(&world, &format!("the address {address}/"));
        eventually("the address is back", || {
            world.client.run(|| netlink().way_to(ip(address)).is_ok_and(|way| way.is_none()))
        });
    }
    eventually("the route is back", || leaves(&world.client, STORE) == Some(number));
    assert_eq!(unanswered(&world.desk, STORE), 0);
    assert_eq!(unanswered(&world.client, "fd00:9::2"), 0);

    // So does all that when the interface is switched off.
    world.client.run(|| switch("mpt0", false));
    world.client.run(|| switch("mpt0", true));
    eventually("the route is back", || leaves(&world.client, STORE) == Some(number));
    eventually("the address is back", || unanswered(&world.client, "fd00:9::2") == 0);
    assert_eq!(unanswered(&world.desk, STORE), 0);

    world.reload(Side::Left, &client_config(EVERYTHING, QUICK));
    for (version, address) in ANYWHERE.into_iter().enumerate() {
        let wanted = rules(&world.client);
        assert_eq!(wanted.len(), 4);
        let [common, own] = [2 * version, 2 * version + 1].map(|place| wanted[place]);
        let any = if version == 0 { ip("0.0.0.0") } else { ip("::") };
        let route = Route { table: own.table, ..Route::new((any, 0), number, None) };
        world.client.run(|| {
            netlink().remove_rule(&common).expect("it is gone");
            netlink().remove_rule(&own).expect("it is gone");
            netlink().remove_route_in(&route).expect("it is gone");
        });
        eventually("the rules are back", || rules(&world.client) == wanted);
        eventually("the route is back", || leaves(&world.client, address) == Some(number));
    }
    logged(&world, "a rule of the IPv6 default route was removed");

    // A program that insists has its way, until a reload.
    let insisted = || {
        let log = world.daemon(Side::Left).log();
        log.contains("the route to 0.0.0.0/0 is restored for the last time")
    };
    let table = rules(&world.client)[1].table;
    let route = Route { table, ..Route::new((ip("0.0.0.0"), 0), number, None) };
    eventually("it is left", || {
        // It may not be back yet.
        let _ = world.client.run(|| netlink().remove_route_in(&route));
        insisted()
    });
    let _ = world.client.run(|| netlink().remove_route_in(&route));
    assert_ne!(leaves(&world.client, ANYWHERE[0]), Some(number));
    world.reload(Side::Left, &client_config(EVERYTHING, QUICK));
    eventually("the route is back", || leaves(&world.client, ANYWHERE[0]) == Some(number));
}

/// An address that only the default route leads to.
const ANYWHERE: [&str; 2] = ["192.88.99.1", "2001:db8:77::1"];

fn default_route() {
    let mut world = Uplinks::new();
    for host in [&world.client, &world.server] {
        host.run(|| forward(true));
    }
    // A host on the Internet that the server reaches.
    world.store.run(|| {
        let mut netlink = netlink();
        netlink.add_address(index("lo"), ip(ANYWHERE[0]), 32).expect("an address");
    });
    world.server.run(|| {
        let route = Route::new((ip(ANYWHERE[0]), 32), index("lan"), Some(ip(STORE)));
        netlink().add_route_in(&route).expect("a route");
    });
    world.start([EVERYTHING, BEHIND_CLIENT], QUICK);
    let inside = |world: &Uplinks| {
        for (path, state) in [("fibre", "up"), ("lte", "up")] {
            world.await_both(path, state);
        }
        for address in ANYWHERE {
            assert_eq!(leaves(&world.client, address), Some(tunnel_of(&world.client)), "{address}");
        }
        assert_flawless(stream(&world.client, &world.store, ANYWHERE[0]));
        assert_flawless(stream(&world.desk, &world.store, ANYWHERE[0]));
        let mtu = world.tunnel(Side::Left).mtu;
        assert_eq!(mtu, 1464, "that of the uplinks, and not of the tunnel itself");
    };
    inside(&world);
    assert_eq!(rules(&world.client).len(), 4);

    world.internet.run(|| switch("lte", false));
    world.await_both("lte", "down");
    assert_flawless(stream(&world.desk, &world.store, ANYWHERE[0]));
    world.internet.run(|| switch("lte", true));
    inside(&world);

    world.client.run(|| remove("eth0"));
    world.await_both("fibre", "down");
    assert_flawless(stream(&world.desk, &world.store, ANYWHERE[0]));
    world.plug_fibre();
    inside(&world);

    // Without any path, nothing leaves by the uplinks instead.
    world.client.run(|| remove("eth0"));
    world.client.run(|| remove("wwan0"));
    world.await_state(Side::Left, "lte", "down");
    assert_eq!(unanswered(&world.desk, ANYWHERE[0]), 5);
    world.plug_fibre();
    world.plug_lte(LTE);
    inside(&world);

    let reply = world.reload(Side::Left, &client_config("", QUICK));
    assert!(matches!(reply, Reply::Changed { .. }), "{reply:?}");
    assert_eq!(rules(&world.client), []);
    assert_eq!(leaves(&world.client, ANYWHERE[0]), Some(world.client.run(|| index("eth0"))));
    world.reload(Side::Left, &client_config(EVERYTHING, QUICK));
    inside(&world);
    let daemon = world.on_client.take().expect("a daemon");
    assert!(daemon.terminate().expect("an end").success());
    assert_eq!(rules(&world.client), []);
    assert_eq!(leaves(&world.client, ANYWHERE[0]), Some(world.client.run(|| index("eth0"))));
}

fn killed() {
    let mut world = Uplinks::new();
    // A path that is bound to nothing leaves by the routes that its mark finds.
    let unbound = |connection: &str| {
        tunnel(1, connection)
            + &format!("[[tunnel.connection.path]]\nname = 'fibre'\nremote = '{SERVER}'\n{QUICK}")
    };
    // What the server sends to the other uplink would come by this path too.
    world.start_server(&(tunnel(2, "") + &server_path("fibre", FIBRE, QUICK)));
    world.start_client(&unbound(EVERYTHING));
    world.await_both("fibre", "up");
    assert_eq!(world.tunnel(Side::Left).mtu, 1464, "that of the uplink, not of the tunnel itself");
    let number = tunnel_of(&world.client);
    let kill = |world: &mut Uplinks| {
        let mut daemon = world.on_client.take().expect("a daemon");
        daemon.signal(Signal::SIGKILL).expect("a signal");
        eventually("it is dead", || daemon.try_wait().expect("an answer").is_some());
    };
    kill(&mut world);
    assert_eq!(rules(&world.client).len(), 4, "nobody was left to remove them");
    let uplink = world.client.run(|| index("eth0"));
    assert_eq!(leaves(&world.client, ANYWHERE[0]), Some(uplink), "and they do no harm");

    world.start_client(&unbound(EVERYTHING));
    world.await_both("fibre", "up");
    assert_ne!(tunnel_of(&world.client), number);
    assert_eq!(rules(&world.client).len(), 4, "those that were left are gone");
    world.assert_flawless();

    // Also if the default route is no longer configured.
    kill(&mut world);
    world.start_client(&unbound(""));
    assert_eq!(rules(&world.client), []);
}

fn filter() {
    let mut world = Uplinks::new();
    world.start_server(&server_config("", QUICK));
    world.client.run(|| {
        fs::write("/proc/sys/net/ipv4/conf/wwan0/rp_filter", "1").expect("a setting");
    });
    world.start_client(&client_config(EVERYTHING, QUICK));
    let log = world.daemon(Side::Left).log();
    for words in ["rp_filter", "sysctl -w net.ipv4.conf.wwan0.rp_filter=2", "lte"] {
        assert!(log.contains(words), "{log}");
    }
    // What a host behind sends is not forwarded.
    assert!(log.contains("net.ipv4.ip_forward=1"), "{log}");
}
