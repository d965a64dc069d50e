//! `mpt doctor`: why a connection does not work, found actively, and what to change.
//!
//! The daemon recognises causes by what arrives, what is answered and what ICMP says. This command gives it the time it
//! needs, and walks on from there: names, networks and MTUs of this host ([`preflight`]), what leaves by each path and
//! what comes back, what the peer's packets and session tell of its settings ([`judge`]), what it says of them itself
//! ([`both_ends`]), whether the peer answers
//! through the tunnel, also to packets as large as it takes ([`reach`]), and what the paths carry, where that is asked for
//! ([`rates`]).

mod both_ends;
mod busy;
mod judge;
mod load;
mod rates;
mod reach;

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use mpt_control::{Client, ConnectionState, Reply, Request, Status, TunnelStatus};

use self::judge::Seen;
use self::reach::Reached;
use crate::exit::Exit;
use crate::{config, output, preflight, watch};

/// How long the peer is waited for. Each cause is named within five seconds.
const WAIT: Duration = Duration::from_secs(6);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// What is to be looked at, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'o> {
    /// The connection; all of them if none is named.
    pub(super) connection: Option<&'o str>,
    /// The configuration, where the daemon does not say what runs.
    pub(super) file: &'o Path,
    /// Whether to find out what the paths carry, by a load.
    pub(super) rate: bool,
    /// Where the daemon is.
    pub(super) socket: &'o Path,
}

/// Looks at one connection, or at all.
pub(super) fn doctor(order: Order<'_>) -> Result<Exit> {
    let mut client = Client::connect(order.socket)?;
    let begin = Instant::now();
    let before = watch::ask(&mut client)?;
    if let Some(name) = order.connection
        && !connections(&before, None).any(|(_, other)| other.name == name)
    {
        output::complain(format_args!("no connection `{name}`: see `mpt status`"));
        return Ok(Exit::Negative);
    }
    let mut status = before.clone();
    // Paths that are up at once need no waiting; what does not fit shows itself in time.
    while begin.elapsed() < WAIT
        && !connections(&status, order.connection).all(|(_, it)| judge::is_up(it))
    {
        thread::sleep(LOOK);
        status = watch::ask(&mut client)?;
    }
    let mut findings = judge::outside(&status, order.connection.is_none());
    let settings = settings(&mut client, order.file);
    findings.extend(settings.as_ref().map(preflight::misfits).unwrap_or_default());
    let mut walk = String::new();
    for (tunnel, state) in connections(&status, order.connection) {
        let before = connections(&before, Some(&state.name)).next().map(|(_, state)| state);
        let seen = Seen { tunnel, state, before, settings: settings.as_ref() };
        let found = judge::connection(&seen);
        walk.push_str(&judge::shown(&seen));
        let is_whole = found.is_empty();
        findings.extend(found);
        findings.extend(both_ends::findings(state));
        let peers = reachable(state).map(|peer| (peer, reach::own(peer)));
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            peers.partition(|(_, own)| own.is_none_or(|own| is_of(tunnel, own)));
        for (peer, own) in elsewhere {
            let own = own.map(|own| own.to_string()).unwrap_or_default();
            walk.push_str(&format!("  {peer} is not tried: packets to it leave from {own} here\n"));
            findings.push(format!(
                "{}: packets from here to {peer} leave from {own}, which is no address of tunnel {}: does another route \
                 lead there (`ip route get {peer}`)? Or does the daemon run in another network namespace? Then run \
                 this command there",
                state.name, tunnel.name
            ));
        }
        let reached: Vec<_> =
            here.into_iter().map(|(peer, own)| Answer::of(peer, own, tunnel.mtu)).collect();
        for answer in &reached {
            let (line, finding) = through(tunnel, state, answer, &reached, is_whole);
            walk.push_str(&format!("  {line}\n"));
            findings.extend(finding);
        }
    }
    // Several paths may lead to one name.
    let mut said = HashSet::new();
    findings.retain(|finding| said.insert(finding.clone()));
    if order.rate {
        walk.push_str(&rates::rates(&mut client, &status, order.connection)?);
    }
    let count = connections(&status, order.connection).count();
    output::print(&(walk + &verdict(count, &findings)))?;
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Negative })
}

/// The connections with their tunnels.
fn connections<'s>(
    status: &'s Status,
    name: Option<&'s str>,
) -> impl Iterator<Item = (&'s TunnelStatus, &'s ConnectionState)> {
    let all = status.tunnels.iter();
    let all = all.flat_map(|tunnel| tunnel.connections.iter().map(move |it| (tunnel, it)));
    all.filter(move |(_, it)| name.is_none_or(|name| it.name == name))
}

/// The settings that run, or those of the file.
fn settings(client: &mut Client, file: &Path) -> Option<config::Settings> {
    let running = match client.request(&Request::Config {}) {
        Ok(Reply::Config { text }) => config::parse_running(&text),
        Ok(_) | Err(_) => None,
    };
    running.or_else(|| config::load(file).ok())
}

/// The peer's addresses, if a path is up that leads to it.
fn reachable(state: &ConnectionState) -> impl Iterator<Item = IpAddr> {
    let any_up = state.paths.iter().any(|path| path.state == "up");
    let peers = state.peer.iter().filter(move |_| any_up);
    peers.filter_map(|peer| peer.parse().ok())
}

/// Whether an address is one of a tunnel. Others are those of another way to the peer, or of another network namespace.
fn is_of(tunnel: &TunnelStatus, address: IpAddr) -> bool {
    let own = tunnel.addresses.iter().filter_map(|own| own.split('/').next()?.parse().ok());
    own.into_iter().any(|own: IpAddr| own == address)
}

/// What came of asking one address of the peer through the tunnel.
struct Answer {
    peer: IpAddr,
    reached: io::Result<Reached>,
    /// What this host sends from there.
    own: Option<IpAddr>,
}

impl Answer {
    fn of(peer: IpAddr, own: Option<IpAddr>, mtu: u64) -> Self {
        let reached = reach::reach(peer, usize::try_from(mtu).unwrap_or_default());
        Self { peer, reached, own }
    }

    fn answers(&self) -> bool {
        matches!(self.reached, Ok(Reached::Yes | Reached::SmallOnly))
    }
}

/// Whether the peer answers through the tunnel: what is seen, and what is wrong with it. Where the connection is not
/// `whole` a packet may be lost for a reason that has been named. `all` are the answers of all its addresses.
fn through(
    tunnel: &TunnelStatus,
    state: &ConnectionState,
    answer: &Answer,
    all: &[Answer],
    whole: bool,
) -> (String, Option<String>) {
    let (name, mtu, peer) = (&state.name, tunnel.mtu, answer.peer);
    match &answer.reached {
        Ok(Reached::Yes) => {
            (format!("{peer} answers through the tunnel, also to packets of {mtu} bytes"), None)
        }
        Ok(Reached::SmallOnly) => (
            format!("{peer} answers through the tunnel, but not to packets of {mtu} bytes"),
            whole.then(|| {
                format!(
                    "{name}: packets of {mtu} bytes do not reach {peer}, smaller ones do: a link on the way is \
                     narrower than its ends; set `mtu` of tunnel {} lower, such as 1280",
                    tunnel.name
                )
            }),
        ),
        Ok(Reached::No) => (
            format!("{peer} does not answer through the tunnel"),
            whole.then(|| format!("{name}: {}", unanswered(answer, all))),
        ),
        Err(error) => (
            format!("{peer}: nothing can be sent into the tunnel"),
            Some(format!(
                "{name}: this host cannot send to {peer}: {error}: see `ip route get {peer}`, which should \
                 lead to {}",
                tunnel.name
            )),
        ),
    }
}

/// Why an address of the peer may not answer, and what to do.
fn unanswered(answer: &Answer, all: &[Answer]) -> String {
    let peer = answer.peer;
    let other =
        all.iter().find(|other| other.answers()).and_then(|other| Some((other, other.own?)));
    match (other, answer.own) {
        // The other end says nothing of what it drops, but a firewall seldom tells tunnel addresses apart.
        (Some((other, known)), Some(own)) => format!(
            "{peer} does not answer through the tunnel, although {} does: the peer knows this host as {known} and \
             drops what comes from {own}. A template knows a client by one of its `addresses` alone, whatever its `peers` \
             are: make this host a connection there with `peer = [\"{known}\", \"{own}\"]`, or a client with a \
             key; or remove {own} and {peer} here. If `peer` there has {own} already, see its firewall",
            other.peer
        ),
        _ => format!(
            "{peer} does not answer through the tunnel, although paths are up: does a firewall of the peer drop \
             what comes out of its tunnel, or has it another tunnel address?"
        ),
    }
}

/// What it comes to.
fn verdict(connections: usize, findings: &[String]) -> String {
    if findings.is_empty() {
        let what = super::check::counted(connections, "connection");
        return format!("all is well: {what}\n");
    }
    let lines: String = findings.iter().map(|finding| format!("- {finding}\n")).collect();
    format!("to be changed:\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_tunnel_are_told_from_others() {
        let addresses = ["10.9.0.1/24", "fd00:9::1/64"].map(str::to_owned).to_vec();
        let tunnel = TunnelStatus { addresses, ..TunnelStatus::default() };
        assert!(is_of(&tunnel, [10, 9, 0, 1].into()));
        assert!(is_of(&tunnel, "fd00:9::1".parse().unwrap()));
        assert!(!is_of(&tunnel, [192, 0, 2, 2].into()));
    }
}
