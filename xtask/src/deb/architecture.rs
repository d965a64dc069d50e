//! The machines that packages are made for.

use anyhow::bail;

/// One kind of machine, by Debian's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Architecture {
    /// Machines like the one that this runs on.
    ///
    /// # Errors
    /// No packages are made for those.
    pub(super) fn of_this_machine() -> anyhow::Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::Amd64),
            "aarch64" => Ok(Self::Arm64),
            other => bail!("packages are not made for {other}: use --arch amd64 or arm64"),
        }
    }

    /// Debian's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The compiler's name.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// What the names of programs begin with that make code for it on other machines.
    pub(super) fn tools(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-",
            Self::Arm64 => "aarch64-linux-gnu-",
        }
    }
}
