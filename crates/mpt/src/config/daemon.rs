//! Reading what concerns the whole process: `[control]`, `[daemon]`, `[metrics]` and `[web]`.

use super::report::{Problem, Problems};
use super::schema::Tabled as _;
use super::table::Table;
use super::{Control, Daemon, Listen, Metrics, Web};

/// The `[control]` of the file, or `None` with what is wrong noted.
pub(super) fn control(root: &Table<'_>, problems: &mut Problems) -> Option<Control> {
    let Some(table) = root.table("control", &Control::KEYS, problems).ok()? else {
        return Some(Control::default());
    };
    let read = Control::read(&table, (), problems);
    table.finish(problems);
    read.whole()
}

/// The `[daemon]` of the file, or `None` with what is wrong noted.
pub(super) fn daemon(root: &Table<'_>, problems: &mut Problems) -> Option<Daemon> {
    let Some(table) = root.table("daemon", &Daemon::KEYS, problems).ok()? else {
        return Some(Daemon::default());
    };
    let read = Daemon::read(&table, (), problems);
    table.finish(problems);
    read.whole()
}

/// The `[metrics]` of the file, or `None` with what is wrong noted.
pub(super) fn metrics(root: &Table<'_>, problems: &mut Problems) -> Option<Metrics> {
    let Some(table) = root.table("metrics", &Metrics::KEYS, problems).ok()? else {
        return Some(Metrics::default());
    };
    let read = Metrics::read(&table, (), problems);
    table.finish(problems);
    read.whole()
}

/// The `[web]` of the file, or `None` with what is wrong noted. It cannot be where `control` or `metrics` are.
pub(super) fn web(
    root: &Table<'_>,
    control: Option<&Control>,
    metrics: Option<&Metrics>,
    problems: &mut Problems,
) -> Option<Web> {
    let Some(table) = root.table("web", &Web::KEYS, problems).ok()? else {
        return Some(Web::default());
    };
    let read = Web::read(&table, (), problems);
    let (taken, help) = match read.listen.as_ref().and_then(Option::as_ref) {
        Some(Listen::Address(address)) if address.port() != 0 => {
            let listen = metrics.and_then(|metrics| metrics.listen);
            (listen == Some(*address), "choose another port, such as \"127.0.0.1:9480\"")
        }
        Some(Listen::Socket(path)) => {
            let is_it = control.is_some_and(|control| control.socket == *path);
            (is_it, "choose another path, such as \"/run/mpt/web.sock\"")
        }
        Some(Listen::Address(_)) | None => (false, ""),
    };
    if taken {
        let problem = Problem::new("two services at one place", table.span_of("listen"));
        let label = match read.listen {
            Some(Some(Listen::Socket(_))) => "is `socket` in [control]",
            _ => "is `listen` in [metrics]",
        };
        problems.push(problem.label(label).help(help));
    }
    table.finish(problems);
    read.whole()
}
