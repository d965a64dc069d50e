//! Information about a process from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The unit of times in /proc/PID/stat: `USER_HZ` is 100 for programs on every architecture that
/// Rust supports on Linux, whatever the kernel's own tick.
const TICK: Duration = Duration::from_millis(10);

/// Processor time, user and system together, of all threads that ever ran in the process, to the nanosecond.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let read = || {
        let process = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        clock_gettime(clock_getcpuclockid(Pid::from_raw(process))?)
    };
    let time =
        read().with_context(|| format!("cannot read the processor time of process {pid}"))?;
    Ok(time.into())
}

/// The part of [`cpu_time`] that is not the kernel's, to within 10 ms.
pub(crate) fn user_time(pid: u32) -> Result<Duration> {
    let file = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let ticks = ticks(&text).with_context(|| format!("{file} has not the format of proc(5)"))?;
    Ok(TICK * ticks[0])
}

/// User and system time in the stat file of a process or a thread.
pub(crate) fn time_in(stat: &str) -> Option<Duration> {
    let [user, system] = ticks(stat)?;
    Some(TICK * user.checked_add(system)?)
}

/// Resident memory in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let file = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    resident(&text).with_context(|| format!("{file} names no resident memory"))
}

/// Fields 14 and 15, utime and stime. The second is a name in parentheses and may contain spaces
/// and parentheses, so fields are counted from the last closing one.
fn ticks(stat: &str) -> Option<[u32; 2]> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some([next()?, next()?])
}

fn resident(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 9";
        assert_eq!(ticks(stat), Some([250, 50]));
        assert_eq!(time_in(stat), Some(3 * Duration::from_secs(1)));
        assert_eq!(ticks("77 (a"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(resident("Name:\ta\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(resident("Name:\ta\n"), None);
    }

    #[test]
    fn this_process_is_found() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).unwrap() > 100_000);
        let before = cpu_time(pid).unwrap();
        let mut work = 1_u64;
        for round in 1..100_000 {
            work = std::hint::black_box(work.rotate_left(7) ^ round);
        }
        assert!(cpu_time(pid).unwrap() > before, "less than a tick counts");
        assert!(cpu_time(u32::MAX).is_err());
    }
}
