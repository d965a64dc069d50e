//! Files, folders and addresses that the settings name.

use crate::preflight::facts::{Facts, Fault, Of};
use crate::preflight::finding::Finding;

pub(super) fn judge(facts: &Facts) -> impl Iterator<Item = Finding> + '_ {
    facts.faults.iter().map(|Fault { of, what, fix }| match of {
        Of::Client(template) => {
            let why = format!("that client of template {template} is not let in");
            Finding::warning(what, why, fix)
        }
        Of::Connection(name) => {
            Finding::warning(what, format!("connection {name} does not come up"), fix)
        }
        Of::Quotas => Finding::warning(what, "a restart forgets how much of quotas is used", fix),
        Of::Start => Finding::error(what, "`mpt run` does not start", fix),
    })
}
