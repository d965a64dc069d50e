//! Settings of the kernel under `/proc/sys` (`proc_sys(5)`), by their place there with slashes:
//! `net/ipv4/ip_forward`. A name with slashes is never ambiguous, while dots also occur in the names
//! of interfaces. Those below `net` are the settings of the calling thread's network namespace.

use std::fs;
use std::io;

/// The number that the setting `name` has.
///
/// # Errors
///
/// `NotFound` if this kernel has no such setting, such as those below `net/ipv6` without IPv6;
/// `InvalidInput` if `name` leads out of `/proc/sys`; or the error of reading, or of a value that
/// is not a number.
pub fn number(name: &str) -> io::Result<i64> {
    let leads_out = name.starts_with('/') || name.split('/').any(|part| part == "..");
    if leads_out {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of a setting"));
    }
    let text = fs::read_to_string(format!("/proc/sys/{name}"))?;
    text.trim().parse().map_err(io::Error::other)
}

/// `name` in the form that `sysctl(8)` shows: dots for slashes, and slashes for the dots of
/// interfaces, as in `net.ipv4.conf.eth0/100.rp_filter` (`sysctl.d(5)`).
pub fn with_dots(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_what_is_none_is_an_error() {
        assert!(number("kernel/pid_max").unwrap() > 0);
        assert_eq!(number("net/no_such_setting").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(number("kernel/ostype").is_err());
        for outside in ["/proc/sys/kernel/pid_max", "../loadavg", "net/../kernel/pid_max"] {
            assert_eq!(number(outside).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn dots_of_interfaces_are_kept_apart() {
        assert_eq!(with_dots("net/ipv4/ip_forward"), "net.ipv4.ip_forward");
        let with_vlan = with_dots("net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(with_vlan, "net.ipv4.conf.eth0/100.rp_filter");
    }
}
