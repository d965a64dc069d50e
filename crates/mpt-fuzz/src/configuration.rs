//! The configuration file, what is added to it by command, and what is imported from the original MPT.

use mpt::Accepted;

use crate::input::Input;

/// A text that may be a configuration. It is accepted, and then what is written from it says the same; or
/// refused with a report that says where.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let refused = match mpt::check_text(text) {
        Ok(accepted) => return assert_same_when_written(&accepted),
        Err(refused) => refused,
    };
    assert!(!refused.spans.is_empty(), "what is refused has a problem");
    for span in &refused.spans {
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?} of {}", text.len());
    }
    assert!(refused.spans.is_sorted_by_key(|span| span.start), "in the order of the text");
    assert!(refused.report.starts_with("error: ") && refused.report.contains("--> text:"));
}

/// A fragment behind a byte that says of what, added to what runs. It is refused with a report, or there is
/// one thing more, and all of it can be written.
pub fn fragment(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let path = input.flag();
    let Ok(text) = std::str::from_utf8(input.rest()) else { return };
    let running = mpt::check_text(RUNNING).expect("settings that can run");
    let added = match running.with_added(path, text) {
        Err(report) => return assert!(report.starts_with("error: "), "{report}"),
        Ok(added) => added,
    };
    let (connections, paths) = running.counts();
    let (more_connections, more_paths) = added.counts();
    assert_eq!(more_connections, connections + usize::from(!path));
    assert!(if path { more_paths == paths + 1 } else { more_paths > paths });
    assert_same_when_written(&added);
}

/// A file of an interface of the original MPT and one of a connection, with a zero byte between them,
/// behind a byte that says what the peers run. They are refused, or what comes of them is TOML, the same
/// every time, and taken or refused as `mpt check` does.
pub fn import(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let both_mpt = input.flag();
    let Ok(text) = std::str::from_utf8(input.rest()) else { return };
    let (interface, connection) = text.split_once('\0').unwrap_or((text, ""));
    let imported = mpt::import_text(interface, connection, both_mpt);
    assert_eq!(imported, mpt::import_text(interface, connection, both_mpt));
    let Some((written, taken)) = imported else { return };
    let verdict = mpt::check_text(&written);
    if let Err(refused) = &verdict {
        assert!(!refused.report.contains("not TOML"), "{}\n{written}", refused.report);
    }
    assert_eq!(verdict.is_ok(), taken, "{written}");
}

/// What fragments are added to.
const RUNNING: &str = r#"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24", "fd00:9::1/64"]

[[tunnel.connection]]
name = "server"
peer = ["10.9.0.2", "fd00:9::2"]
key = 7

[[tunnel.connection.path]]
name = "fibre"
local = "192.0.2.1"
remote = "203.0.113.5"
"#;

fn assert_same_when_written(accepted: &Accepted) {
    let written = accepted.written();
    match mpt::check_text(&written) {
        Err(refused) => panic!("what was written is refused: {}", refused.report),
        Ok(again) => assert_eq!(again, *accepted, "{written}"),
    }
}
