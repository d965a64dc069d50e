//! The times by which a path is watched, which a path and a template say in the same words.

use std::time::Duration;

use super::report::{Problem, Problems};
use super::table::Table;
use super::{Path, PeerKind, value};

/// Shortest time between keepalives. More than a hundred per second and path are load, not a
/// question whether somebody is there.
const MIN_KEEPALIVE: Duration = Duration::from_millis(10);

/// Longest keepalive and dead time. What may be silent for a day is not watched at all.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The values of the shared keys, as in [`Path`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pub(super) keepalive: Duration,
    pub(super) dead_time: Duration,
}

/// The times in `table` towards a peer of this kind, or `None` with what is wrong noted.
pub(super) fn read(
    table: &Table<'_>,
    peer_kind: PeerKind,
    problems: &mut Problems,
) -> Option<Timers> {
    if peer_kind == PeerKind::Gre {
        return without(table, problems);
    }
    let keepalive = table.optional(
        "keepalive",
        Path::default_keepalive(peer_kind),
        problems,
        value::seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("none are sent")),
    );
    let dead_time = table.optional(
        "dead_time",
        keepalive.map_or(Duration::ZERO, Path::default_dead_time),
        problems,
        value::seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("never")),
    );
    let timers = Timers { keepalive: keepalive?, dead_time: dead_time? };
    check(timers, table, problems);
    Some(timers)
}

/// None, since an endpoint of RFC 8086 would take a keepalive for a malformed packet and sends none.
fn without(table: &Table<'_>, problems: &mut Problems) -> Option<Timers> {
    let mut timers = Some(Timers { keepalive: Duration::ZERO, dead_time: Duration::ZERO });
    for key in ["keepalive", "dead_time"].into_iter().filter(|key| table.has(key)) {
        problems.push(
            Problem::new(format!("`{key}` on a path to a GRE endpoint"), table.span_of(key))
                .label("it does not support keepalives")
                .help(format!(
                    "remove `{key}`: the path is up as long as this host has its interface, address \
                     and route"
                )),
        );
        timers = None;
    }
    timers
}

fn check(Timers { keepalive, dead_time }: Timers, table: &Table<'_>, problems: &mut Problems) {
    if keepalive.is_zero() || dead_time.is_zero() || dead_time > keepalive {
        return;
    }
    // The default is long enough, so it was written.
    problems.push(
        Problem::new("`dead_time` is not longer than `keepalive`", table.span_of("dead_time"))
            .label(format!(
                "keepalive is {} s, dead_time {} s",
                keepalive.as_secs_f64(),
                dead_time.as_secs_f64()
            ))
            .help(
                "a path would be down between two keepalives: set dead_time to at least twice \
                keepalive, or set one of them to 0",
            ),
    );
}
