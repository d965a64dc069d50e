//! The daemon's privileges while it runs, and its notifications to the service manager.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mpt_lab::topology::Side;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use tempfile::TempDir;

use crate::site::{PATIENCE, Site, TWO_LINKS, daemon, eventually, exists};
use crate::suite::{Test, skip};

pub(crate) const TESTS: &[Test] = &[
    ("a_daemon_keeps_one_right_and_carries_packets", one_right),
    ("a_low_port_keeps_the_right_to_it", low_port),
    ("a_supervisor_is_told_how_the_daemon_fares", supervised),
];

/// Those that only root can begin.
pub(crate) const TESTS_OF_ROOT: &[Test] = &[
    ("a_daemon_started_as_root_goes_on_as_another_user", another_user),
    ("another_user_removes_the_socket_that_root_made", socket_of_another_user),
];

/// As a bit in the sets of /proc/PID/status (capabilities(7)).
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;

fn one_right() {
    let site = Site::start(TWO_LINKS, "");
    for side in [Side::Left, Side::Right] {
        assert_rights(site.daemon(side).pid(), NET_ADMIN);
    }
    site.assert_flawless(4);
    site.assert_flawless(6);
}

fn low_port() {
    let site = Site::start(TWO_LINKS, "local_port = 53\nremote_port = 53");
    assert_rights(site.daemon(Side::Left).pid(), NET_ADMIN | NET_BIND_SERVICE);
    site.assert_flawless(4);
}

fn another_user() {
    let nobody = nobody();
    let site = Site::start_with(TWO_LINKS, "", |_, config| {
        format!("[daemon]\nuser = '{}'\n{config}", nobody.name)
    });
    for side in [Side::Left, Side::Right] {
        let pid = site.daemon(side).pid();
        assert_rights(pid, NET_ADMIN);
        for task in tasks(pid) {
            let ids = |key: &str| {
                let line = line(&task, key);
                line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(ids("Uid:"), vec![nobody.uid.to_string(); 4]);
            assert_eq!(ids("Gid:"), vec![nobody.gid.to_string(); 4]);
            assert_eq!(ids("Groups:"), Vec::<String>::new());
        }
    }
    site.assert_flawless(4);
    site.assert_flawless(6);
    assert_eq!(site.ping(4, 5).lost, 0);
}

fn socket_of_another_user() {
    let nobody = nobody();
    let mut site = Site::start(TWO_LINKS, "");
    site.end_daemon(Side::Left);
    let folder = open_folder();
    let config = format!("[daemon]\nuser = '{}'\n{}", nobody.name, site.config(Side::Left));
    let (child, socket) = run(&site, &folder, &config, &[]);
    let made = fs::metadata(socket.parent().expect("a folder")).expect("it was made");
    let file = fs::symlink_metadata(&socket).expect("the socket");
    assert_eq!((made.uid(), file.uid()), (nobody.uid.as_raw(), nobody.uid.as_raw()));
    assert_eq!(file.mode() & 0o777, 0o600);
    assert_eq!(end(child), Some(0));
    assert!(!exists(&socket), "the socket stayed");
}

fn supervised() {
    let mut site = Site::start(TWO_LINKS, "");
    site.end_daemon(Side::Left);
    let folder = open_folder();
    let notify = folder.path().join("notify");
    let supervisor = UnixDatagram::bind(&notify).expect("a socket");
    supervisor.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let environment =
        [("NOTIFY_SOCKET", notify.to_str().expect("a path")), ("WATCHDOG_USEC", "100000")];
    let config = site.config(Side::Left);
    let (child, _) = run(&site, &folder, &config, &environment);

    assert_eq!(hear(&supervisor), "READY=1");
    // Many signs of life, far more often than a second, until all paths are up.
    let mut signs = 0;
    loop {
        let text = hear(&supervisor);
        assert!(text.starts_with("STATUS=1 tunnel, 1 connection, "), "{text}");
        assert!(text.ends_with("\nWATCHDOG=1"), "{text}");
        signs += 1;
        if signs > 5 && text.contains("2 of 2 paths up\n") {
            break;
        }
    }
    // The other end may take the paths for down for a little longer.
    eventually("all paths are up at the right", || {
        site.connection(Side::Right).paths.iter().all(|path| path.state == "up")
    });
    assert_eq!(site.ping(4, 5).lost, 0);

    signal(&child, Signal::SIGHUP);
    let reload = hear_until(&supervisor, |text| text.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(reload.lines().count() == 2, "{reload}");
    hear_until(&supervisor, |text| text == "READY=1");

    signal(&child, Signal::SIGTERM);
    hear_until(&supervisor, |text| text.starts_with("STOPPING=1"));
    assert_eq!(wait(child), Some(0));
}

/// Asserts that every thread of a process has these capabilities and can get no others.
fn assert_rights(pid: u32, rights: u64) {
    for task in tasks(pid) {
        let set =
            |key: &str| u64::from_str_radix(&line(&task, key), 16).expect("a set of capabilities");
        assert_eq!(set("CapEff:"), rights, "{task}");
        assert_eq!(set("CapPrm:"), rights, "{task}");
        assert_eq!(set("CapBnd:"), rights, "{task}");
        assert_eq!((set("CapInh:"), set("CapAmb:")), (0, 0), "{task}");
        assert_eq!(line(&task, "NoNewPrivs:"), "1", "{task}");
    }
}

/// The status file of every thread of a process.
fn tasks(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let tasks: Vec<_> = tasks
        .map(|task| fs::read_to_string(task.expect("a thread").path().join("status")))
        .collect::<io::Result<_>>()
        .expect("every thread has a status");
    assert!(tasks.len() > 1, "a tunnel has a thread of its own");
    tasks
}

fn line(status: &str, key: &str) -> String {
    let value = status.lines().find_map(|line| line.strip_prefix(key)).expect(key);
    value.trim().to_owned()
}

/// The user nobody, who from here on may open the TUN node.
fn nobody() -> User {
    if let Err(error) = mpt_lab::privilege::open_tun_node_to_all() {
        skip(&format!("{error:#}"));
    }
    User::from_name("nobody").expect("the users").unwrap_or_else(|| skip("there is no user nobody"))
}

/// A folder that everybody may enter.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    folder
}

/// Runs the left daemon by hand, with a socket in a folder that it makes, and waits until the
/// socket answers.
fn run(
    site: &Site,
    folder: &TempDir,
    config: &str,
    environment: &[(&str, &str)],
) -> (Child, PathBuf) {
    let socket = folder.path().join("made/control.sock");
    let file = folder.path().join("mpt.toml");
    let control = format!("[control]\nsocket = '{}'\n", socket.display());
    fs::write(&file, format!("{control}{config}")).expect("a file");
    let mut command = Command::new(daemon());
    command.arg("run").arg(&file).envs(environment.to_vec()).stderr(Stdio::null());
    let child = site.lab.left().spawn(&mut command).expect("mpt runs");
    eventually("the daemon answers", || answers(&socket));
    (child, socket)
}

fn answers(socket: &Path) -> bool {
    let mut command = Command::new(daemon());
    command.args(["status", "--socket"]).arg(socket).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("mpt runs").success()
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("a signal");
}

fn end(child: Child) -> Option<i32> {
    signal(&child, Signal::SIGTERM);
    wait(child)
}

fn wait(mut child: Child) -> Option<i32> {
    let mut status = None;
    eventually("the daemon has ended", || {
        status = child.try_wait().expect("a process");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// The next that the daemon says, which comes within [`PATIENCE`].
fn hear(supervisor: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let length = supervisor.recv(&mut buffer).expect("the daemon says something");
    String::from_utf8(buffer[..length].to_vec()).expect("text")
}

/// What it says once it is this, signs of life before it aside.
fn hear_until(supervisor: &UnixDatagram, wanted: impl Fn(&str) -> bool) -> String {
    loop {
        let text = hear(supervisor);
        if wanted(&text) {
            return text;
        }
        assert!(text.starts_with("STATUS="), "{text}");
    }
}
