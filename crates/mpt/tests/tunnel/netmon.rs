//! What paths need comes and goes while the daemons run: interfaces, addresses, routes.
//!
//! Keepalives are so rare here that no change would be detected within the time limit of a test
//! unless the daemons use the kernel's notifications.

use std::fs;

use mpt_lab::topology::Side;

use crate::site::{assert_flawless, eventually};
use crate::suite::{Test, figure};
use crate::uplinks::{
    LTE, RARE, SERVER, Uplinks, add_address, add_default, client_config, default_route, index,
    netlink, remove, remove_address, server_config, server_path, stream, switch, tunnel,
};

pub(crate) const TESTS: &[Test] = &[
    ("netmon::an_interface_that_vanishes_and_returns", vanishes),
    ("netmon::an_interface_switched_off_and_on", switched),
    ("netmon::an_address_taken_and_given_back", address),
    ("netmon::a_changed_address_is_followed", roaming),
    ("netmon::a_route_that_goes_and_comes_back", route),
    ("netmon::a_daemon_that_is_there_before_its_interfaces", early),
    ("netmon::the_mtu_of_an_interface_is_followed", mtu),
];

fn running(path: &str) -> Uplinks {
    let mut world = Uplinks::new();
    world.start(["", ""], path);
    for path in ["fibre", "lte"] {
        world.await_both(path, "up");
    }
    world
}

/// Asserts that half of what is sent takes the second path.
fn assert_shared(world: &Uplinks) {
    let before = world.path(Side::Left, "lte").sent.packets;
    world.assert_flawless();
    let sent = world.path(Side::Left, "lte").sent.packets - before;
    assert!((195..=205).contains(&sent), "{sent} of 400 packets");
}

fn vanishes() {
    let world = running(RARE);
    for _ in 0..2 {
        let number = world.client.run(|| index("wwan0"));
        let flow = stream(&world.client, &world.server, "10.9.0.2");
        eventually("a quarter has arrived", || flow.received() >= 100_000);
        world.client.run(|| remove("wwan0"));
        world.await_cause("lte", "there is no interface wwan0");
        world.await_state(Side::Right, "lte", "down");
        let cause = world.path(Side::Right, "lte").cause.expect("a cause");
        assert!(cause.contains("peer"), "{cause}");
        let order = flow.finish().expect("a report").order;
        figure(&format!("an interface vanishes under 1,000 packets/s: {} lost", order.lost));
        // Half of what is sent while this machine stands still. Without following interfaces it is all of the
        // path's for the rest of the stream, 150.
        assert!(order.lost <= 100 && order.duplicated == 0, "{order:?}");
        world.assert_flawless();

        world.plug_lte(LTE);
        assert_ne!(world.client.run(|| index("wwan0")), number, "it is another one");
        world.await_both("lte", "up");
        assert_shared(&world);
    }
    assert!(world.daemon(Side::Left).log().contains("there is no interface wwan0"));
}

fn switched() {
    let world = running(RARE);
    world.client.run(|| switch("wwan0", false));
    world.await_cause("lte", "interface wwan0 is switched off");
    world.await_state(Side::Right, "lte", "down");
    world.client.run(|| {
        switch("wwan0", true);
        // The kernel has removed it with the interface.
        add_default("wwan0", "198.51.100.1", Some(200));
    });
    world.await_both("lte", "up");
    assert_shared(&world);

    // The far end goes, and with it the carrier.
    world.internet.run(|| switch("lte", false));
    world.await_cause("lte", "interface wwan0 has no carrier");
    world.await_state(Side::Right, "lte", "down");
    world.internet.run(|| switch("lte", true));
    world.await_both("lte", "up");
    assert_shared(&world);
    // What happened is told as it is.
    let log = world.daemon(Side::Left).log();
    for words in [
        "path lte was up, is down: interface wwan0 is switched off",
        "path lte was up, is down: interface wwan0 has no carrier",
        "path lte has what it needs again, and waits for the peer",
    ] {
        assert!(log.contains(words), "{words} in {log}");
    }
    for words in ["interface wwan0 is switched off", "interface wwan0 has no carrier"] {
        assert_eq!(log.matches(words).count(), 1, "{words} is told once: {log}");
    }
}

fn address() {
    let mut world = Uplinks::new();
    world.start_server(&server_config("", RARE));
    let local = format!("interface = 'wwan0'\nlocal = '{LTE}'");
    world.start_client(&client_config("", RARE).replace("interface = 'wwan0'", &local));
    world.await_both("lte", "up");
    world.client.run(|| remove_address("wwan0", LTE));
    world.await_cause("lte", &format!("interface wwan0 does not have the address {LTE}"));
    world.await_state(Side::Right, "lte", "down");
    world.assert_flawless();
    world.client.run(|| {
        add_address("wwan0", LTE);
        add_default("wwan0", "198.51.100.1", Some(200));
    });
    world.await_both("lte", "up");
    assert_shared(&world);
}

fn roaming() {
    const LATER: &str = "198.51.100.8";
    let mut world = Uplinks::new();
    let both = server_config("", RARE) + &server_path("later", LATER, RARE);
    world.start_server(&both);
    world.start_client(&client_config("", RARE));
    world.await_both("lte", "up");
    // Without this the kernel removes all addresses of a network with the first.
    world.client.run(|| {
        fs::write("/proc/sys/net/ipv4/conf/all/promote_secondaries", "1").expect("a setting");
    });
    world.client.run(|| {
        add_address("wwan0", LATER);
        remove_address("wwan0", LTE);
    });
    world.await_state(Side::Right, "later", "up");
    world.await_state(Side::Left, "lte", "up");

    // And the other way round, with nothing in between.
    world.client.run(|| remove_address("wwan0", LATER));
    world.await_cause("lte", "interface wwan0 has no IPv4 address");
    world.client.run(|| {
        add_address("wwan0", LTE);
        add_default("wwan0", "198.51.100.1", Some(200));
    });
    world.await_both("lte", "up");
}

fn route() {
    let mut world = Uplinks::new();
    let free = tunnel(1, "")
        + &format!("[[tunnel.connection.path]]\nname = 'fibre'\nremote = '{SERVER}'\n{RARE}");
    world.start_server(&server_config("", RARE));
    world.start_client(&free);
    world.await_both("fibre", "up");
    let lose = |name, router, metric| {
        let route = default_route(name, router, Some(metric));
        netlink().remove_route_in(&route).expect("it is gone");
    };
    world.client.run(|| {
        lose("wwan0", "198.51.100.1", 200);
        lose("eth0", "192.0.2.1", 100);
    });
    world.await_cause("fibre", &format!("no route leads to {SERVER}"));
    world.client.run(|| add_default("eth0", "192.0.2.1", Some(100)));
    world.await_both("fibre", "up");
    world.assert_flawless();

    // From another address, which is another path of the peer.
    world.client.run(|| {
        add_default("wwan0", "198.51.100.1", Some(200));
        lose("eth0", "192.0.2.1", 100);
    });
    world.await_state(Side::Right, "lte", "up");
    assert_eq!(world.path(Side::Left, "fibre").state, "up");
}

fn early() {
    let mut world = Uplinks::without_uplinks();
    world.start(["", ""], RARE);
    for (name, interface) in [("fibre", "eth0"), ("lte", "wwan0")] {
        world.await_cause(name, &format!("there is no interface {interface}"));
    }
    world.plug_fibre();
    world.await_both("fibre", "up");
    assert_flawless(stream(&world.client, &world.server, "10.9.0.2"));
    world.plug_lte(LTE);
    world.await_both("lte", "up");
    assert_shared(&world);
}

fn mtu() {
    let world = running(RARE);
    let mtu = |wanted| {
        eventually(&format!("an MTU of {wanted}"), || world.tunnel(Side::Left).mtu == wanted)
    };
    // 1500 without the headers of IPv4, UDP and GRE.
    mtu(1464);
    let narrow = |mtu| {
        world.client.run(|| netlink().set_mtu(index("wwan0"), mtu).expect("another MTU"));
    };
    narrow(1400);
    mtu(1364);
    narrow(1500);
    mtu(1464);
    narrow(1300);
    world.await_state(Side::Left, "lte", "unusable: mtu");
    mtu(1464);
    narrow(1500);
    world.await_state(Side::Left, "lte", "up");
}
