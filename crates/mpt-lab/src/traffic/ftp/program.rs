//! The server programs and where they are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::access;
use nix::unistd::{AccessFlags, Uid};

/// The folders of system programs, which are only in root's `PATH`.
const SYSTEM: [&str; 5] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin"];

/// A program that serves files over FTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The library of that name, run by Python.
    Pyftpdlib,
    /// vsftpd, of the published measurements. Only for root, as it changes users.
    Vsftpd,
}

/// No server program can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no FTP server: {lacking}; fix it with: {remedy}")]
pub struct Unavailable {
    lacking: String,
    remedy: &'static str,
}

impl Unavailable {
    /// The command that fixes it.
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }
}

impl Program {
    /// The program that should serve: vsftpd if possible, or pyftpdlib. `mptcp` says whether any of
    /// the compared systems is Multipath TCP.
    ///
    /// # Errors
    ///
    /// Neither can be used here.
    pub fn find(mptcp: bool) -> Result<Self, Unavailable> {
        let Err(vsftpd) = Self::Vsftpd.command(mptcp) else { return Ok(Self::Vsftpd) };
        match Self::Pyftpdlib.command(mptcp) {
            Ok(_) => Ok(Self::Pyftpdlib),
            Err(Unavailable { lacking, remedy }) => {
                Err(Unavailable { lacking: format!("{}, and {lacking}", vsftpd.lacking), remedy })
            }
        }
    }

    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pyftpdlib => "pyftpdlib",
            Self::Vsftpd => "vsftpd",
        }
    }

    /// What to run before the arguments of the server, its absolute path first.
    pub(super) fn command(self, mptcp: bool) -> Result<Vec<OsString>, Unavailable> {
        match self {
            Self::Pyftpdlib => Ok(vec![python()?.into()]),
            Self::Vsftpd => vsftpd(mptcp),
        }
    }
}

fn vsftpd(mptcp: bool) -> Result<Vec<OsString>, Unavailable> {
    if !is_real_root() {
        let lacking = "vsftpd must be started by root".into();
        return Err(Unavailable { lacking, remedy: "sudo -s" });
    }
    let find = |name: &str, remedy| -> Result<OsString, Unavailable> {
        let missing = || Unavailable { lacking: format!("{name} is not installed"), remedy };
        candidates(name).next().map(OsString::from).ok_or_else(missing)
    };
    let server = find("vsftpd", "apt-get install vsftpd")?;
    let fence = find("unshare", "apt-get install util-linux")?;
    // Each session is two more processes, which neither a group nor a parent's death would reach. All
    // processes of a PID namespace end with its first one (pid_namespaces(7)), and that with the fence.
    // The first one is a shell, as it inherits orphans, of whom vsftpd would die.
    let mut command = vec![fence, "--pid".into(), "--fork".into(), "--kill-child".into()];
    command.extend(["sh", "-c", "\"$@\"; exit $?", "sh"].map(OsString::from));
    if mptcp {
        // vsftpd asks for TCP; this makes the kernel hear another protocol.
        command.extend([find("mptcpize", "apt-get install mptcpize")?, "run".into()]);
    }
    command.push(server);
    Ok(command)
}

/// The first Python that has the library; not every one that is installed has.
fn python() -> Result<PathBuf, Unavailable> {
    let has_library = |python: &PathBuf| {
        Command::new(python)
            .args(["-c", "import pyftpdlib.servers"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    candidates("python3").find(has_library).ok_or_else(|| Unavailable {
        lacking: "no python3 has pyftpdlib".into(),
        remedy: "apt-get install python3-pyftpdlib",
    })
}

/// All programs of this name, those of `PATH` first.
fn candidates(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).chain(SYSTEM.map(PathBuf::from)).collect();
    let programs = folders.into_iter().map(move |folder| folder.join(name));
    programs.filter(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.is_absolute() && path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// Whether this is root of the machine, who may become any user, and not only of a user namespace.
fn is_real_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    Uid::effective().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_executable_is_no_candidate() {
        assert!(candidates("sh").next().is_some());
        assert!(candidates("no-such-program").next().is_none());
        assert!(!is_program(Path::new("/")), "a folder can be entered, not run");
        assert!(!is_program(Path::new("/etc/passwd")));
    }

    #[test]
    fn what_is_missing_comes_with_the_remedy() {
        for program in [Program::Pyftpdlib, Program::Vsftpd] {
            if let Err(unavailable) = program.command(true) {
                assert!(unavailable.to_string().contains(unavailable.remedy()));
            }
        }
    }
}
