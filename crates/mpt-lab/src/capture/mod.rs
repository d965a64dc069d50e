//! Packet evidence: what passed the links and tunnels of a lab, in files for Wireshark.
//!
//! A [`Capture`] writes one pcapng file from when it is started until it is finished. It has an
//! interface for each end of each link, `left fibre` and `right fibre`, and for each tunnel device
//! in each host, such as `left mpt0`. At a link's end a packet is seen as the host sent it, before
//! a translator and before the link, with a comment if the link did something to it: `lost`,
//! `queue full`, `black-out`, `corrupted`. At the other end it is seen if and when it came out.
//!
//! With the emulator the link's own thread hands its packets over; it is never kept waiting. With
//! netem, and at tunnel devices, a packet socket listens; netem stands before it, so that it sees
//! packets when they leave the delay behind, and those that are lost not at all. What did not get into the
//! file is counted, per interface, in the file and in the [`Summary`].

mod listener;
pub mod pcapng;
mod recorder;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow, bail};
use mpt_io::netlink::Netlink;
use serde::Serialize;

use crate::emulator::TapHandle;
use crate::emulator::tap::{self, Origin, Tap};
use crate::lab::{Host, Lab};
use crate::topology::Side;
use listener::Listener;
use pcapng::Writer;
use recorder::{Interface, Recorder};

/// The default of the bytes kept of a packet: all.
pub const WHOLE: u32 = 1 << 16;

/// A running capture. Dropping it ends the file as [`finish`](Self::finish) does, without a result.
#[derive(Debug)]
pub struct Capture {
    file: PathBuf,
    links: Vec<TapHandle>,
    listeners: Vec<Listener>,
    recorder: Option<JoinHandle<io::Result<Vec<Interface>>>>,
    end: Arc<AtomicBool>,
}

/// What a capture has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Where.
    pub file: PathBuf,
    /// Per interface, in the order of the file.
    pub interfaces: Vec<InterfaceSummary>,
}

/// What a capture has written of one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceSummary {
    /// The host and the link or device, such as `left fibre`.
    pub name: String,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that passed, but are not in the file, because something did not keep up.
    pub dropped: u64,
}

impl Summary {
    /// Packets in the file.
    pub fn packets(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.packets).sum()
    }

    /// Packets that are not in the file.
    pub fn dropped(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.dropped).sum()
    }
}

impl Capture {
    /// Captures whole packets of all links and of the tunnel devices `tuns`, each in every host
    /// that has it, to a file that is created or overwritten.
    ///
    /// # Errors
    ///
    /// The file cannot be written, a device of `tuns` is in neither host, or the kernel refuses a
    /// packet socket.
    pub fn start(lab: &Lab, file: &Path, tuns: &[&str]) -> Result<Self> {
        Self::start_with(lab, file, tuns, WHOLE)
    }

    /// The same, but keeps at most the first `snap` bytes of a packet.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn start_with(lab: &Lab, file: &Path, tuns: &[&str], snap: u32) -> Result<Self> {
        let out = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
        Plan::new(out, snap)
            .and_then(|plan| plan.carry_out(lab, file, tuns))
            .with_context(|| format!("cannot capture to {}", file.display()))
    }

    /// Ends the capture once all that had passed before is in the file.
    ///
    /// # Errors
    ///
    /// The file could not be written to its end, or a listener failed.
    pub fn finish(mut self) -> Result<Summary> {
        self.end().with_context(|| format!("cannot capture to {}", self.file.display()))
    }

    fn end(&mut self) -> Result<Summary> {
        self.links.drain(..).for_each(TapHandle::remove);
        let listened: io::Result<Vec<()>> = self.listeners.drain(..).map(Listener::stop).collect();
        self.end.store(true, Ordering::Release);
        let recorder = self.recorder.take().context("it has ended before")?;
        let written = recorder.join().map_err(|_| anyhow!("its writing thread failed"))?;
        listened.context("a packet socket failed")?;
        let interface = |interface: Interface| InterfaceSummary {
            name: interface.name,
            packets: interface.written,
            dropped: interface.dropped.load(Ordering::Relaxed),
        };
        let interfaces = written?.into_iter().map(interface).collect();
        Ok(Summary { file: self.file.clone(), interfaces })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.recorder.is_some() {
            // A caller that needs the outcome calls `finish`.
            let _ = self.end();
        }
    }
}

/// A capture being started.
struct Plan {
    writer: Writer<BufWriter<File>>,
    entrance: tap::Entrance,
    exit: tap::Exit,
    origin: Origin,
    snap: u32,
    interfaces: Vec<Interface>,
}

impl Plan {
    fn new(out: File, snap: u32) -> Result<Self> {
        let application = concat!("mpt-lab ", env!("CARGO_PKG_VERSION"));
        let writer = Writer::new(BufWriter::new(out), application)?;
        let origin = Origin::here();
        let (entrance, exit) = tap::queue(origin, snap as usize);
        Ok(Self { writer, entrance, exit, origin, snap, interfaces: Vec::new() })
    }

    fn carry_out(mut self, lab: &Lab, file: &Path, tuns: &[&str]) -> Result<Capture> {
        // All interfaces come before the first packet.
        let mut ends = Vec::new();
        for wire in lab.links() {
            let mut end = |side: Side| {
                let description = format!("link {}, {} end", wire.name(), side.name());
                self.interface(side, wire.name(), &description)
            };
            ends.push([end(Side::Left)?, end(Side::Right)?]);
        }
        let mut devices = Vec::new();
        for name in tuns {
            let found = [lab.left(), lab.right()].map(|host| index(host, name));
            let mut nowhere = true;
            for (host, index) in [lab.left(), lab.right()].into_iter().zip(found) {
                let Some(index) = index? else { continue };
                let description = format!("tunnel device {name} of host {}", host.name());
                devices.push((host, index, self.interface(host.side(), name, &description)?));
                nowhere = false;
            }
            if nowhere {
                bail!("neither host has a device `{name}`");
            }
        }

        let Self { writer, entrance: _, exit, origin, snap, interfaces } = self;
        let recorder = Recorder::new(writer, interfaces, exit, origin);
        let end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&end);
        let recorder = thread::Builder::new()
            .name("capture file".into())
            .spawn(move || recorder.run(&told))
            .context("cannot start the thread that writes")?;
        let mut capture = Capture {
            file: file.to_owned(),
            links: Vec::new(),
            listeners: Vec::new(),
            recorder: Some(recorder),
            end,
        };
        // What follows may fail; dropping the capture then ends what has begun.
        for (wire, taps) in lab.links().iter().zip(ends) {
            if wire.is_emulated() {
                capture.links.push(wire.tap(taps)?);
                continue;
            }
            for (host, tap) in [lab.left(), lab.right()].into_iter().zip(taps) {
                let index = index(host, wire.name())?;
                let index = index.with_context(|| format!("`{}` was deleted", wire.name()))?;
                devices.push((host, index, tap));
            }
        }
        for (host, index, tap) in devices {
            let snap = snap as usize;
            capture.listeners.push(Listener::start(host, index, tap, origin, snap)?);
        }
        Ok(capture)
    }

    fn interface(&mut self, side: Side, name: &str, description: &str) -> Result<Tap> {
        let name = format!("{} {name}", side.name());
        let number = self.writer.interface(&name, description, self.snap)?;
        let (tap, dropped) = self.entrance.tap(number);
        self.interfaces.push(Interface { name, dropped, written: 0 });
        Ok(tap)
    }
}

/// The index of a host's interface; `None` if it has none of that name.
fn index(host: &Host, name: &str) -> Result<Option<u32>> {
    let link = host.run(|| Netlink::open()?.link(name))?;
    Ok(link.map(|link| link.index))
}
