//! `mpt init`, `mpt invite`, `mpt join` and `mpt leave`: what they refuse, so that nothing of it is left behind.

use std::fs;

use crate::configuration::GOOD;
use crate::program::{complaint, mpt};

/// Of 1970.
const EXPIRED: &str = "mpt:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAAAAAAAAD6BKSD3Zwbi5leGFtcGxlLm9yZwN2YW4BBAoJAAIYAQQKCQABAAD5Jfrd";

/// The same in a version that is not known.
const LATER: &str = "mpt:AgEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAAAAAAAAD6BKSD3Zwbi5leGFtcGxlLm9yZwN2YW4BBAoJAAIYAQQKCQABAADHONbu";

#[test]
fn an_invitation_that_cannot_be_used_is_refused_with_a_remedy_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mpt");
    let folder = folder.to_str().unwrap();
    for (line, code, words) in [
        (EXPIRED, 1, "expired at 1970-01-01T00:16:40Z"),
        (EXPIRED, 1, "`mpt invite van` on the server"),
        (LATER, 2, "version 2"),
        (&EXPIRED.replace("AQEBAQ", "AQEBAR"), 2, "damaged"),
        (&EXPIRED[..EXPIRED.len() - 3], 2, "damaged"),
        ("https://example.org", 2, "begin with `mpt:`"),
    ] {
        let output = mpt(&["join", line, "--dir", folder]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = complaint(&output);
        assert!(said.contains(words), "{said}");
        assert!(fs::read_dir(place.path()).unwrap().next().is_none(), "{line}");
    }
    let output = mpt(&["leave", "--dir", folder]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("nothing to leave"), "{output:?}");
    let output = mpt(&["invite", "van", "--dir", folder]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("mpt init --server"), "{output:?}");
}

#[test]
fn a_configuration_that_somebody_wrote_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mpt.toml");
    fs::write(&file, GOOD).unwrap();
    let dir = folder.path().to_str().unwrap();
    for arguments in [&["init", "--server", "vpn.example.org"][..], &["join", EXPIRED]] {
        let output = mpt(&[arguments, &["--dir", dir]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(complaint(&output).contains("move it away"), "{output:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), GOOD);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_server_of_a_bad_name_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mpt");
    let dir = folder.to_str().unwrap();
    for (arguments, words) in [
        (&["--server", "vpn:99999"][..], "is not a port"),
        (&["--server", "vpn.example.org", "--address", "10.0.0.1/32"], "no room"),
        (&["--server", "a b"], "nor a host name"),
    ] {
        let output = mpt(&[&["init", "--dir", dir][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complaint(&output).contains(words), "{output:?}");
        assert!(!folder.exists(), "{arguments:?}");
    }
}
