//! The command protocol that the original MPT has beside the tunnel: its ports, and by what a command is
//! known to be the peer's.

use std::fmt;

use mpt_original::{Key, KeyError};

use super::report::{Problem, Problems};
use super::table::Table;
use super::value::{self, Value, some};
use super::{PeerKind, keys};

/// How commands are exchanged with an original MPT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The own UDP port for commands, none that carries data.
    pub(crate) port: u16,
    /// The peer's.
    pub(crate) remote_port: u16,
    /// By what a command is known to be the peer's.
    pub(crate) auth: Auth,
    /// Whether it is read and logged which connections the peer wants created. None is.
    pub(crate) accept_create: bool,
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
    /// The word for the kind.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Random => "random",
            Self::Sha256(_) => "sha256",
        }
    }
}

/// What both hosts know and nobody else is to know: the original's `auth_key`, at least
/// [`Key::LEN`] printable characters of ASCII and not the key that is built into the original.
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

/// The keys that only a connection to an original has.
const KEYS: [&str; 4] = ["command_port", "remote_command_port", "auth", "accept_create"];

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
            for key in KEYS.into_iter().filter(|key| table.has(key)) {
                problems.push(
                    Problem::new(
                        format!("`{key}` for a peer that has no commands"),
                        table.span_of(key),
                    )
                    .label("applies to an original MPT only")
                    .help(format!(
                        "remove it; or write `peer = \"{}\"`, if the peer is one, and \
                            not \"{}\"",
                        PeerKind::Original.name(),
                        kind.name()
                    )),
                );
            }
            return Some(None);
        }
    }
    let port = || value::integer(1..=u16::MAX);
    let default = Commands::DEFAULT_PORT;
    let own = table.optional("command_port", default, problems, port());
    let remote = table.optional("remote_command_port", default, problems, port());
    let mut apart = true;
    for (key, command, data_key, data, there) in [
        ("command_port", own, "local_port", local_port, "remote_cmd_port"),
        ("remote_command_port", remote, "remote_port", remote_port, "cmdport_local"),
    ] {
        if command.is_some() && command == data {
            apart = false;
            problems.push(
                Problem::new(format!("`{key}` and `{data_key}` are the same"), table.span_of(key))
                    .label("commands and data on one port")
                    .help(format!(
                        "the original has a separate port for each: set `{key}` to its \
                        `{there}`, {default} by default"
                    )),
            );
        }
    }
    let auth = auth(table, problems);
    let accept_create = table.optional("accept_create", false, problems, value::flag);
    let commands =
        Commands { port: own?, remote_port: remote?, auth: auth?, accept_create: accept_create? };
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

fn auth(table: &Table<'_>, problems: &mut Problems) -> Option<Auth> {
    let Some(table) = table.table("auth", &keys::AUTH, problems).ok()? else {
        return Some(Auth::default());
    };
    let words = &[("none", 0), ("random", 1), ("sha256", 2)];
    let kind = table.required("type", "\"sha256\"", problems, value::one_of(words));
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
