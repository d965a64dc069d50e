//! One end of a link: the TUN device in a host's namespace, and what that host lost at it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use anyhow::{Context as _, Result};
use mpt_io::tun::{Device, Offloads, Options};

/// Packets that may wait for the emulator to be scheduled before the host loses them.
///
/// At a link of 1 Gbit/s (83,000 packets of 1500 bytes a second) this bridges a stall of 200 ms,
/// longer than what makes a run doubtful anyhow. It is memory only while packets wait: 40 MB.
pub const DEVICE_QUEUE: u32 = 16_384;

/// Longest table of devices that is looked through: 64 links and then some, 200 bytes each.
const TABLE_BYTES: usize = 64 << 10;

/// One end of a link.
#[derive(Debug)]
pub struct End {
    pub(super) device: Device,
    /// `/proc/net/dev` as of the namespace in which it was opened.
    table: File,
}

/// Packets that a host lost at its device, because the emulator or the host did not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Towards the link.
    pub(super) sent: u64,
    /// From the link.
    pub(super) received: u64,
}

impl Losses {
    /// What was lost between an earlier state of the counters and this one.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
        }
    }
}

impl End {
    /// Opens a device in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// What the kernel refuses and the remedy.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::open(&Options {
            name: name.into(),
            queue_len: Some(DEVICE_QUEUE),
            // The kernel then hands over single, complete packets, and loss and delay are theirs.
            offloads: Offloads::NONE,
        })?;
        let table = "/proc/thread-self/net/dev";
        let table = File::open(table).with_context(|| format!("cannot open {table}"))?;
        Ok(Self { device, table })
    }

    /// The device's interface index in its namespace.
    pub fn index(&self) -> u32 {
        self.device.index()
    }

    /// What the host lost at the device since it was opened.
    pub(super) fn losses(&self) -> io::Result<Losses> {
        let mut text = vec![0; TABLE_BYTES];
        let mut len = 0;
        loop {
            match self.table.read_at(&mut text[len..], len as u64)? {
                0 => break,
                count => len += count,
            }
        }
        let text = String::from_utf8_lossy(&text[..len]);
        find(&text, self.device.name())
            .ok_or_else(|| io::Error::other("the device is not listed in /proc/net/dev"))
    }
}

/// The columns `drop` of a device in `/proc/net/dev` (proc_pid_net(5)).
fn find(table: &str, name: &str) -> Option<Losses> {
    let counters = table.lines().find_map(|line| {
        let (device, counters) = line.rsplit_once(':')?;
        (device.trim() == name).then_some(counters)
    })?;
    let column = |index| counters.split_whitespace().nth(index)?.parse().ok();
    Some(Losses { received: column(3)?, sent: column(11)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_found_in_the_table() {
        let table = "\
Inter-|   Receive                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls
    lo:       0    0    0    0    0     0          0         0        0    0    0    0    0     0
 fibre: 1000000 9999    1    7    2     3          4         5   222222 8888    6   42    8     9
";
        assert_eq!(find(table, "fibre"), Some(Losses { sent: 42, received: 7 }));
        assert_eq!(find(table, "lo"), Some(Losses::default()));
        assert_eq!(find(table, "fib"), None);
    }
}
