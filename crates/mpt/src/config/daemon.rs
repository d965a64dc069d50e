//! Reading what concerns the whole process: `[control]`, `[daemon]` and `[metrics]`.

use std::net::SocketAddr;

use super::report::Problems;
use super::table::Table;
use super::value::{Value, some, text};
use super::{Control, Daemon, Metrics, keys, value};

/// Longest user name in bytes that the tools of Linux make (useradd(8)).
const MAX_USER: usize = 32;

/// The `[control]` of the file, or `None` with what is wrong noted.
pub(super) fn control(root: &Table<'_>, problems: &mut Problems) -> Option<Control> {
    let Some(table) = root.table("control", &keys::CONTROL, problems).ok()? else {
        return Some(Control::default());
    };
    let default = Control::default().socket;
    let socket = table.optional("socket", default, problems, value::socket_path);
    table.finish(problems);
    Some(Control { socket: socket? })
}

/// The `[daemon]` of the file, or `None` with what is wrong noted.
pub(super) fn daemon(root: &Table<'_>, problems: &mut Problems) -> Option<Daemon> {
    let Some(table) = root.table("daemon", &keys::DAEMON, problems).ok()? else {
        return Some(Daemon::default());
    };
    let user = table.optional("user", None, problems, some(user));
    table.finish(problems);
    Some(Daemon { user: user? })
}

/// The `[metrics]` of the file, or `None` with what is wrong noted.
pub(super) fn metrics(root: &Table<'_>, problems: &mut Problems) -> Option<Metrics> {
    let Some(table) = root.table("metrics", &keys::METRICS, problems).ok()? else {
        return Some(Metrics::default());
    };
    let listen = table.optional("listen", None, problems, some(listen));
    table.finish(problems);
    Some(Metrics { listen: listen? })
}

/// The name of a user. Whether the host has it is seen when the daemon starts.
fn user(value: &Value<'_>, problems: &mut Problems) -> Option<String> {
    let text = text(value, problems)?;
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let allowed = |c: char| begins(c) || c.is_ascii_digit() || matches!(c, '-' | '.');
    let fault = if text == "root" {
        let help =
            "set an unprivileged user such as \"mpt\", or remove `user` to keep the current user";
        problems
            .push(value.impossible("has all privileges, which `user` is meant to drop").help(help));
        return None;
    } else if text.is_empty() {
        "empty".into()
    } else if text.len() > MAX_USER {
        format!("{} bytes long", text.len())
    } else if !text.starts_with(begins) || !text.chars().all(allowed) {
        "not the name of a user".into()
    } else {
        return Some(text.to_owned());
    };
    let help = format!(
        "use 1 to {MAX_USER} letters, digits, `_`, `-` and `.`, a letter or `_` first, such as \"mpt\""
    );
    problems.push(value.impossible(fault).help(help));
    None
}

/// A loopback address with a port: the page is not encrypted and asks nobody who they are.
fn listen(value: &Value<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    let text = text(value, problems)?;
    let example =
        "write a loopback address with a port such as \"127.0.0.1:9475\" or \"[::1]:9475\"";
    let (fault, help) = match text.parse::<SocketAddr>() {
        Err(_) => ("not an IP address with a port", example),
        Ok(listen) if listen.port() == 0 => ("has no port", example),
        Ok(listen) if !listen.ip().is_loopback() => (
            "not a loopback address",
            "metrics are served on loopback only: write \"127.0.0.1\" or \"[::1]\" with the port, \
             and use a proxy with authentication for remote access",
        ),
        Ok(listen) => return Some(listen),
    };
    problems.push(value.impossible(fault).help(help));
    None
}
