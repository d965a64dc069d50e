//! What was set, in the words that a paper needs beside its figures.

use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;

use crate::cell::{Cell, Direction, Kind};
use crate::results::Fact;

/// What the cells were made of: links, tunnel and traffic. What the cells differ in has several values.
pub fn setup(cells: &[Cell], repetitions: u32) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for cell in cells {
        for (name, value) in of_cell(cell) {
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

fn of_cell(cell: &Cell) -> Vec<(String, String)> {
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
    let tunnel = &cell.tunnel;
    let weights: Vec<String> = tunnel.weights.iter().map(u32::to_string).collect();
    facts.push(("weights".into(), weights.join(" : ")));
    facts.push((
        "profile, framing, scheduler".into(),
        format!(
            "{}, {}, {}",
            word(&tunnel.profile),
            word(&tunnel.framing),
            word(&tunnel.scheduler)
        ),
    ));
    facts.push((
        "reorder buffer".into(),
        match &tunnel.reorder {
            None => "as the framing needs".into(),
            Some(reorder) => format!(
                "window {} packets, {} s, early release {}, late {}",
                reorder.window,
                reorder.max_delay,
                if reorder.early_release { "on" } else { "off" },
                word(&reorder.late)
            ),
        },
    ));
    facts.push((
        "keepalive, dead time".into(),
        format!("{} s, {} s", tunnel.keepalive, tunnel.dead_time),
    ));
    facts.push(("traffic".into(), traffic(cell)));
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
