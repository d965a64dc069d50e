//! What a reload does and says, and what it leaves alone.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use mpt_control::{ErrorKind, Reply, Request};
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use super::{BOTH, Setting, change, lost, set, site};
use crate::site::{
    PATIENCE, SHORT, Site, TWO_LINKS, assert_flawless, change_interface, eventually, has_interface,
};

/// Writes another file for one side and has it reloaded; returns what changed.
fn load(site: &Site, side: Side, file: &str) -> Vec<String> {
    site.daemon(side).configure(file).expect("a file");
    change(site, side, &Request::Reload {})
}

/// The refusal of a reload: message and report.
fn refused(site: &Site, side: Side, request: &Request) -> (ErrorKind, String, String) {
    match site.daemon(side).request(request).expect("an answer") {
        Reply::Error { kind, message, report } => (kind, message, report.unwrap_or_default()),
        reply @ (Reply::Changed { .. }
        | Reply::Config { .. }
        | Reply::Done
        | Reply::Explanation { .. }
        | Reply::Peers { .. }
        | Reply::Status { .. }
        | Reply::Trace { .. }
        | Reply::Version { .. }
        | Reply::WebToken { .. }) => panic!("{reply:?}"),
    }
}

pub(super) fn says() {
    let site = Site::start(TWO_LINKS, "");
    let file = site.config(Side::Left);
    assert_eq!(load(&site, Side::Left, &file), Vec::<String>::new());
    let new = file.replacen("name = 'two'\n", "name = 'two'\nweight = 3\n", 1).replacen(
        "name = 'peer'\n",
        "name = 'peer'\nscheduler = 'flow'\nnetworks = ['10.77.0.0/16']\n",
        1,
    );
    let changes = load(&site, Side::Left, &new);
    for expected in [
        "connection peer: path two: weight 1 -> 3",
        "connection peer: scheduler \"weighted\" -> \"flow\"",
        "connection peer: networks [] -> [\"10.77.0.0/16\"]",
    ] {
        assert!(changes.iter().any(|change| change == expected), "{expected}: {changes:?}");
    }
    let connection = site.connection(Side::Left);
    assert_eq!((connection.scheduler.as_str(), connection.paths[1].weight), ("flow", 3));
    assert_eq!(connection.networks, ["10.77.0.0/16"]);
    assert_eq!(load(&site, Side::Left, &new), Vec::<String>::new(), "once is enough");
}

pub(super) fn wrong() {
    let site = Site::start(TWO_LINKS, "");
    let file = site.config(Side::Left);
    let before = site.connection(Side::Left);
    site.daemon(Side::Left)
        .configure(&file.replacen("'mpt0'\n", "'mpt0'\nmtu = 12\n", 1))
        .expect("a file");
    let (kind, message, report) = refused(&site, Side::Left, &Request::Reload {});
    assert_eq!(kind, ErrorKind::BadConfig);
    assert!(message.ends_with("is wrong; nothing was changed"), "{message}");
    assert!(report.contains("mpt.toml:6:7") && report.contains("^^"), "line and caret: {report}");
    std::fs::remove_file(site.daemon(Side::Left).config()).expect("the file");
    let (kind, message, _) = refused(&site, Side::Left, &Request::Reload {});
    assert_eq!(kind, ErrorKind::BadConfig);
    assert!(message.contains("nothing was changed"), "{message}");

    let settings = "name = 'three'\nremote = '198.18.9.2'\nweight = 0\n".to_owned();
    let request = Request::PathAdd { connection: None, settings };
    let (kind, message, report) = refused(&site, Side::Left, &request);
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::BadConfig, "path add: invalid settings; nothing was changed")
    );
    assert!(report.contains("path add:3:10") && report.contains('^'), "{report}");
    for (weight, why) in [(0, "1 to 10000"), (10_001, "1 to 10000")] {
        let request = Request::Path {
            connection: None,
            path: "one".into(),
            status: None,
            weight: Some(weight),
            priority: None,
        };
        let (kind, message, _) = refused(&site, Side::Left, &request);
        assert_eq!(kind, ErrorKind::BadConfig);
        assert!(message.contains(why), "{message}");
    }
    let (_, message, _) =
        refused(&site, Side::Left, &Request::ConnectionRemove { connection: "peer".into() });
    assert_eq!(message, "the remaining configuration is invalid; nothing was changed");
    let after = site.connection(Side::Left);
    assert_eq!(before.id, after.id);
    assert_eq!(before.paths.len(), after.paths.len());
    assert_eq!(load(&site, Side::Left, &file), Vec::<String>::new());
    site.assert_flawless(4);
}

pub(super) fn keeps() {
    let site = Site::start(TWO_LINKS, "");
    let file = site.config(Side::Left);
    let weights =
        || site.connection(Side::Left).paths.iter().map(|path| path.weight).collect::<Vec<_>>();
    set(&site, Side::Left, "one", Setting::Weight(7));
    set(&site, Side::Left, "two", Setting::Weight(9));
    let two = |weight: u32| {
        file.replacen("name = 'two'\n", &format!("name = 'two'\nweight = {weight}\n"), 1)
    };
    let changes =
        load(&site, Side::Left, &file.replacen("'mpt0'\n", "'mpt0'\nclamp_mss = true\n", 1));
    assert_eq!(changes, ["tunnel mpt0: clamp_mss false -> true"]);
    assert_eq!(weights(), [7, 9], "the file does not speak of weights");
    load(&site, Side::Left, &two(5));
    assert_eq!(weights(), [7, 5], "the file speaks of one weight");
    load(&site, Side::Left, &two(5));
    assert_eq!(weights(), [7, 5]);
}

pub(super) fn replaces() {
    let site = Site::start(TWO_LINKS, "");
    let files = BOTH.map(|side| site.config(side));
    site.assert_flawless(4);
    let id = site.connection(Side::Left).id;
    for (side, file) in BOTH.into_iter().zip(&files) {
        let changes =
            load(&site, side, &file.replacen("name = 'peer'\n", "name = 'peer'\nkey = 77\n", 1));
        assert_eq!(changes, ["connection peer: key none -> 77 (its sequence numbers restart)"]);
    }
    site.await_all_up();
    assert_ne!(site.connection(Side::Left).id, id, "it is another connection");
    site.assert_flawless(4);
    for (side, file) in BOTH.into_iter().zip(&files) {
        let ports = "name = 'peer'\nlocal_port = 5754\nremote_port = 5754\n";
        let changes = load(&site, side, &file.replacen("name = 'peer'\n", ports, 1));
        assert!(
            changes.iter().any(|change| change
                == "connection peer: local_port 4754 -> 5754 (its sequence numbers restart)"),
            "{changes:?}"
        );
    }
    site.await_all_up();
    site.assert_flawless(6);
    assert_eq!(lost(&site.connection(Side::Right)), 0);
    for (side, file) in BOTH.into_iter().zip(&files) {
        let changes = load(&site, side, &file.replacen("/24'", "/25'", 1));
        assert!(
            changes
                .iter()
                .any(|change| change.contains("addresses")
                    && change.ends_with("(restarts the tunnel)")),
            "{changes:?}"
        );
    }
    site.await_all_up();
    let status = site.status(Side::Left).tunnels.remove(0);
    assert!(status.addresses[0].ends_with("/25"), "{:?}", status.addresses);
    site.assert_flawless(4);
}

pub(super) fn wider() {
    const WIDE: &str = "[[link]]\nname = 'one'\nmtu = 9000\nrate_mbps = 50\ndelay_ms = 2\n";
    let mut site = Site::links_only(WIDE, "");
    let set_mtu = |site: &Site, mtu| {
        for side in BOTH {
            change_interface(site.lab.host(side), "one", |netlink, index| {
                netlink.set_mtu(index, mtu)
            });
        }
    };
    // The buffers are made for what the path carries at the start.
    set_mtu(&site, 1500);
    BOTH.into_iter().for_each(|side| site.start_daemon(side));
    site.await_all_up();
    set_mtu(&site, 9000);
    let load = |site: &Site, mtu: u16| {
        for side in BOTH {
            let line = format!("name = 'mpt0'\nmtu = {mtu}\n");
            load(site, side, &site.config(side).replacen("name = 'mpt0'\n", &line, 1));
            let mtu_of = |site: &Site| site.status(side).tunnels[0].mtu;
            eventually("the MTU is that of the file", || mtu_of(site) == u64::from(mtu));
        }
        site.await_all_up();
        BOTH.map(|side| site.daemon(side).log().contains("its mtu is larger than its buffers"))
    };
    assert_eq!(load(&site, 1600), [false; 2], "it fits them");
    site.assert_flawless(4);
    assert_eq!(load(&site, 8900), [true; 2], "it starts again");
    let large = udp::Options { size: 8800, interval: Duration::from_millis(4), ..SHORT };
    assert_flawless(site.stream(4, large));
    assert_flawless(site.stream(6, large));
}

pub(super) fn tunnels() {
    let site = Site::start(TWO_LINKS, "");
    let files = BOTH.map(|side| site.config(side));
    site.assert_flawless(4);
    for (side, file) in BOTH.into_iter().zip(&files) {
        let second = file
            .replace("mpt0", "mpt1")
            .replace("10.9.0.", "10.8.0.")
            .replace("fd00:9:", "fd00:8:")
            .replace("'peer'", "'second'\nlocal_port = 5000\nremote_port = 5000");
        let changes = load(&site, side, &format!("{file}\n{second}"));
        assert_eq!(changes, ["tunnel mpt1: added"]);
    }
    site.await_all_up();
    let ping =
        |address: [u8; 4]| crate::site::ping(site.lab.left(), Ipv4Addr::from(address).into(), 5);
    assert_eq!(ping([10, 8, 0, 2]).lost, 0);
    for (side, file) in BOTH.into_iter().zip(&files) {
        assert_eq!(load(&site, side, file), ["tunnel mpt1: removed"]);
        assert!(!has_interface(site.lab.host(side), "mpt1"));
    }
    site.assert_flawless(4);
    assert_eq!(site.connection(Side::Right).reorder.counters["restarts"], 0);
}

pub(super) fn metrics() {
    let site = site();
    let file = super::without_path(&site.config(Side::Left), "three");
    let at = |port: u16| format!("[metrics]\nlisten = '127.0.0.1:{port}'\n{file}");
    let page = |port: u16| {
        site.lab.left().run(|| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })
    };
    assert!(page(9475).is_none());
    for (file, here, gone) in
        [(at(9475), Some(9475), 9476), (at(9476), Some(9476), 9475), (file.clone(), None, 9476)]
    {
        let changes = load(&site, Side::Left, &file);
        assert!(changes.iter().any(|change| change.starts_with("metrics.listen ")), "{changes:?}");
        if let Some(port) = here {
            eventually("there is a page", || page(port).is_some_and(|page| page.contains("mpt_")));
        }
        eventually("the other is gone", || page(gone).is_none());
    }
}

pub(super) fn written() {
    let mut site = site();
    set(&site, Side::Left, "one", Setting::Weight(7));
    super::add(&site, Side::Left, "three");
    let Reply::Config { text } =
        site.daemon(Side::Left).request(&Request::Config {}).expect("an answer")
    else {
        panic!("no configuration");
    };
    let (_, tunnels) = text.split_once("[[tunnel]]").expect("a tunnel");
    let before = site.connection(Side::Left);
    site.end_daemon(Side::Left);
    site.start_daemon_with(Side::Left, &format!("[[tunnel]]{tunnels}"));
    let after = site.connection(Side::Left);
    assert_eq!(after.paths.len(), 3);
    let settings = |connection: &mpt_control::ConnectionState| {
        connection
            .paths
            .iter()
            .map(|path| (path.name.clone(), path.weight, path.remote.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(settings(&before), settings(&after));
}

/// A file with which `mpt run` would not start is refused as a whole, as `mpt check` does; and what a reload cannot do
/// is told beside what it did.
pub(super) fn refuses() {
    let site = Site::start(TWO_LINKS, "");
    let file = site.config(Side::Left);
    let network = "192.168.1.0/24";
    change_interface(site.lab.left(), "one", |netlink, index| {
        netlink.add_address(index, [192, 168, 1, 1].into(), 24)
    });
    let with =
        file.replacen("name = 'peer'\n", &format!("name = 'peer'\nnetworks = ['{network}']\n"), 1);
    let with = with.replacen("name = 'two'\n", "name = 'two'\nweight = 3\n", 1);
    site.daemon(Side::Left).configure(&with).expect("a file");
    let (kind, message, report) = refused(&site, Side::Left, &Request::Reload {});
    assert_eq!(kind, ErrorKind::BadConfig);
    assert!(message.ends_with("cannot be run here; nothing was changed"), "{message}");
    assert!(report.contains(&format!("{network} is the network of ")), "{report}");
    assert!(!report.contains("ip route del"), "that would cut off the host: {report}");
    assert_eq!(site.path(Side::Left, 1).weight, 1, "nothing was changed");
    let (code, checked) = check(&site, Side::Left);
    assert_eq!(code, Some(1), "{checked}");
    assert!(checked.contains(&format!("error: {network} is the network of ")), "{checked}");

    // Some of it can be done, and some not.
    let file = file.replacen("name = 'two'\n", "name = 'two'\nweight = 3\n", 1);
    site.daemon(Side::Left).configure(&file).expect("a file");
    let config = std::fs::read_to_string(site.daemon(Side::Left).config()).expect("the file");
    let socket = config.lines().find(|line| line.starts_with("socket")).expect("a socket");
    let moved = config.replacen(socket, "socket = '/nowhere/control.sock'", 1);
    std::fs::write(site.daemon(Side::Left).config(), moved).expect("a file");
    let (kind, message, report) = refused(&site, Side::Left, &Request::Reload {});
    assert_eq!(kind, ErrorKind::Unavailable, "{message}");
    assert!(report.contains("done: connection peer: path two: weight 1 -> 3\n"), "{report}");
    assert!(report.contains("not done: control.socket"), "{report}");
    assert_eq!(site.path(Side::Left, 1).weight, 3);
    // Taken back, it is no error any more.
    std::fs::write(site.daemon(Side::Left).config(), config).expect("a file");
    assert_eq!(change(&site, Side::Left, &Request::Reload {}), Vec::<String>::new());
}

/// What `mpt check` says of a side's file, and its exit code.
fn check(site: &Site, side: Side) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(crate::site::daemon());
    command.arg("check").arg(site.daemon(side).config());
    let output = site.lab.host(side).run(|| command.output()).expect("mpt runs");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}
