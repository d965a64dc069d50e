//! The settings that files of the original become.

use std::time::Duration;

use mpt_original::import::{Peer, Source, Sources};

use super::import;
use crate::config::{Mtu, Path, PathStatus, Scheduler, Written as _};

/// Files with every key that the original has or had.
const INTERFACE: &str =
    include_str!("../../../mpt-original/src/import/tests/every-key/interface.conf");
const CONNECTION: &str =
    include_str!("../../../mpt-original/src/import/tests/every-key/connection.conf");

#[test]
fn every_setting_arrives_where_it_belongs() {
    let source = |name: &str, text: &str| Source { name: name.into(), text: text.into() };
    let files = vec![source("interface.conf", INTERFACE), source("connection.conf", CONNECTION)];
    let sources = Sources { files, unread: Vec::new() };
    let settings = |peer| {
        let (_, verdict) = import(&sources, peer, "out").expect("files that can be imported");
        verdict.expect("a configuration")
    };
    let settings = [settings(Peer::Original), settings(Peer::Mpt)];
    for tunnel in settings.iter().map(|settings| &settings.tunnels[0]) {
        assert_eq!((&*tunnel.name, tunnel.mtu), ("tun7", Mtu::Fixed(1420)));
        assert_eq!(tunnel.addresses.written(), "[\"10.7.0.1/24\", \"fd00:7::1/64\"]");
        let connection = &tunnel.connections[0];
        assert_eq!(connection.name, "branch");
        assert_eq!(connection.peer.written(), "[\"10.7.0.2\"]");
        assert_eq!(connection.networks.written(), "[\"192.168.8.0/24\"]");
        assert_eq!((connection.local_port, connection.remote_port), (50231, 50233));
        let policies = connection.policies;
        let reorder = policies.reorder;
        assert_eq!((reorder.window, reorder.max_delay), (1601, Duration::from_millis(301)));
        assert!(policies.sequence && policies.scheduler == Scheduler::Flow);
        let [first, second] = &connection.paths[..] else { panic!("two paths") };
        assert_eq!((&*first.name, first.interface.as_deref()), ("eth7", Some("eth7")));
        let ends = |path: &Path| (path.local.written(), path.remote.written());
        assert_eq!(ends(first), ("\"192.0.2.7\"".into(), "\"198.51.100.7\"".into()));
        assert_eq!(ends(second), ("\"192.0.2.8\"".into(), "\"198.51.100.8\"".into()));
        let times = [first.keepalive, first.dead_time].map(|time| time.as_secs());
        assert_eq!((first.weight, first.status, times), (77, PathStatus::Off, [7, 23]));
        let pins = "tcp_dst = [1080], tcp_src = [1022], udp_dst = [1054], udp_src = [1053]";
        assert_eq!(first.pins.written(), pins);
        // What the original does where nothing is written.
        assert_eq!((second.weight, second.status), (1, PathStatus::Available));
        assert!(second.keepalive.is_zero() && second.dead_time.is_zero());
    }
    let [original, mpt] =
        settings.map(|mut settings| settings.tunnels.remove(0).connections.remove(0));
    let commands = original.commands.expect("commands with an original");
    assert_eq!((commands.port, commands.remote_port), (60457, 50234));
    assert!(commands.accept_create && commands.auth.name() == "sha256");
    assert!(mpt.commands.is_none());
}
