//! What a host lacks to run a configuration, and the command that mends it.
//!
//! Three steps, one module each. [`needs`] says what the settings want of the host: sockets, paths,
//! families. [`gather`] looks at the host, by `/proc` and netlink and by opening what the daemon
//! would open, and path updates plain [`Facts`]; it changes nothing. [`findings`] compares the two, and is a
//! pure function, so that every finding is tested without a host that has the fault.
//!
//! Only what is known is told. A fact that could not be found out, for want of privilege or because
//! the kernel has no such thing, is no finding.

mod facts;
mod findings;
mod gather;
mod holder;
mod needs;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::config::Settings;

use facts::Facts;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// `mpt run` would fail, started as this user.
    Error,
    /// It would run, but not all that is configured would work.
    Warning,
}

/// Something that the host lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What is missing or wrong.
    pub(crate) what: String,
    /// What comes of it.
    pub(crate) why: String,
    /// The command that mends it, or shows what to choose from. Words in capitals are to be replaced.
    pub(crate) mend: String,
}

impl Finding {
    fn error(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        let (what, why, mend) = (what.into(), why.into(), mend.into());
        Self { severity: Severity::Error, what, why, mend }
    }

    fn warning(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(what, why, mend) }
    }
}

impl fmt::Display for Finding {
    /// Two lines, the second indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, what, why, mend } = self;
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {what}: {why}\n  mend: {mend}")
    }
}

/// What this host lacks to run `settings`, the errors first.
pub(crate) fn lacks(settings: &Settings) -> Vec<Finding> {
    findings::findings(settings, &Facts::gather(settings))
}
