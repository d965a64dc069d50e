//! Systems that a user has installed: any program that makes a tunnel between two hosts.
//!
//! The experiment names a script, which is run once inside each host as `SCRIPT left` and `SCRIPT
//! right`. It creates an interface with the address of its side and runs until SIGTERM; everything
//! it starts should end with it. Its parameters are in its environment:
//!
//! | variable | |
//! |---|---|
//! | `MPT_LAB_SIDE` | `left` or `right` |
//! | `MPT_LAB_INNER` | the address to make, with prefix length: `10.9.0.1/24` |
//! | `MPT_LAB_INNER_PEER` | that of the other side |
//! | `MPT_LAB_LINKS` | one line per link: interface, own address, the other's address, weight |
//!
//! It is ready when each side reaches the other's inner address.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::cell::configuration::inner_address;
use crate::guard;
use crate::lab::Lab;
use crate::stop::Stop;
use crate::topology::Side;

/// How long both sides may take to reach each other.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_millis(200);
/// How long a script may take to end when it is asked to.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A system that a script starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Its name in records.
    pub name: String,
    /// The script: a path, or a command that is found as a shell finds it.
    pub script: String,
}

/// Both sides of it, running. They are ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Scripts {
    sides: [(Side, Child, File); 2],
}

impl Scripts {
    /// Starts the script on both sides and waits until they reach each other.
    pub(super) fn start(external: &External, lab: &Lab, cell: &Cell, stop: &Stop) -> Result<Self> {
        let start = |side: Side| -> Result<(Side, Child, File)> {
            let log = tempfile::tempfile().context("cannot make a file for a script's words")?;
            let mut command = guard::command(&external.script);
            command
                .arg(side.name())
                .env("MPT_LAB_SIDE", side.name())
                .env("MPT_LAB_INNER", format!("{}/{}", inner(cell, side), prefix(cell)))
                .env("MPT_LAB_INNER_PEER", inner(cell, other(side)).to_string())
                .env("MPT_LAB_LINKS", links(cell, side))
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(log.try_clone().context("cannot share a file")?)
                .stderr(log.try_clone().context("cannot share a file")?);
            let child = lab.host(side).spawn(&mut command);
            Ok((side, child.with_context(|| format!("cannot start {}", external.script))?, log))
        };
        let mut scripts = Self { sides: [start(Side::Left)?, start(Side::Right)?] };
        scripts.await_ready(external, lab, cell, stop)?;
        Ok(scripts)
    }

    fn await_ready(
        &mut self,
        external: &External,
        lab: &Lab,
        cell: &Cell,
        stop: &Stop,
    ) -> Result<()> {
        let deadline = Instant::now() + READY_LIMIT;
        let to = inner(cell, Side::Right);
        loop {
            stop.check()?;
            for (side, child, log) in &mut self.sides {
                if let Some(status) = child.try_wait()? {
                    let (script, side) = (&external.script, side.name());
                    bail!("{script} {side} ended, {status}; it printed:\n{}", printed(log));
                }
            }
            if lab.left().run(|| answers(to)) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let limit = READY_LIMIT.as_secs();
                bail!("`{}` did not carry packets to {to} within {limit} s", external.name);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        for (_, child, _) in &self.sides {
            if let Ok(pid) = i32::try_from(child.id()) {
                // Its children are in its process group. A group that has ended already is fine.
                let _ = killpg(Pid::from_raw(pid), Signal::SIGTERM);
            }
        }
        let deadline = Instant::now() + END_LIMIT;
        for (_, child, _) in &mut self.sides {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(LOOK_EVERY);
            }
            // A destructor cannot handle a process that cannot be killed.
            if let Ok(pid) = i32::try_from(child.id()) {
                let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
            }
            let _ = child.wait();
        }
    }
}

/// Whether a host answers at all: a port that is closed answers, too, by refusing.
fn answers(address: IpAddr) -> bool {
    match TcpStream::connect_timeout(&SocketAddr::new(address, 9), ATTEMPT) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    }
}

fn printed(log: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = log.seek(SeekFrom::Start(0)).and_then(|_| log.read_to_end(&mut bytes));
    read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

fn links(cell: &Cell, side: Side) -> String {
    let topology = &cell.topology;
    let mut lines = String::new();
    for (index, (link, weight)) in topology.links.iter().zip(&cell.tunnel.weights).enumerate() {
        let (own, peer) =
            (topology.address(side, index), topology.known_address(other(side), index));
        let _ = writeln!(lines, "{} {own} {peer} {weight}", link.name);
    }
    lines
}

fn inner(cell: &Cell, side: Side) -> IpAddr {
    inner_address(side, cell.tunnel.inner)
}

fn prefix(cell: &Cell) -> u8 {
    if inner(cell, Side::Left).is_ipv4() { 24 } else { 64 }
}

fn other(side: Side) -> Side {
    match side {
        Side::Left => Side::Right,
        Side::Right => Side::Left,
    }
}
