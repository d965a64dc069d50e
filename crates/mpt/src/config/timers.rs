//! The times by which a path is watched, which paths, templates and connections say in the same words.

use std::time::Duration;

use mpt_proto::PeerKind;

use super::report::{Problem, Problems};
use super::table::Table;
use super::value::{Kind, Seconds, integer, seconds};

/// Shortest time between keepalives. More than a hundred per second and path would be load without
/// benefit.
const MIN_KEEPALIVE: Duration = Duration::from_millis(10);

/// Longest keepalive and dead time. What may be silent for a day is not watched at all.
const MAX_SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest time after which a path is forgotten.
const MIN_FORGET: Duration = Duration::from_secs(1);

/// Silence after which a path is forgotten unless configured.
pub(super) const FORGET: Duration = Duration::from_secs(300);

/// The time between keepalives.
pub(super) fn keepalive() -> Seconds {
    seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("none are sent"))
}

/// The silence after which a path is down.
pub(super) fn dead_time() -> Seconds {
    seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("never"))
}

/// The silence after which a path is forgotten.
pub(super) fn forget() -> Seconds {
    seconds(MIN_FORGET..=MAX_SILENCE, None)
}

/// How long a path may be silently dead while nothing is sent on it, in milliseconds: no less than what a hundred path statuses
/// per second show.
pub(super) fn failover() -> impl Kind<u16> {
    integer(100..=60_000)
}

/// Says what is wrong with the times in `table` towards a peer of this kind.
pub(super) fn check(
    peer_kind: PeerKind,
    keepalive: Option<Duration>,
    dead_time: Option<Duration>,
    table: &Table<'_>,
    problems: &mut Problems,
) {
    if peer_kind == PeerKind::Gre {
        check_without(table, problems);
    } else if let (Some(keepalive), Some(dead_time)) = (keepalive, dead_time) {
        check_order(keepalive, dead_time, table, problems);
    }
}

/// An endpoint of RFC 8086 would take a keepalive for a malformed packet and sends none.
fn check_without(table: &Table<'_>, problems: &mut Problems) {
    for key in ["keepalive", "dead_time", "failover"].into_iter().filter(|key| table.has(key)) {
        problems.push(
            Problem::new(format!("`{key}` on a path to a GRE endpoint"), table.span_of(key))
                .label("it does not support keepalives")
                .help(format!(
                    "remove `{key}`: the path is up as long as this host has its interface, address \
                     and route"
                )),
        );
    }
}

fn check_order(
    keepalive: Duration,
    dead_time: Duration,
    table: &Table<'_>,
    problems: &mut Problems,
) {
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

/// Says what is wrong with the time after which a silent path is forgotten.
pub(super) fn check_forget(
    forget: Option<Duration>,
    dead_time: Duration,
    table: &Table<'_>,
    problems: &mut Problems,
) {
    let Some(forget) = forget.filter(|forget| *forget <= dead_time) else { return };
    let at = if table.has("forget") { "forget" } else { "dead_time" };
    problems.push(
        Problem::new("a path is forgotten before it is down", table.span_of(at))
            .label(format!(
                "forget is {} s, dead_time {} s",
                forget.as_secs_f64(),
                dead_time.as_secs_f64()
            ))
            .help(
                "set `forget` longer than `dead_time`, so that a path can recover before it is removed",
            ),
    );
}
