//! Looking a host name up without going through a tunnel.
//!
//! The system's resolver does not mark its packets. With a default route through the tunnel its
//! queries would take the tunnel, which may be down because an address has changed. So the hosts
//! file is read and the name servers are queried here (RFC 1035), by sockets with the tunnel's
//! [`MARK`]. Only names that are not found are left to the system: names of one part, which it
//! completes, those that other services know, and everything where all name servers are on this
//! host and systemd-resolved does not tell which ones it asks itself.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant};

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::mark::{MARK, UPLINK};

const HOSTS: &str = "/etc/hosts";

/// The files with name servers: the first that has one on another host is used.
const SERVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// The port of name servers.
const PORT: u16 = 53;

/// The most name servers that are asked, as many as the system's resolver asks (`resolv.conf(5)`).
const MAX_SERVERS: usize = 3;

/// How often each is queried, and its time limit. All queries take 12 s at most, in a separate
/// thread.
const ATTEMPTS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(2);

/// How long IPv4 addresses wait for the answer about IPv6 before they are used (RFC 8305 section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// The longest answer without an extension (RFC 1035 section 4.2.1), and then some.
const ANSWER: usize = 4096;

/// All addresses of a host, each once, the preferred first and then the IP versions in turn (RFC 8305 section 4), so
/// that one that does not pass delays the other little. A name server that answers about one version and not about
/// the other is waited for; what is known until then goes to `early`.
///
/// # Errors
///
/// The error of the system's resolver if the name is not found, or that of the name servers.
pub(super) fn lookup(name: &str, early: &mut dyn FnMut(Vec<IpAddr>)) -> io::Result<Vec<IpAddr>> {
    find(name, early).map(interleaved)
}

fn find(name: &str, early: &mut dyn FnMut(Vec<IpAddr>)) -> io::Result<Vec<IpAddr>> {
    let found = match fs::read_to_string(HOSTS) {
        Ok(hosts) => in_hosts(&hosts, name),
        Err(_) => Vec::new(),
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let asked = match name.trim_end_matches('.').contains('.') {
        true => ask(name, &servers(), early),
        false => Ok(Vec::new()),
    };
    match asked {
        Ok(found) if !found.is_empty() => Ok(distinct(found)),
        asked => match (name, 0_u16).to_socket_addrs() {
            Ok(all) => Ok(distinct(all.map(|address| address.ip()))),
            // What the name servers say is nearer to the cause.
            Err(error) => Err(asked.err().unwrap_or(error)),
        },
    }
}

fn distinct(all: impl IntoIterator<Item = IpAddr>) -> Vec<IpAddr> {
    let mut distinct: Vec<IpAddr> = Vec::new();
    for address in all {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    distinct
}

/// The IP versions in turn, beginning with that of the first address, and each in its order.
fn interleaved(all: Vec<IpAddr>) -> Vec<IpAddr> {
    let Some(first) = all.first().map(IpAddr::is_ipv4) else { return all };
    let (one, other): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|address| address.is_ipv4() == first);
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let mut interleaved = Vec::new();
    while one.len() + other.len() > 0 {
        interleaved.extend(one.next().into_iter().chain(other.next()));
    }
    interleaved
}

/// The addresses of a name in a file of hosts (`hosts(5)`).
fn in_hosts(hosts: &str, name: &str) -> Vec<IpAddr> {
    let name = name.trim_end_matches('.');
    let line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    };
    distinct(hosts.lines().filter_map(line))
}

/// The name servers of this host that are not on it.
fn servers() -> Vec<SocketAddr> {
    let of = |file: &&str| Some(in_resolv_conf(&fs::read_to_string(file).ok()?));
    SERVERS.iter().filter_map(of).find(|servers| !servers.is_empty()).unwrap_or_default()
}

fn in_resolv_conf(text: &str) -> Vec<SocketAddr> {
    // Where all traffic goes through the tunnel, the file names servers behind it.
    let uplinks: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix(UPLINK)?.trim().parse().ok())
        .map(|address| SocketAddr::new(address, PORT))
        .take(MAX_SERVERS)
        .collect();
    if !uplinks.is_empty() {
        return uplinks;
    }
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address: IpAddr =
            (words.next()? == "nameserver").then(|| words.next()?.parse().ok())??;
        (!address.is_loopback()).then_some(SocketAddr::new(address, PORT))
    };
    text.lines().filter_map(server).take(MAX_SERVERS).collect()
}

/// What the first of the servers that answers says, which may be nothing.
fn ask(
    name: &str,
    servers: &[SocketAddr],
    early: &mut dyn FnMut(Vec<IpAddr>),
) -> io::Result<Vec<IpAddr>> {
    let mut outcome = Ok(Vec::new());
    for _ in 0..ATTEMPTS {
        for server in servers {
            outcome = open(*server).and_then(|socket| exchange(name, *server, &socket, early));
            if outcome.as_ref().is_ok_and(|found| !found.is_empty()) {
                return outcome;
            }
            if let Err(error) = &outcome
                && error.kind() == io::ErrorKind::NotFound
            {
                return outcome;
            }
        }
    }
    outcome
}

/// Asks a server for the addresses of both IP versions.
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) if there is no such name; or the reason why there is no
/// answer.
fn exchange(
    name: &str,
    server: SocketAddr,
    socket: &UdpSocket,
    early: &mut dyn FnMut(Vec<IpAddr>),
) -> io::Result<Vec<IpAddr>> {
    let first = RandomState::new().build_hasher().finish() as u16;
    let questions = [(first, TYPE::AAAA), (first.wrapping_add(1), TYPE::A)];
    for (id, kind) in questions {
        socket.send(&question(name, id, kind)?)?;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut answers: [Option<io::Result<Vec<IpAddr>>>; 2] = [None, None];
    let mut buffer = [0; ANSWER];
    // When what one answer says is used before the other is there.
    let mut early_at: Option<Instant> = None;
    while answers.iter().any(Option::is_none) {
        let now = Instant::now();
        if early_at.is_some_and(|at| at <= now) {
            early(answers.iter().flatten().flatten().flatten().copied().collect());
            early_at = None;
        }
        let rest = early_at.unwrap_or(deadline).min(deadline).saturating_duration_since(now);
        if rest.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(rest))?;
        let len = match socket.recv(&mut buffer) {
            Ok(len) => len,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let Ok(packet) = Packet::parse(&buffer[..len]) else { continue };
        let asked = questions.iter().position(|(id, _)| *id == packet.id());
        let Some(place) = asked.filter(|_| is_answer_about(&packet, name)) else { continue };
        let answer = addresses(&packet, server);
        if answer.as_ref().is_ok_and(|found| !found.is_empty()) {
            let delay =
                if questions[place].1 == TYPE::A { RESOLUTION_DELAY } else { Duration::ZERO };
            early_at = Some(Instant::now() + delay);
        }
        answers[place] = Some(answer);
    }
    let silent = || io::Error::new(io::ErrorKind::TimedOut, format!("{} is silent", server.ip()));
    // Some servers do not support IPv6 queries and return an error, or no answer.
    let (mut found, mut failure) = (Vec::new(), None);
    for answer in answers {
        match answer.unwrap_or_else(|| Err(silent())) {
            Ok(addresses) => found.extend(addresses),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) if found.is_empty() => Err(error),
        Some(_) | None => Ok(found),
    }
}

/// A socket connected to one name server, so that it accepts no other answers.
fn open(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_mark(MARK)?;
    socket.connect(&SockAddr::from(server))?;
    Ok(socket.into())
}

fn question(name: &str, id: u16, kind: TYPE) -> io::Result<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name.trim_end_matches('.')).map_err(io::Error::other)?;
    packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(io::Error::other)
}

fn is_answer_about(packet: &Packet<'_>, name: &str) -> bool {
    let name = name.trim_end_matches('.');
    packet.has_flags(PacketFlag::RESPONSE)
        && packet.questions.iter().any(|asked| asked.qname.to_string().eq_ignore_ascii_case(name))
}

/// The addresses in an answer. Aliases lead to them within it.
fn addresses(packet: &Packet<'_>, server: SocketAddr) -> io::Result<Vec<IpAddr>> {
    let failed = |what: String| Err(io::Error::other(format!("{} {what}", server.ip())));
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return failed("has too many addresses for one datagram".into());
    }
    let code = packet.rcode();
    if code == RCODE::NameError {
        let text = format!("{} answers that the name does not exist", server.ip());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    } else if code != RCODE::NoError {
        return failed(format!("answers with {code:?}"));
    }
    let address = |data: &RData<'_>| {
        if let RData::A(record) = data {
            Some(IpAddr::V4(Ipv4Addr::from_bits(record.address)))
        } else if let RData::AAAA(record) = data {
            Some(IpAddr::V6(Ipv6Addr::from_bits(record.address)))
        } else {
            None
        }
    };
    Ok(packet.answers.iter().filter_map(|record| address(&record.rdata)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_several_names_and_names_several_addresses() {
        let hosts = "127.0.0.1 localhost\n192.0.2.1 a.example A # b.example\n\
                     2001:db8::1\tb.example a.example\nnonsense a.example\n192.0.2.1 a.example\n";
        let found = |name| {
            in_hosts(hosts, name).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("a.example."), "192.0.2.1 2001:db8::1");
        assert_eq!((found("a"), found("B.EXAMPLE")), ("192.0.2.1".into(), "2001:db8::1".into()));
        assert_eq!((found("example"), found("c.example")), (String::new(), String::new()));
    }

    #[test]
    fn ip_versions_take_turns() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let turns = |text: &str| {
            let turns = interleaved(text.split_whitespace().map(ip).collect());
            turns.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(turns("::1 ::2 ::3 192.0.2.1"), "::1 192.0.2.1 ::2 ::3");
        assert_eq!(turns("192.0.2.1 192.0.2.2 ::1 ::2"), "192.0.2.1 ::1 192.0.2.2 ::2");
        assert_eq!((turns("192.0.2.1"), turns("")), ("192.0.2.1".into(), String::new()));
    }

    /// The answer of a name server to a question that it got.
    fn answer(question: &[u8]) -> (TYPE, Vec<u8>) {
        let question = Packet::parse(question).unwrap();
        let asked = question.questions[0].clone();
        let (kind, data) = if asked.qtype == simple_dns::QTYPE::TYPE(TYPE::A) {
            (TYPE::A, RData::A(simple_dns::rdata::A { address: 0xc000_0201 }))
        } else {
            (TYPE::AAAA, RData::AAAA(simple_dns::rdata::AAAA { address: 1 }))
        };
        let mut reply = Packet::new_reply(question.id());
        let name = asked.qname.clone();
        reply.questions.push(asked);
        reply.answers.push(simple_dns::ResourceRecord::new(name, CLASS::IN, 60, data));
        (kind, reply.build_bytes_vec().unwrap())
    }

    #[test]
    fn one_ip_version_is_used_before_the_answer_about_the_other_comes() {
        for first in [TYPE::A, TYPE::AAAA] {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(server.local_addr().unwrap()).unwrap();
            server.connect(socket.local_addr().unwrap()).unwrap();
            let mut later = None;
            let mut told = Vec::new();
            let address = server.local_addr().unwrap();
            let found = std::thread::scope(|scope| {
                let (tell, early) = std::sync::mpsc::channel();
                let asks = scope.spawn(move || {
                    exchange("a.example", address, &socket, &mut |found| tell.send(found).unwrap())
                });
                for _ in 0..2 {
                    let mut buffer = [0; ANSWER];
                    let len = server.recv(&mut buffer).unwrap();
                    let (kind, reply) = answer(&buffer[..len]);
                    match kind == first {
                        true => drop(server.send(&reply).unwrap()),
                        false => later = Some(reply),
                    }
                }
                told.extend(early.recv().unwrap());
                server.send(&later.take().unwrap()).unwrap();
                asks.join().unwrap().unwrap()
            });
            assert_eq!(told.len(), 1, "{first:?}");
            assert_eq!(told[0].is_ipv4(), first == TYPE::A);
            assert_eq!(found, ["::1", "192.0.2.1"].map(|text| text.parse::<IpAddr>().unwrap()));
        }
    }

    #[test]
    fn name_servers_on_this_host_are_not_asked() {
        let text = "# nameserver 192.0.2.9\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver ::1\nnameserver 192.0.2.1\nnameserver 2001:db8::1 \nnameserver x\n\
                    nameserver 192.0.2.2\nnameserver 192.0.2.3\n";
        let found: Vec<String> = in_resolv_conf(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.2:53"]);
    }

    #[test]
    fn servers_of_the_uplinks_are_asked_rather_than_those_behind_the_tunnel() {
        let text = "# uplink: 192.168.1.1\n# uplink: nonsense\nnameserver 9.9.9.9\n";
        let found: Vec<String> = in_resolv_conf(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.168.1.1:53"]);
    }
}
