//! Files of the original MPT, as a configuration: found and read here, turned into the text of one by
//! [`mpt_original::import`], and judged by the reader of our own files.

mod files;
#[cfg(test)]
mod tests;

use mpt_original::import::{self, Malformed, Sources, Target};

use crate::config::{self, Mtu, Problem, Reorder, Report, Settings, interface_fault};

pub(crate) use files::find;
pub(crate) use mpt_original::import::{ImportError, Imported, Peer};

/// Makes a configuration of files of the original. `name` is how the report calls it that says what is
/// wrong with it.
///
/// # Errors
///
/// See [`ImportError`].
pub(crate) fn import(
    from: &Sources,
    peer: Peer,
    name: &str,
) -> Result<(Imported, Result<Settings, Report>), ImportError> {
    let target = Target {
        peer,
        mtu: Mtu::MIN..=Mtu::MAX,
        min_mtu_ipv6: Mtu::MIN_IPV6,
        max_window: Reorder::MAX_WINDOW,
        max_delay: Reorder::MAX_DELAY,
        interface_fault,
    };
    let imported = import::import(from, &target)?;
    let verdict = config::judge(&imported.text, name);
    Ok((imported, verdict))
}

/// What is wrong with a file of the original, as it is shown.
pub(crate) fn report(malformed: &Malformed) -> Report {
    let problem = |problem: &import::Problem| {
        let import::Problem { title, span, label, help } = problem.clone();
        Problem::new(title, span).label(label).help(help)
    };
    let Malformed { name, text, problems } = malformed;
    Report::new(name.clone(), text.clone(), problems.iter().map(problem).collect())
}
