//! The JSON of a status and its description have the same fields.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

use std::collections::{BTreeMap, BTreeSet};

use mpt_control::{
    ClassCounters, CommandStatus, ConnectionState, Direction, Estimate, Event, Explanation,
    FlowExplanation, OrderExplanation, PathExplanation, PathState, PeerSettings, PeerStatus,
    Problem, QueueExplanation, QuotaState, RepairExplanation, RepairStatus, SocketStatus, Status,
    TunnelStatus,
};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/status.md");

/// The section that describes what stands in a field.
fn section(field: &str) -> Option<&'static str> {
    Some(match field {
        "control" => "The control socket",
        "classes" => "A class",
        "repair" => "Repair",
        "repaired" | "moved" | "duplicated" | "parity" => "Copies",
        "store" => "A store",
        "log" => "The log",
        "tunnels" => "A tunnel",
        "device" => "A device",
        "read" | "written" | "sent" | "control_sent" | "received" | "transmitted" => "Traffic",
        "connections" => "A connection",
        "counters" => "Counters",
        "reorder" => "A reorder buffer",
        "reordering" => "Reordering",
        "paths" => "A path",
        "quota" => "A quota",
        "from_peer" | "to_peer" => "A direction",
        "peer" => "Settings of a peer",
        "commands" => "Commands",
        "sockets" => "A socket",
        "problems" => "A problem",
        "events" => "An event",
        _ => return None,
    })
}

#[test]
fn every_field_is_described_and_every_description_has_a_field() {
    let mut found = BTreeMap::new();
    collect(&serde_json::to_value(everything()).unwrap(), "The daemon", &mut found);
    // What another request is answered with, and the names of causes.
    collect(&serde_json::to_value(PeerStatus::default()).unwrap(), "A client", &mut found);
    let mut described = described(DOCUMENT);
    assert!(described.remove("A cause").is_some_and(|causes| causes.len() > 10));
    assert_eq!(found, described);
}

#[test]
fn every_field_of_an_explanation_is_described_and_every_description_has_a_field() {
    let fields = |value: serde_json::Result<Value>| -> BTreeSet<String> {
        value.unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let mut described = described(include_str!("../../../docs/explain.md"));
    for (title, value) in [
        ("An explanation", serde_json::to_value(Explanation::default())),
        ("An explained path", serde_json::to_value(PathExplanation::default())),
        ("An estimate", serde_json::to_value(Estimate::default())),
        ("An explained queue", serde_json::to_value(QueueExplanation::default())),
        ("An explained flow", serde_json::to_value(FlowExplanation::default())),
        ("An explained repair", serde_json::to_value(RepairExplanation::default())),
        ("An explained order", serde_json::to_value(OrderExplanation::default())),
    ] {
        assert_eq!(described.remove(title), Some(fields(value)), "{title}");
    }
    let findings = [
        "alone", "cut", "drained", "found", "full", "longer", "rate", "resumed", "rival", "stopped",
    ];
    let findings = findings.map(str::to_owned);
    assert_eq!(described.remove("A finding"), Some(findings.into()));
    assert_eq!(described, BTreeMap::new());
}

#[test]
fn a_missing_description_is_missed() {
    let without = DOCUMENT.replace("| `accepted_by` |", "| accepted by |");
    assert_ne!(described(DOCUMENT), described(&without));
}

/// A status in which everything is there once, filled with defaults.
fn everything() -> Status {
    let path = PathState {
        from_peer: Some(Direction::default()),
        peer: Some(PeerSettings::default()),
        quota: Some(QuotaState::default()),
        ..PathState::default()
    };
    let repair = Some(RepairStatus::default());
    let connection = ConnectionState {
        paths: vec![path],
        repair,
        classes: vec![ClassCounters::default()],
        ..ConnectionState::default()
    };
    let tunnel = TunnelStatus {
        connections: vec![connection],
        commands: Some(CommandStatus::default()),
        sockets: vec![SocketStatus::default()],
        events: vec![Event::default()],
        problems: vec![Problem::default()],
        ..TunnelStatus::default()
    };
    Status { tunnels: vec![tunnel], ..Status::default() }
}

/// The fields of `value`, and of all that is in it, by the section that is to describe them.
fn collect(value: &Value, place: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let Value::Object(fields) = value else { panic!("{place} is no object: {value}") };
    for (name, value) in fields {
        found.entry(place.to_owned()).or_default().insert(name.clone());
        // The counters of a reorder buffer are named by the daemon.
        let named = place == "A reorder buffer" && name == "counters";
        match (section(name), value) {
            // A socket's device is a name.
            (_, Value::Null) => {}
            // A direction has numbers only.
            _ if named || place == "A direction" => {}
            // What is counted in one place may be a table in another.
            (Some(_), Value::Number(_)) => {}
            (Some(section), Value::Array(values)) => {
                values.iter().for_each(|value| collect(value, section, found));
            }
            (Some(section), value) => collect(value, section, found),
            (None, Value::Object(fields)) => assert!(fields.is_empty(), "{place}: {name}"),
            (None, _) => {}
        }
    }
}

/// The fields that the tables of the document describe, by section.
fn described(document: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let json = document.split("\n## ").find(|part| part.starts_with("JSON\n")).unwrap();
    for part in json.split("\n### ").skip(1) {
        let (title, text) = part.split_once('\n').unwrap();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
        let names = rows.map(|row| row.split('`').next().unwrap().to_owned());
        found.insert(title.to_owned(), names.collect());
    }
    found
}
