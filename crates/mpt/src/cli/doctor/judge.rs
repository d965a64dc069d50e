//! What the status of a daemon says of its connections: what is well, what is not, and what to do about it.

use mpt_control::{ConnectionState, PathState, Problem, Status, TunnelStatus};

use super::both_ends;
use crate::config::Settings;
use crate::output;

/// Loss from which on a path is worth a word.
const LOSS: f64 = 0.02;

/// So many packets with other source addresses are no stray ones, such as what a host says of itself by multicast.
const SOURCES: u64 = 10;

/// What is known of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'s> {
    pub(super) tunnel: &'s TunnelStatus,
    pub(super) state: &'s ConnectionState,
    /// What it was like at first.
    pub(super) before: Option<&'s ConnectionState>,
    pub(super) settings: Option<&'s Settings>,
}

/// Whether every path that is to be used is up.
pub(super) fn is_up(connection: &ConnectionState) -> bool {
    let mut paths = connection.paths.iter().filter(|path| path.status != "off");
    !connection.paths.is_empty() && paths.all(|path| path.state == "up")
}

/// What is wrong with no connection in particular: tunnels that do not run, and with `all` who asks to connect and
/// does not fit.
pub(super) fn outside(status: &Status, all: bool) -> Vec<String> {
    let failed = status.failed_tunnels.iter();
    let mut findings: Vec<String> =
        failed.map(|(name, reason)| format!("tunnel {name} does not run: {reason}")).collect();
    let silent = status.silent_tunnels.iter();
    let silent = silent.filter(|name| !status.failed_tunnels.contains_key(*name));
    findings.extend(silent.map(|name| format!("tunnel {name} does not answer: see the log")));
    let problems = status.tunnels.iter().flat_map(|tunnel| &tunnel.problems);
    let strangers = problems.filter(|problem| problem.connection.is_none() && all);
    findings.extend(strangers.map(|problem| format!("{}: {}", problem.text, problem.remedy)));
    findings
}

/// What was seen of a connection, as lines.
pub(super) fn shown(seen: &Seen<'_>) -> String {
    let Seen { state, .. } = seen;
    let up = state.paths.iter().filter(|path| path.state == "up").count();
    let mut text = format!("{}: {up} of {} paths up\n", state.name, state.paths.len());
    for path in &state.paths {
        let on = path.interface.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
        let heard = match path.last_heard_seconds {
            Some(seconds) => format!("heard {} ago", output::duration(seconds)),
            None => "never heard".to_owned(),
        };
        let sent = path.sent.packets + path.control_sent.packets;
        // What a path carries shows when its peer is heard on it.
        let is_known = path.mtu > 0 && path.last_heard_seconds.is_some();
        let mtu = is_known.then(|| format!(", carries {} bytes", path.mtu));
        text.push_str(&format!(
            "  {} is {}{on}, to {}: {sent} datagrams sent, {heard}{}\n",
            path.name,
            path.state,
            path.remote,
            mtu.unwrap_or_default()
        ));
    }
    text + &both_ends::shown(state)
}

/// What is wrong with a connection.
pub(super) fn connection(seen: &Seen<'_>) -> Vec<String> {
    let Seen { tunnel, state, .. } = *seen;
    let name = &state.name;
    let own = |problem: &&Problem| problem.connection.as_ref() == Some(name);
    let named = tunnel.problems.iter().filter(own).map(|problem| {
        let path = problem.path.as_ref().map(|path| format!("/{path}")).unwrap_or_default();
        format!("{name}{path}: {}: {}", problem.text, problem.remedy)
    });
    let mut findings: Vec<String> = named.collect();
    if state.paths.is_empty() && findings.is_empty() {
        findings.push(format!(
            "{name} has no path yet: the peer has to begin, so look there; or name its address by `remote`"
        ));
    }
    for path in &state.paths {
        findings.extend(of_path(seen, path));
    }
    findings.extend(of_peer(seen));
    findings
}

/// What the peer's packets and its session say of its settings, and what does not fit those of this host.
fn of_peer(seen: &Seen<'_>) -> Vec<String> {
    let Seen { state, settings, .. } = *seen;
    let name = &state.name;
    let mut findings = Vec::new();
    let strange = state.drops.get("inner_source").copied().unwrap_or_default();
    if strange >= SOURCES {
        let remedy = match &state.accepted_by {
            Some(template) => format!(
                "template {template} knows a client by one tunnel address; if it needs more, make it a connection here, \
                 or a client with a key"
            ),
            None => "name the networks behind the peer in `networks` here".to_owned(),
        };
        findings.push(format!(
            "{name}: {strange} packets of the peer have sources that are neither its tunnel address nor in \
             `networks`, and were dropped: {remedy}"
        ));
    }
    let tunnels = settings.iter().flat_map(|settings| &settings.tunnels);
    let wanted = tunnels.flat_map(|tunnel| &tunnel.connections).find(|other| other.name == *name);
    let is_repaired = state.repair.as_ref().is_none_or(|repair| repair.active);
    let has_session = matches!(state.framing.as_str(), "extended" | "sealed");
    if state.scheduler == "earliest"
        && has_session
        && !is_repaired
        && wanted.is_some_and(|wanted| wanted.policies.repair)
    {
        findings.push(format!(
            "{name}: what paths lose is not sent again, because the peer does not take part: remove `repair = \
             false` there, or update it"
        ));
    }
    findings
}

/// What is wrong with a path that is not named by a problem already.
fn of_path(seen: &Seen<'_>, path: &PathState) -> Vec<String> {
    let Seen { tunnel, state, before, .. } = *seen;
    let place = format!("{}/{}", state.name, path.name);
    let is_told = tunnel.problems.iter().any(|problem| {
        problem.connection.as_ref() == Some(&state.name)
            && problem.path.as_ref().is_none_or(|other| *other == path.name)
    });
    let mut findings = Vec::new();
    let earlier = before.and_then(|before| before.paths.iter().find(|it| it.name == path.name));
    let failed = |path: &PathState| path.drops.get("failed").copied().unwrap_or_default();
    if failed(path) > earlier.map_or(0, failed) {
        findings.push(format!(
            "{place}: this host's kernel refuses to send: does a firewall of this host drop UDP to {}?",
            path.remote
        ));
    }
    let cause = path.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    match path.state.as_str() {
        "up" => findings.extend(quality(seen, path, &place)),
        "off" => {
            findings.push(format!("{place} is switched off here: mpt path up {}", path.name));
        }
        state if state.starts_with("unusable") => findings.push(format!(
            "{place} carries packets of {} bytes, and 1280 are needed: raise the MTU of the links on the way",
            path.mtu
        )),
        // The cause is said already, or is the whole of it.
        state if !is_told => findings.push(format!("{place} is {state}{cause}")),
        _ => {}
    }
    findings
}

/// What a path that is up loses, and what does not fit it.
fn quality(seen: &Seen<'_>, path: &PathState, place: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let out = path.to_peer.as_ref().and_then(|direction| direction.loss);
    for (way, loss) in [("from the peer", path.loss), ("to the peer", out)] {
        if let Some(loss) = loss.filter(|loss| *loss >= LOSS) {
            findings.push(format!(
                "{place} loses {} % {way}: look at the link, or have it stand by with a higher number as `priority`",
                output::percent(loss)
            ));
        }
    }
    let mtu = seen.tunnel.mtu;
    if path.mtu > 0 && mtu > path.mtu {
        findings.push(format!(
            "{place} carries {} bytes, and the tunnel's MTU is {mtu}: remove `mtu`, so that it follows from \
             the paths",
            path.mtu
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use mpt_control::{Direction, RepairStatus};

    use super::*;

    fn path() -> PathState {
        PathState {
            name: "fibre".into(),
            state: "up".into(),
            status: "available".into(),
            remote: "203.0.113.5:4754".into(),
            mtu: 1448,
            ..PathState::default()
        }
    }

    /// What is found of a connection with this path, after `change`.
    fn found(change: impl FnOnce(&mut TunnelStatus, &mut ConnectionState)) -> Vec<String> {
        let mut tunnel = TunnelStatus { mtu: 1448, ..TunnelStatus::default() };
        let mut state = ConnectionState {
            name: "server".into(),
            framing: "extended".into(),
            scheduler: "earliest".into(),
            repair: Some(RepairStatus { active: true, ..RepairStatus::default() }),
            paths: vec![path()],
            ..ConnectionState::default()
        };
        let before = state.clone();
        change(&mut tunnel, &mut state);
        let text = "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n[[tunnel.connection]]\n\
                    name = 'server'\npeer = ['10.9.0.2']\n[[tunnel.connection.path]]\nname = 'fibre'\n\
                    remote = '203.0.113.5'\n";
        let settings = crate::config::parse_running(text).unwrap();
        connection(&Seen {
            tunnel: &tunnel,
            state: &state,
            before: Some(&before),
            settings: Some(&settings),
        })
    }

    #[test]
    fn nothing_is_found_where_all_is_well() {
        assert_eq!(found(|_, _| ()), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_found_with_its_place_and_remedy() {
        let set = |change: fn(&mut PathState)| found(|_, state| change(&mut state.paths[0]));
        for (findings, words) in [
            (set(|path| path.state = "off".into()), "mpt path up fibre"),
            (set(|path| path.loss = Some(0.05)), "loses 5.00 % from the peer"),
            (
                set(|path| {
                    path.to_peer = Some(Direction { loss: Some(0.05), ..Direction::default() });
                }),
                "loses 5.00 % to the peer",
            ),
            (set(|path| path.mtu = 1400), "carries 1400 bytes, and the tunnel's MTU is 1448"),
            (set(|path| path.drops = [("failed".into(), 1)].into()), "refuses to send"),
            (
                set(|path| (path.state, path.cause) = ("down".into(), Some("no carrier".into()))),
                "server/fibre is down: no carrier",
            ),
            (found(|_, state| state.paths.clear()), "has no path yet"),
            (
                found(|_, state| state.drops = [("inner_source".into(), 10)].into()),
                "10 packets of the peer have sources",
            ),
            (
                found(|_, state| {
                    state.drops = [("inner_source".into(), 10)].into();
                    state.accepted_by = Some("vehicle".into());
                }),
                "template vehicle knows a client by one tunnel address",
            ),
            (
                found(|_, state| state.repair.as_mut().unwrap().active = false),
                "is not sent again, because the peer does not take part",
            ),
        ] {
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains(words), "{findings:?}");
        }
    }

    #[test]
    fn what_a_problem_says_is_not_said_again() {
        let findings = found(|tunnel, state| {
            state.paths[0].state = "probing".into();
            tunnel.problems.push(Problem {
                connection: Some("server".into()),
                path: Some("fibre".into()),
                text: "nothing listens".into(),
                remedy: "start mpt there".into(),
                ..Problem::default()
            });
        });
        assert_eq!(findings, ["server/fibre: nothing listens: start mpt there"]);
    }

    #[test]
    fn tunnels_that_do_not_run_and_strangers_are_found() {
        let mut status = Status::default();
        status.failed_tunnels.insert("mpt1".into(), "no room".into());
        status.silent_tunnels = vec!["mpt1".into(), "mpt2".into()];
        let problem =
            Problem { text: "a stranger".into(), remedy: "let it in".into(), ..Problem::default() };
        status.tunnels.push(TunnelStatus { problems: vec![problem], ..TunnelStatus::default() });
        let expected = [
            "tunnel mpt1 does not run: no room",
            "tunnel mpt2 does not answer: see the log",
            "a stranger: let it in",
        ];
        assert_eq!(outside(&status, true), expected);
        assert_eq!(outside(&status, false), expected[..2]);
    }
}
