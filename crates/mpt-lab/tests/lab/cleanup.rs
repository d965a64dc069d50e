//! Nothing of a lab outlives it: no namespace, no device, no thread, no program.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Command, Stdio};

use mpt_lab::guard;
use mpt_lab::lab::Lab;
use mpt_lab::netns::Namespace;

use crate::world::{Test, belongings, eventually, lab};

pub(crate) const TESTS: &[Test] = &[
    ("a_lab_leaves_nothing_behind", nothing),
    ("a_lab_that_cannot_start_leaves_nothing_behind", nothing_of_a_failure),
    ("a_panic_inside_a_host_goes_on_outside", panic_inside),
    ("a_program_ends_with_its_host", program),
    ("programs_and_namespaces_end_with_a_killed_lab", killed),
];

const TWO_LINKS: &str = "[[link]]\nname = 'a'\n[[link]]\nname = 'b'\nversion = 6";
/// Set in the process that will be killed.
const VICTIM: &str = "MPT_LAB_TEST_VICTIM";

fn nothing() {
    let before = belongings();
    let lab = lab(TWO_LINKS);
    let namespaces = namespaces(&lab);
    assert!(namespaces.iter().all(|namespace| is_alive(namespace)));
    drop(lab);
    eventually("threads and descriptors are gone", || belongings() == before);
    eventually("the namespaces are gone", || !namespaces.iter().any(|name| is_alive(name)));
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains(" a:") && !devices.contains(" b:"), "{devices}");
}

fn nothing_of_a_failure() {
    let before = belongings();
    let links: String = (0..17).map(|n| format!("[[link]]\nname = 'l{n}'\n")).collect();
    let text = format!("addressing = 'one-server'\n{links}");
    let topology = mpt_lab::topology::Topology::parse(&text).unwrap();
    let error = Lab::start(&topology).unwrap_err();
    assert!(format!("{error:#}").contains("17 links to one server address"), "{error:#}");
    eventually("threads and descriptors are gone", || belongings() == before);
}

fn panic_inside() {
    let host = Namespace::new().unwrap();
    let inside = AssertUnwindSafe(|| host.run(|| panic!("as intended")));
    let outcome = catch_unwind(inside);
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"as intended"));
    assert_eq!(host.run(|| 7), 7);
}

fn program() {
    let host = Namespace::new().unwrap();
    let mut command = guard::command("sleep");
    let mut child = host.spawn(command.arg("1000").stdout(Stdio::null())).unwrap();
    let inside = fs::read_link(format!("/proc/{}/ns/net", child.id())).unwrap();
    assert_ne!(inside, fs::read_link("/proc/self/ns/net").unwrap());
    assert!(child.try_wait().unwrap().is_none());
    drop(host);
    let mut ended = None;
    let killed = catch_unwind(AssertUnwindSafe(|| {
        eventually("the program has ended", || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
    }));
    if let Err(survived) = killed {
        child.kill().unwrap();
        child.wait().unwrap();
        resume_unwind(survived);
    }
    assert_eq!(ended.unwrap().signal(), Some(9));
}

fn killed() {
    let own = env::current_exe().unwrap();
    let mut victim = Command::new(own).env(VICTIM, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut words = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut words).unwrap();
    let words: Vec<_> = words.split_whitespace().collect();
    let [program, namespaces @ ..] = words.as_slice() else { panic!("the victim is mute") };
    let process = Path::new("/proc").join(program);
    assert!(process.exists() && namespaces.len() == 2);
    assert!(namespaces.iter().all(|namespace| is_alive(namespace)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the program has ended", || is_gone(&process));
    eventually("the namespaces are gone", || !namespaces.iter().any(|name| is_alive(name)));
}

/// In the victim's process: makes a lab with a program in it, says which, and waits for the end.
pub(crate) fn play_victim() -> bool {
    if env::var_os(VICTIM).is_none() {
        return false;
    }
    mpt_lab::privilege::enter().unwrap();
    let lab = lab(TWO_LINKS);
    let mut command = guard::command("sleep");
    // Not in the group of the tests, as a daemon is not.
    let command = command.arg("1000").process_group(0).stdout(Stdio::null());
    let mut child = lab.left().spawn(command).unwrap();
    println!("{} {}", child.id(), namespaces(&lab).join(" "));
    child.wait().unwrap();
    true
}

/// The names of the hosts' namespaces, such as `net:[4026532001]`.
fn namespaces(lab: &Lab) -> [String; 2] {
    [lab.left(), lab.right()].map(|host| {
        let link = format!("/proc/self/fd/{}", host.as_fd().as_raw_fd());
        fs::read_link(link).unwrap().to_string_lossy().into_owned()
    })
}

/// Whether a thread of any process is in the namespace, or has it open.
fn is_alive(namespace: &str) -> bool {
    let is_it = |path: &Path| fs::read_link(path).is_ok_and(|name| name == *Path::new(namespace));
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    entries(Path::new("/proc")).any(|process| {
        let process = process.path();
        entries(&process.join("task")).any(|thread| is_it(&thread.path().join("ns/net")))
            || entries(&process.join("fd")).any(|descriptor| is_it(&descriptor.path()))
    })
}

/// Whether a process is gone or a zombie.
fn is_gone(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
