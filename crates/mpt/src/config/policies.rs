//! What a connection and a template of connections say in the same words: how packets are framed,
//! spread over the paths and put in order.

use mpt_proto::PeerKind;

use super::report::{Problem, Problems};
use super::table::Table;
use super::{Framing, Policies, PoliciesRead, Profile, Reorder, Scheduler, reorder, value};

/// The policies of the connection or template in `table`, each `None` with what is wrong noted. The peer is
/// of this kind.
pub(super) fn read(
    table: &Table<'_>,
    peer_kind: PeerKind,
    problems: &mut Problems,
) -> PoliciesRead {
    let mut read = Policies::read(table, peer_kind, problems);
    read.framing = table.optional(
        "framing",
        Framing::default_for(peer_kind),
        problems,
        value::one_of(Framing::WORDS),
    );
    if peer_kind != PeerKind::Mpt && read.framing.is_some_and(|framing| framing != Framing::Plain) {
        problems.push(
            Problem::new(
                format!("framing of a connection to a peer of kind `{}`", peer_kind.name()),
                table.span_of("framing"),
            )
            .label("it understands plain framing only")
            .help("remove `framing`, or write \"plain\""),
        );
        read.framing = None;
    }
    let framing = read.framing.unwrap_or(Framing::default_for(peer_kind));
    let mut profile = read.profile.unwrap_or(Profile::Auto);
    if profile == Profile::Adaptive && framing == Framing::Plain {
        problems.push(
            Problem::new("profile of a connection in plain framing", table.span_of("profile"))
                .label("it needs measurements that only extended framing makes")
                .help("write \"auto\" or \"classic\", or another `framing` if the peer is of kind `mpt`"),
        );
        (profile, read.profile) = (Profile::Auto, None);
    }
    let default = Scheduler::default_for(profile, framing);
    read.scheduler =
        table.optional("scheduler", default, problems, value::one_of(Scheduler::WORDS));
    let scheduler = read.scheduler.unwrap_or(default);
    read.reorder = reorder::read(table, Reorder::default_for(scheduler, peer_kind), problems);
    if peer_kind == PeerKind::Original {
        let numbered = read.reorder.map(|reorder| reorder.window > 0);
        read.sequence = numbered.filter(|_| fits_original(table, problems));
        (read.key, read.checksum) = (Some(None), Some(false));
    } else {
        let default = peer_kind == PeerKind::Mpt;
        read.sequence = table.optional("sequence", default, problems, value::flag);
    }
    read
}

/// Whether there is nothing that an original MPT would not understand.
fn fits_original(table: &Table<'_>, problems: &mut Problems) -> bool {
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
    fine
}
