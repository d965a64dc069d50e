//! Classes of packets that the operator describes: what they need, and which packets they are.

use mpt_proto::RepairMode;

use super::address;
use super::keys::{Keys, Row, Rows};
use super::prefix::Prefix;
use super::report::{Problem, Problems};
use super::schema::{Tabled as _, settings};
use super::selector::{self, Match};
use super::table::Table;
use super::value;
use super::words::Repair;
use super::writer::{self, Writer};
use super::written::Written;
use super::{Connection, Path};

settings! {
    /// What packets of one class need.
    Class "[[tunnel.connection.class]]", read as ClassRead, with none: () {
        /// Its name, 1 to 64 bytes; unique within the connection.
        name: String = required(value::name, "\"calls\""), InPlace;
        /// Protocol and ports of its packets; `None` = any.
        selector ["match"]: Option<Match> = own(
            Rows::Here(&[Row::own(
                "match",
                "any",
                "{ protocol = \"udp\", ports = [5060] }",
                "Protocol and ports of its packets, below.",
            )]),
            |of: &Self, out: &mut Writer, ()| if let Some(selector) = &of.selector {
                out.inline("match", |out| selector.write(out));
            }
        ), InPlace;
        /// DSCP values of its packets, 0 .. 63; empty = any.
        dscp: Vec<u8> = default(value::list(dscp), Vec::new()), InPlace;
        /// Prefixes in one of which the source or the destination of its packets is; empty = any.
        networks: Vec<Prefix> = default(value::list(address::network), Vec::new()), InPlace;
        /// Names of paths or interfaces, which alone its packets take; while none of them is up they are dropped (`class_path`).
        /// Empty = all.
        paths: Vec<String> = default(value::list(value::name), Vec::new()), InPlace;
        /// Milliseconds after which a packet is worth nothing: it is not sent again if it would come later.
        deadline: Option<u16> = optional(value::integer(1..=1000), "60"), InPlace;
        /// What is done about loss: `"none"`, `"retransmit"`, `"duplicate"` (each packet on two paths at once, whatever that
        /// takes), `"parity"` (covered by parity while packets are lost, or on two paths at once if they are too few), or `"auto"`: sent again, or as
        /// with `"parity"` where packets are lost and a repair would miss the deadline.
        repair: Repair = default(value::one_of(Repair::WORDS), Repair::Auto), InPlace;
    }
}

/// The same keys in a template.
static OF_TEMPLATES: Keys =
    Keys { table: "[[tunnel.accept.class]]", rows: &[Rows::Of(&Class::KEYS)] };

impl Class {
    /// The most classes of a connection.
    pub(crate) const MOST: usize = 32;

    /// Whether its packets may take a path.
    fn may_take(&self, path: &Path) -> bool {
        let is_of = |name: &String| *name == path.name || path.interface.as_ref() == Some(name);
        self.paths.is_empty() || self.paths.iter().any(is_of)
    }

    /// What is done about loss, in the core's words.
    pub(crate) fn repair(&self) -> RepairMode {
        match self.repair {
            Repair::Auto => RepairMode::Auto,
            Repair::None => RepairMode::None,
            Repair::Retransmit => RepairMode::Retransmit,
            Repair::Duplicate => RepairMode::Duplicate,
            Repair::Parity => RepairMode::Parity,
        }
    }
}

impl Connection {
    /// The classes that may not take a path, one bit each, in their order.
    pub(crate) fn refuses(&self, path: &Path) -> u32 {
        let classes = self.classes.iter().enumerate();
        let refused = classes.filter(|(_, class)| !class.may_take(path));
        refused.fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// Says which classes name paths that it does not have.
    pub(super) fn check_paths_of_classes(&self, table: &Table<'_>, problems: &mut Problems) {
        let tables = table.tables("class", &Class::KEYS, &mut Problems::default());
        for (class, table) in self.classes.iter().zip(tables.iter().flatten()) {
            if class.paths.is_empty() {
                continue;
            }
            let span = table.span_of("paths");
            if self.learns_paths() {
                problems.push(
                    Problem::new("a class with `paths`, but the peer chooses the paths", span)
                        .label("paths that are learned have no names before")
                        .help("say it at the peer for what that sends, or configure the paths"),
                );
                continue;
            }
            let is_known = |name: &&String| match &self.remote {
                Some(_) => self.may_use(name) || self.may_use(name.trim_end_matches("-v6")),
                None => self
                    .paths
                    .iter()
                    .any(|path| **name == path.name || path.interface.as_ref() == Some(*name)),
            };
            if let Some(name) = class.paths.iter().find(|name| !is_known(name)) {
                problems.push(
                    Problem::new(format!("there is no path `{name}`"), span)
                        .label("neither the name of a path nor an interface of one")
                        .help("name paths of this connection or their interfaces"),
                );
            }
        }
    }
}

impl Written for Class {
    fn written(&self) -> String {
        writer::whole(|out| self.write(out, ()))
    }
}

fn dscp(value: &value::Value<'_>, problems: &mut Problems) -> Option<u8> {
    value::Kind::<u8>::read(&value::integer(0_u8..=63), value, problems)
}

/// The classes of the connection or template in `table`.
pub(super) fn read(
    table: &Table<'_>,
    is_template: bool,
    problems: &mut Problems,
) -> Option<Vec<Class>> {
    let keys = if is_template { &OF_TEMPLATES } else { &Class::KEYS };
    let tables = table.tables("class", keys, problems)?;
    if let Some(table) = tables.get(Class::MOST) {
        let (count, most) = (tables.len(), Class::MOST);
        problems.push(
            Problem::new(format!("{count} classes of one connection"), table.span())
                .label(format!("class number {}", most + 1))
                .help(format!("allowed: up to {most}")),
        );
    }
    let mut names: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut classes = Vec::new();
    for table in &tables {
        let mut read = Class::read(table, (), problems);
        read.selector = selector::read(table, problems);
        let selects = ["match", "dscp", "networks"].into_iter().any(|key| table.has(key));
        if !selects {
            problems.push(
                Problem::new("a class of all packets", table.span())
                    .label("has no `match`, no `dscp` and no `networks`")
                    .help("say which packets it has, such as `dscp = [46]`"),
            );
        }
        if let Some(name) = &read.name {
            let span = table.span_of("name");
            if let Some((_, first)) = names.iter().find(|(other, _)| other == name) {
                problems.push(
                    Problem::new(format!("two classes are called {name}"), span.clone())
                        .label("used again")
                        .other(first.clone(), "used here first")
                        .help("give each class of a connection a name of its own"),
                );
            }
            names.push((name.clone(), span));
        }
        if is_template && table.has("paths") {
            problems.push(
                Problem::new("`paths` in a class of a template", table.span_of("paths"))
                    .label("paths that peers choose have no names before")
                    .help("say it at the peer, for what that sends"),
            );
        }
        table.finish(problems);
        classes.push(read.whole());
    }
    classes.into_iter().collect()
}

/// Writes them, each with a header of its own.
pub(super) fn write(classes: &[Class], is_template: bool, out: &mut Writer) {
    let keys = if is_template { &OF_TEMPLATES } else { &Class::KEYS };
    out.tables(keys, classes, |class, out| class.write(out, ()));
}
