//! Uplinks that are found by themselves: a connection says where its peer is, once, and has a path by each
//! interface from which a route leads there.
//!
//! Here is what the file says about them; which interfaces there are is found out while the tunnel runs.

use std::net::IpAddr;

use mpt_proto::{MAX_WEIGHT, PeerKind};
use toml::de::DeValue;

use super::quota::{self, Quota};
use super::remote::Remote;
use super::report::{Problem, Problems};
use super::schema::{Tabled as _, settings};
use super::table::Table;
use super::timers;
use super::value::{self, Value};
use super::writer::{self, Writer};
use super::written::Written;

settings! {
    /// What the file says about one interface whose path is found by itself.
    Uplink "[tunnel.connection.interface.NAME]", read as UplinkRead, with none: () {
        /// Its name, which is the last part of the header.
        interface: String = unsaid(String::new()), Apart;
        /// Share of the packets or flows.
        weight: u16 = default(value::integer(1..=MAX_WEIGHT), 1), InPlace;
        /// Priority tier: of the paths that are up, those with the lowest number carry packets.
        priority: u8 = default(value::integer(0..=u8::MAX), 0), InPlace;
        /// Whether its traffic is paid for by volume: then `price` is 200 unless it is said.
        metered: bool = default(value::flag, false), InPlace;
        /// Milliseconds that a packet waits for the other paths before it takes this one; for the schedulers that measure.
        /// With 100 or less, a transfer that fills the other paths takes this one, too; with more, it does not.
        price: Option<u16> = optional(value::integer(0..=10_000), "50"), InPlace;
        /// How much its paths may carry in a month in both directions, in bytes of IP packets: `"50 GB"`. The faster it is used,
        /// the more they cost; when it is used up, they stand by as long as another path is up.
        quota: Option<Quota> = optional(quota::quota, "\"50 GB\""), InPlace;
        /// The day of the month on which that of `quota` begins, at 0:00 UTC.
        quota_day: u8 = default(value::integer(1..=28), 1), InPlace;
        /// In a session: how many milliseconds the path may be silently dead while nothing is sent on it.
        failover: Option<u16> =
            optional(timers::failover(), "2000", "the connection's; 10000 if metered"), InPlace;
    }
}

impl Written for Uplink {
    fn written(&self) -> String {
        format!("{} = {}", self.interface, writer::whole(|out| self.write(out, ())))
    }
}

/// By which IP version a path was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Found {
    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    /// Whether a path of this IP version can lead there.
    pub(crate) fn leads_to(self, remote: IpAddr) -> bool {
        (self == Self::V4) == remote.is_ipv4()
    }
}

/// Interfaces by name; `*` stands for any characters, `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    /// The pattern in a sound text.
    #[cfg(test)]
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The name, if it stands for a single interface.
    fn name(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| !text.contains(['*', '?']))
    }

    /// Whether it stands for this interface.
    pub(super) fn matches(&self, name: &str) -> bool {
        // Patterns and names have at most 15 bytes, so the steps are few.
        fn matches(pattern: &[u8], name: &[u8]) -> bool {
            match (pattern, name) {
                ([], []) => true,
                ([b'*', rest @ ..], _) => {
                    matches(rest, name)
                        || name.split_first().is_some_and(|(_, name)| matches(pattern, name))
                }
                ([b'?', pattern @ ..], [_, name @ ..]) => matches(pattern, name),
                ([one, pattern @ ..], [other, name @ ..]) => one == other && matches(pattern, name),
                _ => false,
            }
        }
        matches(self.0.as_bytes(), name.as_bytes())
    }
}

impl Written for Pattern {
    fn written(&self) -> String {
        self.0.written()
    }
}

/// Names of interfaces and what stands for several.
pub(super) fn pattern(value: &Value<'_>, problems: &mut Problems) -> Option<Pattern> {
    value::interface(value, problems).map(Pattern)
}

/// Which interfaces may have a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interfaces {
    /// Every one.
    Auto,
    /// Those for which one of these stands.
    Listed(Vec<Pattern>),
}

impl Interfaces {
    /// Whether this one may have a path.
    pub(super) fn allow(&self, name: &str) -> bool {
        match self {
            Self::Auto => true,
            Self::Listed(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }

    /// Those that are listed by name.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let listed: &[Pattern] = match self {
            Self::Auto => &[],
            Self::Listed(patterns) => patterns,
        };
        listed.iter().filter_map(Pattern::name)
    }
}

impl Written for Interfaces {
    fn written(&self) -> String {
        match self {
            Self::Auto => "auto".written(),
            Self::Listed(patterns) => patterns.written(),
        }
    }
}

/// `"auto"`, or a list.
pub(super) fn interfaces(value: &Value<'_>, problems: &mut Problems) -> Option<Interfaces> {
    let help = "write \"auto\", or a list such as [\"eth0\", \"wwan*\"]";
    if let DeValue::Array(listed) = value.get() {
        if listed.is_empty() {
            problems.push(value.impossible("no interface").help(help));
            return None;
        }
        return value::Kind::read(&value::list(pattern), value, problems).map(Interfaces::Listed);
    }
    match value.get().as_str() {
        Some("auto") => return Some(Interfaces::Auto),
        Some(_) => problems.push(value.impossible("neither \"auto\" nor a list").help(help)),
        None => problems.push(value.wrong_type("\"auto\" or an array").help(help)),
    }
    None
}

/// What is said about single interfaces, in the order of their names.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Option<Vec<Uplink>> {
    let mut uplinks = Vec::new();
    for (name, table) in table.named_tables("interface", &Uplink::KEYS, problems)? {
        let mut read = Uplink::read(&table, (), problems);
        quota::check(&table, problems);
        table.finish(problems);
        read.interface = match value::interface_fault(&name) {
            None => Some(name),
            Some(fault) => {
                problems.push(
                    Problem::new(format!("`{}` is no interface", name.escape_debug()), table.span())
                        .label(fault)
                        .help("write the name of an interface, such as [tunnel.connection.interface.wwan0]"),
                );
                None
            }
        };
        uplinks.push(read.whole());
    }
    let mut uplinks: Vec<Uplink> = uplinks.into_iter().collect::<Option<_>>()?;
    uplinks.sort_by(|one, other| one.interface.cmp(&other.interface));
    Some(uplinks)
}

/// Writes them, each with a header of its own.
pub(super) fn write(uplinks: &[Uplink], out: &mut Writer) {
    for uplink in uplinks {
        let name = uplink.interface.written();
        out.headed(&format!("[tunnel.connection.interface.{name}]"), |out| uplink.write(out, ()));
    }
}

/// The keys of a connection that are about paths which are found.
const OF_FOUND: [&str; 4] = ["remote", "interfaces", "exclude", "interface"];

/// The keys of a connection that are about paths which are found or learned.
const OF_UNLISTED: [&str; 4] = ["keepalive", "dead_time", "failover", "forget"];

/// Whether a connection says where its paths come from in one way only. It has configured paths or not.
pub(super) fn check(
    table: &Table<'_>,
    peer_kind: PeerKind,
    remote: Option<&Remote>,
    configured: bool,
    problems: &mut Problems,
) {
    let refuse = |key: &str, title: String, label: &str, help: &str| {
        Problem::new(title, table.span_of(key)).label(label).help(help)
    };
    if configured {
        for key in OF_FOUND.into_iter().filter(|key| table.has(key)) {
            problems.push(refuse(
                key,
                format!("`{key}` beside configured paths"),
                "with it, paths are found by themselves",
                "keep either the paths or `remote`, `interfaces`, `exclude` and `interface` of the connection",
            ));
        }
        for key in OF_UNLISTED.into_iter().filter(|key| table.has(key)) {
            problems.push(refuse(
                key,
                format!("`{key}` of a connection with configured paths"),
                "is for paths that are found or learned",
                match key {
                    "forget" => "remove it: configured paths are not forgotten",
                    _ => "write it in each `[[tunnel.connection.path]]`",
                },
            ));
        }
        return;
    }
    if !table.has("remote") {
        for key in OF_FOUND.into_iter().filter(|key| table.has(key)) {
            problems.push(refuse(
                key,
                format!("`{key}` without `remote`"),
                "uplinks are found by the routes to the peer",
                "add `remote = \"server.example.org\"`, the peer's host name or address",
            ));
        }
        return;
    }
    if table.has("forget") {
        problems.push(refuse(
            "forget",
            "`forget` beside `remote`".into(),
            "is for paths that are learned",
            "remove it: a path that was found goes when its interface has had no route for 10 s",
        ));
    }
    if peer_kind != PeerKind::Mpt {
        problems.push(refuse(
            "remote",
            format!("`remote` of a connection to a peer of kind `{}`", peer_kind.name()),
            "its paths are configured at both ends",
            "write a `[[tunnel.connection.path]]` with `name`, `interface` and `remote` for each uplink",
        ));
    }
    if let Some(IpAddr::V6(address)) = remote.and_then(Remote::address)
        && address.is_unicast_link_local()
    {
        problems.push(refuse(
            "remote",
            "a link-local `remote` of a connection".into(),
            "every interface leads to such an address",
            "write a `[[tunnel.connection.path]]` with `interface` and `remote`",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_a_question_mark_for_one() {
        for (pattern, name, matches) in [
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth*", "eth", true),
            ("eth*", "eth0.5", true),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("eth?", "eth10", false),
            ("*", "lo", true),
            ("w*n?", "wwan0", true),
            ("w*n?", "wlan", false),
            ("*0*", "enp0s3", true),
            ("*0", "enp0s3", false),
            ("***************", "aaaaaaaaaaaaaa", true),
            ("", "", true),
        ] {
            assert_eq!(Pattern(pattern.into()).matches(name), matches, "{pattern} {name}");
        }
    }
}
