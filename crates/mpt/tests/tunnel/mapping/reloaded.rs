//! A reload that changes what a connection is for.

use std::fs;
use std::process::Command;

use mpt_lab::topology::Side;

use super::connections::{REST, VOICE, site};
use super::{all_flawless, connection_of, packets, sent_during, stream};
use crate::site::{Site, daemon};

pub(super) fn other_match() {
    let old = "{ protocol = 'udp', ports = [5060] }";
    let new = "{ protocol = 'udp', ports = [6060] }";
    let site = site(old, "key = 2");
    let carried = |connection, port| {
        let work = || all_flawless([stream(&site, Side::Left, 4, port, packets(100, 1))]);
        sent_during(&site, Side::Left, connection, work).iter().sum::<u64>()
    };
    assert_eq!([carried(VOICE, 5060), carried(VOICE, 6060)], [100, 0]);

    // Packets that match neither rule are not affected.
    let unconcerned = stream(&site, Side::Left, 6, 7000, packets(800, 1));
    for side in [Side::Left, Side::Right] {
        reload(&site, side, old, new);
        let rule = connection_of(&site, side, VOICE).r#match;
        assert_eq!(rule.as_deref(), Some("udp 6060"), "{side:?}");
    }
    all_flawless([unconcerned]);
    assert_eq!([carried(VOICE, 5060), carried(VOICE, 6060)], [0, 100]);
    assert_eq!([carried(REST, 5060), carried(REST, 6060)], [100, 0]);
    let restarts = connection_of(&site, Side::Right, VOICE).reorder.counters;
    assert_eq!(restarts.get("restarts").copied().unwrap_or(0), 0, "its numbers ran on");
}

/// Writes another configuration for a daemon and has it read.
fn reload(site: &Site, side: Side, old: &str, new: &str) {
    let socket = site.daemon(side).socket();
    let file = socket.with_file_name("mpt.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    assert!(text.contains(old), "{text}");
    fs::write(&file, text.replace(old, new)).expect("another one");
    let mut command = Command::new(daemon());
    let output = command.args(["reload", "--socket"]).arg(socket).output().expect("mpt runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
