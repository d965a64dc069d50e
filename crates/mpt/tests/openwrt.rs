//! The package definition of OpenWrt: its scripts, and what UCI becomes.
//!
//! Each awk that is there converts; that of BusyBox is the one of OpenWrt. What is not installed is skipped with a
//! message; with `MPT_NO_SKIP=1` the test fails instead.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and say what it skips"
)]

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Every kind of section, as `uci export` writes them.
const UCI: &str = r"package mpt

config daemon
	option user 'mpt'
	option state_dir '/etc/mpt/state'

config web
	option listen '127.0.0.1:9480'

config metrics 'off'
	option enabled '0'
	option listen '127.0.0.1:9475'

config tunnel 'mpt0'
	list addresses '10.9.0.1/24'
	list addresses 'fd00:9::1/64'
	option mtu '1400'
	option clamp_mss 'true'
	option offloads_uso 'false'

config connection 'server'
	list peer '10.9.0.2'
	list peer 'fd00:9::2'
	list networks '10.20.0.0/16'
	option reorder_max_delay '0.2'
	option reorder_window '4096'

config path 'fibre'
	option interface 'eth1'
	option remote '203.0.113.5'
	option keepalive '0.5'
	option weight '4'

config path 'it'\''s \ lte'
	option interface 'wwan0'
	option remote 'gate.example.net'
	option weight '1'
	option quota '50 GB'
	option quota_day '15'

config tunnel 'mpt1'
	list addresses '10.8.0.1/24'

config connection
	option name 'branch'
	list peer '10.8.0.2'
	option key '7'
	option local_port '4755'

config path
	option name '1'
	option connection 'branch'
	option remote '203.0.113.7'

config path 'spare'
	option connection 'server'
	option interface 'eth2'
	option remote '203.0.113.6'
	option priority '1'
";

const TOML: &str = r#"# Written from /etc/config/mpt: change that.

[daemon]
user = "mpt"
state_dir = "/etc/mpt/state"

[web]
listen = "127.0.0.1:9480"

[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24", "fd00:9::1/64"]
mtu = 1400
clamp_mss = true
offloads = { uso = false }

[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2", "fd00:9::2"]
networks = ["10.20.0.0/16"]
reorder = { max_delay = 0.2, window = 4096 }

[[tunnel.connection.path]]
name = "fibre"
interface = "eth1"
remote = "203.0.113.5"
keepalive = 0.5
weight = 4

[[tunnel.connection.path]]
name = "it's \\ lte"
interface = "wwan0"
remote = "gate.example.net"
weight = 1
quota = "50 GB"
quota_day = 15

[[tunnel.connection.path]]
name = "spare"
interface = "eth2"
remote = "203.0.113.6"
priority = 1

[[tunnel]]
name = "mpt1"
addresses = ["10.8.0.1/24"]

[[tunnel.connection]]
name = "branch"
peer = ["10.8.0.2"]
key = 7
local_port = 4755

[[tunnel.connection.path]]
name = "1"
remote = "203.0.113.7"
"#;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib/openwrt/files").join(name)
}

fn is_there(program: &str, test: &str, package: &str) -> bool {
    let there = Command::new(program).arg("--help").stdin(Stdio::null()).output().is_ok();
    if !there {
        let remedy = format!("no {program}; `apt-get install {package}` brings one");
        assert_ne!(env::var("MPT_NO_SKIP").as_deref(), Ok("1"), "{test}: {remedy}");
        println!("SKIPPED {test}: {remedy}");
    }
    there
}

/// What each awk makes of a UCI configuration.
fn converted(uci: &str) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (program, arguments) in
        [("busybox", &["awk"][..]), ("mawk", &[]), ("gawk", &["--posix"]), ("original-awk", &[])]
    {
        let child = Command::new(program)
            .args(arguments)
            .arg("-f")
            .arg(file("uci-to-toml.awk"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { continue };
        // One that refuses the first lines does not read the others.
        let _ = child.stdin.take().unwrap().write_all(uci.as_bytes());
        outputs.push(child.wait_with_output().unwrap());
    }
    outputs
}

#[test]
fn uci_becomes_a_configuration_that_mpt_takes() {
    let test = "uci_becomes_a_configuration_that_mpt_takes";
    if !is_there("busybox", test, "busybox-static") {
        return;
    }
    for output in converted(UCI) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), TOML, "{complaint}");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mpt.toml");
    fs::write(&config, TOML).unwrap();
    let check = Command::new(env!("CARGO_BIN_EXE_mpt"))
        .args(["check", "--file-only"])
        .arg(config)
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn what_cannot_be_converted_is_refused_with_the_line() {
    if !is_there("busybox", "what_cannot_be_converted_is_refused_with_the_line", "busybox-static") {
        return;
    }
    for (uci, fault) in [
        ("config tunel 'mpt0'\n", "no section `tunel`"),
        ("option name 'a'\n", "before the first section"),
        ("config tunnel 'a'\n\toption mtu '1\n", "a quote is not closed"),
        ("config tunnel 'a'\n\toption mtu '1' '2'\n", "more than a value"),
        ("config tunnel 'a'\n\toption 'm]\\u' '1'\n", "is no key"),
        ("config tunnel 'a'\n\tlist mtu '1'\n\toption mtu '1'\n", "an option and a list"),
        ("config tunnel 'a'\nmtu 1400\n", "not UCI"),
        ("config tunnel\n\toption mtu '1'\n", "has no name"),
        ("config tunnel 'a'\nconfig connection 'b'\n\toption tunnel 'c'\n", "no tunnel `c`"),
    ] {
        for output in converted(uci) {
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{uci}: {complaint}");
            assert!(complaint.contains(fault), "{uci}: {complaint}");
        }
    }
    // A value cannot become a key or a table.
    let hostile = "config tunnel 'a'\n\toption device '\"\n[web]\nlisten = \"127.0.0.1:1\"'\n";
    for output in converted(hostile) {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn the_example_and_the_scripts_have_no_faults() {
    let script = file("mpt.init");
    for shell in ["sh", "bash"] {
        let output = Command::new(shell).arg("-n").arg(&script).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    if is_there("shellcheck", "the_example_and_the_scripts_have_no_faults", "shellcheck") {
        let output =
            Command::new("shellcheck").args(["-s", "busybox"]).arg(&script).output().unwrap();
        let output = match output.status.code() {
            // Before 0.10 it does not know BusyBox's shell, which is close to dash.
            Some(4) => {
                Command::new("shellcheck").args(["-s", "dash"]).arg(&script).output().unwrap()
            }
            _ => output,
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    // The example is all comments; without them it is a tunnel.
    let example = fs::read_to_string(file("mpt.config")).unwrap();
    let (_, sections) = example.split_once("#\n#config web").unwrap();
    let uci = format!("config web{}", sections.replace("\n#", "\n"));
    for output in converted(&uci) {
        let text = String::from_utf8(output.stdout).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("mpt.toml");
        fs::write(&config, &text).unwrap();
        let check = Command::new(env!("CARGO_BIN_EXE_mpt"))
            .args(["check", "--file-only"])
            .arg(config)
            .output()
            .unwrap();
        assert!(check.status.success(), "{text}{}", String::from_utf8_lossy(&check.stderr));
    }
}
