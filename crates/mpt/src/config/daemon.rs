//! Reading what concerns the whole process: `[control]`, `[daemon]`, `[metrics]` and `[web]`.

use super::report::Problems;
use super::schema::Tabled as _;
use super::table::Table;
use super::{Control, Daemon, Metrics, Web};

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

/// The `[web]` of the file, or `None` with what is wrong noted.
pub(super) fn web(root: &Table<'_>, problems: &mut Problems) -> Option<Web> {
    let Some(table) = root.table("web", &Web::KEYS, problems).ok()? else {
        return Some(Web::default());
    };
    let read = Web::read(&table, (), problems);
    table.finish(problems);
    read.whole()
}
