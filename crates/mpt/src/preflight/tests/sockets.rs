//! Ports and socket buffers.

use mpt_io::limits::SocketBuffers;
use mpt_io::netlink::{Hook, StrictChain};

use super::{FILE, found, one, settings};
use crate::preflight::facts::{Closed, Facts};
use crate::preflight::needs;

#[test]
fn without_the_capability_socket_buffers_are_limited() {
    let found = found(FILE, |facts| facts.powerless = true);
    assert_eq!(
        found,
        [
            "error: this process lacks the capability CAP_NET_ADMIN: it cannot create interfaces, \
             addresses and routes\n  fix: sudo mpt run FILE",
            "warning: net.core.rmem_max is 212992, less than 4194304: datagrams are dropped when \
             the machine is busy for some milliseconds\n  fix: sysctl -w net.core.rmem_max=4194304",
            "warning: net.core.wmem_max is 212992, less than 4194304: datagrams are dropped when \
             an interface is slow for some milliseconds\n  fix: sysctl -w net.core.wmem_max=4194304",
        ]
    );
    let enough = self::found(FILE, |facts| {
        facts.powerless = true;
        facts.buffers = Some(SocketBuffers { receive: 4 << 20, send: 4 << 20 });
    });
    assert_eq!(enough.len(), 1, "{enough:?}");
}

#[test]
fn a_port_that_cannot_be_had_is_an_error() {
    let fibre = |reason| {
        move |facts: &mut Facts| {
            let users = needs::sockets(&settings(FILE));
            let socket = users.into_iter().find(|socket| socket.local.is_ipv4()).unwrap();
            facts.closed.insert(socket, reason);
        }
    };
    one(
        FILE,
        fibre(Closed::Taken(Some("other (process 77)".into()))),
        [
            "error: UDP 192.0.2.1:4754 is in use by other (process 77)",
            "path fibre of server cannot be opened",
            "ss -lunp 'sport = :4754'  (end that program, or set another local_port)",
        ],
    );
    let unknown = found(FILE, fibre(Closed::Taken(None)));
    assert!(unknown[0].starts_with("error: UDP 192.0.2.1:4754 is in use: path"), "{unknown:?}");
    one(
        FILE,
        fibre(Closed::Privileged),
        [
            "error: UDP port 4754 is for privileged processes",
            "path fibre of server cannot be opened",
            "sysctl -w net.ipv4.ip_unprivileged_port_start=4754",
        ],
    );
}

#[test]
fn templates_and_host_names_need_sockets_too() {
    let text = r#"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24"]
[[tunnel.accept]]
name = "vehicle"
peers = ["10.9.0.0/25"]
interface = "eth9"
local_port = 4800
[[tunnel.connection]]
name = "server"
peer = ["10.9.0.200"]
[[tunnel.connection.path]]
name = "fibre"
interface = "eth0"
local = "192.0.2.1"
remote = "server.example.org"
[[tunnel.connection.path]]
name = "radio"
interface = "eth9"
remote = "server.example.org"
"#;
    let sockets: Vec<String> = needs::sockets(&settings(text))
        .iter()
        .map(|socket| format!("{} {:?}", socket.local, socket.interface.as_deref()))
        .collect();
    let expected = [
        "0.0.0.0:4800 Some(\"eth9\")",
        "192.0.2.1:4754 Some(\"eth0\")",
        "[::]:4800 Some(\"eth9\")",
    ];
    assert_eq!(sockets, expected, "a name may stand for either version");
    let found = found(text, |_| ());
    assert_eq!(
        found,
        [
            "warning: interface eth9 does not exist: path radio of server, template vehicle cannot be \
            used until it is up\n  fix: ip -brief link  (correct `interface` if none of them is it)"
        ]
    );
}

#[test]
fn the_commands_of_an_original_need_a_socket_and_a_way_through_the_firewall() {
    let original = FILE.replace(
        "peer = [\"10.9.0.2\", \"fd00:9::2\"]",
        "peer = \"mpt-original\"\npeer_addresses = [\"10.9.0.2\"]",
    );
    let taken = found(&original, |facts| {
        let sockets = needs::sockets(&settings(&original));
        let socket = sockets.into_iter().find(|socket| socket.local.port() == 65050).unwrap();
        facts.closed.insert(socket, Closed::Taken(None));
    });
    assert_eq!(
        taken,
        [
            "error: UDP 192.0.2.1:65050 is in use: commands by path fibre of server cannot be opened\n  \
          fix: ss -lunp 'sport = :65050'  (end that program, or set another command_port)"
        ]
    );
    let chain = StrictChain {
        family: "inet",
        table: "filter".into(),
        name: "input".into(),
        hook: Hook::Input,
    };
    let strict = found(&original, |facts| facts.strict_chains.push(chain));
    assert!(strict[0].contains("udp dport '{ 4754, 65050 }' accept"), "{strict:?}");
}
