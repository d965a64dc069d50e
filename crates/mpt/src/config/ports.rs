//! Lists of UDP and TCP ports: `[22, "5060-5070"]`.

use std::fmt;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::report::{Problem, Problems};
use super::value::{Value, list, number, with_places};

/// Ports from a first to a last one, both included; never 0, which no packet of a flow has.
pub(crate) type PortRange = RangeInclusive<u16>;

/// How a list of ports is shown: `22, 5060-5070`.
pub(crate) struct ShownPorts<'p>(pub(crate) &'p [PortRange]);

impl fmt::Display for ShownPorts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{}", range.start())?;
            if range.end() > range.start() {
                write!(f, "-{}", range.end())?;
            }
        }
        Ok(())
    }
}

/// Whether some port is in both.
pub(super) fn overlap(one: &PortRange, other: &PortRange) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

/// A list of ports, none of them twice, each range with its place.
pub(super) fn ports(value: &Value<'_>, problems: &mut Problems) -> Option<Vec<Spanned<PortRange>>> {
    let ports = with_places(value, &list(range)(value, problems)?);
    if ports.is_empty() {
        let help = "name ports such as [22, \"5060-5070\"], or remove the key";
        problems.push(value.impossible("empty").help(help));
        return None;
    }
    for (place, range) in ports.iter().enumerate() {
        let same = |other: &&Spanned<PortRange>| overlap(other.get_ref(), range.get_ref());
        if let Some(other) = ports[..place].iter().find(same) {
            problems.push(
                Problem::new("a port is listed twice", range.span())
                    .label("repeats ports")
                    .other(other.span(), "that are listed here already")
                    .help("list each port once, by itself or within a range"),
            );
            return None;
        }
    }
    Some(ports)
}

/// `22`, or `"5060-5070"`.
fn range(value: &Value<'_>, problems: &mut Problems) -> Option<PortRange> {
    let help = "allowed: a port from 1 to 65535, or a range in quotes such as \"5060-5070\"";
    let fault = if let DeValue::Integer(port) = value.get() {
        match number(port).and_then(|port| u16::try_from(port).ok()).filter(|&port| port > 0) {
            Some(port) => return Some(port..=port),
            None => "not a port",
        }
    } else if let Some(text) = value.get().as_str() {
        match parse(text) {
            Ok(range) => return Some(range),
            Err(fault) => fault,
        }
    } else {
        problems.push(value.wrong_type("a port or a range of ports").help(help));
        return None;
    };
    problems.push(value.impossible(fault).help(help));
    None
}

fn parse(text: &str) -> Result<PortRange, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| {
        // `parse` would take a sign.
        let digits = text.trim().bytes().all(|byte| byte.is_ascii_digit());
        text.trim().parse::<u16>().ok().filter(|&port| digits && port > 0)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(_), Some(_)) => Err("the range ends before it begins"),
        _ => Err("not a range of ports"),
    }
}
