//! How much of the quota of a path is used, in words.

use mpt_control::QuotaState;

use super::quantity::{bytes, duration, ms, percent};

/// In a line of the status: `lte quota: ` goes before it.
pub(crate) fn fact(quota: &QuotaState) -> String {
    let mut text = format!(
        "{} of {} used ({} %)",
        bytes(quota.used),
        bytes(quota.bytes),
        percent(quota.used as f64 / quota.bytes.max(1) as f64)
    );
    if let Some(interface) = &quota.interface {
        text += &format!(" on {interface}");
    }
    text +=
        &left(quota).map_or(", the clock is not set".to_owned(), |left| format!(", {left} left"));
    if quota.used_up {
        text += "; it carries only while no other path is up";
    } else if quota.surcharge_ms > 0 {
        text += &format!("; its price is {} ms higher", quota.surcharge_ms);
    }
    text
}

/// As sentences about a path, with what follows from it.
pub(super) fn sentences(quota: &QuotaState) -> String {
    let (all, used) = (bytes(quota.bytes), bytes(quota.used));
    let (who, whose) = match &quota.interface {
        Some(interface) => (format!("The paths by {interface} have"), "their"),
        None => ("It has".to_owned(), "its"),
    };
    let use_of = if quota.used_up {
        format!(
            "{who} used up {whose} quota of {all} ({used} were carried): it carries packets only while no other path is up."
        )
    } else if quota.surcharge_ms > 0 {
        let longer = ms(quota.surcharge_ms as f64);
        format!(
            "{who} used {used} of {whose} quota of {all}, which is more than the share of the month that has passed: a \
             packet waits {longer} ms longer for the other paths before it takes this one."
        )
    } else {
        format!("{who} used {used} of {whose} quota of {all}, which costs nothing so far.")
    };
    let end = match left(quota) {
        Some(left) => format!("The month ends in {left}."),
        None => "The host's clock is not set, so it is not known when the month ends.".to_owned(),
    };
    format!("{use_of} {end}")
}

fn left(quota: &QuotaState) -> Option<String> {
    quota.seconds_left.map(|seconds| duration(seconds as f64))
}
