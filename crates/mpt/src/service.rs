//! A message to the service manager that started the daemon: ready, alive, reloading, stopping.
//!
//! This is the protocol of sd_notify(3): lines of `NAME=VALUE` in one datagram to the Unix socket
//! that `NOTIFY_SOCKET` names. A daemon that was started by hand has no such variable and says
//! nothing. What cannot be said is not worth ending for, so failures are only logged.
//!
//! `WATCHDOG_USEC` asks for a sign of life at least that often (sd_watchdog_enabled(3)). It is given
//! twice as often, as that page advises, and only while every tunnel that runs answers: a daemon whose
//! packets stand still is as dead as one that crashed, and is restarted. A tunnel that has failed is
//! started again by the daemon, which a restart would not do better.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use mpt_control::Status;
use nix::time::{ClockId, clock_gettime};
use tracing::{debug, warn};

/// Between two reports where no watchdog asks for more.
const REPORT: Duration = Duration::from_secs(10);

/// The time limit for sending to a supervisor that does not read. The tunnels are not affected.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most paths that a report names as down.
const MAX_NAMED: usize = 4;

/// The supervisor, if there is one.
#[derive(Debug)]
pub(crate) struct Service {
    line: Option<Line>,
    /// Between two reports: half of what the watchdog wants, or [`REPORT`].
    interval: Duration,
    /// Whether a watchdog is fed by them.
    watched: bool,
    /// When the next report is due.
    due: Instant,
}

/// The way to the supervisor.
#[derive(Debug)]
struct Line {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Service {
    /// The supervisor that the environment names. The first report is due at once.
    pub(crate) fn from_env() -> Self {
        let variable = |name| env::var_os(name);
        let line = variable("NOTIFY_SOCKET").and_then(|name| {
            let line = Line::open(&name);
            line.inspect_err(|error| {
                warn!(%error, "cannot notify the service manager that the daemon is ready: \
                    NOTIFY_SOCKET is `{}`", name.display());
            })
            .ok()
        });
        let watchdog = watchdog(
            variable("WATCHDOG_USEC").as_deref(),
            variable("WATCHDOG_PID").as_deref(),
            std::process::id(),
        );
        Self::new(line, watchdog)
    }

    fn new(line: Option<Line>, watchdog: Option<Duration>) -> Self {
        let interval = watchdog.map_or(REPORT, |watchdog| (watchdog / 2).min(REPORT));
        Self { line, interval, watched: watchdog.is_some(), due: Instant::now() }
    }

    /// The tunnels run; said after the start and after each reload.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// The configuration is being reloaded. [`ready`](Self::ready) ends this, with any result.
    pub(crate) fn reloading(&self) {
        // Reloads are distinguished by the time of the monotonic clock (sd_notify(3)).
        match clock_gettime(ClockId::CLOCK_MONOTONIC) {
            Ok(now) => {
                let microseconds = now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000;
                self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
            }
            Err(error) => debug!(%error, "there is no monotonic clock"),
        }
    }

    /// The end has begun.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping");
    }

    /// How long the caller may wait for other events; `None` if there is no supervisor.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.line.as_ref().map(|_| self.due.saturating_duration_since(now))
    }

    /// Whether a [`report`](Self::report) is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.wait(now) == Some(Duration::ZERO)
    }

    /// Says what runs, which `systemctl status` shows, and that all of it is alive if every tunnel
    /// has answered.
    pub(crate) fn report(&mut self, now: Instant, status: &Status) {
        self.due = now + self.interval;
        let mut text = format!("STATUS={}", in_words(status));
        if self.watched && status.stalled_tunnels().next().is_none() {
            text.push_str("\nWATCHDOG=1");
        }
        self.tell(&text);
    }

    fn tell(&self, text: &str) {
        let Some(line) = &self.line else { return };
        if let Err(error) = line.socket.send_to_addr(text.as_bytes(), &line.address) {
            debug!(%error, "cannot notify the service manager");
        }
    }
}

impl Line {
    /// The name is a path, or after an `@` one in the abstract namespace (unix(7)).
    fn open(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, address })
    }
}

/// How often the watchdog of this process wants a sign of life. It may be meant for another: the
/// variables are inherited by whatever a supervised program starts.
fn watchdog(microseconds: Option<&OsStr>, pid: Option<&OsStr>, own: u32) -> Option<Duration> {
    let number = |text: &OsStr| text.to_str()?.parse::<u64>().ok();
    if pid.is_some_and(|pid| number(pid) != Some(u64::from(own))) {
        return None;
    }
    match number(microseconds?) {
        Some(microseconds @ 1..) => Some(Duration::from_micros(microseconds)),
        Some(0) | None => {
            warn!(
                "WATCHDOG_USEC is not a number of microseconds: no watchdog notifications are sent"
            );
            None
        }
    }
}

/// The whole in a line.
fn in_words(status: &Status) -> String {
    let connections = || status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let paths = || {
        connections()
            .flat_map(|connection| connection.paths.iter().map(move |path| (connection, path)))
    };
    let up = paths().filter(|(_, path)| path.state == "up").count();
    let mut text = format!(
        "{}, {}, {up} of {} up",
        count(status.tunnels.len() + status.silent_tunnels.len(), "tunnel"),
        count(connections().count(), "connection"),
        count(paths().count(), "path"),
    );
    let down = || paths().filter(|(_, path)| path.state != "up" && path.state != "off");
    for (place, (connection, path)) in down().take(MAX_NAMED).enumerate() {
        let before = if place == 0 { "; not up: " } else { ", " };
        let _ = write!(text, "{before}{}/{} ({})", connection.name, path.name, path.state);
    }
    let unnamed = down().count().saturating_sub(MAX_NAMED);
    if unnamed > 0 {
        let _ = write!(text, " and {unnamed} more");
    }
    let stalled: Vec<_> = status.stalled_tunnels().collect();
    if !stalled.is_empty() {
        let _ = write!(text, "; silent: {}", stalled.join(", "));
    }
    if !status.failed_tunnels.is_empty() {
        let failed: Vec<_> = status.failed_tunnels.keys().map(String::as_str).collect();
        let _ = write!(text, "; failed: {}", failed.join(", "));
    }
    text
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use mpt_control::{ConnectionState, PathState, TunnelStatus};

    use super::*;

    #[test]
    fn notifications_have_the_format_of_the_protocol() {
        let (directory, supervisor) = supervisor();
        let line = Line::open(directory.path().join("notify").as_os_str()).unwrap();
        let service = Service::new(Some(line), None);
        service.ready();
        assert_eq!(heard(&supervisor), "READY=1");
        service.stopping();
        assert_eq!(heard(&supervisor), "STOPPING=1\nSTATUS=stopping");

        service.reloading();
        let first = reload_time(&heard(&supervisor));
        service.reloading();
        let second = reload_time(&heard(&supervisor));
        assert!(0 < first && first <= second, "{first} {second}");
    }

    #[test]
    fn an_abstract_name_is_reached_too() {
        let name = format!("mpt-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let supervisor = UnixDatagram::bind_addr(&address).unwrap();
        let line = Line::open(OsStr::new(&format!("@{name}"))).unwrap();
        Service::new(Some(line), None).ready();
        assert_eq!(heard(&supervisor), "READY=1");
    }

    #[test]
    fn the_watchdog_is_notified_at_half_its_time_while_all_tunnels_respond() {
        let (directory, supervisor) = supervisor();
        let line = Line::open(directory.path().join("notify").as_os_str()).unwrap();
        let mut service = Service::new(Some(line), Some(Duration::from_secs(6)));
        let now = Instant::now();
        assert!(service.is_due(now), "the first report is due at once");
        service.report(now, &Status::default());
        assert!(heard(&supervisor).ends_with("\nWATCHDOG=1"));
        assert!(!service.is_due(now));
        assert_eq!(service.wait(now), Some(Duration::from_secs(3)));
        assert!(service.is_due(now + Duration::from_secs(3)));

        let silent = Status { silent_tunnels: vec!["mpt1".into()], ..Status::default() };
        service.report(now, &silent);
        let text = heard(&supervisor);
        assert!(text.contains("silent: mpt1") && !text.contains("WATCHDOG"), "{text}");
    }

    #[test]
    fn a_failed_tunnel_is_reported_and_does_not_starve_the_watchdog() {
        let (directory, supervisor) = supervisor();
        let line = Line::open(directory.path().join("notify").as_os_str()).unwrap();
        let mut service = Service::new(Some(line), Some(Duration::from_secs(6)));
        let failed = Status {
            silent_tunnels: vec!["mpt1".into()],
            failed_tunnels: [("mpt1".into(), "no device".into())].into(),
            ..Status::default()
        };
        service.report(Instant::now(), &failed);
        let text = heard(&supervisor);
        assert!(text.ends_with("; failed: mpt1\nWATCHDOG=1") && !text.contains("silent"), "{text}");
    }

    #[test]
    fn without_a_supervisor_nothing_is_notified() {
        let mut service = Service::new(None, None);
        assert_eq!(service.wait(Instant::now()), None);
        assert!(!service.is_due(Instant::now() + 2 * REPORT));
        service.ready();
        service.report(Instant::now(), &Status::default());
    }

    #[test]
    fn a_missing_supervisor_is_harmless() {
        let (directory, supervisor) = supervisor();
        let line = Line::open(directory.path().join("notify").as_os_str()).unwrap();
        let mut service = Service::new(Some(line), Some(Duration::from_secs(6)));
        drop((directory, supervisor));
        service.ready();
        service.report(Instant::now(), &Status::default());
    }

    #[test]
    fn a_watchdog_for_another_process_or_with_an_invalid_time_is_ignored() {
        let ask = |time: Option<&str>, pid: Option<&str>| {
            watchdog(time.map(OsStr::new), pid.map(OsStr::new), 77)
        };
        assert_eq!(ask(Some("30000000"), None), Some(Duration::from_secs(30)));
        assert_eq!(ask(Some("30000000"), Some("77")), Some(Duration::from_secs(30)));
        assert_eq!(ask(Some("30000000"), Some("78")), None);
        assert_eq!(ask(Some("30000000"), Some("x")), None);
        assert_eq!(ask(Some("0"), None), None);
        assert_eq!(ask(Some("soon"), None), None);
        assert_eq!(ask(None, Some("77")), None);
    }

    #[test]
    fn the_report_counts_and_names_what_is_not_up() {
        let path = |name: &str, state: &str| PathState {
            name: name.into(),
            state: state.into(),
            ..PathState::default()
        };
        let mut status = status(vec![path("fibre", "up"), path("spare", "off")]);
        assert_eq!(in_words(&status), "1 tunnel, 1 connection, 1 of 2 paths up");
        let paths = &mut status.tunnels[0].connections[0].paths;
        paths.push(path("lte", "down"));
        assert_eq!(
            in_words(&status),
            "1 tunnel, 1 connection, 1 of 3 paths up; not up: server/lte (down)"
        );
        let many = (0..70).map(|number| path(&format!("p{number}"), "probing")).collect();
        let text = in_words(&self::status(many));
        assert!(text.ends_with("server/p3 (probing) and 66 more"), "{text}");
    }

    fn supervisor() -> (tempfile::TempDir, UnixDatagram) {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        (directory, socket)
    }

    /// What was said, one datagram; it is there as soon as it was sent.
    fn heard(supervisor: &UnixDatagram) -> String {
        supervisor.set_nonblocking(true).unwrap();
        let mut buffer = [0; 1024];
        let length = supervisor.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn reload_time(text: &str) -> u64 {
        let time = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        time.parse().unwrap()
    }

    fn status(paths: Vec<PathState>) -> Status {
        let connection =
            ConnectionState { name: "server".into(), paths, ..ConnectionState::default() };
        let tunnel = TunnelStatus { connections: vec![connection], ..TunnelStatus::default() };
        Status { tunnels: vec![tunnel], ..Status::default() }
    }
}
