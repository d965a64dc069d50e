//! The machines that packages and static programs are made for.

use anyhow::bail;

/// One kind of machine, by Debian's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Architecture {
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
    pub(crate) fn of_this_machine() -> anyhow::Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::Amd64),
            "aarch64" => Ok(Self::Arm64),
            other => bail!("packages are not made for {other}: use --arch amd64 or arm64"),
        }
    }

    /// Debian's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The compiler's name.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The compiler's name, with musl as the C library.
    pub(crate) fn musl_target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Its number in the header of programs (ELF, `e_machine`).
    pub(crate) fn machine(self) -> u16 {
        match self {
            Self::Amd64 => 62,
            Self::Arm64 => 183,
        }
    }

    /// What the names of programs begin with that make code for it on other machines.
    pub(crate) fn tools(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-",
            Self::Arm64 => "aarch64-linux-gnu-",
        }
    }
}
