//! The settings of the process: `[control]`, `[daemon]`, `[metrics]` and `[web]`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::report::Problems;
use crate::config::schema::settings;
use crate::config::value::{self, Value, text};
use crate::config::written::Written;

/// Longest user name in bytes that the tools of Linux make (useradd(8)).
const MAX_USER: usize = 32;

settings! {
    /// The control socket.
    Control "[control]", read as ControlRead, with none: () {
        /// Where the daemon listens for commands: an absolute path of at most 107 bytes. If
        /// changed, commands need `--socket`.
        socket: PathBuf = default(value::socket_path, Control::default().socket),
            DaemonRestarted;
    }
}

impl Default for Control {
    fn default() -> Self {
        Self { socket: mpt_control::DEFAULT_SOCKET.into() }
    }
}

settings! {
    /// The process that runs the tunnels.
    Daemon "[daemon]", read as DaemonRead, with none: () {
        /// User to switch to after the start as root, with the rights that the tunnels need and no
        /// others.
        user: Option<String> = optional(user, "\"mpt\""), DaemonRestarted;
        /// Folder of what is kept while the daemon does not run: how much of quotas is used. It is made if
        /// it is missing. systemd's `StateDirectory=` overrides the default.
        state_dir: PathBuf = default(folder, Daemon::default().state_dir), DaemonRestarted;
    }
}

impl Default for Daemon {
    fn default() -> Self {
        Self { user: None, state_dir: "/var/lib/mpt".into() }
    }
}

settings! {
    /// The page of metrics for Prometheus.
    #[derive(Default)]
    Metrics "[metrics]", read as MetricsRead, with none: () {
        /// Loopback address and port of the Prometheus endpoint, such as `127.0.0.1:9475`.
        listen: Option<SocketAddr> = optional(listen, "\"127.0.0.1:9475\""), InPlace;
    }
}

settings! {
    /// The web page.
    #[derive(Default)]
    Web "[web]", read as WebRead, with none: () {
        /// Loopback address and port of the web page, such as `127.0.0.1:9480`, or the absolute path of a
        /// Unix socket.
        listen: Option<Listen> = optional(web_listen, "\"127.0.0.1:9480\""), InPlace;
    }
}

/// Where a page is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// At a loopback address.
    Address(SocketAddr),
    /// At a Unix socket, for root and the daemon's user.
    Socket(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

impl Written for Listen {
    fn written(&self) -> String {
        self.to_string().written()
    }
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

/// The absolute path of a folder.
fn folder(value: &Value<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let text = text(value, problems)?;
    if text.starts_with('/') && !text.contains('\0') {
        return Some(text.into());
    }
    let problem = value.impossible("not the absolute path of a folder");
    problems.push(problem.help("write an absolute path such as \"/var/lib/mpt\""));
    None
}

/// A loopback address with a port: the page is not encrypted and asks nobody who they are.
fn listen(value: &Value<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    let example =
        "write a loopback address with a port such as \"127.0.0.1:9475\" or \"[::1]:9475\"";
    let elsewhere = "metrics are served on loopback only: write \"127.0.0.1\" or \"[::1]\" with the port, \
         and use a proxy with authentication for remote access";
    loopback(value, example, elsewhere, problems)
}

/// A loopback address with a port, or a Unix socket.
fn web_listen(value: &Value<'_>, problems: &mut Problems) -> Option<Listen> {
    if text(value, problems)?.starts_with('/') {
        return value::socket_path(value, problems).map(Listen::Socket);
    }
    let example = "write a loopback address with a port such as \"127.0.0.1:9480\" or \"[::1]:9480\", or the \
                   absolute path of a Unix socket such as \"/run/mpt/web.sock\"";
    let elsewhere = "the web page is served on loopback only: write \"127.0.0.1\" or \"[::1]\" with the port, \
                     and forward it for remote access, such as with `ssh -L 9480:127.0.0.1:9480`";
    loopback(value, example, elsewhere, problems).map(Listen::Address)
}

fn loopback(
    value: &Value<'_>,
    example: &str,
    elsewhere: &str,
    problems: &mut Problems,
) -> Option<SocketAddr> {
    let text = text(value, problems)?;
    let (fault, help) = match text.parse::<SocketAddr>() {
        Err(_) => ("not an IP address with a port", example),
        Ok(listen) if listen.port() == 0 => ("has no port", example),
        Ok(listen) if !listen.ip().is_loopback() => ("not a loopback address", elsewhere),
        Ok(listen) => return Some(listen),
    };
    problems.push(value.impossible(fault).help(help));
    None
}
