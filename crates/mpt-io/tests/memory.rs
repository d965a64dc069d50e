//! The end of a process that runs out of memory, seen from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::env;
use std::hint::black_box;
use std::process::Command;

#[global_allocator]
static ALLOCATOR: mpt_io::memory::Allocator = mpt_io::memory::Allocator;

/// Set in the process that is to run out of memory.
const CHILD: &str = "MPT_TEST_OUT_OF_MEMORY";

#[test]
fn a_refused_allocation_ends_the_process_with_a_message_and_no_abort() {
    if env::var_os(CHILD).is_some() {
        let _ = black_box(vec![1_u8; 1 << 40]);
        unreachable!("no machine has that much");
    }
    let child = Command::new("sh")
        .args(["-c", "ulimit -v 1000000; exec \"$0\" --nocapture"])
        .arg(env::current_exe().unwrap())
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8(child.stderr).unwrap();
    assert_eq!(child.status.code(), Some(2), "{said}");
    let message = "mpt: out of memory: the system refused 1099511627776 bytes; ";
    assert!(said.starts_with(message) && said.contains("ulimit -v"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
