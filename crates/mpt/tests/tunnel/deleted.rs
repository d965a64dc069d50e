//! A tunnel whose interface is deleted.

use std::process::Command;

use mpt_control::Status;
use mpt_io::netlink::Leaving;
use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use nix::sys::signal::Signal;

use crate::site::{QUICK, Site, TWO_LINKS, daemon, eventually, ping};
use crate::suite::Test;
use crate::uplinks::{SERVER, STORE, Uplinks, forward, index, ip, netlink, remove, unanswered};

pub(crate) const TESTS: &[Test] = &[
    ("deleted::an_interface_is_created_again_and_connections_go_on", made_again),
    ("deleted::a_tunnel_without_an_interface_ends_alone", ends_alone),
];

/// Where a packet leaves a host: the number of the interface.
fn leaves(host: &Namespace, address: &str) -> Option<u32> {
    let way = host.run(|| netlink().way_of(ip(address), Leaving::default()));
    way.ok().flatten().map(|way| way.index)
}

fn mtu(host: &Namespace) -> Option<u32> {
    host.run(|| netlink().link("mpt0").expect("an answer")).map(|link| link.mtu)
}

fn made_again() {
    let mut world = Uplinks::new();
    for host in [&world.client, &world.server] {
        host.run(|| forward(true));
    }
    // A route of its own, and the default route with its rules.
    let networks =
        ["networks = ['10.2.0.0/24', '0.0.0.0/0', '::/0']", "networks = ['10.1.0.0/24']"];
    world.start(networks, QUICK);
    for path in ["fibre", "lte"] {
        world.await_both(path, "up");
    }
    assert_eq!(unanswered(&world.desk, STORE), 0);
    let mtu_before = mtu(&world.client);

    for time in 1..=2 {
        let number = world.client.run(|| index("mpt0"));
        world.client.run(|| remove("mpt0"));
        eventually("the interface is there again", || {
            let link = world.client.run(|| netlink().link("mpt0").expect("an answer"));
            let index = link.map(|link| link.index).filter(|index| *index != number);
            index.is_some() && leaves(&world.client, STORE) == index
        });
        for address in ["192.88.99.1", "2001:db8:77::1"] {
            eventually("the default route is there again", || {
                leaves(&world.client, address) == Some(world.client.run(|| index("mpt0")))
            });
        }
        assert_ne!(leaves(&world.client, SERVER), None);
        eventually("the rules are there again", || rules(&world.client) == 4);
        assert_eq!(mtu(&world.client), mtu_before);
        assert_eq!(unanswered(&world.desk, STORE), 0, "from behind and to behind");
        assert_eq!(unanswered(&world.client, "fd00:9::2"), 0);
        eventually("the log says so", || {
            world.daemon(Side::Left).log().matches("it is created again").count() == time
        });
    }

    // The connection has not been interrupted.
    let status = world.tunnel(Side::Right).connections.remove(0);
    assert_eq!(status.reorder.counters["restarts"], 0);
    let events = world.tunnel(Side::Left).events;
    assert_eq!(events.iter().filter(|event| event.text.contains("created again")).count(), 2);
    assert!(world.on_client.take().expect("a daemon").terminate().expect("an end").success());
    assert_eq!(rules(&world.client), 0);
}

fn rules(host: &Namespace) -> usize {
    host.run(|| netlink().rules().expect("the rules")).len()
}

fn ends_alone() {
    // A second tunnel beside the first, on a port of its own.
    let mut site = Site::start_with(TWO_LINKS, "", |_, config| {
        let second = config.replace("mpt0", "mpt1").replace("10.9.0.", "10.8.0.");
        let second = second.replace("fd00:9::", "fd00:8::");
        let ports = "name = 'other'\nlocal_port = 4755\nremote_port = 4755\n";
        config + &second.replace("name = 'peer'\n", ports)
    });
    let other = ip("10.8.0.2");
    assert_eq!(ping(site.lab.left(), other, 5).lost, 0);

    // Another program takes the name before the daemon can.
    site.left.as_mut().expect("a daemon").signal(Signal::SIGSTOP).expect("a signal");
    let left = site.lab.left();
    left.run(|| {
        remove("mpt0");
        netlink().add_veth("mpt0", "taken", None).expect("a pair");
    });
    site.left.as_mut().expect("a daemon").signal(Signal::SIGCONT).expect("a signal");
    let failed = |site: &Site| site.status(Side::Left).failed_tunnels;
    eventually("the tunnel fails", || !failed(&site).is_empty());
    let reason = failed(&site).remove("mpt0").expect("a reason");
    assert!(reason.contains("the name is in use"), "{reason}");
    let Status { tunnels, silent_tunnels, .. } = site.status(Side::Left);
    let names: Vec<_> = tunnels.iter().map(|tunnel| &tunnel.name[..]).collect();
    assert_eq!((names, silent_tunnels), (vec!["mpt1"], vec!["mpt0".to_owned()]));
    let left = site.lab.left();
    assert_eq!(ping(left, other, 20).lost, 0, "the other tunnel goes on");
    let mut command = Command::new(daemon());
    command.arg("status").arg("--socket").arg(site.daemon(Side::Left).socket());
    let shown = String::from_utf8(command.output().expect("mpt runs").stdout).expect("text");
    assert!(shown.contains("tunnel mpt0 does not run"), "{shown}");
    eventually("the log says why", || {
        let log = site.daemon(Side::Left).log();
        log.contains("its interface was deleted and cannot be created again")
    });

    // It comes back as soon as it can.
    left.run(|| remove("mpt0"));
    eventually("the tunnel runs again", || failed(&site).is_empty());
    site.await_all_up();
    assert_eq!(site.ping(4, 5).lost, 0);
    assert_eq!(site.ping(6, 5).lost, 0);
    assert_eq!(ping(site.lab.left(), other, 5).lost, 0);
    site.end_daemon(Side::Left);
}
