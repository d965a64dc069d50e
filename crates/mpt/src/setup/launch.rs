//! A daemon in the foreground, and waiting until it has reached its peer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{self, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mpt_control::{Client, ConnectionState, Reply, Request, Status};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;

use super::{Folder, program};

/// How often the daemon is asked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a daemon may take to end. It removes an interface and a few routes.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A daemon that this process has started, and ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct Child(process::Child);

impl Child {
    /// Starts the daemon; what it logs goes to `log`, or to standard error.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn start(config: &Path, log: Option<File>) -> Result<Self> {
        program::daemon(config, log).map(Self)
    }

    /// How it has ended, if it has.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("cannot wait for the daemon")
    }

    /// Has it remove what it made, and waits until it has.
    ///
    /// # Errors
    ///
    /// The kernel's, or it does not end.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.0.id()).context("a process has no number")?;
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("cannot end the daemon")?;
        let deadline = Instant::now() + END_LIMIT;
        while self.ended()?.is_none() {
            if Instant::now() >= deadline {
                bail!("the daemon (process {pid}) does not end: see its log");
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = self.end();
    }
}

/// Ends the daemon that runs this configuration and listens on that control socket, if there is one, and waits until it has
/// ended.
///
/// # Errors
///
/// It belongs to somebody else, or does not end.
pub(crate) fn end_daemon(config: &Path, socket: &Path) -> Result<()> {
    let Ok(stream) = UnixStream::connect(socket) else { return Ok(()) };
    let peer = getsockopt(&stream, sockopt::PeerCredentials)
        .context("the kernel does not say who listens on the control socket")?;
    let pid = Pid::from_raw(peer.pid());
    if !runs(pid, config) {
        // Somebody has started another one by hand.
        return Ok(());
    }
    match kill(pid, Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot end the daemon (process {pid})"));
        }
    }
    let deadline = Instant::now() + END_LIMIT;
    while UnixStream::connect(socket).is_ok() {
        if Instant::now() >= deadline {
            bail!("the daemon (process {pid}) does not end: see its log");
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Whether a process was started as `mpt run` with this file.
fn runs(pid: Pid, config: &Path) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    let line = fs::read(process.join("cmdline"));
    let folder = process.join("cwd").read_link();
    line.ok()
        .zip(folder.ok())
        .is_some_and(|(line, folder)| names(&line, &folder, [config, &Folder::usual_config()]))
}

/// Whether a command line, in its folder, names `config` as the file, or no file, and `config` is the one that is read then.
fn names(line: &[u8], folder: &Path, [config, usual]: [&Path; 2]) -> bool {
    let wanted = config.canonicalize().ok();
    let file = |argument: &[u8]| folder.join(OsStr::from_bytes(argument)).canonicalize().ok();
    let mut files = line.split(|byte| *byte == 0).skip(2).filter(|it| !it.is_empty()).peekable();
    let is_usual = files.peek().is_none() && usual.canonicalize().ok() == wanted;
    wanted.is_some() && (is_usual || files.any(|argument| file(argument) == wanted))
}

/// What came of waiting for a peer.
#[derive(Debug)]
pub(crate) enum Waited {
    /// A connection has a path that is up.
    Up(Box<ConnectionState>),
    /// The daemon that was started has ended as somebody told it to, such as `mpt leave`.
    Ended,
    /// None has. This is what the daemon said of the first connection last, if it said anything.
    InVain(Option<Box<ConnectionState>>),
}

/// Waits until a connection has a path that is up, or somebody does not want to wait any longer.
///
/// # Errors
///
/// The daemon that was started has ended.
pub(crate) fn await_up(
    socket: &Path,
    patience: Duration,
    mut child: Option<&mut Child>,
    has_enough: &mut dyn FnMut() -> bool,
) -> Result<Waited> {
    let deadline = Instant::now() + patience;
    let mut last = None;
    loop {
        if let Some(status) = ask(socket) {
            let all = status.tunnels.into_iter().flat_map(|tunnel| tunnel.connections);
            let mut all: Vec<_> = all.map(Box::new).collect();
            let up = all.iter().position(|it| it.paths.iter().any(|path| path.state == "up"));
            if let Some(up) = up {
                return Ok(Waited::Up(all.swap_remove(up)));
            }
            last = all.into_iter().next();
        }
        // What interrupts this process may have ended the daemon as well.
        let ended = child.as_mut().map(|child| child.ended()).transpose()?.flatten();
        if has_enough() || Instant::now() >= deadline {
            return Ok(Waited::InVain(last));
        }
        if let Some(status) = ended {
            if status.success() {
                return Ok(Waited::Ended);
            }
            bail!("the daemon ended at its start ({status})");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What the daemon says, unless it is not there yet.
fn ask(socket: &Path) -> Option<Box<Status>> {
    let reply = Client::connect(socket).and_then(|mut client| client.request(&Request::Status {}));
    match reply {
        Ok(Reply::Status { status }) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_file_and_without_one_by_the_usual_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for name in ["mpt.toml", "other.toml"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let [own, other] = ["mpt.toml", "other.toml"].map(|name| folder.join(name));
        let absolute = format!("mpt\0run\0{}\0", own.display());
        for (line, usual, is_it) in [
            (absolute.as_str(), &other, true),
            ("mpt\0run\0mpt.toml\0", &other, true),
            ("mpt\0run\0other.toml\0", &own, false),
            ("mpt\0run\0", &own, true),
            ("mpt\0run\0", &other, false),
            ("mpt\0run\0gone.toml\0", &own, false),
        ] {
            assert_eq!(names(line.as_bytes(), folder, [&own, usual]), is_it, "{line:?}");
        }
    }
}
