//! Flows that are pinned to a path by a port.

use std::ops::Range;

use toml::Spanned;

use super::keys::Row;
use super::ports::{PortRange, ShownPorts, overlap, ports};
use super::report::{Problem, Problems};
use super::table::Table;
use super::words::Scheduler;
use super::writer::Writer;
use super::written::Written;

/// The ports whose packets take a path while it is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    /// TCP destination ports.
    pub(crate) tcp_dst: Vec<PortRange>,
    /// TCP source ports.
    pub(crate) tcp_src: Vec<PortRange>,
    /// UDP destination ports.
    pub(crate) udp_dst: Vec<PortRange>,
    /// UDP source ports.
    pub(crate) udp_src: Vec<PortRange>,
}

/// The keys of the lists.
pub(super) static ROWS: [Row; 4] = [
    Row::own(
        "tcp_dst",
        "`[]`",
        "[22, \"5900-5910\"]",
        "TCP destination ports pinned to this path, with `scheduler = \"flow\"`.",
    ),
    Row::own("tcp_src", "`[]`", "[22]", "TCP source ports."),
    Row::own("udp_dst", "`[]`", "[53]", "UDP destination ports."),
    Row::own("udp_src", "`[]`", "[53]", "UDP source ports."),
];

impl Pins {
    /// Writes the lists that are not empty.
    pub(super) fn write(&self, out: &mut Writer) {
        for (key, ports) in self.lists().into_iter().filter(|(_, ports)| !ports.is_empty()) {
            out.key(key, ports);
        }
    }

    /// The lists by the keys that they have in the file.
    pub(crate) fn lists(&self) -> [(&'static str, &[PortRange]); 4] {
        [
            ("tcp_dst", &self.tcp_dst),
            ("tcp_src", &self.tcp_src),
            ("udp_dst", &self.udp_dst),
            ("udp_src", &self.udp_src),
        ]
    }

    /// Each list that is not empty in words: `tcp_dst 22, 5060-5070`.
    pub(crate) fn shown(&self) -> impl Iterator<Item = String> {
        let lists = self.lists().into_iter().filter(|(_, ports)| !ports.is_empty());
        lists.map(|(key, ports)| format!("{key} {}", ShownPorts(ports)))
    }

    fn list(&mut self, key: &str) -> Option<&mut Vec<PortRange>> {
        match key {
            "tcp_dst" => Some(&mut self.tcp_dst),
            "tcp_src" => Some(&mut self.tcp_src),
            "udp_dst" => Some(&mut self.udp_dst),
            "udp_src" => Some(&mut self.udp_src),
            _ => None,
        }
    }
}

impl Written for Pins {
    fn written(&self) -> String {
        let lists = self.lists().into_iter().filter(|(_, ports)| !ports.is_empty());
        let lists: Vec<_> =
            lists.map(|(key, ports)| format!("{key} = {}", ports.written())).collect();
        if lists.is_empty() { "none".to_owned() } else { lists.join(", ") }
    }
}

/// The ports that paths of one connection have claimed, so that none is pinned to two that carry at
/// the same time.
#[derive(Debug, Default)]
pub(super) struct Pinned(Vec<(&'static str, u8, PortRange, Range<usize>)>);

/// The pins of the path in `table`, or `None` with what is wrong noted. `scheduler` is the
/// connection's and `priority` the path's, if they are sound.
pub(super) fn read(
    table: &Table<'_>,
    scheduler: Option<Scheduler>,
    priority: Option<u8>,
    pinned: &mut Pinned,
    problems: &mut Problems,
) -> Option<Pins> {
    let mut pins = Pins::default();
    let mut good = true;
    for (key, _) in Pins::default().lists() {
        let Some(ranges) = table.optional(key, Vec::new(), problems, ports) else {
            good = false;
            continue;
        };
        if table.has(key) && scheduler.is_some_and(|scheduler| scheduler != Scheduler::Flow) {
            problems.push(
                Problem::new(format!("`{key}` without `scheduler = \"flow\"`"), table.span_of(key))
                    .label("has no effect")
                    .help("only the scheduler \"flow\" keeps the packets of a port on one path: set it in the connection, or remove the key"),
            );
            good = false;
        }
        if let Some(priority) = priority {
            pinned.claim(key, priority, &ranges, problems);
        }
        if let Some(list) = pins.list(key) {
            *list = ranges.into_iter().map(Spanned::into_inner).collect();
        }
    }
    good.then_some(pins)
}

impl Pinned {
    fn claim(
        &mut self,
        key: &'static str,
        priority: u8,
        ranges: &[Spanned<PortRange>],
        problems: &mut Problems,
    ) {
        for range in ranges {
            let clash = self.0.iter().find(|(other_key, other_priority, other, _)| {
                (*other_key, *other_priority) == (key, priority) && overlap(other, range.get_ref())
            });
            if let Some((_, _, _, first)) = clash {
                problems.push(
                    Problem::new("a port is pinned to two paths", range.span())
                        .label(format!("{key} of this path"))
                        .other(first.clone(), "pinned here first")
                        .help("pin a port to one path, or give the paths different `priority`: then the second takes over when the first is down"),
                );
            }
        }
        let claims =
            ranges.iter().map(|range| (key, priority, range.get_ref().clone(), range.span()));
        self.0.extend(claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_a_key_of_a_path() {
        let rows = ROWS.iter().map(|row| row.key);
        assert!(rows.eq(Pins::default().lists().into_iter().map(|(key, _)| key)));
        for (key, _) in Pins::default().lists() {
            assert!(Pins::default().list(key).is_some(), "{key}");
        }
    }

    #[test]
    fn pins_are_shown_in_the_words_of_the_file() {
        let pins =
            Pins { tcp_dst: vec![22..=22, 80..=90], udp_src: vec![53..=53], ..Pins::default() };
        assert_eq!(pins.shown().collect::<Vec<_>>(), ["tcp_dst 22, 80-90", "udp_src 53"]);
    }
}
