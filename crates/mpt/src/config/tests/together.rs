//! What may stand beside each other in one file: paths, sockets, networks, connections to one peer.

use super::two_paths;
use crate::config::*;

#[test]
fn paths_that_can_be_distinguished_are_accepted() {
    for (fields, good) in [("remote = \"192.0.2.1\"", false), ("remote = \"192.0.2.2\"", true)] {
        let text = two_paths(&format!("name = \"b\"\n{fields}"));
        assert_eq!(parse(&text).is_ok(), good, "{fields}");
    }
    for (fields, good) in
        [("", false), ("key = 1", true), ("local_port = 1", true), ("remote_port = 1", true)]
    {
        let text = two_paths("name = \"b\"\nremote = \"192.0.2.2\"")
            + &format!(
                "[[tunnel.connection]]\nname = \"other\"\npeer = [\"10.9.0.3\"]\n{fields}\n\
                 [[tunnel.connection.path]]\nname = \"a\"\nremote = \"192.0.2.1\"\n"
            );
        assert_eq!(parse(&text).is_ok(), good, "{fields}");
    }
}

#[test]
fn networks_that_may_stand_beside_each_other() {
    let file = |first: &str, second: &str, path: &str| {
        let text = two_paths(&format!("name = \"b\"\nremote = \"192.0.2.2\"\n{path}"));
        text.replace("10.9.0.2\"]", &format!("10.9.0.2\"]\nnetworks = [{first}]"))
            + &format!(
                "[[tunnel.connection]]\nname = \"other\"\n{second}\nkey = 2\n\
                 [[tunnel.connection.path]]\nname = \"a\"\nremote = \"192.0.2.1\"\n"
            )
    };
    let other = |networks: &str| format!("peer = [\"10.9.0.3\"]\nnetworks = [{networks}]");
    let same = |networks: &str| {
        format!("peer = [\"10.9.0.2\"]\nmatch = {{ protocol = 6 }}\nnetworks = [{networks}]")
    };
    for (first, second, path, good) in [
        ("\"172.16.0.0/16\"", other("\"0.0.0.0/0\""), "", true),
        ("\"0.0.0.0/0\", \"::/0\"", other("\"172.16.0.0/16\""), "", true),
        ("\"0.0.0.0/0\"", other("\"::/0\""), "", true),
        ("\"0.0.0.0/0\"", other("\"0.0.0.0/0\""), "", false),
        ("\"172.16.0.0/16\"", other("\"172.16.0.0/24\""), "", false),
        // All connections to one peer have the networks of each.
        ("\"172.16.0.0/16\"", same("\"172.16.0.0/24\""), "", true),
        ("\"172.16.0.0/16\"", same("\"172.16.0.0/16\""), "", true),
        // What leads into the tunnel must not swallow it.
        ("\"192.0.2.2/32\"", other(""), "", false),
        ("\"0.0.0.0/1\"", other(""), "", true),
        ("\"128.0.0.0/1\"", other(""), "", false),
        ("\"192.0.2.2/32\"", other(""), "interface = \"eth0\"\nlocal = \"198.51.100.1\"", true),
        ("\"198.51.100.0/24\"", other(""), "", true),
    ] {
        // A path with an interface excludes the others' socket on the same port.
        let mut text = file(first, &second, path);
        if !path.is_empty() {
            text = text.replace("remote = \"192.0.2.1\"", "remote = \"2001:db8::1\"");
        }
        assert_eq!(parse(&text).is_ok(), good, "{text}: {:?}", parse(&text));
    }
}

#[test]
fn connections_to_one_peer_share_its_packets() {
    let file = |matches: [&str; 3]| {
        let connections = matches.iter().enumerate().map(|(number, selector)| {
            format!(
                "[[tunnel.connection]]\nname = \"c{number}\"\npeer = [\"10.9.0.2\"]\n{selector}\n\
                 key = {number}\n[[tunnel.connection.path]]\nname = \"a\"\nremote = \"192.0.2.1\"\n"
            )
        });
        let tunnel = "[[tunnel]]\nname = \"mpt0\"\naddresses = [\"10.9.0.1/24\"]\n".to_owned();
        tunnel + &connections.collect::<String>()
    };
    let (sip, dns, udp) = (
        "match = { protocol = \"udp\", ports = [5060] }",
        "match = { ports = [53] }",
        "match = { protocol = \"udp\" }",
    );
    for (matches, good) in [
        (["", sip, dns], true),
        ([sip, "", dns], true),
        ([sip, udp, dns], true),
        ([udp, dns, ""], true),
        ([udp, sip, ""], false),
        ([sip, sip, ""], false),
        (["", sip, ""], false),
        ([dns, "match = { protocol = \"tcp\", ports = [53] }", ""], false),
    ] {
        let text = file(matches);
        assert_eq!(parse(&text).is_ok(), good, "{text}: {:?}", parse(&text));
        assert!(parse(&text.replace("key = 1", "key = 0")).is_err(), "not told apart");
    }
}

/// What the kernel says about each two of these, in either order, is the same.
#[test]
fn sockets_that_exclude_each_other_are_refused() {
    const ONE: &str = "local = \"192.0.2.8\"\n";
    const TWO: &str = "local = \"192.0.2.9\"\n";
    const ETH0: &str = "interface = \"eth0\"\n";
    const ETH1: &str = "interface = \"eth1\"\n";
    for (first, second, good) in [
        ("", "", true),
        ("", ONE, false),
        ("", ETH0, false),
        ("", &format!("{ONE}{ETH0}"), false),
        (ONE, ONE, true),
        (ONE, TWO, true),
        (ONE, ETH0, false),
        (ONE, &format!("{ONE}{ETH0}"), false),
        (ONE, &format!("{TWO}{ETH0}"), true),
        (ETH0, ETH0, true),
        (ETH0, ETH1, true),
        (ETH0, &format!("{ONE}{ETH0}"), false),
        (ETH0, &format!("{ONE}{ETH1}"), true),
        (&format!("{ONE}{ETH0}"), &format!("{ONE}{ETH1}"), true),
        (&format!("{ONE}{ETH0}"), &format!("{TWO}{ETH0}"), true),
        (&format!("{ONE}{ETH0}"), &format!("{TWO}{ETH1}"), true),
    ] {
        for (first, second) in [(first, second), (second, first)] {
            let path = |fields| format!("name = \"b\"\nremote = \"192.0.2.2\"\n{fields}");
            let same =
                two_paths(&path(second)).replace("192.0.2.1\"\n", &format!("192.0.2.1\"\n{first}"));
            assert_eq!(parse(&same).is_ok(), good, "{same}");
            let connection = "[[tunnel.connection]]\nname = \"other\"\npeer = [\"10.9.0.3\"]\n";
            for (port, good) in [("", good), ("local_port = 4755\n", true)] {
                let two = same.replacen(
                    "[[tunnel.connection.path]]\nname = \"b\"",
                    &format!("{connection}{port}[[tunnel.connection.path]]\nname = \"b\""),
                    1,
                );
                assert_eq!(parse(&two).is_ok(), good, "{two}");
                let tunnel = "[[tunnel]]\nname = \"mpt1\"\naddresses = [\"10.8.0.1/24\"]\n";
                let two = two.replacen(connection, &format!("{tunnel}{connection}"), 1);
                let shared = first == second && port.is_empty();
                assert_eq!(parse(&two).is_ok(), good && !shared, "{two}");
            }
        }
    }
}
