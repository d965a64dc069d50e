//! How a command ends.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done = 0,
    /// It ran, with a negative result: the file has errors, there is no such path.
    Negative = 1,
    /// It could not run: wrong usage, no daemon, no permission.
    Failure = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
