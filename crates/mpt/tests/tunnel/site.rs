//! A lab with a daemon at each end, and what the tests ask of it.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mpt_control::{ConnectionState, PathState, Status};
use mpt_io::netlink::{self, Netlink};
use mpt_lab::daemon::Daemon;
use mpt_lab::lab::{Host, Lab};
use mpt_lab::topology::{Addressing, Side, Topology};
use mpt_lab::traffic::{ping, udp};
use nix::unistd::Uid;
use tempfile::TempDir;

/// Nothing in these tests needs longer; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The environment variable with the path of the daemon under test.
pub(crate) const DAEMON: &str = "MPT_TEST_DAEMON";

/// Copies the daemon into a folder of its own that `owner` may enter, because the one it was built in may be
/// closed to other users. The copy goes with the folder.
pub(crate) fn copy_daemon(owner: Option<Uid>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("mpt");
    std::fs::copy(env!("CARGO_BIN_EXE_mpt"), &copy).expect("a copy of mpt");
    for path in [folder.path(), &copy] {
        nix::unistd::chown(path, owner, None).expect("an owner");
    }
    (folder, copy)
}

/// The daemon's binary.
pub(crate) fn daemon() -> PathBuf {
    std::env::var_os(DAEMON).expect("the parent copied it").into()
}

/// How many threads carry the packets of a tunnel, unless a test or `MPT_THREADS` says otherwise.
static THREADS: AtomicU64 = AtomicU64::new(1);

/// Sets the number of threads of tunnels started from now on.
pub(crate) fn set_threads(threads: u64) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// The line of a tunnel's configuration that says how many threads it has.
pub(crate) fn threads_line() -> String {
    format!("threads = {}\n", THREADS.load(Ordering::Relaxed))
}

/// A running lab with daemons.
pub(crate) struct Site {
    pub(crate) left: Option<Daemon>,
    pub(crate) right: Option<Daemon>,
    pub(crate) lab: Lab,
    connection: String,
}

/// A machine that stands still for a while must not look like a network that loses packets.
pub(crate) const PATIENT: &str = "reorder = { max_delay = 1 }\n";

/// How fast paths are found dead in these tests, so that they need not take long.
pub(crate) const QUICK: &str = "keepalive = 0.1\ndead_time = 0.5\n";

impl Site {
    /// Two daemons over these links, their paths up. `connection` are further lines of both
    /// connections.
    pub(crate) fn start(topology: &str, connection: &str) -> Self {
        Self::start_with(topology, connection, |_, config| config)
    }

    /// The same, with what `edit` makes of each side's configuration.
    pub(crate) fn start_with(
        topology: &str,
        connection: &str,
        edit: impl Fn(Side, String) -> String,
    ) -> Self {
        let mut site = Self::links_only(topology, connection);
        for side in [Side::Left, Side::Right] {
            let config = edit(side, site.config(side));
            site.start_daemon_with(side, &config);
        }
        site.await_all_up();
        site
    }

    /// The links, and no daemon yet.
    pub(crate) fn links_only(topology: &str, connection: &str) -> Self {
        let topology = Topology::parse(topology).expect("a topology");
        let lab = Lab::start(&topology).unwrap_or_else(|error| panic!("{error:#}"));
        Self { left: None, right: None, lab, connection: connection.to_owned() }
    }

    /// Starts the daemon of one side.
    pub(crate) fn start_daemon(&mut self, side: Side) {
        self.start_daemon_with(side, &self.config(side));
    }

    /// The same with this configuration.
    pub(crate) fn start_daemon_with(&mut self, side: Side, config: &str) {
        self.start_daemon_by(side, config, &daemon());
    }

    /// The same by another program, which becomes the daemon.
    pub(crate) fn start_daemon_by(&mut self, side: Side, config: &str, program: &Path) {
        let daemon = Daemon::start(self.lab.host(side), side.name(), config, program);
        *self.place(side) = Some(daemon.unwrap_or_else(|error| panic!("{error:#}")));
    }

    /// Ends the daemon of one side as an operator would.
    pub(crate) fn end_daemon(&mut self, side: Side) {
        let status = self.place(side).take().expect("a daemon").terminate().expect("an end");
        assert!(status.success(), "{side:?} ended with {status}");
    }

    pub(crate) fn daemon(&self, side: Side) -> &Daemon {
        match side {
            Side::Left => self.left.as_ref(),
            Side::Right => self.right.as_ref(),
        }
        .expect("a daemon")
    }

    fn place(&mut self, side: Side) -> &mut Option<Daemon> {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    /// The configuration of one side.
    pub(crate) fn config(&self, side: Side) -> String {
        let (own, peer) = if side == Side::Left { (1, 2) } else { (2, 1) };
        let other = if side == Side::Left { Side::Right } else { Side::Left };
        let reorder = if self.connection.contains("reorder") { "" } else { PATIENT };
        let framing = if self.connection.contains("framing") { "" } else { "framing = 'plain'\n" };
        let mut config = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.{own}/24', 'fd00:9::{own}/64']\n{}\
             [[tunnel.connection]]\nname = 'peer'\npeer = ['10.9.0.{peer}', 'fd00:9::{peer}']\n{}\n{reorder}{framing}",
            threads_line(),
            self.connection
        );
        let topology = self.lab.topology();
        for (index, link) in topology.links.iter().enumerate() {
            let (local, remote) =
                (topology.address(side, index), topology.known_address(other, index));
            let name = &link.name;
            let path = format!(
                "[[tunnel.connection.path]]\nname = '{name}'\nlocal = '{local}'\nremote = '{remote}'\n"
            );
            config.push_str(&path);
            if topology.addressing == Addressing::OneServer && side == Side::Left {
                let _ = writeln!(config, "interface = '{name}'");
            }
            config.push_str(QUICK);
        }
        config
    }

    pub(crate) fn status(&self, side: Side) -> Status {
        self.daemon(side).status().unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// The one connection of a side.
    pub(crate) fn connection(&self, side: Side) -> ConnectionState {
        self.status(side).tunnels.remove(0).connections.remove(0)
    }

    pub(crate) fn path(&self, side: Side, path: usize) -> PathState {
        self.connection(side).paths.remove(path)
    }

    /// Waits until a path is in that state at both ends.
    pub(crate) fn await_state(&self, path: usize, state: &str) {
        for side in [Side::Left, Side::Right] {
            eventually(&format!("path {path} is {state} at {side:?}"), || {
                self.path(side, path).state == state
            });
        }
    }

    /// Waits until all paths of all connections are up at both ends.
    pub(crate) fn await_all_up(&self) {
        for side in [Side::Left, Side::Right] {
            eventually(&format!("all paths are up at {side:?}"), || {
                let tunnels = self.status(side).tunnels;
                let mut connections = tunnels.iter().flat_map(|tunnel| &tunnel.connections);
                connections.all(|connection| connection.paths.iter().all(|path| path.state == "up"))
            });
        }
    }

    /// Sends numbered packets from left to right through the tunnel.
    pub(crate) fn stream(&self, version: u8, options: udp::Options) -> udp::Stream {
        self.stream_to(inner(Side::Right, version), options)
    }

    /// The same to any address of the right host.
    pub(crate) fn stream_to(&self, address: IpAddr, options: udp::Options) -> udp::Stream {
        let lab = &self.lab;
        let sink = lab.right().run(|| udp::Sink::bind(address)).expect("a sink");
        let remote = sink.address();
        let source = lab.left().run(|| udp::Source::connect(remote)).expect("a source");
        udp::Stream::start(sink, source, options).expect("a stream")
    }

    /// Asserts that the daemons lose nothing of a stream, and that it arrives once and in order.
    pub(crate) fn assert_flawless(&self, version: u8) {
        let machine = Machine::watch(self);
        machine.judge(self, self.stream(version, SHORT));
    }

    /// Pings the right host through the tunnel.
    pub(crate) fn ping(&self, version: u8, count: u32) -> ping::Report {
        ping(self.lab.left(), inner(Side::Right, version), count)
    }
}

/// 400 packets, small enough for every path.
pub(crate) const SHORT: udp::Options = udp::Options {
    interval: Duration::from_millis(1),
    size: 1000,
    length: Duration::from_millis(400),
};

/// What a busy machine, and not a daemon, has done to the packets of a site until now.
pub(crate) struct Machine {
    dropped: u64,
    /// Packets for which the left daemon had no path: where it is kept from running for the dead time, it takes
    /// all of them for dead.
    pathless: u64,
    stalls: u64,
}

impl Machine {
    /// Begins to watch.
    pub(crate) fn watch(site: &Site) -> Self {
        let links = site.lab.topology().links.len();
        let reports: Vec<_> = (0..links).map(|link| site.lab.link(link).report()).collect();
        let directions = || reports.iter().flat_map(|report| [&report.forward, &report.backward]);
        let daemons = [&site.left, &site.right].map(Option::as_ref);
        let full: u64 = daemons.into_iter().flatten().map(|daemon| kernel_drops([daemon])).sum();
        Self {
            dropped: full + directions().map(|way| way.unread + way.unwritten).sum::<u64>(),
            pathless: site.left.as_ref().map_or(0, pathless),
            stalls: directions().map(|way| way.stalls).sum(),
        }
    }

    /// Whether the links were kept from running since, and so the daemons perhaps too.
    pub(crate) fn stalled(&self, site: &Site) -> bool {
        Self::watch(site).stalls > self.stalls
    }

    /// Datagrams that were dropped since because a daemon or a link did not read in time.
    pub(crate) fn unread(&self, site: &Site) -> u64 {
        Self::watch(site).dropped - self.dropped
    }

    /// How many of four changes beside a stream are enough: a machine that stands still takes its time for each.
    pub(crate) fn enough(&self, site: &Site) -> u32 {
        if self.stalled(site) { 2 } else { 4 }
    }

    /// Waits for the end of a stream and asserts that everything arrived, once and in order. Returns how many
    /// packets were missing.
    ///
    /// What was dropped because a daemon or a link did not read in time may be missing: they count it. And
    /// where the links were kept from running, so were the daemons, and some packets may have been too late to
    /// be put in order.
    pub(crate) fn judge(self, site: &Site, stream: udp::Stream) -> u64 {
        let order = stream.finish().expect("a report").order;
        let now = Self::watch(site);
        let (mut dropped, stalls) = (now.dropped - self.dropped, now.stalls - self.stalls);
        if stalls > 0 {
            dropped += now.pathless - self.pathless;
        }
        let (sent, received) = (order.sent, order.received);
        // A tunnel that failed runs again at once, with counters that know nothing of it.
        for log in [&site.left, &site.right].into_iter().flatten().map(Daemon::log) {
            let failed = log.lines().find(|line| line.contains("panicked"));
            assert_eq!(failed, None, "{order:?}");
        }
        let own = || [&site.left, &site.right].map(|daemon| daemon.as_ref().map(drops));
        assert!(
            sent > 0 && received + dropped >= sent,
            "{dropped} dropped unread, {order:?}, {:?}",
            own()
        );
        let late = if stalls > 0 { sent / 10 } else { 0 };
        assert!(order.reordered <= late && order.duplicated == 0, "{stalls} stalls, {order:?}");
        sent - received
    }
}

/// Waits for the end of a stream and asserts that everything arrived, once and in order.
pub(crate) fn assert_flawless(stream: udp::Stream) {
    let order = stream.finish().expect("a report").order;
    assert_eq!(order.received, order.sent, "{order:?}");
    assert_eq!((order.duplicated, order.reordered), (0, 0), "{order:?}");
}

/// Waits for the end of a stream that `start` sends from one daemon to the other, and asserts that they lose
/// nothing of it, and that it arrives once and in order.
///
/// What the kernel drops because the socket of a daemon is full may be missing: a busy machine does not
/// let the daemon read in time. The daemons count it.
pub(crate) fn assert_flawless_between(daemons: [&Daemon; 2], start: impl FnOnce() -> udp::Stream) {
    let before = kernel_drops(daemons);
    let order = start().finish().expect("a report").order;
    let full = kernel_drops(daemons) - before;
    let (sent, received) = (order.sent, order.received);
    assert!(sent > 0 && received + full >= sent, "{full} dropped by full sockets, {order:?}");
    assert_eq!((order.duplicated, order.reordered), (0, 0), "{order:?}");
}

/// Inner packets that a daemon has dropped so far because no path was up.
fn pathless(daemon: &Daemon) -> u64 {
    drops(daemon).iter().filter(|(reason, _)| reason == "no_path").map(|(_, count)| count).sum()
}

/// What a daemon has dropped so far, by reason.
fn drops(daemon: &Daemon) -> Vec<(String, u64)> {
    let status = daemon.status().unwrap_or_else(|error| panic!("{error:#}"));
    let of_tunnels = status.tunnels.iter().flat_map(|tunnel| &tunnel.drops);
    let connections = status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let drops = connections.flat_map(|connection| &connection.drops).chain(of_tunnels);
    drops.filter(|(_, count)| **count > 0).map(|(name, count)| (name.clone(), *count)).collect()
}

/// Datagrams that the kernel has dropped so far because a socket of one of these daemons was full.
pub(crate) fn kernel_drops<const N: usize>(daemons: [&Daemon; N]) -> u64 {
    let of = |daemon: &Daemon| -> u64 {
        let status = daemon.status().unwrap_or_else(|error| panic!("{error:#}"));
        let sockets = status.tunnels.iter().flat_map(|tunnel| &tunnel.sockets);
        sockets.map(|socket| socket.kernel_drops).sum()
    };
    daemons.map(of).into_iter().sum()
}

/// Pings an address, every 10 ms.
pub(crate) fn ping(host: &Host, address: IpAddr, count: u32) -> ping::Report {
    let source = host.run(|| ping::Source::connect(address)).expect("a raw socket");
    let options = ping::Options { count, interval: Duration::from_millis(10) };
    ping::Ping::start(source, options).and_then(ping::Ping::finish).expect("a report")
}

/// A host's address inside the tunnel.
pub(crate) fn inner(side: Side, version: u8) -> IpAddr {
    let host = if side == Side::Left { 1 } else { 2 };
    match version {
        4 => IpAddr::from([10, 9, 0, host]),
        _ => IpAddr::from([0xfd00, 9, 0, 0, 0, 0, 0, u16::from(host)]),
    }
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, so: impl FnMut() -> bool) {
    assert!(eventually_or(so), "not within {PATIENCE:?}: {what}");
}

/// The same; returns whether it became so.
pub(crate) fn eventually_or(mut so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Whether a host has a network interface of that name.
pub(crate) fn has_interface(host: &Host, name: &str) -> bool {
    host.run(|| {
        let mut netlink = Netlink::open().expect("a netlink socket");
        netlink.link(name).expect("an answer").is_some()
    })
}

/// Changes a host's interface of that name.
pub(crate) fn change_interface(
    host: &Host,
    name: &str,
    change: impl FnOnce(&mut Netlink, u32) -> Result<(), netlink::Error> + Send,
) {
    host.run(|| {
        let mut netlink = Netlink::open().expect("a netlink socket");
        let link = netlink.link(name).expect("an answer").expect("an interface");
        change(&mut netlink, link.index).expect("a change");
    });
}

/// Two links that lose nothing and take some milliseconds.
pub(crate) const TWO_LINKS: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\n\
                                    [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 4\n";

/// [`TWO_LINKS`] over IPv6.
pub(crate) fn two_links(version: u8) -> String {
    TWO_LINKS.replace("delay_ms", &format!("version = {version}\ndelay_ms"))
}

/// Whether a file or folder exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
