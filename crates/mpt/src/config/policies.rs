//! What a connection and a template of connections say in the same words: how packets are framed,
//! spread over the paths and put in order.

use super::report::{Problem, Problems};
use super::table::Table;
use super::value::Value;
use super::{PeerKind, Profile, Reorder, Scheduler, reorder, value};

/// How a connection treats its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Policies {
    /// The named set of policies.
    pub(crate) profile: Profile,
    /// The policy that chooses a path per packet.
    pub(crate) scheduler: Scheduler,
    /// The GRE key, if any; none towards an original MPT.
    pub(crate) key: Option<u32>,
    /// Whether datagrams carry the GRE checksum; never towards an original MPT.
    pub(crate) checksum: bool,
    /// Whether datagrams carry a sequence number; towards an original MPT exactly if there is a window.
    pub(crate) sequence: bool,
    /// Receive-side ordering.
    pub(crate) reorder: Reorder,
}

/// The policies of the connection or template in `table`, each `None` with what is wrong noted. The peer is
/// of this kind.
pub(super) fn read(table: &Table<'_>, peer_kind: PeerKind, problems: &mut Problems) -> Read {
    let scheduler = table.optional(
        "scheduler",
        Scheduler::Weighted,
        problems,
        value::one_of(&[("weighted", Scheduler::Weighted), ("flow", Scheduler::Flow)]),
    );
    let default = Reorder::default_for(scheduler.unwrap_or(Scheduler::Weighted), peer_kind);
    let reorder = reorder::read(table, default, problems);
    let profile = table.optional("profile", Profile::Auto, problems, profile);
    if peer_kind == PeerKind::Original {
        return for_original(table, profile, scheduler, reorder, problems);
    }
    let sequence = PeerKind::Mpt == peer_kind;
    Read {
        profile,
        scheduler,
        key: table.optional("key", None, problems, |value, problems| {
            value::integer(0..=u32::MAX)(value, problems).map(Some)
        }),
        checksum: table.optional("checksum", false, problems, value::flag),
        sequence: table.optional("sequence", sequence, problems, value::flag),
        reorder,
    }
}

/// What an original MPT understands of it.
fn for_original(
    table: &Table<'_>,
    profile: Option<Profile>,
    scheduler: Option<Scheduler>,
    reorder: Option<Reorder>,
    problems: &mut Problems,
) -> Read {
    let mut fine = true;
    for (key, label, help) in [
        ("key", "it would take the key for the packet", "tell its connections apart by ports"),
        ("checksum", "it would take the checksum for the packet", "UDP has a checksum of its own"),
        (
            "sequence",
            "each end sends sequence numbers if its own window is above 0",
            "packets have sequence numbers if the `window` of `reorder` is above 0",
        ),
    ] {
        if table.has(key) {
            problems.push(
                Problem::new(format!("`{key}` towards an original MPT"), table.span_of(key))
                    .label(label)
                    .help(format!("remove `{key}`; {help}")),
            );
            fine = false;
        }
    }
    let sequence = reorder.map(|reorder| reorder.window > 0).filter(|_| fine);
    Read { profile, scheduler, key: Some(None), checksum: Some(false), sequence, reorder }
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
            value
                .impossible("not available yet")
                .help("write \"auto\", which selects the best available profile, or \"classic\""),
        );
        return None;
    }
    value::one_of(&[("auto", Profile::Auto), ("classic", Profile::Classic)])(value, problems)
}
