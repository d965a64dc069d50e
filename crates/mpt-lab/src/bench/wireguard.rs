//! wireguard-go: WireGuard as a program of Go, which does the same as this daemon does in sealed framing: it moves packets
//! between a TUN device and a UDP socket, and encrypts them.
//!
//! It is configured on its own socket, so that no other program of WireGuard is needed. The socket's place is fixed by
//! the interface's name and the same for the whole machine, hence a name with our process id.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio, id};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mpt_io::netlink::Netlink;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hosts::find;
use super::ready::Lacking;
use crate::cell::keys;
use crate::daemon::process;
use crate::guard;
use crate::netns::Namespace;
use crate::topology::Side;

const PROGRAM: &str = "wireguard-go";
/// Where every program of WireGuard has its sockets.
const SOCKETS: &str = "/var/run/wireguard";
/// WireGuard's usual port.
pub(super) const PORT: u16 = 51820;
/// How long it may take to answer, and then to agree with its peer: a handshake that is lost is repeated after 5 s.
const LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One end, on one host.
#[derive(Debug)]
pub(super) struct WireguardGo {
    child: Child,
    side: Side,
    /// What it printed.
    log: File,
    socket: PathBuf,
}

/// Where an end is: in the tunnel, and on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) side: Side,
    pub(super) inner: IpAddr,
    pub(super) outer: IpAddr,
}

impl WireguardGo {
    /// Starts both ends in their namespaces and waits until they have a session. Neither has an MTU other than its own.
    ///
    /// # Errors
    ///
    /// [`Lacking`] inside, if there is no such program or if it does not run here; any other error is a failure.
    pub(super) fn start_both(ends: [(&Namespace, Place); 2]) -> Result<Vec<Self>> {
        let program = program()?;
        let [left, right] = ends;
        let mut started = Vec::new();
        // The left one begins the handshake, so the right one is there before it.
        for ((namespace, own), (_, peer)) in [(right, left), (left, right)] {
            started.push(Self::start(&program, namespace, own, peer)?);
        }
        for end in &started {
            end.await_session()?;
        }
        Ok(started)
    }

    fn start(program: &Path, namespace: &Namespace, own: Place, peer: Place) -> Result<Self> {
        let interface = format!("wg{}{}", id(), &own.side.name()[..1]);
        let log = tempfile::tempfile().context("cannot make a log")?;
        let mut command = guard::command(program);
        command.arg("-f").arg(&interface).env("LOG_LEVEL", "error");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.try_clone()?);
        let child = namespace.spawn(&mut command);
        let child = child.with_context(|| format!("cannot start {}", program.display()))?;
        let socket = Path::new(SOCKETS).join(format!("{interface}.sock"));
        let mut end = Self { child, side: own.side, log, socket };
        end.await_socket()?;
        end.configure(own, peer)?;
        namespace.run(|| -> Result<()> {
            let mut netlink = Netlink::open()?;
            let index = find(&mut netlink, &interface)?.index;
            netlink.disable_address_generation(index)?;
            netlink.add_address(index, own.inner, 24)?;
            Ok(netlink.set_up(index, true)?)
        })?;
        Ok(end)
    }

    fn configure(&self, own: Place, peer: Place) -> Result<()> {
        let (private, public) = (hex(&keys::bytes(own.side)), hex(keys::public(peer.side).bytes()));
        let endpoint = SocketAddr::new(peer.outer, PORT);
        // A keepalive is what makes it begin a handshake before there is traffic.
        let keepalive = if own.side == Side::Left { 25 } else { 0 };
        let answer = self.ask(&format!(
            "set=1\nprivate_key={private}\nlisten_port={PORT}\npublic_key={public}\nendpoint={endpoint}\n\
             allowed_ip={}/32\npersistent_keepalive_interval={keepalive}\n\n",
            peer.inner
        ))?;
        ensure!(answer == ["errno=0"], "{PROGRAM} does not take its configuration: {answer:?}");
        Ok(())
    }

    /// The host it runs on.
    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor time used since the start.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.pid())
    }

    /// Memory resident at the moment, in bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        process::resident_bytes(self.pid())
    }

    fn await_socket(&mut self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        while UnixStream::connect(&self.socket).is_err() {
            if let Some(status) = self.child.try_wait()? {
                let why = format!("it ended with {status}; {}", self.printed());
                return Err(Lacking::Program { name: PROGRAM, why }.into());
            }
            if Instant::now() > deadline {
                bail!("{PROGRAM} does not answer at {}", self.socket.display());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn await_session(&self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let answer = self.ask("get=1\n\n")?;
            let begun = |line: &String| {
                let seconds = line.strip_prefix("last_handshake_time_sec=");
                seconds.is_some_and(|seconds| seconds != "0")
            };
            if answer.iter().any(begun) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("two ends of {PROGRAM} do not agree on keys; one says {answer:?}");
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The lines of the answer to a request, without the empty one at its end.
    fn ask(&self, request: &str) -> Result<Vec<String>> {
        let context = || format!("{PROGRAM} at {}", self.socket.display());
        let mut stream = UnixStream::connect(&self.socket).with_context(context)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(request.as_bytes()).with_context(context)?;
        let lines = BufReader::new(stream).lines();
        let until_empty =
            |line: &Result<String, _>| line.as_ref().map_or(true, |it| !it.is_empty());
        lines.take_while(until_empty).collect::<Result<_, _>>().with_context(context)
    }

    fn printed(&mut self) -> String {
        let mut text = String::new();
        let read = self.log.rewind().and_then(|()| self.log.read_to_string(&mut text));
        let text = text.trim();
        if read.is_err() || text.is_empty() { "it printed nothing".into() } else { text.into() }
    }
}

impl Drop for WireguardGo {
    /// It removes its socket if it is asked to end.
    fn drop(&mut self) {
        let deadline = Instant::now() + END_LIMIT;
        let pid = Pid::from_raw(self.child.id().cast_signed());
        if kill(pid, Signal::SIGTERM).is_ok() {
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(LOOK_EVERY);
            }
        }
        // What is gone already, is gone: a destructor has nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

/// The program on the PATH.
fn program() -> Result<PathBuf, Lacking> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    let found = env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(is_program);
    found.ok_or_else(|| Lacking::Program {
        name: PROGRAM,
        why: "it is not on the PATH; `go install golang.zx2c4.com/wireguard@latest` makes a program `wireguard`, to be named so"
            .into(),
    })
}

/// Keys are written so on its socket.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
