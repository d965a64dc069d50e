//! Something that the host lacks.

use std::fmt;

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
    /// The command that fixes it, or shows what to choose from. Words in capitals are to be replaced.
    pub(crate) fix: String,
}

impl Finding {
    pub(super) fn error(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let (what, why, fix) = (what.into(), why.into(), fix.into());
        Self { severity: Severity::Error, what, why, fix }
    }

    pub(super) fn warning(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(what, why, fix) }
    }
}

impl Finding {
    /// What is wrong and what to do, in one line.
    pub(crate) fn in_a_line(&self) -> String {
        format!("{}: {}", self.what, self.fix)
    }
}

impl fmt::Display for Finding {
    /// Two lines, the second indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, what, why, fix } = self;
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {what}: {why}\n  fix: {fix}")
    }
}
