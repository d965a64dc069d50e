//! What was set, in the words that a paper needs beside its figures.

use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;

use crate::cell::{Cell, Direction, Kind, Profile as Tunneling, Tunnel};
use crate::results::Fact;
use crate::system::System;

/// What the cells were made of: links, the tunnels of the systems, and traffic. What the cells differ in has several
/// values.
pub fn setup(cells: &[Cell], systems: &[System], repetitions: u32) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for cell in cells {
        for (name, value) in of_cell(cell, systems) {
            let known = facts.iter().position(|fact| fact.name == name);
            let at = known.unwrap_or_else(|| {
                facts.push(Fact { name, ..Fact::default() });
                facts.len() - 1
            });
            let values = &mut facts[at].values;
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    facts.push(Fact { name: "repetitions".into(), values: vec![repetitions.to_string()] });
    facts
}

fn of_cell(cell: &Cell, systems: &[System]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for link in &cell.topology.links {
        let (there, back) = (profile(&link.forward), profile(&link.backward));
        let name = |what: &str| format!("link {}{what}", link.name);
        if there == back {
            facts.push((name(""), there));
        } else {
            facts.push((name(", left to right"), there));
            facts.push((name(", right to left"), back));
        }
        facts.push((name(": MTU"), format!("{} B", link.mtu)));
    }
    for system in systems {
        if let Some(tunnel) = system.tunnel(cell) {
            facts.extend(of_tunnel(system.name(), &tunnel));
        }
    }
    facts.push(("traffic".into(), traffic(cell)));
    facts
}

/// How the daemons of a system run: what their settings come to, and not the word for what is left to them.
fn of_tunnel(system: &str, tunnel: &Tunnel) -> Vec<(String, String)> {
    let name = |what: &str| format!("{system}: {what}");
    let (framing, scheduler) = (word(&tunnel.framing), word(&tunnel.scheduler));
    let profile = match tunnel.profile {
        Tunneling::Auto if tunnel.has_session() => "adaptive".to_owned(),
        Tunneling::Auto | Tunneling::Classic => word(&Tunneling::Classic),
    };
    let mut facts =
        vec![(name("profile, framing, scheduler"), format!("{profile}, {framing}, {scheduler}"))];
    let order = match &tunnel.reorder {
        None if tunnel.has_session() => "by evidence".to_owned(),
        reorder => {
            let reorder = reorder.clone().unwrap_or_default();
            format!(
                "window {} packets, {} s, early release {}, late {}",
                reorder.window,
                reorder.max_delay,
                if reorder.early_release { "on" } else { "off" },
                word(&reorder.late)
            )
        }
    };
    facts.push((name("reorder buffer"), order));
    if let Some(share) = tunnel.rates {
        facts.push((name("rates given"), format!("{share} of each link's")));
    }
    if tunnel.shipped {
        facts.push((name("weights, times"), "none: as it ships".to_owned()));
        return facts;
    }
    let weights: Vec<String> = tunnel.weights.iter().map(u32::to_string).collect();
    facts.push((name("weights"), weights.join(" : ")));
    let times = format!("{} s, {} s", tunnel.keepalive, tunnel.dead_time);
    facts.push((name("keepalive, dead time"), times));
    facts
}

/// A direction of a link.
fn profile(profile: &Profile) -> String {
    let mut words = vec![
        profile.rate.map_or("no rate limit".into(), |rate| format!("{} Mbit/s", rate as f64 / 1e6)),
        format!("{} ms", profile.delay.as_secs_f64() * 1000.0),
    ];
    if let Some(queue) = profile.queue_limit() {
        let what = if profile.policed { "burst" } else { "queue" };
        words.push(format!("{what} of {} kB", queue as f64 / 1000.0));
    }
    if !profile.jitter.is_zero() {
        words.push(format!("jitter {} ms", profile.jitter.as_secs_f64() * 1000.0));
    }
    match profile.loss {
        Loss::None => {}
        Loss::Random(share) => words.push(format!("{} % lost at random", percent(share))),
        Loss::GilbertElliott(chain) => words.push(format!("lost in bursts: {chain:?}")),
    }
    for (what, share) in [
        ("duplicates", profile.duplicate),
        ("corrupt", profile.corrupt),
        ("reordered", profile.reorder),
    ] {
        if share > 0.0 {
            words.push(format!("{} % {what}", percent(share)));
        }
    }
    words.join(", ")
}

/// A share in percent, without what binary fractions add.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

fn traffic(cell: &Cell) -> String {
    let traffic = &cell.traffic;
    let flows = match traffic.flows {
        1 => "1 flow".to_owned(),
        flows => format!("{flows} flows"),
    };
    let what = match traffic.kind {
        Kind::Tcp => format!("TCP, {}, {flows}", traffic.congestion),
        Kind::Quic => format!("QUIC, {}, {flows}", traffic.congestion),
        Kind::Ftp => format!("FTP, {}, a file of {} MB", traffic.congestion, traffic.file_mb),
        Kind::Udp => format!("UDP, {} Mbit/s in packets of {} B", traffic.rate_mbps, traffic.size),
        Kind::Ping => format!("ping every {} s", traffic.interval),
        Kind::Media => "media".into(),
        Kind::Calls => format!("{} calls", traffic.flows),
    };
    let way = match traffic.direction {
        Direction::Forward => "left to right",
        Direction::Backward => "right to left",
    };
    format!("{what}, {way}, {} s of which {} s are left out", traffic.seconds, traffic.omit)
}

/// A word as it stands in a file.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn what_each_system_ran_is_said_and_not_what_was_left_to_it() {
        let text = "title = 'T'\nquestion = 'Q?'\nsystems = ['classic', 'mpt', 'adaptive', 'mptcp']\n\
                    [[link]]\nname = 'a'\n[[link]]\nname = 'b'\n[tunnel]\nweights = [2, 1]\n";
        let experiment = Experiment::parse("t", text).expect("an experiment");
        let facts = setup(&experiment.cells, &experiment.systems, 3);
        let of = |name: &str| {
            let fact = facts.iter().find(|fact| fact.name == name);
            fact.map(|fact| fact.values.join("; ")).unwrap_or_default()
        };
        assert_eq!(of("classic: profile, framing, scheduler"), "classic, plain, weighted");
        assert_eq!(of("mpt: profile, framing, scheduler"), "adaptive, extended, weighted");
        assert_eq!(of("adaptive: profile, framing, scheduler"), "adaptive, sealed, earliest");
        assert_eq!(of("mpt: reorder buffer"), "by evidence");
        assert!(of("classic: reorder buffer").starts_with("window "), "{facts:?}");
        assert_eq!((of("mpt: weights"), of("adaptive: weights")), ("2 : 1".into(), String::new()));
        let is_auto = |fact: &Fact| fact.values.iter().any(|value| value.contains("auto"));
        assert!(!facts.iter().any(is_auto), "{facts:?}");
        assert!(!facts.iter().any(|fact| fact.name.starts_with("mptcp")), "it has no daemons");
    }
}
