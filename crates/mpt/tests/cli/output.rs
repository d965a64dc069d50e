//! Standard output that nobody reads, or that has no room.

use std::fs;
use std::process::Stdio;

use crate::pretended::{Pretended, status};
use crate::program::{command, complaint};

#[test]
fn a_reader_that_has_seen_enough_is_success() {
    for arguments in [&["status"][..], &["status", "--json"]] {
        let daemon = Pretended::holding(vec![status()]);
        let mut child = daemon
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The reader is gone before there is anything to read.
        drop(child.stdout.take());
        daemon.go_on();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_full_disk_is_no_success() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["version"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("No space left"), "{output:?}");
}
