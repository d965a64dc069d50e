//! What is added by command is read as if it stood in the file.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::arbitrary;
use crate::config::*;

proptest! {
    /// The last path of the settings, and their last connection, taken away and added again.
    #[test]
    fn what_is_taken_out_can_be_added_again(mut whole in arbitrary::settings()) {
        whole.tunnels.retain(|tunnel| !tunnel.connections.is_empty());
        prop_assume!(!whole.tunnels.is_empty());
        let last = whole.tunnels.last_mut().unwrap();
        last.accepts.clear();
        last.checksum_partial = true;
        let tunnel = last.name.clone();
        let connection = last.connections.last().unwrap().name.clone();
        let text = write(&whole);

        let mut less = whole.clone();
        less.tunnels.last_mut().unwrap().connections.last_mut().unwrap().paths.pop();
        if !less.tunnels.last().unwrap().connections.last().unwrap().paths.is_empty() {
            let (_, path) = text.rsplit_once("[[tunnel.connection.path]]").unwrap();
            let place = Place::Path { connection: &connection };
            let added = with_fragment(&less, place, path, "path add").map_err(shown);
            prop_assert_eq!(added, Ok(whole.clone()));
        }

        less.tunnels.last_mut().unwrap().connections.pop();
        if !less.tunnels.last().unwrap().connections.is_empty() {
            let (_, body) = text.rsplit_once("[[tunnel.connection]]").unwrap();
            let body = body.replace("[[tunnel.connection.path]]", "[[path]]");
            let body = body.replace("[[tunnel.connection.class]]", "[[class]]");
            let body = body.replace("[tunnel.connection.interface.", "[interface.");
            let place = Place::Connection { tunnel: &tunnel };
            let added = with_fragment(&less, place, &body, "connection add").map_err(shown);
            prop_assert_eq!(added, Ok(whole));
        }
    }

    #[test]
    fn a_random_fragment_is_never_a_panic(text in "([a-z\\[\\]\\{\\}=\"'.,#0-9 \n\r\té🦀]){0,80}") {
        let settings = parse(super::FULL).unwrap();
        for place in [Place::Path { connection: "server" }, Place::Connection { tunnel: "mpt0" }] {
            if let Err(FragmentError::Invalid(report)) = with_fragment(&settings, place, &text, "f") {
                prop_assert!(report.render(false).contains("--> f:"));
                prop_assert!(report.render(true).contains("error"));
            }
        }
    }
}

/// What is wrong is shown where the user wrote it.
#[test]
fn reports_point_into_the_fragment() {
    let mut reports = String::new();
    for fragment in [
        "name = \"lte\"\nremote = \"192.0.2.9\"\nwieght = 3\n",
        "name = \"lte\"\nremote = \"192.0.2.9\"\nweight = 0",
        "name = \"lte\nremote = 1",
        "name = \"lte\"",
        "",
        // Together with what runs.
        "name = \"fibre\"\ninterface = \"eth3\"\nremote = \"192.0.2.9\"",
        "name = \"lte\"\ninterface = \"eth2\"\nremote = \"server.EXAMPLE.org.\"",
        "name = \"lte\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.9\"",
        "name = \"lte\"\nlocal = \"192.168.7.7\"\nremote = \"192.0.2.9\"",
        "name = \"lte\"\ninterface = \"eth3\"\nremote = \"192.0.2.9\"\ntcp_dst = [5061]\npriority = 3",
        // More than the keys.
        "[[tunnel.connection.path]]\nname = \"lte\"\nremote = \"192.0.2.9\"",
        "name = \"lte\"\nremote = \"192.0.2.9\"\n[[tunnel]]\nname = \"evil\"",
        "name = \"lte\"\nremote = \"192.0.2.9\"\n[control]\nsocket = \"/evil\"",
    ] {
        let report = report(Place::Path { connection: "server" }, fragment, "path add");
        assert!(report.contains("--> path add:"), "{report}");
        let _ = write!(reports, "{report}\n\n");
    }
    for fragment in [
        "name = \"office\"\npeer = [\"10.9.0.3\"]\nnetworks = [\"192.168.9.0/24\"]\n\n[[path]]\nname = \"a\"\nremote = \"192.0.2.9\"",
        "name = \"vehicle-7\"\npeer = [\"10.9.0.3\"]\n\n[[path]]\nname = \"a\"\nremote = \"192.0.2.9\"",
        "name = \"office\"\npeer = [\"10.9.0.3\"]\n\n[[path]]\nname = \"a\"\nremote = \"192.0.2.9\"\nspeed = 7",
        "name = \"office\"\npeer = [\"10.9.0.3\"]\nframing = \"plain\"",
    ] {
        let report = report(Place::Connection { tunnel: "mpt0" }, fragment, "connection add");
        assert!(report.contains("--> connection add:"), "{report}");
        let _ = write!(reports, "{report}\n\n");
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn a_fragment_needs_a_place() {
    let settings = parse(super::FULL).unwrap();
    for (place, message) in [
        (Place::Path { connection: "office" }, "no connection `office`"),
        (Place::Connection { tunnel: "mpt9" }, "no tunnel `mpt9`"),
    ] {
        let error = with_fragment(&settings, place, "name = \"x\"", "f").unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

fn report(place: Place<'_>, fragment: &str, name: &str) -> String {
    let settings = parse(super::FULL).unwrap();
    shown(with_fragment(&settings, place, fragment, name).unwrap_err())
}

fn shown(error: FragmentError) -> String {
    match error {
        FragmentError::Invalid(report) => format!("{}{report}", report.render(false)),
        FragmentError::Missing { .. } => error.to_string(),
    }
}
