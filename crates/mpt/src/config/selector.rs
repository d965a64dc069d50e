//! Which inner packets a connection carries: its `match`.
//!
//! Several connections may have the same peer, each for some of the packets: the combined mapping
//! of the multipath tunnel draft, where a connection is chosen first and then, within it, a path
//! for each packet.

use std::fmt;

use toml::Spanned;
use toml::de::DeValue;

use super::keys::{Keys, Row, Rows, closest};
use super::ports::{PortRange, ShownPorts, ports};
use super::report::{Problem, Problems};
use super::table::Table;
use super::value::{Value, number, some};
use super::writer::{self, Writer};
use super::written::Written;

/// What an inner packet must be; both must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Its protocol by the number that IANA assigned; `None` = any that has ports, and then `ports`
    /// is not empty.
    pub(crate) protocol: Option<u8>,
    /// One of its two ports is in one of these; empty = any, with or without ports.
    pub(crate) ports: Vec<PortRange>,
}

/// The protocols that have a name here, with their numbers (IANA, "Assigned Internet Protocol
/// Numbers").
const PROTOCOLS: [(&str, u8); 14] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];

impl Match {
    /// The protocols whose header begins with two ports: TCP (RFC 9293), UDP (RFC 768), DCCP
    /// (RFC 4340), SCTP (RFC 9260) and UDP-Lite (RFC 3828).
    pub(crate) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

    /// The name of a protocol, if it has one here.
    pub(super) fn protocol_name(number: u8) -> Option<&'static str> {
        PROTOCOLS.iter().find(|(_, other)| *other == number).map(|(name, _)| *name)
    }

    /// Whether every packet that matches `other` matches this too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let protocol = match (self.protocol, other.protocol) {
            (None, None) => true,
            (None, Some(protocol)) => Self::WITH_PORTS.contains(&protocol),
            (Some(_), None) => false,
            (Some(one), Some(other)) => one == other,
        };
        let within = |range: &PortRange| {
            // Ranges that touch are taken as one.
            let mut next = u32::from(*range.start());
            let mut own: Vec<&PortRange> = self.ports.iter().collect();
            own.sort_by_key(|range| *range.start());
            for range in own {
                if u32::from(*range.start()) <= next {
                    next = next.max(u32::from(*range.end()) + 1);
                }
            }
            next > u32::from(*range.end())
        };
        let ports =
            self.ports.is_empty() || (!other.ports.is_empty() && other.ports.iter().all(within));
        protocol && ports
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol.map(|number| (number, Self::protocol_name(number))) {
            Some((_, Some(name))) => f.write_str(name)?,
            Some((number, None)) => write!(f, "protocol {number}")?,
            None => f.write_str("port")?,
        }
        if !self.ports.is_empty() {
            write!(f, " {}", ShownPorts(&self.ports))?;
        }
        Ok(())
    }
}

/// Its keys.
pub(super) static KEYS: Keys = Keys {
    table: "match",
    rows: &[Rows::Here(&[
        Row::own(
            "protocol",
            "any",
            "\"udp\"",
            "`\"tcp\"`, `\"udp\"`, `\"icmp\"`, `\"esp\"`, ... or a number, 0 .. 255.",
        ),
        Row::own(
            "ports",
            "any",
            "[5060, \"10000-20000\"]",
            "Source or destination, ports and ranges: `[5060, \"10000-20000\"]`. Without a `protocol` of any that has ports.",
        ),
    ])],
};

impl Match {
    /// Writes its keys.
    pub(super) fn write(&self, out: &mut Writer) {
        match self.protocol.map(|number| (number, Self::protocol_name(number))) {
            Some((_, Some(name))) => out.key("protocol", name),
            Some((number, None)) => out.key("protocol", &number),
            None => {}
        }
        if !self.ports.is_empty() {
            out.key("ports", &self.ports);
        }
    }
}

impl Written for Match {
    fn written(&self) -> String {
        writer::whole(|out| self.write(out))
    }
}

/// The `match` of the connection in `table`, or `None` with what is wrong noted.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Option<Option<Match>> {
    let Some(table) = table.table("match", &KEYS, problems).ok()? else {
        return Some(None);
    };
    let protocol = table.optional("protocol", None, problems, some(protocol));
    let ports = table.optional("ports", Vec::new(), problems, ports);
    let selects = table.has("protocol") || table.has("ports");
    table.finish(problems);
    if !selects {
        problems.push(
            Problem::new("an empty `match`", table.span())
                .label("neither `protocol` nor `ports`")
                .help("name what the connection carries, such as { protocol = \"udp\", ports = [5060] }, or remove `match`: then it carries the rest"),
        );
        return None;
    }
    let (protocol, ports) = (protocol?, ports?);
    if let Some(number) = protocol.filter(|number| !Match::WITH_PORTS.contains(number))
        && !ports.is_empty()
    {
        let named = Match::protocol_name(number).map_or(number.to_string(), str::to_owned);
        problems.push(
            Problem::new("`ports` of a protocol without ports", table.span_of("ports"))
                .label("matches nothing")
                .other(table.span_of("protocol"), format!("packets of {named} have no ports"))
                .help("tcp, udp, dccp, sctp and udplite have ports: write one of them, or remove `ports`"),
        );
        return None;
    }
    Some(Some(Match { protocol, ports: ports.into_iter().map(Spanned::into_inner).collect() }))
}

/// A protocol by name or number.
fn protocol(value: &Value<'_>, problems: &mut Problems) -> Option<u8> {
    let help = || {
        "allowed: a number from 0 to 255, or a name such as \"tcp\", \"udp\", \"icmp\", \"icmpv6\", \"sctp\", \"gre\" or \"esp\"".to_owned()
    };
    if let DeValue::Integer(integer) = value.get() {
        let number = number(integer).and_then(|number| u8::try_from(number).ok());
        if number.is_none() {
            problems.push(value.impossible("out of range").help(help()));
        }
        return number;
    }
    let Some(name) = value.get().as_str() else {
        problems.push(value.wrong_type("a protocol's name or number").help(help()));
        return None;
    };
    let known = PROTOCOLS.iter().find(|(known, _)| *known == name);
    if known.is_none() {
        let near = closest(name, PROTOCOLS.iter().map(|(known, _)| *known));
        let help = near.map_or_else(help, |near| format!("did you mean \"{near}\"?"));
        problems.push(value.impossible("not a known protocol name").help(help));
    }
    known.map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_covers_what_is_within_it() {
        let udp = |ports: &[PortRange]| Match { protocol: Some(17), ports: ports.to_vec() };
        let any = |ports: &[PortRange]| Match { protocol: None, ports: ports.to_vec() };
        let icmp = Match { protocol: Some(1), ports: Vec::new() };
        for (one, other, covers) in [
            (udp(&[]), udp(&[]), true),
            (udp(&[]), udp(&[5..=5]), true),
            (udp(&[5..=5]), udp(&[]), false),
            (udp(&[5..=9]), udp(&[6..=7, 9..=9]), true),
            (udp(&[8..=9, 5..=7]), udp(&[6..=8]), true),
            (udp(&[5..=6, 8..=9]), udp(&[6..=8]), false),
            (udp(&[1..=65535]), udp(&[65535..=65535]), true),
            (any(&[5..=9]), udp(&[5..=5]), true),
            (any(&[5..=9]), any(&[5..=5]), true),
            (udp(&[5..=9]), any(&[5..=5]), false),
            (udp(&[]), icmp.clone(), false),
            (icmp.clone(), icmp.clone(), true),
            (any(&[5..=5]), icmp.clone(), false),
        ] {
            assert_eq!(one.covers(&other), covers, "{one} covers {other}");
        }
    }

    #[test]
    fn a_match_is_shown_in_the_words_of_the_file() {
        let shown =
            |protocol, ports: &[PortRange]| Match { protocol, ports: ports.to_vec() }.to_string();
        assert_eq!(shown(Some(17), &[5060..=5060, 10000..=20000]), "udp 5060, 10000-20000");
        assert_eq!(shown(Some(58), &[]), "icmpv6");
        assert_eq!(shown(Some(253), &[]), "protocol 253");
        assert_eq!(shown(None, &[53..=53]), "port 53");
    }
}
