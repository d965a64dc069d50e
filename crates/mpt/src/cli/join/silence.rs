//! What is said to who has waited in vain for a server: what was tried, and what to look at.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mpt_control::ConnectionState;
use mpt_io::netlink::{Leaving, Netlink};

use crate::setup::{Record, endpoint_text};

/// How long a name is looked up.
const LOOK_UP: Duration = Duration::from_secs(1);

/// Why nothing may have come of it, as far as this host can tell.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// The server's name has no address here.
    Name(String),
    /// No interface has a route to it.
    Route,
    /// Datagrams were sent by these paths, and nothing came back.
    Silent(Vec<String>),
}

/// The words, after `seconds` of waiting; `last` is what the daemon said last of the connection, and `rest` how it goes on.
pub(super) fn text(
    record: &Record,
    last: Option<&ConnectionState>,
    seconds: u64,
    rest: &str,
) -> String {
    words(record, &cause(record, last), seconds, rest)
}

fn words(record: &Record, cause: &Cause, seconds: u64, rest: &str) -> String {
    let server = endpoint_text(&record.host, record.port);
    match cause {
        Cause::Name(error) => format!(
            "the name of the server {server} was not found within {seconds} s ({error}): see that this host is online and which name servers it asks (`getent ahosts {}`), or have the server's administrator run `mpt init` with an address; {rest}",
            record.host
        ),
        Cause::Route => format!(
            "no interface of this host had a route to {server} within {seconds} s: see that one is online (`ip route get`), and that it is not left out by --exclude; {rest}",
        ),
        Cause::Silent(paths) => format!(
            "{server} did not answer within {seconds} s{}: see that its daemon runs (`mpt status` there), that UDP port {} reaches it through every firewall, and that the invitation was not used before and has not expired there; {rest}",
            by(paths),
            record.port
        ),
    }
}

fn by(paths: &[String]) -> String {
    if paths.is_empty() { String::new() } else { format!(" by {}", paths.join(" and ")) }
}

fn cause(record: &Record, last: Option<&ConnectionState>) -> Cause {
    // One that is down has no address to send to, or no way.
    let paths = last.into_iter().flat_map(|it| &it.paths).filter(|path| path.state != "down");
    let paths: Vec<_> = paths.map(|path| path.name.clone()).collect();
    if !paths.is_empty() {
        return Cause::Silent(paths);
    }
    let addresses = match addresses(&record.host, record.port) {
        Ok(addresses) => addresses,
        Err(error) => return Cause::Name(error),
    };
    let is_reachable = |netlink: &mut Netlink, address| {
        netlink.way_of(address, Leaving::default()).is_ok_and(|way| way.is_some())
    };
    let has_way = Netlink::open().map_err(io::Error::other).map(|mut netlink| {
        addresses.iter().any(|address| is_reachable(&mut netlink, address.ip()))
    });
    if has_way.unwrap_or(true) { Cause::Silent(paths) } else { Cause::Route }
}

/// The addresses of a name. Who has waited for long is not kept waiting by name servers that do not answer.
fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let (sender, found) = mpsc::channel();
    let host = host.to_owned();
    thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        // Nobody may wait for it any more.
        let _ = sender.send(found.map(Iterator::collect).map_err(|error| error.to_string()));
    });
    found.recv_timeout(LOOK_UP).unwrap_or_else(|_| Err("no name server answers".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Role, resolver};

    fn record(host: &str) -> Record {
        Record {
            role: Role::Client,
            interface: "mpt0".into(),
            host: host.into(),
            port: 4754,
            networks: Vec::new(),
            dns: Vec::new(),
            internet: false,
            everything: false,
            resolv_conf: resolver::RESOLV_CONF.into(),
            made_folder: true,
            service: false,
            files: Vec::new(),
        }
    }

    #[test]
    fn each_cause_has_its_place_and_its_remedy() {
        let of = |cause| words(&record("vpn.example.org"), &cause, 20, "`mpt leave` undoes this");
        let name = of(Cause::Name("not known".into()));
        assert!(name.contains("vpn.example.org:4754 was not found within 20 s (not known)"));
        assert!(name.contains("`getent ahosts vpn.example.org`"), "{name}");
        let route = of(Cause::Route);
        assert!(route.contains("no interface") && route.contains("--exclude"), "{route}");
        let silent = of(Cause::Silent(vec!["eth0".into(), "wwan0".into()]));
        assert!(silent.contains("did not answer within 20 s by eth0 and wwan0"), "{silent}");
        for text in [name, route, silent] {
            assert!(text.ends_with("`mpt leave` undoes this"), "{text}");
        }
    }

    #[test]
    fn a_name_that_has_no_address_is_named() {
        // RFC 6761 section 6.4 has no resolver find this one.
        assert!(matches!(cause(&record("server.invalid"), None), Cause::Name(_)));
    }
}
