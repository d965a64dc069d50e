//! The checks, one function each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use mpt_io::limits;

use super::{Finding, try_in_child};
use crate::privilege::{self, TUN_NODE};

/// Bytes a daemon's socket should hold: what 100 Mbit/s bring in during a stall of 100 ms, and as
/// much again for the kernel's own bookkeeping.
const SOCKET_BUFFER: usize = 2 << 20;
/// The oldest kernel with all that is used: epoll_pwait2 came with 5.11; older ones work with
/// coarser timers.
const KERNEL: (u32, u32) = (5, 11);

/// Checks all requirements of a lab. `probe` is a command that runs [`super::probe`] in a separate
/// process, as the calling user.
///
/// # Errors
///
/// The capabilities of this process cannot be read.
pub fn check(probe: &mut Command) -> Result<Vec<Finding>> {
    let capable = privilege::is_capable()?;
    let mut findings = vec![kernel(), tun_node()];
    findings.push(if capable { capabilities() } else { user_namespaces() });
    findings.push(whole(probe));
    findings.push(socket_buffers(capable));
    findings.push(congestion_control());
    findings.push(ipv6());
    Ok(findings)
}

fn kernel() -> Finding {
    const WHAT: &str = "kernel";
    let release = text_of("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= KERNEL => {
            Finding::ok(WHAT, format!("Linux {release}"))
        }
        _ => Finding::lacking(
            WHAT,
            format!("Linux {release}; timers are precise from {}.{}", KERNEL.0, KERNEL.1),
            "install a newer kernel, such as the distribution's backport",
        ),
    }
}

fn tun_node() -> Finding {
    const WHAT: &str = "TUN device";
    match privilege::check_tun(Path::new(TUN_NODE)) {
        Ok(()) => {
            let mode = fs::metadata(TUN_NODE).map_or(0, |data| data.permissions().mode() & 0o7777);
            Finding::ok(WHAT, format!("{TUN_NODE} can be opened, mode {mode:04o}"))
        }
        Err(missing) => Finding::lacking(WHAT, missing.to_string(), missing.remedy()),
    }
}

fn capabilities() -> Finding {
    Finding::ok("permission", "this user has CAP_NET_ADMIN and CAP_SYS_ADMIN")
}

/// The sysctls of distributions; which of them exist, and which forbid it.
fn user_namespaces() -> Finding {
    const WHAT: &str = "user namespaces";
    let switches = [
        ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", 1, 15_000),
        ("user.max_net_namespaces", "/proc/sys/user/max_net_namespaces", 1, 15_000),
        ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", 1, 1),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            0,
            0,
        ),
    ];
    let wrong: Vec<_> = switches
        .iter()
        .filter(|(_, file, wanted, _)| {
            let value: Option<u64> = text_of(file).and_then(|text| text.parse().ok());
            value.is_some_and(|value| if *wanted == 0 { value != 0 } else { value == 0 })
        })
        .map(|(name, _, _, value)| format!("{name}={value}"))
        .collect();
    if wrong.is_empty() {
        return Finding::ok(WHAT, "no sysctl forbids them");
    }
    let wrong = wrong.join(" ");
    Finding::lacking(WHAT, "forbidden to this user", format!("sudo sysctl -w {wrong}"))
}

fn whole(probe: &mut Command) -> Finding {
    const WHAT: &str = "host with a device";
    match try_in_child(probe) {
        Ok(Ok(())) => Finding::ok(WHAT, "a network namespace with a TUN device could be made"),
        Ok(Err(complaint)) => Finding { what: WHAT, ok: false, found: complaint, remedy: None },
        Err(error) => Finding {
            what: WHAT,
            ok: false,
            found: format!("cannot be tested: {error}"),
            remedy: None,
        },
    }
}

fn socket_buffers(capable: bool) -> Finding {
    const WHAT: &str = "socket buffers";
    match limits::socket_buffers() {
        Ok(limit) if limit.receive.min(limit.send) >= SOCKET_BUFFER => Finding::ok(
            WHAT,
            format!("up to {} bytes to receive, {} to send", limit.receive, limit.send),
        ),
        Ok(_) if capable => Finding::ok(WHAT, "limits are low, but this user may exceed them"),
        Ok(limit) => Finding::lacking(
            WHAT,
            format!(
                "up to {} bytes to receive, {} to send; fast links want {SOCKET_BUFFER}",
                limit.receive, limit.send
            ),
            format!(
                "sudo sysctl -w net.core.rmem_max={SOCKET_BUFFER} net.core.wmem_max={SOCKET_BUFFER}"
            ),
        ),
        // Some kernels show the limits in the first network namespace only.
        Err(error) => Finding::ok(WHAT, format!("limits are not shown here ({error})")),
    }
}

fn congestion_control() -> Finding {
    const WHAT: &str = "TCP CUBIC";
    let known = text_of("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if known.split_whitespace().any(|name| name == "cubic") {
        Finding::ok(WHAT, format!("this kernel has {}", known.replace(' ', ", ")))
    } else {
        Finding::lacking(WHAT, format!("this kernel has only {known}"), "sudo modprobe tcp_cubic")
    }
}

fn ipv6() -> Finding {
    const WHAT: &str = "IPv6";
    if Path::new("/proc/sys/net/ipv6").exists() {
        Finding::ok(WHAT, "this kernel has it")
    } else {
        Finding::lacking(
            WHAT,
            "this kernel does not have it; links with version = 6 cannot be made",
            "boot without ipv6.disable=1, or sudo modprobe ipv6",
        )
    }
}

fn text_of(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}
