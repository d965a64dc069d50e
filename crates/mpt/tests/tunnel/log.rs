//! The daemon's log if it cannot be written, or is not read.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use mpt_control::PathStatus;
use mpt_lab::daemon::Daemon;
use mpt_lab::guard;
use mpt_lab::topology::Side;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::site::{Site, TWO_LINKS, daemon, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("log::a_full_disk_costs_lines_and_nothing_else", full_disk),
    ("log::a_file_size_limit_costs_lines_and_nothing_else", file_size_limit),
    ("log::the_next_line_written_says_how_many_failed", reader_gone),
    ("log::a_log_that_nobody_reads_holds_up_nothing", unread),
    ("log::a_start_that_fails_ends_although_nobody_reads_the_log", unread_failure),
];

/// A FIFO as a log, which its reader can leave and come back to.
struct Fifo {
    path: PathBuf,
    _folder: TempDir,
}

impl Fifo {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        mkfifo(&path, Mode::from_bits_truncate(0o600)).expect("a FIFO");
        Self { path, _folder: folder }
    }

    /// A reader that never waits.
    fn reader(&self) -> File {
        self.open(OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()))
    }

    /// A writer that waits for room, as a daemon's standard error does. There must be a reader.
    fn writer(&self) -> File {
        self.open(OpenOptions::new().write(true))
    }

    /// Fills it to the brim.
    fn fill(&self) {
        let options = OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).clone();
        let mut writer = self.open(&options);
        for size in [4096, 1] {
            let error = loop {
                if let Err(error) = writer.write_all(&vec![b'#'; size]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        }
    }

    fn open(&self, options: &OpenOptions) -> File {
        options.open(&self.path).expect("the FIFO")
    }
}

/// Adds what can be read now.
fn read_into(text: &mut String, mut reader: &File) {
    let mut bytes = Vec::new();
    if let Err(error) = reader.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    }
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// How many lines a log says are missing.
fn missing(log: &str) -> Option<u64> {
    let count = |line: &str| -> Option<u64> {
        let (before, _) = line.split_once(" log lines are missing here")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    log.lines().filter_map(count).reduce(|sum, lines| sum + lines)
}

/// A site whose left daemon logs to this.
fn site_logging_to(log: File) -> Site {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.start_daemon(Side::Right);
    let config = site.config(Side::Left);
    let left = Daemon::start_logging_to(log, site.lab.left(), &[], &config, &daemon());
    site.left = Some(left.unwrap_or_else(|error| panic!("{error:#}")));
    site.await_all_up();
    site
}

/// Takes a path out of use and into use again, which the left daemon logs.
fn switch_path(site: &Site) {
    for (status, state) in [(PathStatus::Off, "off"), (PathStatus::Available, "up")] {
        site.daemon(Side::Left).set_path("one", status).expect("a reply");
        eventually(state, || site.path(Side::Left, 0).state == state);
        assert_eq!(site.ping(4, 5).lost, 0);
    }
}

fn lost(site: &Site, reason: &str) -> u64 {
    site.status(Side::Left).log.lost.get(reason).copied().unwrap_or_default()
}

fn full_disk() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut site = site_logging_to(full);
    switch_path(&site);
    eventually("lost lines are counted", || lost(&site, "write_failed") > 5);
    let error = site.status(Side::Left).log.error.expect("an error");
    assert!(error.contains("No space left on device"), "{error}");
    let mut command = Command::new(daemon());
    command.arg("status").arg("--socket").arg(site.daemon(Side::Left).socket());
    let shown = command.output().expect("mpt runs").stdout;
    let shown = String::from_utf8(shown).expect("text");
    assert!(shown.contains("log lines lost: write_failed "), "{shown}");
    site.end_daemon(Side::Left);
}

fn file_size_limit() {
    let mut site = Site::links_only(TWO_LINKS, "");
    site.start_daemon(Side::Right);
    let folder = tempfile::tempdir().expect("a folder");
    let limited = folder.path().join("mpt");
    let script = format!("#!/bin/sh\nulimit -f 1\nexec {} \"$@\"\n", daemon().display());
    fs::write(&limited, script).expect("a script");
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).expect("a mode");
    let config = site.config(Side::Left);
    let left = Daemon::start(site.lab.left(), "left", &config, &limited);
    site.left = Some(left.unwrap_or_else(|error| panic!("{error:#}")));
    site.await_all_up();
    eventually("the limit is reached", || {
        switch_path(&site);
        lost(&site, "write_failed") > 0
    });
    let error = site.status(Side::Left).log.error.expect("an error");
    assert!(error.contains("File too large"), "{error}");
    site.end_daemon(Side::Left);
}

fn reader_gone() {
    let fifo = Fifo::new();
    let reader = fifo.reader();
    let site = site_logging_to(fifo.writer());
    eventually("the log is written", || {
        let mut log = String::new();
        read_into(&mut log, &reader);
        log.contains("ready")
    });
    drop(reader);
    switch_path(&site);
    eventually("lost lines are counted", || lost(&site, "write_failed") > 0);

    let reader = fifo.reader();
    switch_path(&site);
    let mut log = String::new();
    eventually("the log says how many lines are missing", || {
        read_into(&mut log, &reader);
        missing(&log).is_some()
    });
    assert_eq!(missing(&log), Some(lost(&site, "write_failed")), "{log}");
    eventually("the log goes on", || {
        read_into(&mut log, &reader);
        log.lines().last().is_some_and(|line| line.contains("path one"))
    });
}

fn unread() {
    let fifo = Fifo::new();
    let reader = fifo.reader();
    fifo.fill();
    let mut site = site_logging_to(fifo.writer());
    switch_path(&site);

    // Much to log: what is wrong with a file, which the daemon reads again and again.
    let wrong = (0..500).map(|key| format!("no_such_key_{key} = 'what there is no key for'\n"));
    site.daemon(Side::Left).configure(&wrong.collect::<String>()).expect("a file");
    eventually("the queue is full", || {
        site.left.as_mut().expect("a daemon").signal(Signal::SIGHUP).expect("a signal");
        lost(&site, "queue_full") > 0
    });
    switch_path(&site);

    let mut log = String::new();
    eventually("the log says how many lines are missing", || {
        read_into(&mut log, &reader);
        switch_path(&site);
        // More may have been lost before the reader had caught up.
        missing(&log).is_some_and(|lines| lines == lost(&site, "queue_full"))
    });
    assert!(log.contains("because the log was not read in time"), "{}", tail(&log));
    assert_eq!(lost(&site, "write_failed"), 0);

    fifo.fill();
    switch_path(&site);
    site.end_daemon(Side::Left);
}

fn tail(log: &str) -> &str {
    &log[log.len().saturating_sub(2000)..]
}

fn unread_failure() {
    let fifo = Fifo::new();
    let _reader = fifo.reader();
    fifo.fill();
    let folder = tempfile::tempdir().expect("a folder");
    for (file, text) in [("wrong.toml", Some("no_such_key = 1\n")), ("missing.toml", None)] {
        let file = folder.path().join(file);
        if let Some(text) = text {
            fs::write(&file, text).expect("a file");
        }
        assert_eq!(run(&file, &fifo), Some(2), "{}", file.display());
    }
}

/// Runs the daemon until it ends, and returns its exit code.
fn run(file: &Path, fifo: &Fifo) -> Option<i32> {
    let mut command = guard::command(daemon());
    let mut child = command.arg("run").arg(file).stderr(fifo.writer()).spawn().expect("mpt runs");
    let mut ended = None;
    eventually("the daemon ends", || {
        ended = child.try_wait().expect("a process");
        ended.is_some()
    });
    ended.and_then(|status| status.code())
}
