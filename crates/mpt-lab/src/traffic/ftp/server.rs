//! A server program at work in a host.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::{FILE, Program, Unavailable};
use crate::guard;
use crate::lab::Host;
use crate::lab::mptcp::{Doors, Mptcp};

/// Where the server listens for clients. The usual port, 21, may be refused to a user other than root.
const PORT: u16 = 2121;
/// Where it listens for data connections: one port for each client that may fetch at the same time, and
/// some more for what the last ones left behind.
const PASSIVE: [u16; 2] = [2130, 2145];
/// Seconds for which a transfer may make no progress before vsftpd gives it up: longer than any
/// outage that is measured.
const STALLED: u32 = 120;
/// How long a server may take to be there, on a machine that stalls: Python alone takes half a second.
const READY_LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The protocol number of Multipath TCP (`IPPROTO_MPTCP`).
const IPPROTO_MPTCP: &str = "262";
/// The wrapper that runs in Python.
const SCRIPT: &str = include_str!("server.py");

/// How a file is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that serves.
    pub program: Program,
    /// The address to listen on, one of the host. With Multipath TCP it must be [`Mptcp::remote`].
    pub address: IpAddr,
    /// Bytes of the file.
    pub bytes: u64,
    /// Multipath TCP instead of TCP.
    pub mptcp: Option<Mptcp>,
}

/// Why no server serves.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot be used here; everything else can.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It should have worked.
    #[error("the FTP server does not start: {0:#}")]
    Failed(#[from] anyhow::Error),
}

/// A server at work. Dropping it ends it and all its sessions, and removes the file.
#[derive(Debug)]
pub struct Server {
    process: Child,
    options: Options,
    _doors: Vec<Doors>,
    /// Holds the file and what the program was given.
    _folder: TempDir,
}

impl Server {
    /// Starts a server in `host` and waits until it greets.
    ///
    /// # Errors
    ///
    /// See [`StartError`]; with what the program printed, if it did not greet.
    pub fn start(host: &Host, options: Options) -> Result<Self, StartError> {
        let program = options.program.command(options.mptcp.is_some())?;
        Ok(Self::run(host, options, &program)?)
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.options.address, PORT)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.options.bytes
    }

    pub(super) fn mptcp(&self) -> Option<&Mptcp> {
        self.options.mptcp.as_ref()
    }

    fn run(host: &Host, options: Options, program: &[OsString]) -> Result<Self> {
        let folder = Folder::make(options.bytes).context("cannot provide the file")?;
        let (first, rest) = program.split_first().context("no program")?;
        let mut command = guard::command(first);
        command.args(rest);
        match options.program {
            Program::Pyftpdlib => folder.for_python(&options, &mut command)?,
            Program::Vsftpd => folder.for_vsftpd(&options, &mut command)?,
        }
        let log = File::create(folder.log())?;
        // Where a client would be, vsftpd complains to descriptor 0.
        command.stdin(log.try_clone()?).stdout(log.try_clone()?).stderr(log);
        let doors = open_doors(host, &options)?;
        let process = host.spawn(&mut command).context("cannot run it")?;
        let log = folder.log();
        let mut server = Self { process, options, _doors: doors, _folder: folder.root };
        server.await_greeting(host, &log)?;
        Ok(server)
    }

    fn await_greeting(&mut self, host: &Host, log: &Path) -> Result<()> {
        let deadline = Instant::now() + READY_LIMIT;
        let printed = || fs::read_to_string(log).unwrap_or_default();
        while let Err(error) = host.run(|| greet(self.address())) {
            if let Some(status) = self.process.try_wait()? {
                bail!(
                    "{} ended ({status}); it printed:\n{}",
                    self.options.program.name(),
                    printed()
                );
            }
            if Instant::now() > deadline {
                let limit = READY_LIMIT.as_secs();
                bail!("no greeting within {limit} s ({error}); it printed:\n{}", printed());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, but its number is taken until it is waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Connects once and reads the first of the greeting: code 220.
fn greet(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, READY_LIMIT)?;
    stream.set_read_timeout(Some(READY_LIMIT))?;
    let mut code = [0; 3];
    stream.read_exact(&mut code)?;
    if &code == b"220" {
        return Ok(());
    }
    Err(io::Error::other(format!("it greets with {}", code.escape_ascii())))
}

/// The server listens on one address, and for data only until the first subflow has come.
fn open_doors(host: &Host, options: &Options) -> Result<Vec<Doors>> {
    let Some(mptcp) = &options.mptcp else { return Ok(Vec::new()) };
    let [first, last] = PASSIVE;
    let doors = (first..=last).map(|port| mptcp.open_doors(host, port));
    doors.collect::<io::Result<_>>().context("cannot listen for further subflows")
}

/// What a server is given.
struct Folder {
    root: TempDir,
}

impl Folder {
    fn make(bytes: u64) -> io::Result<Self> {
        let folder = Self { root: tempfile::Builder::new().prefix("mpt-lab-ftp-").tempdir()? };
        // The server reads as a user who may do nothing else.
        readable(folder.root.path())?;
        for inner in [folder.public(), folder.empty()] {
            fs::create_dir(&inner)?;
            readable(&inner)?;
        }
        let path = folder.public().join(FILE);
        let file = File::create(&path)?;
        file.set_len(bytes)?;
        file.set_permissions(Permissions::from_mode(0o444))?;
        Ok(folder)
    }

    /// What clients see.
    fn public(&self) -> PathBuf {
        self.root.path().join("public")
    }

    /// Where a process goes that needs no file.
    fn empty(&self) -> PathBuf {
        self.root.path().join("empty")
    }

    /// What the server prints.
    fn log(&self) -> PathBuf {
        self.root.path().join("log")
    }

    fn for_python(&self, options: &Options, command: &mut Command) -> io::Result<()> {
        let script = self.root.path().join("server.py");
        fs::write(&script, SCRIPT)?;
        let protocol = if options.mptcp.is_some() { IPPROTO_MPTCP } else { "0" };
        // Nothing is written beside the library's files.
        command.arg("-B").arg(script).arg(options.address.to_string());
        command.args([PORT, PASSIVE[0], PASSIVE[1]].map(|port| port.to_string()));
        command.arg(self.public()).arg(protocol);
        Ok(())
    }

    fn for_vsftpd(&self, options: &Options, command: &mut Command) -> io::Result<()> {
        let configuration = self.root.path().join("vsftpd.conf");
        fs::write(&configuration, self.vsftpd_configuration(options.address))?;
        command.arg(configuration);
        Ok(())
    }

    /// The settings of `vsftpd.conf(5)` that differ from its defaults or on which all depends.
    fn vsftpd_configuration(&self, address: IpAddr) -> String {
        let [listen, key] = match address {
            IpAddr::V4(_) => ["listen", "listen_address"],
            IpAddr::V6(_) => ["listen_ipv6", "listen_address6"],
        };
        let [first, last] = PASSIVE;
        let (public, empty) = (self.public(), self.empty());
        format!(
            "background=NO\n\
             listen=NO\n\
             {listen}=YES\n\
             {key}={address}\n\
             listen_port={PORT}\n\
             pasv_min_port={first}\n\
             pasv_max_port={last}\n\
             anonymous_enable=YES\n\
             no_anon_password=YES\n\
             anon_root={public}\n\
             local_enable=NO\n\
             write_enable=NO\n\
             xferlog_enable=NO\n\
             secure_chroot_dir={empty}\n\
             data_connection_timeout={STALLED}\n\
             seccomp_sandbox=NO\n\
             isolate_network=NO\n\
             isolate=NO\n",
            public = public.display(),
            empty = empty.display(),
        )
    }
}

fn readable(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_large_file_takes_no_room() {
        let folder = Folder::make(1 << 30).unwrap();
        let data = fs::metadata(folder.public().join(FILE)).unwrap();
        assert_eq!(data.len(), 1 << 30);
        assert!(data.blocks() * 512 < 1 << 20, "{} blocks", data.blocks());
        let path = folder.root.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
