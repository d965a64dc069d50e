//! Reloads and commands on tunnels that are only pretended.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mpt_control::{
    ControlStatus, ErrorKind, Explanation, PathStatus, Reply, Request, TraceMark, TunnelStatus,
};

use super::{AGAIN, Daemon, Host};
use crate::config;
use crate::tunnel::TraceAnswer;

/// Two tunnels; both have a path `radio`.
const FILE: &str = "
[[tunnel]]
name = 'mpt0'
addresses = ['10.9.0.1/24']
[[tunnel.connection]]
name = 'server'
peer = ['10.9.0.2']
path = [{ name = 'fibre', remote = '192.0.2.1' }, { name = 'radio', remote = '192.0.2.2' }]

[[tunnel]]
name = 'mpt1'
addresses = ['10.8.0.1/24']
[[tunnel.connection]]
name = 'other'
local_port = 4755
peer = ['10.8.0.2']
path = [{ name = 'radio', remote = '192.0.2.3' }]
";

/// A machine whose tunnels are only their settings, and which records the requests.
#[derive(Default)]
struct Pretending {
    done: Vec<String>,
    /// The tunnels that cannot be started or changed.
    barred: Vec<&'static str>,
    /// The paths of connection `other` that no file lists.
    unlisted: Vec<&'static str>,
    /// How every connection chooses paths at present.
    scheduler: &'static str,
}

impl Pretending {
    fn bar(&self, name: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!self.barred.contains(&name), "no room for it");
        Ok(())
    }
}

impl Host for Pretending {
    type Tunnel = config::Tunnel;

    fn start(&mut self, settings: &config::Tunnel) -> anyhow::Result<config::Tunnel> {
        self.bar(&settings.name)?;
        self.done.push(format!("start {}", settings.name));
        Ok(settings.clone())
    }

    fn stop(&mut self, tunnel: config::Tunnel) {
        self.done.push(format!("stop {}", tunnel.name));
    }

    fn can_become(&self, tunnel: &config::Tunnel, settings: &config::Tunnel) -> bool {
        tunnel.addresses == settings.addresses
    }

    fn change(&mut self, tunnel: &mut config::Tunnel, new: &config::Tunnel) -> anyhow::Result<()> {
        if tunnel != new {
            self.done.push(format!("change {}", new.name));
            tunnel.clone_from(new);
        }
        self.bar(&new.name)
    }

    fn unlisted_paths(&self, tunnel: &config::Tunnel) -> Vec<(String, String)> {
        let of = self.unlisted.iter().filter(|_| tunnel.name == "mpt1");
        of.map(|path| ("other".to_owned(), (*path).to_owned())).collect()
    }

    fn change_unlisted(
        &mut self,
        tunnel: &mut config::Tunnel,
        connection: &str,
        path: &str,
        change: &dyn Fn(&mut config::Path),
    ) -> bool {
        let found = self.unlisted.contains(&path) && tunnel.name == "mpt1" && connection == "other";
        if found {
            let mut settings = tunnel.connections[0].paths[0].clone();
            change(&mut settings);
            self.done.push(format!("{path}: {:?} {}", settings.status, settings.weight));
        }
        found
    }

    fn name<'t>(&self, tunnel: &'t config::Tunnel) -> &'t str {
        &tunnel.name
    }

    fn status(&self, _: &config::Tunnel) -> Option<TunnelStatus> {
        None
    }

    fn explain(&self, tunnel: &config::Tunnel, name: Option<&str>) -> Option<Vec<Explanation>> {
        self.bar(&tunnel.name).ok()?;
        let named =
            |connection: &&config::Connection| name.is_none_or(|name| name == connection.name);
        let explain = |connection: &config::Connection| Explanation {
            connection: connection.name.clone(),
            scheduler: self.scheduler.into(),
            ..Explanation::default()
        };
        Some(tunnel.connections.iter().filter(named).map(explain).collect())
    }

    fn trace(
        &self,
        _: &config::Tunnel,
        _: Option<&str>,
        _: Option<TraceMark>,
    ) -> Option<TraceAnswer> {
        None
    }

    fn failure(&self, tunnel: &config::Tunnel) -> Option<String> {
        self.bar(&tunnel.name).err().map(|error| error.to_string())
    }
}

/// A daemon with its file.
struct Fixture {
    daemon: Daemon<Pretending>,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mpt.toml");
        fs::write(&file, FILE).unwrap();
        let (host, settings) = (Pretending::default(), config::load(&file).unwrap());
        let mut daemon = Daemon::start(host, file.clone(), settings, Box::new(|_| ())).unwrap();
        assert_eq!(std::mem::take(&mut daemon.host().0.done), ["start mpt0", "start mpt1"]);
        Self { daemon, file, _folder: folder }
    }

    fn ask(&mut self, request: Request) -> Reply {
        self.daemon.answer(request, ControlStatus::default())
    }

    fn changed(&mut self, request: Request) -> Vec<String> {
        let reply = self.ask(request);
        let Reply::Changed { changes } = reply else { panic!("{reply:?}") };
        changes
    }

    /// Kind, message and report of a refusal.
    fn refused(&mut self, request: Request) -> (ErrorKind, String, String) {
        let reply = self.ask(request);
        let Reply::Error { kind, message, report } = reply else { panic!("{reply:?}") };
        (kind, message, report.unwrap_or_default())
    }

    /// Reloads the file with some text in the place of other.
    fn reload(&mut self, from: &str, to: &str) -> Vec<String> {
        self.write(from, to);
        self.changed(Request::Reload {})
    }

    fn write(&self, from: &str, to: &str) {
        assert!(FILE.contains(from), "{from}");
        fs::write(&self.file, FILE.replace(from, to)).unwrap();
    }

    /// What the machine was asked to do since the last call.
    fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.daemon.host().0.done)
    }

    fn weight(&self, path: &str) -> u16 {
        let paths = &self.daemon.settings().tunnels[0].connections[0].paths;
        paths.iter().find(|other| other.name == path).unwrap().weight
    }
}

fn weight(connection: Option<&str>, path: &str, weight: u16) -> Request {
    let (connection, path) = (connection.map(Into::into), path.into());
    Request::Path { connection, path, status: None, weight: Some(weight), priority: None }
}

fn add_path(connection: Option<&str>, settings: &str) -> Request {
    Request::PathAdd { connection: connection.map(Into::into), settings: settings.into() }
}

#[test]
fn a_reload_touches_what_the_file_changed_and_nothing_else() {
    let mut fixture = Fixture::start();
    assert_eq!(fixture.changed(Request::Reload {}), Vec::<String>::new());
    assert_eq!(fixture.done(), Vec::<String>::new());
    let changes = fixture.reload("'192.0.2.3' }", "'192.0.2.3', weight = 3 }");
    assert_eq!(changes, ["connection other: path radio: weight 1 -> 3"]);
    assert_eq!(fixture.done(), ["change mpt1"]);
    fixture.reload("10.8.0.1/24", "10.8.0.1/25");
    assert_eq!(fixture.done(), ["stop mpt1", "start mpt1"], "it cannot become this");
}

#[test]
fn changes_by_command_stay_unless_the_file_changes_the_same() {
    let mut fixture = Fixture::start();
    assert_eq!(fixture.ask(weight(None, "fibre", 5)), Reply::Done);
    assert_eq!(fixture.ask(weight(Some("server"), "radio", 6)), Reply::Done);
    fixture.changed(add_path(Some("server"), "name = 'third'\nremote = '192.0.2.7'\n"));
    fixture.reload("'192.0.2.1' }", "'192.0.2.1', weight = 9 }");
    assert_eq!((fixture.weight("fibre"), fixture.weight("radio")), (9, 6));
    assert_eq!(fixture.weight("third"), 1, "it is still there");
    // It says the same as before, and so nothing about what was done meanwhile.
    fixture.ask(weight(None, "fibre", 2));
    assert_eq!(fixture.changed(Request::Reload {}), Vec::<String>::new());
    assert_eq!(fixture.weight("fibre"), 2);
}

#[test]
fn a_weight_that_means_nothing_is_changed_and_said_to() {
    let mut fixture = Fixture::start();
    for scheduler in ["earliest", "lowest-rtt", "redundant"] {
        fixture.daemon.host().0.scheduler = scheduler;
        let Reply::Changed { changes } = fixture.ask(weight(None, "fibre", 5)) else {
            panic!("nothing is said")
        };
        let said = format!("no effect as long as connection server has scheduler {scheduler}");
        assert!(changes.len() == 1 && changes[0].contains(&said), "{changes:?}");
        assert_eq!(fixture.weight("fibre"), 5, "for when weights count");
    }
    let up = Request::path_status(None::<&str>, "fibre", PathStatus::Available);
    assert_eq!(fixture.ask(up), Reply::Done, "no weight is changed");
    fixture.daemon.host().0.scheduler = "weighted";
    assert_eq!(fixture.ask(weight(None, "fibre", 6)), Reply::Done);
}

#[test]
fn the_file_wins_where_both_do_not_fit_together() {
    let mut fixture = Fixture::start();
    fixture.changed(add_path(Some("server"), "name = 'third'\nremote = '192.0.2.7'\n"));
    fixture.ask(weight(None, "fibre", 5));
    // The same remote address under another name: the two could not be distinguished.
    let fourth = "'192.0.2.2' }, { name = 'fourth', remote = '192.0.2.7' }";
    let changes = fixture.reload("'192.0.2.2' }", fourth);
    let undone = "changes made by command are undone";
    assert_eq!(changes.last().map(String::as_str), Some(undone), "{changes:?}");
    assert!(
        changes.contains(&"connection server: path fibre: weight 5 -> 1".into()),
        "{changes:?}"
    );
    let paths = &fixture.daemon.settings().tunnels[0].connections[0].paths;
    let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["fibre", "radio", "fourth"]);
    assert_eq!(fixture.weight("fibre"), 1);
}

#[test]
fn a_path_added_by_command_and_file_exists_once() {
    let mut fixture = Fixture::start();
    let third = "name = 'third', remote = '192.0.2.7'";
    fixture.changed(add_path(Some("server"), &third.replace(", ", "\n")));
    fixture.done();
    let added = format!("'192.0.2.2' }}, {{ {third} }}");
    assert_eq!(
        fixture.reload("'192.0.2.2' }", &added),
        Vec::<String>::new(),
        "the operator did so"
    );
    assert_eq!(fixture.done(), Vec::<String>::new());
    fixture.changed(Request::PathRemove { connection: None, path: "third".into() });
    fixture.done();
    assert_eq!(fixture.reload("'192.0.2.2' }", "'192.0.2.2' }"), Vec::<String>::new());
    assert_eq!(fixture.done(), Vec::<String>::new());
}

#[test]
fn a_wrong_file_changes_nothing_and_is_shown() {
    let mut fixture = Fixture::start();
    fixture.write("'192.0.2.1' }", "'192.0.2.1', weight = 0 }");
    let (kind, message, report) = fixture.refused(Request::Reload {});
    assert_eq!(kind, ErrorKind::BadConfig);
    assert!(message.ends_with("is wrong; nothing was changed"), "{message}");
    assert!(report.contains("mpt.toml:8:") && report.contains('^'), "{report}");
    fs::remove_file(&fixture.file).unwrap();
    let (kind, message, _) = fixture.refused(Request::Reload {});
    assert!(kind == ErrorKind::BadConfig && message.contains("nothing was changed"), "{message}");
    assert_eq!(fixture.done(), Vec::<String>::new());
    // What was wrong is not remembered as what the file said.
    fixture.write("'192.0.2.1' }", "'192.0.2.1', weight = 4 }");
    assert_eq!(fixture.changed(Request::Reload {}).len(), 1);
}

#[test]
fn a_change_that_fails_is_reported_and_retried() {
    let mut fixture = Fixture::start();
    fixture.daemon.host().0.barred.push("mpt0");
    let (kind, message, _) =
        fixture.refused(add_path(Some("server"), "name = 'x'\nremote = '192.0.2.7'\n"));
    assert_eq!((kind, message.as_str()), (ErrorKind::Unavailable, "tunnel mpt0: no room for it"));
    assert_eq!(fixture.weight("x"), 1, "it remains wanted");
    fixture.daemon.host().0.barred.clear();
    fixture.done();

    fixture.daemon.host().0.barred.push("mpt2");
    fixture.write("name = 'mpt1'", "name = 'mpt2'");
    let (_, message, _) = fixture.refused(Request::Reload {});
    assert_eq!(message, "tunnel mpt2: no room for it");
    assert_eq!(fixture.done(), ["stop mpt1"]);
    fixture.daemon.host().0.barred.clear();
    assert_eq!(fixture.changed(Request::Reload {}), Vec::<String>::new());
    assert_eq!(fixture.done(), ["start mpt2"], "as soon as it can be had");
}

#[test]
fn a_tunnel_that_could_not_start_again_is_tried_until_it_can() {
    let mut fixture = Fixture::start();
    let mut now = Instant::now();
    fixture.daemon.retry(now + 10 * AGAIN);
    assert_eq!(fixture.done(), Vec::<String>::new(), "everything runs");
    // It cannot become this, so it is stopped, and there is no room for another.
    fixture.daemon.host().0.barred.push("mpt1");
    fixture.write("10.8.0.1/24", "10.8.0.1/25");
    let (_, message, _) = fixture.refused(Request::Reload {});
    assert_eq!(message, "tunnel mpt1: no room for it");
    assert_eq!(fixture.done(), ["stop mpt1"]);
    let silent = |fixture: &Fixture| {
        fixture.daemon.status(ControlStatus::default()).silent_tunnels.contains(&"mpt1".into())
    };
    for _ in 0..3 {
        now += AGAIN;
        fixture.daemon.retry(now);
        assert_eq!((fixture.done(), silent(&fixture)), (Vec::new(), true));
    }
    fixture.daemon.host().0.barred.clear();
    fixture.daemon.retry(now + AGAIN - Duration::from_millis(1));
    assert_eq!(fixture.done(), Vec::<String>::new(), "not sooner than that");
    fixture.daemon.retry(now + AGAIN);
    assert_eq!(fixture.done(), ["start mpt1"], "with what the file says");
    let names: Vec<String> =
        fixture.daemon.host().1.iter().map(|tunnel| tunnel.name.clone()).collect();
    assert_eq!(names, ["mpt0", "mpt1"]);
    assert_eq!(fixture.daemon.host().1[1].addresses[0].len, 25);
    fixture.daemon.retry(now + 10 * AGAIN);
    assert_eq!(fixture.done(), Vec::<String>::new());
}

#[test]
fn a_tunnel_that_fails_ends_alone_and_is_started_again() {
    let mut fixture = Fixture::start();
    let now = Instant::now();
    fixture.daemon.end_failed(now);
    assert_eq!(fixture.done(), Vec::<String>::new(), "nothing has failed");
    fixture.daemon.host().0.barred.push("mpt0");
    fixture.daemon.end_failed(now);
    assert_eq!(fixture.done(), ["stop mpt0"]);
    let failed = |fixture: &Fixture| fixture.daemon.status(ControlStatus::default()).failed_tunnels;
    let reason = || [("mpt0".to_owned(), "no room for it".to_owned())].into();
    assert_eq!(failed(&fixture), reason());
    fixture.daemon.retry(now + AGAIN - Duration::from_millis(1));
    fixture.daemon.retry(now + AGAIN);
    assert_eq!((fixture.done(), failed(&fixture)), (Vec::new(), reason()));
    fixture.daemon.host().0.barred.clear();
    fixture.daemon.retry(now + 2 * AGAIN);
    assert_eq!((fixture.done(), failed(&fixture)), (vec!["start mpt0".into()], [].into()));
}

#[test]
fn a_failed_tunnel_that_is_not_wanted_any_more_is_forgotten() {
    let mut fixture = Fixture::start();
    fixture.daemon.host().0.barred.push("mpt1");
    fixture.daemon.end_failed(Instant::now());
    fixture.write("name = 'mpt1'", "name = 'mpt2'");
    fixture.changed(Request::Reload {});
    let status = fixture.daemon.status(ControlStatus::default());
    assert_eq!(status.failed_tunnels, [].into());
}

#[test]
fn changes_that_need_a_restart_are_reported_and_the_rest_is_applied() {
    let mut fixture = Fixture::start();
    let text = FILE.replace("'192.0.2.1' }", "'192.0.2.1', weight = 4 }");
    fs::write(&fixture.file, format!("[control]\nsocket = '/elsewhere'\n{text}")).unwrap();
    let (_, message, _) = fixture.refused(Request::Reload {});
    assert!(message.contains("control.socket") && message.contains("restarted"), "{message}");
    assert_eq!(fixture.weight("fibre"), 4);
}

#[test]
fn the_environment_overrides_settings_after_every_reload() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mpt.toml");
    fs::write(&file, FILE).unwrap();
    let environment = |settings: &mut config::Settings| settings.tunnels[0].checksum_partial = true;
    let mut settings = config::load(&file).unwrap();
    environment(&mut settings);
    let host = Pretending::default();
    let mut daemon = Daemon::start(host, file, settings, Box::new(environment)).unwrap();
    let reply = daemon.answer(Request::Reload {}, ControlStatus::default());
    assert_eq!(reply, Reply::Changed { changes: Vec::new() });
    assert!(daemon.settings().tunnels[0].checksum_partial);
}

#[test]
fn nothing_runs_unless_everything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mpt.toml");
    fs::write(&file, FILE).unwrap();
    let host = Pretending { barred: vec!["mpt1"], ..Pretending::default() };
    let settings = config::load(&file).unwrap();
    let error = Daemon::start(host, file, settings, Box::new(|_| ())).err().unwrap();
    assert_eq!(format!("{error:#}"), "cannot start tunnel `mpt1`: no room for it");
}

#[test]
fn the_remaining_configuration_must_be_valid() {
    let mut fixture = Fixture::start();
    let (kind, message, report) =
        fixture.refused(Request::ConnectionRemove { connection: "server".into() });
    assert_eq!(kind, ErrorKind::BadConfig);
    assert_eq!(message, "the remaining configuration is invalid; nothing was changed");
    assert!(report.contains("what would run:") && report.contains('^'), "{report}");
    let (kind, ..) = fixture
        .refused(Request::PathRemove { connection: Some("other".into()), path: "radio".into() });
    assert_eq!(kind, ErrorKind::BadConfig);
    for (wrong, place) in
        [("name = 'x'\nremote = '192.0.2.1'", "path add:"), ("remote = 'x:y'", "path add:1:10")]
    {
        let (kind, message, report) = fixture.refused(add_path(Some("server"), wrong));
        assert_eq!(
            (kind, message.as_str()),
            (ErrorKind::BadConfig, "path add: invalid settings; nothing was changed")
        );
        assert!(report.contains(place) && report.contains('^'), "{report}");
    }
    for wrong in [0, 10_001] {
        let (kind, message, _) = fixture.refused(weight(None, "fibre", wrong));
        assert_eq!(
            (kind, message),
            (ErrorKind::BadConfig, format!("a weight is 1 to 10000, not {wrong}"))
        );
    }
    assert_eq!(fixture.done(), Vec::<String>::new());
}

#[test]
fn an_ambiguous_name_is_refused() {
    let mut fixture = Fixture::start();
    let path = |connection: Option<&str>, path: &str| {
        Request::path_status(connection, path, PathStatus::Off)
    };
    for (request, kind, words) in [
        (path(None, "radio"), ErrorKind::AmbiguousPath, "name the connection too (server, other)"),
        (path(None, "wire"), ErrorKind::NoSuchPath, "there are fibre, radio"),
        (path(Some("other"), "fibre"), ErrorKind::NoSuchPath, "there is radio"),
        (path(Some("x"), "fibre"), ErrorKind::NoSuchConnection, "there are server, other"),
        (add_path(None, ""), ErrorKind::NoSuchConnection, "there are server, other"),
        (
            Request::ConnectionAdd { tunnel: None, settings: String::new() },
            ErrorKind::NoSuchConnection,
            "there are mpt0, mpt1",
        ),
        (
            Request::ConnectionAdd { tunnel: Some("mpt2".into()), settings: String::new() },
            ErrorKind::NoSuchConnection,
            "there are mpt0, mpt1",
        ),
        (
            Request::ConnectionRemove { connection: "x".into() },
            ErrorKind::NoSuchConnection,
            "there are server, other",
        ),
    ] {
        let (found, message, _) = fixture.refused(request);
        assert!(found == kind && message.contains(words), "{found:?}: {message}");
    }
    let warning =
        "connection other has no path in service any more: packets to its peer are dropped";
    assert_eq!(fixture.changed(path(Some("other"), "radio")), [warning]);
    assert_eq!(fixture.done(), ["change mpt1"]);
    assert_eq!(fixture.ask(path(None, "fibre")), Reply::Done);
    assert_eq!(fixture.done(), ["change mpt0"]);
}

#[test]
fn one_connection_or_all_are_explained() {
    let mut fixture = Fixture::start();
    let explain =
        |connection: Option<&str>| Request::Explain { connection: connection.map(str::to_owned) };
    for (name, expected) in [(None, &["server", "other"][..]), (Some("other"), &["other"])] {
        let Reply::Explanation { connections } = fixture.ask(explain(name)) else { panic!("none") };
        let names: Vec<_> = connections.iter().map(|it| it.connection.as_str()).collect();
        assert_eq!(names, expected);
    }
    let (kind, message, _) = fixture.refused(explain(Some("x")));
    assert_eq!(kind, ErrorKind::NoSuchConnection);
    assert!(message.contains("there are server, other"), "{message}");
    fixture.daemon.host().0.barred = vec!["mpt1"];
    let (kind, message, _) = fixture.refused(explain(None));
    assert!(kind == ErrorKind::Unavailable && message.contains("mpt1"), "{message}");
}

#[test]
fn connections_come_and_go_by_command() {
    let mut fixture = Fixture::start();
    let settings = "name = 'third'\npeer = ['10.8.0.3']\nlocal_port = 4755\nkey = 3\n\
                    [[path]]\nname = 'a'\nremote = '192.0.2.3'\n";
    let request = Request::ConnectionAdd { tunnel: Some("mpt1".into()), settings: settings.into() };
    assert_eq!(fixture.changed(request.clone()), ["connection third: added to tunnel mpt1"]);
    assert_eq!(fixture.refused(request).0, ErrorKind::BadConfig, "it is there already");
    let Reply::Config { text } = fixture.ask(Request::Config {}) else { panic!("no file") };
    fs::write(&fixture.file, text).unwrap();
    assert_eq!(config::load(&fixture.file).unwrap(), *fixture.daemon.settings());
    let request = Request::ConnectionRemove { connection: "third".into() };
    assert_eq!(fixture.changed(request), ["connection third: removed"]);
    assert_eq!(fixture.done(), ["change mpt1", "change mpt1"]);
}

#[test]
fn paths_that_no_file_lists_obey_commands_by_their_names() {
    let mut fixture = Fixture::start();
    fixture.daemon.host().0.unlisted = vec!["eth0", "fibre"];
    let off = |connection, path| Request::path_status(connection, path, PathStatus::Off);
    assert_eq!(fixture.ask(off(None, "eth0")), Reply::Done);
    assert_eq!(fixture.ask(off(Some("other"), "fibre")), Reply::Done);
    assert_eq!(fixture.done(), ["eth0: Off 1", "fibre: Off 1"]);
    let (kind, message, _) = fixture.refused(off(None, "fibre"));
    assert_eq!(kind, ErrorKind::AmbiguousPath, "{message}");
    let (kind, message, _) = fixture.refused(off(None, "eth1"));
    assert_eq!(kind, ErrorKind::NoSuchPath);
    assert!(message.contains("fibre, radio, eth0"), "{message}");
    let remove = Request::PathRemove { connection: None, path: "eth0".into() };
    let (kind, message, _) = fixture.refused(remove);
    assert_eq!(kind, ErrorKind::BadConfig);
    assert!(message.contains("exclude"), "{message}");
    assert_eq!(fixture.done(), Vec::<String>::new());
}
