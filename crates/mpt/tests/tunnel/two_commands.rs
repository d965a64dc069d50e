//! `init`, `invite`, `join` and `leave` between two hosts: packets pass, and afterwards both are as they were.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use mpt_control::{Client, Request};
use mpt_io::netlink::Leaving;
use mpt_lab::guard;
use mpt_lab::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::site::{daemon, eventually, eventually_or};
use crate::suite::{Test, skip};
use crate::uplinks::{SERVER, Uplinks, add_address, forward, index, ip, netlink, unanswered};

pub(crate) const TESTS: &[Test] = &[
    ("two_commands::a_client_joins_and_leaves_and_both_hosts_are_as_before", joined),
    ("two_commands::a_client_that_was_killed_leaves_nothing_behind_after_leave", killed),
    ("two_commands::a_client_whose_daemon_was_killed_is_told_so_and_restored", daemon_killed),
    ("two_commands::an_uplink_that_only_sends_does_not_keep_a_client_from_joining", one_way),
    ("two_commands::a_server_that_does_not_answer_is_told_with_a_remedy", silent),
    ("two_commands::a_host_that_cannot_run_it_is_told_why_and_left_as_it_was", unable),
    ("two_commands::a_host_without_a_way_to_the_server_is_told_so", no_way),
];

/// An address on the Internet, which only the server's default route leads to.
const ANYWHERE: &str = "198.18.0.1";

/// What the client's resolv.conf says before.
const RESOLV_CONF: &str = "search home.arpa\nnameserver 192.0.2.1\n";

/// Two hosts, and a folder for each.
struct Pair {
    hosts: Uplinks,
    place: TempDir,
}

/// A program that has ended, and what it said.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Pair {
    fn new() -> Self {
        Self::of(Uplinks::new())
    }

    fn of(hosts: Uplinks) -> Self {
        needs_nft();
        hosts.internet.run(|| add_address("lo", ANYWHERE));
        for host in [&hosts.client, &hosts.server] {
            host.run(|| forward(false));
        }
        let place = tempfile::tempdir().expect("a folder");
        let pair = Self { hosts, place };
        fs::write(pair.resolv_conf(), RESOLV_CONF).expect("a file");
        pair
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn resolv_conf(&self) -> PathBuf {
        self.dir("resolv.conf")
    }

    /// Starts `mpt` in a host, with a folder of its own; what it says goes to files called `log`.
    fn start(&self, host: &Namespace, dir: &str, log: &str, arguments: &[&str]) -> Child {
        self.start_with(host, dir, log, arguments, &[])
    }

    /// The same with further variables of the environment.
    fn start_with(
        &self,
        host: &Namespace,
        dir: &str,
        log: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Child {
        let file =
            |kind| File::create(self.place.path().join(format!("{log}.{kind}"))).expect("a file");
        let mut command = guard::command(daemon());
        command.args(arguments).arg("--dir").arg(self.dir(dir)).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        host.spawn(&mut command).expect("a process")
    }

    fn said(&self, log: &str, kind: &str) -> String {
        fs::read_to_string(self.place.path().join(format!("{log}.{kind}"))).expect("a file")
    }

    fn end(&self, mut child: Child, log: &str) -> Ended {
        let mut status = None;
        let ended = eventually_or(|| {
            status = child.try_wait().expect("an answer");
            status.is_some()
        });
        let (stdout, stderr) = (self.said(log, "out"), self.said(log, "err"));
        assert!(ended, "it does not end: {stdout}{stderr}");
        Ended { status: status.expect("a status"), stdout, stderr }
    }

    fn mpt(&self, host: &Namespace, dir: &str, arguments: &[&str]) -> Ended {
        self.end(self.start(host, dir, "command", arguments), "command")
    }

    /// The same, and it succeeds.
    fn done(&self, host: &Namespace, dir: &str, arguments: &[&str]) -> String {
        let ended = self.mpt(host, dir, arguments);
        assert!(ended.status.success(), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Makes the server and starts its daemon; returns that.
    fn start_server(&self) -> Child {
        let arguments = ["init", "--server", SERVER, "--internet", "--dns", ANYWHERE];
        let told = self.done(&self.hosts.server, "server", &arguments);
        for words in ["mpt run ", "UDP port 4754", "mpt invite NAME"] {
            assert!(told.contains(words), "{told}");
        }
        let mut command = guard::command(daemon());
        command.arg("run").arg(self.dir("server").join("mpt.toml"));
        let log = File::create(self.dir("server.log")).expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = self.hosts.server.spawn(&mut command).expect("a process");
        eventually("the server runs", || answers(&self.dir("server")));
        self.done(&self.hosts.server, "server", &["host", "apply"]);
        child
    }

    /// Invites the client and has it join with all its traffic; returns the line, and what runs.
    fn join(&self) -> (String, Child) {
        let line = self.done(&self.hosts.server, "server", &["invite", "van"]).trim().to_owned();
        let resolv_conf = self.resolv_conf();
        let resolv_conf = resolv_conf.to_str().expect("a path");
        let arguments = ["join", &line, "--everything", "--resolv-conf", resolv_conf];
        let mut child = self.start(&self.hosts.client, "client", "join", &arguments);
        let joined = eventually_or(|| {
            self.said("join", "out").contains("joined ")
                || child.try_wait().expect("an answer").is_some()
        });
        let said = self.said("join", "out") + &self.said("join", "err");
        assert!(joined && said.contains("joined "), "{said}");
        (line, child)
    }

    /// Ends the client's daemon before it can do anything about it.
    fn kill_daemon(&self) {
        let socket = self.dir("client").join("control.sock");
        let mut control = Client::connect(socket).expect("a daemon");
        let daemon = match control.request(&Request::Status {}) {
            Ok(mpt_control::Reply::Status { status }) => status.pid,
            other => panic!("{other:?}"),
        };
        let pid = i32::try_from(daemon).expect("a number of a process");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a signal");
    }

    /// Whether everything of the client goes through the tunnel, and arrives.
    fn assert_inside(&self) {
        let client = &self.hosts.client;
        let leaves = client.run(|| netlink().way_of(ip(ANYWHERE), Leaving::default()));
        let index = client.run(|| index("mpt0"));
        assert_eq!(leaves.ok().flatten().map(|way| way.index), Some(index));
        assert_eq!(unanswered(client, ANYWHERE), 0);
        let text = fs::read_to_string(self.resolv_conf()).expect("a file");
        assert!(text.contains(&format!("\nnameserver {ANYWHERE}\n")), "{text}");
        assert!(text.contains("\n# uplink: 192.0.2.1\n"), "{text}");
    }

    /// All that `leave` has to restore of a host: routes, rules, addresses, interfaces, forwarding, firewall, and files.
    fn state(&self, host: &Namespace, dir: &str) -> String {
        let mut text = host.run(|| {
            let mut netlink = netlink();
            let links = netlink.links().expect("the interfaces");
            let links: Vec<_> = links.into_iter().map(|link| (link.index, link.name)).collect();
            let mut addresses = netlink.addresses().expect("the addresses");
            addresses.sort_by_key(|address| (address.index, address.address));
            let mut networks = netlink.networks().expect("the routes");
            networks.sort();
            let rules = netlink.rules().expect("the rules");
            let forwarding = ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].map(|name| {
                fs::read_to_string(format!("/proc/sys/net/{name}")).expect("a setting")
            });
            format!("{links:?}\n{addresses:?}\n{networks:?}\n{rules:?}\n{forwarding:?}\n")
        });
        text.push_str(&self.firewall(host));
        let resolv_conf = self.resolv_conf();
        let about = resolv_conf.symlink_metadata().expect("a file");
        let content = fs::read_to_string(&resolv_conf).expect("a file");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {:o} {content:?}", about.ino(), about.mode());
        let _ = writeln!(text, "{:?} {:?}", self.dir(dir).exists(), self.beside());
        text
    }

    /// What is in the folder of resolv.conf that a backup of it could be.
    fn beside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place.path()).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains("resolv")).collect()
    }

    fn firewall(&self, host: &Namespace) -> String {
        let output = self.dir("firewall");
        let mut command = guard::command("nft");
        command.args(["list", "ruleset"]).stdin(Stdio::null());
        command.stdout(File::create(&output).expect("a file"));
        let status = host.spawn(&mut command).and_then(|mut child| child.wait()).expect("nft");
        assert!(status.success());
        fs::read_to_string(output).expect("the rules")
    }
}

fn answers(folder: &Path) -> bool {
    let client = Client::connect(folder.join("control.sock"));
    client.and_then(|mut client| client.request(&Request::Status {})).is_ok()
}

fn needs_nft() {
    let found =
        ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"].iter().any(|it| Path::new(it).exists());
    if !found {
        skip("no nft, which the package nftables has");
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a number of a process");
    kill(Pid::from_raw(pid), signal).expect("a signal");
}

fn joined() {
    let pair = Pair::new();
    let (client, server) = (&pair.hosts.client, &pair.hosts.server);
    let before = [pair.state(client, "client"), pair.state(server, "server")];
    let daemon = pair.start_server();
    let again = pair.mpt(server, "server", &["init", "--server", SERVER]);
    assert_eq!(again.status.code(), Some(1));
    for words in ["0 clients", "mpt invite NAME", "mpt leave"] {
        assert!(again.stderr.contains(words), "{}", again.stderr);
    }
    let (line, join) = pair.join();
    pair.assert_inside();
    assert_ne!(pair.state(client, "client"), before[0]);
    assert!(pair.firewall(server).contains("masquerade"));

    let again = pair.mpt(client, "client", &["join", &line]);
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("mpt leave"), "{}", again.stderr);
    let file = fs::read_to_string(pair.dir("server").join("peers.d/van.toml")).expect("a file");
    assert!(file.contains("public_key") && !file.contains("invitation"), "{file}");
    let again = pair.mpt(server, "server", &["invite", "van"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(again.stderr.contains("mpt peer remove van"), "{}", again.stderr);

    pair.done(client, "client", &["leave"]);
    assert!(pair.end(join, "join").status.success());
    assert_eq!(pair.state(client, "client"), before[0]);

    // The same line once more: its secret is used up, and nobody says so.
    let twice = pair.mpt(client, "second", &["join", &line, "--timeout", "2"]);
    assert_eq!(twice.status.code(), Some(1), "{}", twice.stderr);
    assert!(twice.stderr.contains("was not used before"), "{}", twice.stderr);
    pair.done(client, "second", &["leave"]);
    assert_eq!(pair.state(client, "second"), before[0]);

    let refused = pair.mpt(server, "server", &["leave"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("mpt leave --force"), "{}", refused.stderr);
    pair.done(server, "server", &["leave", "--force"]);
    let mut daemon = daemon;
    eventually("the daemon has ended", || daemon.try_wait().expect("an answer").is_some());
    assert_eq!(pair.state(server, "server"), before[1]);
}

fn killed() {
    let pair = Pair::new();
    let client = &pair.hosts.client;
    let before = pair.state(client, "client");
    let mut server = pair.start_server();
    let (_, mut join) = pair.join();
    pair.assert_inside();
    signal(&join, Signal::SIGKILL);
    pair.kill_daemon();
    join.wait().expect("its end");
    eventually("the interface is gone", || {
        client.run(|| netlink().link("mpt0").expect("an answer").is_none())
    });
    // The kernel closes its files one after the other.
    let socket = pair.dir("client").join("control.sock");
    eventually("nobody listens on its socket", || UnixStream::connect(&socket).is_err());
    assert_ne!(pair.state(client, "client"), before, "nobody was left to restore it");

    pair.done(client, "client", &["leave"]);
    assert_eq!(pair.state(client, "client"), before);
    pair.done(&pair.hosts.server, "server", &["leave", "--force"]);
    eventually("the daemon has ended", || server.try_wait().expect("an answer").is_some());
}

fn daemon_killed() {
    let pair = Pair::new();
    let client = &pair.hosts.client;
    let before = fs::read_to_string(pair.resolv_conf()).expect("a file");
    let mut server = pair.start_server();
    let (_, join) = pair.join();
    pair.kill_daemon();
    let ended = pair.end(join, "join");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    for words in ["the daemon has ended (signal: 9", "mpt run ", "mpt leave"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(pair.resolv_conf()).expect("a file"), before);
    pair.done(client, "client", &["leave"]);
    pair.done(&pair.hosts.server, "server", &["leave", "--force"]);
    eventually("the daemon has ended", || server.try_wait().expect("an answer").is_some());
}

fn one_way() {
    for uplink in ["eth0", "wwan0"] {
        let pair = Pair::new();
        let client = &pair.hosts.client;
        let mut server = pair.start_server();
        let drops = format!(
            "add table inet one; add chain inet one in {{ type filter hook input priority 0; }}; \
             add rule inet one in iifname {uplink} udp sport 4754 drop"
        );
        let mut command = guard::command("nft");
        command.arg(drops).stdin(Stdio::null());
        let status = client.spawn(&mut command).and_then(|mut child| child.wait()).expect("nft");
        assert!(status.success());
        let (_, join) = pair.join();
        signal(&join, Signal::SIGINT);
        assert!(pair.end(join, "join").status.success());
        pair.done(&pair.hosts.server, "server", &["leave", "--force"]);
        eventually("the daemon has ended", || server.try_wait().expect("an answer").is_some());
    }
}

fn silent() {
    let pair = Pair::new();
    let (client, server) = (&pair.hosts.client, &pair.hosts.server);
    let before = pair.state(client, "client");
    pair.done(server, "server", &["init", "--server", SERVER]);
    let invited = pair.mpt(server, "server", &["invite", "van", "--json"]);
    assert!(invited.status.success() && invited.stderr.contains("no daemon runs here yet"));
    let line = invited.stdout.split('"').find(|part| part.starts_with("mpt:")).expect("a line");
    let alone = pair.mpt(client, "client", &["join", line, "--timeout", "1"]);
    assert_eq!(alone.status.code(), Some(1), "{}", alone.stderr);
    for words in ["203.0.113.5:4754 did not answer within 1 s", "UDP port 4754", "mpt leave"] {
        assert!(alone.stderr.contains(words), "{}", alone.stderr);
    }
    pair.done(client, "client", &["leave"]);
    assert_eq!(pair.state(client, "client"), before);

    let join = pair.start(client, "client", "join", &["join", line, "--timeout", "60"]);
    eventually("its daemon runs", || answers(&pair.dir("client")));
    signal(&join, Signal::SIGINT);
    let ended = pair.end(join, "join");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for words in ["ended before the server answered", "mpt run ", "mpt leave"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let again = pair.mpt(client, "client", &["join", line]);
    assert_eq!(again.status.code(), Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("mpt run "), "{}", again.stderr);
    pair.done(client, "client", &["leave"]);

    // A network that the client has already.
    client.run(|| {
        let taken =
            invited.stdout.split('"').find(|part| part.ends_with("/24")).expect("an address");
        let (address, _) = taken.split_once('/').expect("a prefix");
        add_address("lan", address);
    });
    let taken = pair.mpt(client, "client", &["join", line]);
    assert_eq!(taken.status.code(), Some(1), "{}", taken.stderr);
    assert!(taken.stderr.contains("overlaps"), "{}", taken.stderr);
}

fn unable() {
    let pair = Pair::new();
    let (client, server) = (&pair.hosts.client, &pair.hosts.server);
    pair.done(server, "server", &["init", "--server", SERVER]);
    let line = pair.done(server, "server", &["invite", "van"]);
    let before = pair.state(client, "client");
    // What the preflight check finds.
    let setting = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
    client.run(|| fs::write(setting, "1")).expect("a setting");
    let refused = pair.mpt(client, "client", &["join", line.trim()]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    for words in ["IPv6 is disabled", "sysctl", "fix 1 error", "nothing was changed"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    client.run(|| fs::write(setting, "0")).expect("a setting");
    assert_eq!(pair.state(client, "client"), before);

    let taken = client.run(|| UdpSocket::bind("0.0.0.0:4754")).expect("a port");
    let refused = pair.mpt(client, "client", &["join", line.trim()]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    for words in ["4754", "ss -lunp", "fix 1 error", "nothing was changed"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    drop(taken);
    assert_eq!(pair.state(client, "client"), before);

    // What only the daemon finds out.
    let join = ["join", line.trim()];
    let child = pair.start_with(client, "client", "command", &join, &[("MPT_THREADS", "7")]);
    let ended = pair.end(child, "command");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    for words in ["MPT_THREADS", "ended at its start", "stands above", "mpt leave"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    pair.done(client, "client", &["leave"]);
    assert_eq!(pair.state(client, "client"), before);
}

fn no_way() {
    let pair = Pair::of(Uplinks::without_uplinks());
    let (client, server) = (&pair.hosts.client, &pair.hosts.server);
    let before = pair.state(client, "client");
    pair.done(server, "server", &["init", "--server", SERVER]);
    let line = pair.done(server, "server", &["invite", "van"]);
    let alone = pair.mpt(client, "client", &["join", line.trim(), "--timeout", "1"]);
    assert_eq!(alone.status.code(), Some(1), "{}", alone.stderr);
    for words in ["no interface of this host had a route to 203.0.113.5:4754", "mpt leave"] {
        assert!(alone.stderr.contains(words), "{}", alone.stderr);
    }
    pair.done(client, "client", &["leave"]);
    assert_eq!(pair.state(client, "client"), before);
}
