//! The settings of both ends beside each other, in a session, where the peer says how it is set.

use mpt_control::{ConnectionState, PathState, PeerSettings};

use crate::output;

/// Path statuses that have to be lost in a row, at the least, for a path to be down.
const LOST: f64 = 2.0;

/// The longest dead time that is told, in seconds, in place of all longer ones.
const LONGEST_TOLD: f64 = 65.535;

/// The paths of which the peer says how it has set them.
fn told(state: &ConnectionState) -> impl Iterator<Item = (&PathState, &PeerSettings)> {
    state.paths.iter().filter_map(|path| Some((path, path.peer.as_ref()?)))
}

/// How the peer is set, as lines.
pub(super) fn shown(state: &ConnectionState) -> String {
    let Some((_, of)) = told(state).next() else {
        // Where nothing is heard there is nothing to compare.
        let heard = state.paths.iter().any(|path| path.state == "up");
        let line = match state.framing.as_str() {
            "plain" => "  settings there: not told in plain framing\n",
            _ => "  settings there: not told, by an older mpt\n",
        };
        return if heard { line.to_owned() } else { String::new() };
    };
    let mut facts = vec![format!("scheduler {}", of.scheduler.as_deref().unwrap_or("unknown"))];
    facts.extend(of.mtu.map(|mtu| {
        let set = if of.mtu_is_set { " (set by `mtu`)" } else { "" };
        format!("MTU {mtu}{set}")
    }));
    facts.push(match of.order_by_evidence {
        true => "order by measured delays".to_owned(),
        false => format!(
            "order with window {}, max_delay {} s, early_release {}, late {}",
            of.window, of.max_delay, of.early_release, of.late
        ),
    });
    let mut text = format!("  settings there: {}\n", facts.join(", "));
    let by_weights = matches!(of.scheduler.as_deref(), Some("weighted" | "flow"));
    for (path, of) in told(state) {
        let mut facts = vec![format!("priority {}", of.priority)];
        facts.extend(of.weight.filter(|_| by_weights).map(|weight| format!("weight {weight}")));
        facts.push(match of.dead_time {
            0.0 => "never down for silence".to_owned(),
            time if time < LONGEST_TOLD => format!("dead time {}", output::duration(time)),
            time => format!("dead time {} or more", output::duration(time)),
        });
        text.push_str(&format!("  {} there: {}\n", path.name, facts.join(", ")));
    }
    text
}

/// What of it does not fit.
pub(super) fn findings(state: &ConnectionState) -> Vec<String> {
    let mut findings: Vec<String> = told(state).filter_map(|it| patience(state, it)).collect();
    findings.extend(order(state));
    findings
}

/// Whether one end takes a path for dead before the other has sent twice.
fn patience(state: &ConnectionState, (path, of): (&PathState, &PeerSettings)) -> Option<String> {
    let place = format!("{}/{}", state.name, path.name);
    // The slower one of both says how often path statuses go, where both say it.
    let theirs = of.keepalive.map(|every| every.max(path.keepalive));
    if let Some(every) = theirs
        && path.dead_time > 0.0
        && path.dead_time < LOST * every
    {
        return Some(format!(
            "{place} is down here after {} of silence, and the peer sends on an idle path every {}: lower `keepalive` \
             there, or raise `dead_time` here",
            output::duration(path.dead_time),
            output::duration(every)
        ));
    }
    // No longer one is told, so it may be any.
    let is_known = of.dead_time < LONGEST_TOLD;
    let too_soon = is_known && of.dead_time > 0.0 && of.dead_time < LOST * path.keepalive;
    too_soon.then(|| {
        format!(
            "{place} is down for the peer after {} of silence, and this host sends on an idle path every {}: lower \
             `keepalive` here, or raise `dead_time` there",
            output::duration(of.dead_time),
            output::duration(path.keepalive)
        )
    })
}

/// Whether both ends have the same paths carry and stand by.
fn order(state: &ConnectionState) -> Option<String> {
    let both: Vec<_> = told(state).map(|(path, of)| (path, path.priority, of.priority)).collect();
    let differ =
        |(_, a, b): &(_, u64, u64)| both.iter().any(|(_, here, there)| a.cmp(here) != b.cmp(there));
    if !both.iter().any(differ) {
        return None;
    }
    let list =
        both.iter().map(|(path, here, there)| format!("{} {here} here, {there} there", path.name));
    Some(format!(
        "{}: not the same paths stand by at both ends, so that one of them carries packets in one direction only; \
         priorities: {}: set the same `priority` at both ends, or use `mpt path priority` where paths are learned",
        state.name,
        list.collect::<Vec<_>>().join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathState {
        PathState {
            name: name.into(),
            state: "up".into(),
            keepalive: 0.3,
            dead_time: 1.0,
            peer: Some(PeerSettings {
                scheduler: Some("earliest".into()),
                mtu: Some(1448),
                keepalive: Some(0.3),
                dead_time: 1.0,
                order_by_evidence: true,
                ..PeerSettings::default()
            }),
            ..PathState::default()
        }
    }

    /// A connection with two paths, changed.
    fn connection(
        change: impl FnOnce(&mut [PathState], &mut [PeerSettings; 2]),
    ) -> ConnectionState {
        let mut paths = [path("fibre"), path("lte")];
        let mut peers = [0, 1].map(|place| paths[place].peer.take().unwrap());
        change(&mut paths, &mut peers);
        for (path, peer) in paths.iter_mut().zip(peers) {
            path.peer = Some(peer);
        }
        let framing = "extended".into();
        ConnectionState {
            name: "server".into(),
            framing,
            paths: paths.into(),
            ..ConnectionState::default()
        }
    }

    #[test]
    fn nothing_is_found_where_both_ends_are_set_alike() {
        assert_eq!(findings(&connection(|_, _| ())), Vec::<String>::new());
        // Other numbers in the same order mean the same.
        let alike = connection(|paths, peers| (paths[1].priority, peers[1].priority) = (1, 200));
        assert_eq!(findings(&alike), Vec::<String>::new());
        // One that is down later than can be told.
        let late = connection(|paths, peers| {
            (paths[0].keepalive, paths[0].dead_time) = (60.0, 210.0);
            peers[0].dead_time = 65.535;
        });
        assert_eq!(findings(&late), Vec::<String>::new());
        // A path that is never down for silence.
        let never =
            connection(|paths, peers| (paths[0].dead_time, peers[0].dead_time) = (0.0, 0.0));
        assert_eq!(findings(&never), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_fit_is_found_with_its_remedy() {
        let one = |change: fn(&mut [PathState], &mut [PeerSettings; 2])| {
            let found = findings(&connection(change));
            assert_eq!(found.len(), 1, "{found:?}");
            found.into_iter().next().unwrap()
        };
        let found = one(|paths, _| paths[1].priority = 1);
        assert!(
            found.contains("fibre 0 here, 0 there; lte 1 here, 0 there: set the same"),
            "{found}"
        );
        let found = one(|_, peers| peers[0].priority = 3);
        assert!(found.contains("fibre 0 here, 3 there"), "{found}");
        let found = one(|_, peers| peers[1].keepalive = Some(5.0));
        assert!(found.starts_with("server/lte is down here after 1"), "{found}");
        assert!(found.ends_with("lower `keepalive` there, or raise `dead_time` here"), "{found}");
        let found = one(|paths, _| (paths[0].keepalive, paths[0].dead_time) = (5.0, 15.0));
        assert!(found.starts_with("server/fibre is down for the peer after 1"), "{found}");
        assert!(found.ends_with("lower `keepalive` here, or raise `dead_time` there"), "{found}");
    }

    #[test]
    fn settings_are_shown_with_what_they_mean() {
        let text = shown(&connection(|_, _| ()));
        assert!(
            text.starts_with(
                "  settings there: scheduler earliest, MTU 1448, order by measured delays\n"
            ),
            "{text}"
        );
        assert!(text.contains("\n  lte there: priority 0, dead time 1"), "{text}");
        assert!(!text.contains("weight"), "{text}");
        let text = shown(&connection(|_, peers| {
            for of in peers {
                of.scheduler = Some("weighted".into());
                (of.weight, of.mtu_is_set, of.order_by_evidence) = (Some(3), true, false);
                (of.window, of.max_delay, of.late) = (64, 0.1, "drop".into());
            }
        }));
        for words in
            ["MTU 1448 (set by `mtu`)", "window 64, max_delay 0.1 s", "late drop", "weight 3"]
        {
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn a_peer_that_says_nothing_is_said_to() {
        let mut state = connection(|_, _| ());
        state.paths.iter_mut().for_each(|path| path.peer = None);
        assert!(shown(&state).contains("by an older mpt"));
        state.framing = "plain".into();
        assert!(shown(&state).contains("not told in plain framing"));
        state.paths.iter_mut().for_each(|path| path.state = "down".into());
        assert_eq!(shown(&state), "");
    }
}
