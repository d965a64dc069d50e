//! What this process may do (`capabilities(7)`).

use std::fs;
use std::io;

/// Number of `CAP_NET_ADMIN`, which interfaces, routes, marks and large socket buffers need
/// (`linux/capability.h`).
const NET_ADMIN: u32 = 12;

/// Whether the calling thread has `CAP_NET_ADMIN` in its user namespace.
///
/// # Errors
///
/// What reading `/proc` says; `InvalidData` if it says nothing about capabilities.
pub fn net_admin() -> io::Result<bool> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    effective(&status)
        .map(|set| set & 1 << NET_ADMIN != 0)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no capabilities in status"))
}

/// The effective set in the text of `/proc/PID/status`.
fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let status = "Name:\tmpt\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000001400\n";
        assert_eq!(effective(status), Some(0x1400));
        assert_eq!(effective("Name:\tmpt\n"), None);
        assert_eq!(effective("CapEff:\tnothing\n"), None);
        net_admin().unwrap();
    }
}
