//! The machine that everything runs on, in the words of a manifest.

use std::fs;
use std::thread;

/// The kernel's release, as `uname -r` prints it.
pub(crate) fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |release| release.trim().to_owned())
}

/// How many processors there are for this process; 0 if that is not known.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(0, usize::from)
}

/// The processor's model name.
pub(crate) fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_owned())
}
