//! What `mpt check` says about hosts, as real as they come: namespaces that lack something, and get
//! it by the remedy that was named.
//!
//! What this machine does not permit is reported as ignored, with the reason; with `MPT_NO_SKIP` set
//! it fails instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use mpt_io::netlink::Netlink;
use mpt_lab::netns::Namespace;
use mpt_lab::privilege;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

type Test = fn(&Host);

const TESTS: &[(&str, Test)] = &[
    ("what_is_missing_is_told_until_it_is_there", missing),
    ("a_taken_port_is_an_error_that_names_who_has_it", taken),
    ("a_strict_filter_is_told_where_the_way_back_is_another", filtered),
    ("a_network_of_the_host_is_refused_by_check_as_by_run", routed_elsewhere),
    ("check_refuses_what_run_refuses", one_judgement),
    ("what_would_not_work_is_told_although_the_daemon_runs", told),
];

fn main() {
    let arguments = Arguments::from_args();
    let permitted = privilege::enter()
        .map(drop)
        .and_then(|()| Ok(privilege::check_tun(Path::new("/dev/net/tun"))?))
        .map_err(|error| format!("{error:#}"));
    let trial = |&(name, test): &(&str, Test)| {
        let permitted = permitted.clone();
        Trial::ignorable_test(name, move || run(permitted, test))
    };
    libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit();
}

fn run(permitted: Result<(), String>, test: Test) -> Result<Completion, Failed> {
    match permitted {
        Ok(()) => test(&Host::new()),
        Err(reason) if std::env::var_os("MPT_NO_SKIP").is_some() => return Err(reason.into()),
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    }
    Ok(Completion::Completed)
}

/// A host that has nothing but what a test gives it.
struct Host {
    namespace: Namespace,
    folder: TempDir,
}

impl Host {
    fn new() -> Self {
        let host =
            Self { namespace: Namespace::new().unwrap(), folder: tempfile::tempdir().unwrap() };
        // A fresh namespace has these from the first one of the machine.
        for name in ["ip_forward", "conf/all/rp_filter", "conf/default/rp_filter"] {
            host.set(name, "0");
        }
        host
    }

    /// Sets a number below `/proc/sys/net/ipv4`.
    fn set(&self, name: &str, value: &str) {
        self.namespace.run(|| fs::write(format!("/proc/sys/net/ipv4/{name}"), value)).unwrap();
    }

    /// Makes an interface with a cable, switched on; the other end is called after it.
    fn add_interface(&self, name: &str, address: &str) -> u32 {
        self.namespace.run(|| {
            let mut netlink = Netlink::open().unwrap();
            let far = format!("{name}-far");
            netlink.add_veth(name, &far, None).unwrap();
            for end in [name, &far] {
                let index = netlink.link(end).unwrap().unwrap().index;
                netlink.set_up(index, true).unwrap();
            }
            let index = netlink.link(name).unwrap().unwrap().index;
            netlink.add_address(index, address.parse().unwrap(), 24).unwrap();
            index
        })
    }

    /// Runs `mpt check` on a tunnel whose only path says this, and returns the exit code, the
    /// findings, and standard error.
    fn check(&self, path: &str) -> (i32, String, String) {
        let file = self.configure(path, "10.20.0.0/16");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
        command.arg("check").arg(&file);
        let output = self.namespace.run(|| command.output()).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (first, findings) = text.split_once('\n').unwrap();
        let verdict = if output.status.success() { "good: " } else { "" };
        let words = format!("mpt.toml: {verdict}1 tunnel, 1 connection, 1 path");
        assert!(first.ends_with(&words), "{first}");
        let findings =
            findings.strip_suffix(UNSEALED).expect("it is said of each tunnel without keys");
        let complaint = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), findings.to_owned(), complaint)
    }

    /// Writes the file of a tunnel with this path and network, and returns where it is.
    fn configure(&self, path: &str, network: &str) -> PathBuf {
        let file = self.folder.path().join("mpt.toml");
        let socket = self.folder.path().join("control.sock");
        let text = format!(
            "[control]\nsocket = '{}'\n\
             [[tunnel]]\nname = \"mpt0\"\naddresses = [\"10.9.0.1/24\"]\n\
             [[tunnel.connection]]\nname = \"server\"\npeer = [\"10.9.0.2\"]\n\
             networks = [\"{network}\"]\n\
             [[tunnel.connection.path]]\nname = \"fibre\"\n{path}\n",
            socket.display()
        );
        fs::write(&file, text).unwrap();
        file
    }
}

const ADDRESSED: &str = "interface = \"uplink\"\nlocal = \"192.0.2.1\"\nremote = \"203.0.113.5\"";
const ROUTED: &str = "remote = \"203.0.113.5\"";
/// What is said of a tunnel without keys.
const UNSEALED: &str = "note: tunnel mpt0 is open to forgery and legible to others: to seal it, make a key on each host \
    (`mpt genkey`), and name both with `private_key_file` and `public_key`\n";

const FORWARDING: &str = "warning: net.ipv4.ip_forward is 0: hosts behind this one cannot reach \
    10.20.0.0/16 through it\n  fix: sysctl -w net.ipv4.ip_forward=1\n";

fn missing(host: &Host) {
    let (code, findings, complaint) = host.check(ADDRESSED);
    let expected = [
        "warning: interface uplink does not exist: path fibre of server cannot be used until it is up\n  \
         fix: ip -brief link  (correct `interface` if none of them is it)\n",
        "warning: no interface has the address 192.0.2.1: path fibre of server cannot be used until \
         one has\n  fix: ip address add 192.0.2.1/PREFIX dev INTERFACE\n",
        FORWARDING,
    ];
    assert_eq!(findings, expected.concat());
    assert_eq!((code, &*complaint), (0, ""));

    let uplink = host.add_interface("uplink", "192.0.2.1");
    assert_eq!(host.check(ADDRESSED), (0, FORWARDING.into(), String::new()));
    host.set("ip_forward", "1");
    assert_eq!(host.check(ADDRESSED), (0, String::new(), String::new()));

    // Without an interface to try, the kernel has to know the way.
    let (code, findings, _) = host.check(ROUTED);
    let expected = "warning: no route leads to 203.0.113.5: path fibre of server cannot be used \
                    until one does\n  fix: ip route add 203.0.113.5 via ROUTER\n";
    assert_eq!((code, &*findings), (0, expected));
    let remote: IpAddr = "203.0.113.5".parse().unwrap();
    let router = Some("192.0.2.254".parse().unwrap());
    let add_route = || Netlink::open().unwrap().add_route((remote, 32), uplink, router).unwrap();
    host.namespace.run(add_route);
    assert_eq!(host.check(ROUTED), (0, String::new(), String::new()));
}

fn taken(host: &Host) {
    host.set("ip_forward", "1");
    host.add_interface("uplink", "192.0.2.1");
    let other = host.namespace.run(|| UdpSocket::bind("0.0.0.0:4754")).unwrap();
    let (code, findings, complaint) = host.check(ADDRESSED);
    let (what, rest) = findings.split_once(" (process ").unwrap();
    assert!(what.starts_with("error: UDP 192.0.2.1:4754 is in use by "), "{findings}");
    let expected = format!(
        "{}): path fibre of server cannot be opened\n  \
         fix: ss -lunp 'sport = :4754'  (end that program, or set another local_port)\n",
        std::process::id()
    );
    assert_eq!(rest, expected);
    assert_eq!(code, 1);
    assert!(complaint.ends_with("cannot be run here: fix 1 error and try again\n"), "{complaint}");
    drop(other);
    assert_eq!(host.check(ADDRESSED), (0, String::new(), String::new()));
}

/// What `mpt run` refuses, and what `mpt check` refuses, is the same; and the remedy does not cut off the host.
fn routed_elsewhere(host: &Host) {
    host.set("ip_forward", "1");
    host.add_interface("uplink", "192.0.2.1");
    let lan = host.add_interface("lan", "192.168.1.1");
    let router = Some("192.168.1.254".parse().unwrap());
    let add_route = || {
        let mut netlink = Netlink::open().unwrap();
        netlink.add_route(("10.30.0.0".parse().unwrap(), 16), lan, router).unwrap();
        // A longer route within it, where one looks first.
        netlink.add_route(("10.30.0.0".parse().unwrap(), 24), lan, router).unwrap();
    };
    host.namespace.run(add_route);
    let run = |file: &Path, action: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
        command.arg(action).arg(file);
        let output = host.namespace.run(|| command.output()).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    for (network, what, removal) in [
        ("192.168.1.0/24", "error: 192.168.1.0/24 is the network of lan on this host", None),
        (
            "10.30.0.0/16",
            "error: 10.30.0.0/16 is routed to 192.168.1.254 on lan already",
            Some("ip route del 10.30.0.0/16"),
        ),
    ] {
        let file = host.configure(ADDRESSED, network);
        let (code, said) = run(&file, "check");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(what), "{said}");
        assert_eq!(said.contains("ip route del"), removal.is_some(), "{said}");
        let (code, said) = run(&file, "run");
        assert_eq!(code, Some(2), "{said}");
        let refusal = format!("the network {network} cannot be routed into the tunnel");
        assert!(said.contains(&refusal), "{said}");
        assert!(removal.map_or(!said.contains("ip route del"), |it| said.contains(it)), "{said}");
    }
}

/// Runs `mpt ACTION` on a file, and returns the exit code and all that was said. A daemon that starts is ended.
fn act(host: &Host, action: &str, text: &str) -> (Option<i32>, String) {
    let file = host.folder.path().join("mpt.toml");
    fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
    command.arg(action).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = host.namespace.run(|| command.spawn()).unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.by_ref() {
        let line = line.unwrap();
        said += &format!("{line}\n");
        if line.contains("ready version=") {
            let id = Pid::from_raw(child.id().try_into().unwrap());
            kill(id, Signal::SIGTERM).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &said)
}

const START: &str = "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n";
const SERVER: &str = "[[tunnel.connection]]\nname = 'server'\npeer = ['10.9.0.2']\n";
const REMOTE: &str = "remote = '203.0.113.5'\n";

/// A host with an uplink, a key of its own in `key`, and its folder, in which the control socket is.
fn equipped(host: &Host) -> (String, String) {
    let folder = host.folder.path().display().to_string();
    let uplink = host.add_interface("uplink", "192.0.2.1");
    let router = Some("192.0.2.254".parse().unwrap());
    let everywhere = ("0.0.0.0".parse().unwrap(), 0);
    let add_route = || Netlink::open().unwrap().add_route(everywhere, uplink, router).unwrap();
    host.namespace.run(add_route);
    host.namespace.run(|| Netlink::open().unwrap().set_up(1, true)).unwrap();
    for (name, mode) in [("key", 0o600), ("open", 0o644)] {
        let key = Command::new(env!("CARGO_BIN_EXE_mpt")).arg("genkey").output().unwrap().stdout;
        let path = host.folder.path().join(name);
        fs::write(&path, key).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    (format!("control.socket = '{folder}/control.sock'\n"), folder)
}

fn public_key(folder: &str) -> String {
    let private = fs::File::open(format!("{folder}/key")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
    let output = command.arg("pubkey").stdin(private).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A key of a peer, which nobody else has.
const PEER: &str = "public_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='\n";

/// Each of these files is refused by both, and check says why and what to do.
fn one_judgement(host: &Host) {
    let (control, folder) = equipped(host);
    let _port = host.namespace.run(|| UdpSocket::bind("0.0.0.0:5999")).unwrap();
    let _page = host.namespace.run(|| TcpListener::bind("127.0.0.1:9475")).unwrap();
    fs::write(format!("{folder}/file"), "").unwrap();
    fs::write(format!("{folder}/noise"), "noise").unwrap();
    fs::set_permissions(format!("{folder}/noise"), fs::Permissions::from_mode(0o600)).unwrap();
    let found = format!("{START}{SERVER}{REMOTE}");
    let sealed = |key: &str| {
        let key = format!("private_key_file = '{folder}/{key}'\n");
        format!("{control}{START}{key}{SERVER}{PEER}{REMOTE}")
    };
    let template = |line: &str| {
        let key = format!("private_key_file = '{folder}/key'\n");
        format!("{control}{START}{key}[[tunnel.accept]]\nname = 'van'\n{line}\n")
    };
    let open_template = "peers = ['10.9.0.0/24']\nlocal_port = 5999";
    for (text, what, fix) in [
        (
            format!("control.socket = '{folder}/file'\n{found}"),
            "file exists and is not a socket",
            "remove it",
        ),
        (
            format!("control.socket = '{folder}/file/socket'\n{found}"),
            "file is not a folder",
            "set another",
        ),
        (
            format!("control.socket = '{folder}/a/b/socket'\n{found}"),
            "there is no folder",
            "mkdir -p",
        ),
        (
            format!("{control}web.listen = '{folder}/file'\n{found}"),
            "file exists and is not a socket",
            "`listen` in [web]",
        ),
        (
            format!("{control}metrics.listen = '127.0.0.1:9475'\n{found}"),
            "TCP 127.0.0.1:9475 is in use by ",
            "ss -ltnp",
        ),
        (
            format!("{control}web.listen = '127.0.0.1:9475'\n{found}"),
            "TCP 127.0.0.1:9475 is in use by ",
            "`listen` in [web]",
        ),
        (sealed("missing"), "cannot open ", "mpt genkey >"),
        (sealed("open"), "others can read ", "chmod 600"),
        (sealed("noise"), "noise has no key", "as `mpt genkey` writes it"),
        (
            template(&format!("peers = '{folder}/peers.d'")),
            "cannot read the folder of clients",
            "mkdir",
        ),
        (template(open_template), "UDP 0.0.0.0:5999 is in use by ", "ss -lunp"),
        (
            format!("{control}{found}local_port = 5999\n"),
            "UDP 0.0.0.0:5999 is in use by ",
            "ss -lunp",
        ),
        (
            format!("{control}{}", found.replace("mpt0", "uplink")),
            "interface uplink exists already",
            "choose another `name`",
        ),
    ] {
        let (code, said) = act(host, "check", &text);
        assert_eq!(code, Some(1), "{text}{said}");
        let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains(what), "{what} in {said}");
        assert!(said.contains(fix), "{fix} in {said}");
        let (code, said) = act(host, "run", &text);
        assert_eq!(code, Some(2), "{text}{said}");
    }
    // Clients reach each other by the server, which is in the subnet that they share.
    let hub = format!("{control}{found}networks = ['10.9.0.0/24']\n");
    for action in ["check", "run"] {
        let (code, said) = act(host, action, &hub);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Each of these files runs, and check says what will not work.
fn told(host: &Host) {
    let (control, folder) = equipped(host);
    host.add_interface("lan", "192.168.1.1");
    let key = format!("private_key_file = '{folder}/key'\n");
    let own = format!("public_key = '{}'\n", public_key(&folder));
    let missing = format!("preshared_key_file = '{folder}/missing'\n");
    fs::create_dir(format!("{folder}/peers.d")).unwrap();
    fs::write(format!("{folder}/peers.d/van.toml"), format!("{PEER}addresses = ['10.9.0.2']\n"))
        .unwrap();
    fs::write(format!("{folder}/peers.d/bus.toml"), format!("{PEER}addresses = ['10.9.0.3']\n"))
        .unwrap();
    fs::write(format!("{folder}/peers.d/car.toml"), "addresses = ['10.9.0.4']\nnot\n").unwrap();
    let clients = format!("[[tunnel.accept]]\nname = 'client'\npeers = '{folder}/peers.d'\n");
    let path = |line: &str| format!("[[tunnel.connection.path]]\nname = 'fibre'\n{line}\n");
    let strange = "interface = 'uplink'\nlocal = '192.168.1.1'\nremote = '203.0.113.5'";
    let quota = "[tunnel.connection.interface.uplink]\nquota = '5 GB'\n";
    let state = format!("daemon.state_dir = '{folder}/key'\n");
    for (text, expected) in [
        (
            format!("{START}{key}{SERVER}{own}{REMOTE}"),
            vec!["`public_key` of server is that of this host"],
        ),
        (
            format!("{START}{key}{SERVER}{PEER}{missing}{REMOTE}"),
            vec!["missing", "connection server does not come up"],
        ),
        (
            format!("{START}{key}{clients}"),
            vec!["belongs to client bus", "car.toml: not a client", "car.toml:2:"],
        ),
        (
            format!("{state}{START}{SERVER}{REMOTE}{quota}"),
            vec!["key is not a folder", "forgets how much"],
        ),
        (
            format!("{START}{SERVER}remote = '10.9.0.9'\n"),
            vec!["paths of server: `remote` is 10.9.0.9, in the subnet of tunnel mpt0"],
        ),
        (
            format!("{START}{SERVER}remote = '192.168.1.1'\n"),
            vec!["`remote` is 192.168.1.1, an address of lan"],
        ),
        (
            format!("{START}{SERVER}{}", path(strange)),
            vec!["interface uplink does not have the address 192.168.1.1, and lan has it"],
        ),
    ] {
        let text = format!("{control}{text}");
        let (code, said) = act(host, "check", &text);
        assert_eq!(code, Some(0), "{text}{said}");
        for words in expected {
            assert!(said.contains(words), "{words} in {said}");
        }
        assert!(said.contains("warning: "), "{said}");
        let (code, said) = act(host, "run", &text);
        assert_eq!(code, Some(0), "{text}{said}");
    }
}

fn filtered(host: &Host) {
    host.set("ip_forward", "1");
    host.add_interface("uplink", "192.0.2.1");
    let other = host.add_interface("other", "198.51.100.1");
    let add_route = || {
        let everywhere = ("0.0.0.0".parse().unwrap(), 0);
        let router = Some("198.51.100.254".parse().unwrap());
        Netlink::open().unwrap().add_route(everywhere, other, router).unwrap();
    };
    host.namespace.run(add_route);
    assert_eq!(host.check(ADDRESSED), (0, String::new(), String::new()));
    host.set("conf/all/rp_filter", "1");
    let (code, findings, _) = host.check(ADDRESSED);
    let expected = "warning: reverse path filtering is strict on uplink: the kernel drops datagrams \
        for path fibre of server, because the route to 203.0.113.5 leads \
                    through other\n  fix: sysctl -w net.ipv4.conf.uplink.rp_filter=2\n";
    assert_eq!((code, &*findings), (0, expected));
    host.set("conf/uplink/rp_filter", "2");
    assert_eq!(host.check(ADDRESSED), (0, String::new(), String::new()));
}
