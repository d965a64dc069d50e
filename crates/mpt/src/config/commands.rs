//! The command protocol that the original MPT has beside the tunnel: its ports, and by what a command is
//! known to be the peer's.

use std::fmt;

use mpt_original::{Key, KeyError};
use mpt_proto::PeerKind;

use super::keys::{Keys, Row, Rows};
use super::report::{Problem, Problems};
use super::schema::{Tabled as _, settings};
use super::table::Table;
use super::value::{self, Value, some};
use super::writer::{self, Writer};
use super::written::Written;

settings! {
    /// How commands are exchanged with an original MPT.
    #[derive(Eq)]
    Commands "", read as CommandsRead, with none: () {
        /// With an original MPT: UDP port for commands here, its `remote_cmd_port`.
        port ["command_port"]: u16 =
            default(value::integer(1..=u16::MAX), Commands::DEFAULT_PORT), InPlace;
        /// With an original MPT: its UDP port for commands, `cmdport_local`.
        remote_port ["remote_command_port"]: u16 =
            default(value::integer(1..=u16::MAX), Commands::DEFAULT_PORT), InPlace;
        /// By what a command is known to be the peer's.
        auth: Auth = own(
            Rows::Here(&[Row::own(
                "auth",
                "`{ type = \"none\" }`",
                "{ type = \"sha256\", key = \"write-32-characters-of-your-own!\" }",
                "With an original MPT: how commands are authenticated, below.",
            )]),
            |of: &Self, out: &mut Writer, ()| of.auth.write(out)
        ), InPlace;
        /// With an original MPT and a key: parse and log its `mpt create` requests. They are still
        /// refused: only this file creates connections.
        accept_create: bool = default(value::flag, false), InPlace;
    }
}

impl Commands {
    /// The original's port for commands (`cmdport_local`).
    pub(crate) const DEFAULT_PORT: u16 = 65050;
}

/// By what a command is known to be the peer's: the original's `auth_type` 0 to 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Auth {
    /// By nothing but the address it comes from.
    #[default]
    None,
    /// By a number that the peer was sent to that address.
    Random,
    /// By a hash over the command and a secret.
    Sha256(Secret),
}

impl Auth {
    fn write(&self, out: &mut Writer) {
        if *self != Self::None {
            out.inline("auth", |out| {
                out.key("type", self.name());
                if let Self::Sha256(secret) = self {
                    out.key("key", secret.text());
                }
            });
        }
    }

    /// The word for the kind.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Random => "random",
            Self::Sha256(_) => "sha256",
        }
    }
}

/// As it is shown. What is secret of it stands in the file only.
impl Written for Auth {
    fn written(&self) -> String {
        self.name().written()
    }
}

/// As it is shown.
impl Written for Commands {
    fn written(&self) -> String {
        let Self { port, remote_port, auth, accept_create } = self;
        writer::whole(|out| {
            out.key("command_port", port);
            out.key("remote_command_port", remote_port);
            out.key("auth", auth);
            out.key("accept_create", accept_create);
        })
    }
}

/// The shared secret: the original's `auth_key`, at least [`Key::LEN`] printable characters of
/// ASCII and not the original's built-in key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    /// As the file has it.
    text: String,
    key: Key,
}

impl Secret {
    /// The text as the file has it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What counts of it.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The secret in this text.
    pub(super) fn new(text: &str) -> Result<Self, KeyError> {
        Ok(Self { text: text.to_owned(), key: Key::new(text)? })
    }
}

/// A secret is not shown.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The commands of the connection in `table`, whose peer is of this kind or of a faulty one; `None`
/// with what is wrong noted, `Some(None)` where the peer has no commands. The ports are those for data,
/// if they are sound.
pub(super) fn read(
    table: &Table<'_>,
    kind: Option<PeerKind>,
    [local_port, remote_port]: [Option<u16>; 2],
    problems: &mut Problems,
) -> Option<Option<Commands>> {
    match kind? {
        PeerKind::Original => {}
        kind @ (PeerKind::Mpt | PeerKind::Gre) => {
            for key in Commands::KEYS.names().into_iter().filter(|key| table.has(key)) {
                problems.push(
                    Problem::new(
                        format!("`{key}` for a peer that has no commands"),
                        table.span_of(key),
                    )
                    .label("applies to an original MPT only")
                    .help(format!(
                        "remove it; or write `peer = \"{}\"`, if the peer is one, and not \"{}\"",
                        PeerKind::Original.name(),
                        kind.name()
                    )),
                );
            }
            return Some(None);
        }
    }
    let mut read = Commands::read(table, (), problems);
    let mut apart = true;
    for (key, command, data_key, data, there) in [
        ("command_port", read.port, "local_port", local_port, "remote_cmd_port"),
        ("remote_command_port", read.remote_port, "remote_port", remote_port, "cmdport_local"),
    ] {
        if command.is_some() && command == data {
            apart = false;
            problems.push(
                Problem::new(format!("`{key}` and `{data_key}` are the same"), table.span_of(key))
                    .label("commands and data on one port")
                    .help(format!("the original has a separate port for each: set `{key}` to its `{there}`, {} by default", Commands::DEFAULT_PORT)),
            );
        }
    }
    read.auth = auth(table, problems);
    let commands = read.whole()?;
    if !apart {
        return None;
    }
    if commands.accept_create && !matches!(commands.auth, Auth::Sha256(_)) {
        problems.push(
            Problem::new("`accept_create` without a key", table.span_of("accept_create"))
                .label("any host could fill the log")
                .help(
                    "add `auth = { type = \"sha256\", key = \"...\" }`, or remove `accept_create`",
                ),
        );
    }
    Some(Some(commands))
}

/// The keys of `auth`.
pub(super) static AUTH: Keys = Keys {
    table: "auth",
    rows: &[Rows::Here(&[
        Row::own(
            "type",
            "",
            "\"sha256\"",
            "`\"none\"`, `\"random\"` or `\"sha256\"`: the peer's `auth_type` 0, 1 or 2.",
        ),
        Row::own(
            "key",
            "",
            "\"write-32-characters-of-your-own!\"",
            "With `\"sha256\"`: the peer's `auth_key`, 32 to 127 printable characters, of which the first 32 count. The built-in default key of the original is refused, because it is public.",
        ),
    ])],
};

fn auth(table: &Table<'_>, problems: &mut Problems) -> Option<Auth> {
    let Some(table) = table.table("auth", &AUTH, problems).ok()? else {
        return Some(Auth::default());
    };
    let words = &[("none", 0), ("random", 1), ("sha256", 2)];
    let kind = table.required("type", "\"sha256\"", "", problems, value::one_of(words));
    let key = table.optional("key", None, problems, some(secret));
    table.finish(problems);
    let (kind, key) = (kind?, key?);
    match (kind, key) {
        (2, Some(secret)) => Some(Auth::Sha256(secret)),
        (2, None) => {
            problems.push(
                Problem::new("`auth` of type \"sha256\" without `key`", table.span())
                    .label("has no `key`")
                    .help("add `key = \"...\"`, the first 32 characters of the peer's `auth_key` or all of it"),
            );
            None
        }
        (_, Some(_)) => {
            problems.push(
                Problem::new("a `key` that is not used", table.span_of("key"))
                    .label("not used with this `type`")
                    .other(table.span_of("type"), "this one")
                    .help("write `type = \"sha256\"`, or remove `key`"),
            );
            None
        }
        (1, None) => Some(Auth::Random),
        (_, None) => Some(Auth::None),
    }
}

fn secret(value: &Value<'_>, problems: &mut Problems) -> Option<Secret> {
    match Secret::new(value::text(value, problems)?) {
        Ok(secret) => Some(secret),
        Err(fault) => {
            problems.push(value.impossible(fault.to_string()).help("both hosts need the same key of 32 to 127 printable characters, of which the first 32 count; such as the output of `openssl rand -hex 16`"));
            None
        }
    }
}
