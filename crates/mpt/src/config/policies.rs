//! What a connection and a template of connections say in the same words: how packets are framed,
//! spread over the paths and put in order.

use super::report::Problems;
use super::table::Table;
use super::value::Value;
use super::{Profile, Reorder, Scheduler, reorder, value};

/// The values of the shared keys; the meaning of each is that of the field of
/// [`Connection`](super::Connection) with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policies {
    pub(super) profile: Profile,
    pub(super) scheduler: Scheduler,
    pub(super) key: Option<u32>,
    pub(super) checksum: bool,
    pub(super) sequence: bool,
    pub(super) reorder: Reorder,
}

/// The shared values of the connection or template in `table`, each `None` with what is wrong noted.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Read {
    let scheduler = table.optional(
        "scheduler",
        Scheduler::Weighted,
        problems,
        value::one_of(&[("weighted", Scheduler::Weighted), ("flow", Scheduler::Flow)]),
    );
    Read {
        profile: table.optional("profile", Profile::Auto, problems, profile),
        scheduler,
        key: table.optional("key", None, problems, |value, problems| {
            value::integer(0..=u32::MAX)(value, problems).map(Some)
        }),
        checksum: table.optional("checksum", false, problems, value::flag),
        sequence: table.optional("sequence", true, problems, value::flag),
        reorder: reorder::read(table, scheduler.unwrap_or(Scheduler::Weighted), problems),
    }
}

/// What has been read; what is faulty is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    profile: Option<Profile>,
    /// Needed to judge the paths' pins.
    pub(super) scheduler: Option<Scheduler>,
    /// Needed to tell paths apart.
    pub(super) key: Option<Option<u32>>,
    checksum: Option<bool>,
    sequence: Option<bool>,
    reorder: Option<Reorder>,
}

impl Read {
    /// All of it, unless something is faulty.
    pub(super) fn whole(self) -> Option<Policies> {
        Some(Policies {
            profile: self.profile?,
            scheduler: self.scheduler?,
            key: self.key?,
            checksum: self.checksum?,
            sequence: self.sequence?,
            reorder: self.reorder?,
        })
    }
}

fn profile(value: &Value<'_>, problems: &mut Problems) -> Option<Profile> {
    if value.get().as_str() == Some("adaptive") {
        problems.push(
            value.impossible("not available yet").help(
                "write \"auto\", which always takes the best profile there is, or \"classic\"",
            ),
        );
        return None;
    }
    value::one_of(&[("auto", Profile::Auto), ("classic", Profile::Classic)])(value, problems)
}
